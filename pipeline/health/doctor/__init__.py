"""Checks a home: disk, clock, archive, record, litter and the published file. Nothing is changed."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from pipeline.contracts.progress import Progress, Step, no_progress
from pipeline.health.doctor import data, leftovers, machine
from pipeline.health.doctor.finding import LEVELS, Check, Examination, Finding
from pipeline.home.disk import disk_error_text
from pipeline.home.paths import Home

MAX_LINES_PER_CHECK = 10
"""The maximum number of lines shown per check; further findings are only counted."""

CHECKS: Mapping[str, Check] = {
    "home": machine.home,
    "disk": machine.disk,
    "clock": machine.clock,
    "archive": data.bodies,
    "record": data.files,
    "published": data.published,
    "litter": leftovers.litter,
    "stray": leftovers.stray,
    "own": leftovers.own_catalogue,
    "incidents": leftovers.incidents,
}


def examine(
    home: Home,
    *,
    now: datetime,
    every: bool = False,
    progress: Progress = no_progress,
) -> Iterator[Finding]:
    """Yield the findings of every check, at least one per check; if the home is missing, only that finding.

    ``now`` is in UTC; with ``every``, all archived bodies are read instead of a sample.
    """
    examination = Examination(home, now, every, progress)
    for name, check in CHECKS.items():
        progress(Step(f"checking {name}"))
        found = [replace(finding, check=name) for finding in _findings(check, examination)]
        yield from found[:MAX_LINES_PER_CHECK]
        if rest := found[MAX_LINES_PER_CHECK:]:
            worst = max((finding.level for finding in rest), key=LEVELS.index)
            yield Finding(worst, f"{len(rest)} more like these", check=name)
        if name == "home" and not home.root.is_dir():
            return


def _findings(check: Check, examination: Examination) -> Iterator[Finding]:
    try:
        yield from check(examination)
    except OSError as error:
        yield Finding("fail", disk_error_text(error, examination.home))
