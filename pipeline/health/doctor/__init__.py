"""Looks over a home: the disk, locks, the clock, the archive, the record, litter, keys, and
what is published.

Nothing is changed unless ``fix`` is given, and then only what is safe: half-written files, and outdated and
damaged caches.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

from pipeline.contracts.progress import Progress, Step, no_progress
from pipeline.health.doctor import archive, machine, oddments, record
from pipeline.health.doctor.finding import LEVELS, Check, Examination, Finding
from pipeline.home.disk import disk_error_text
from pipeline.home.paths import Home

MAX_LINES_PER_CHECK = 10
"""Further findings of a check are counted."""

CHECKS: Mapping[str, Check] = {
    "home": machine.home,
    "disk": machine.disk,
    "lock": machine.lock,
    "clock": machine.clock,
    "archive": archive.bodies,
    "record": record.files,
    "cache": record.cache,
    "published": record.published,
    "litter": oddments.litter,
    "stray": oddments.stray,
    "own": oddments.own_catalogue,
    "keys": oddments.keys,
    "incidents": oddments.incidents,
}


def examine(
    home: Home,
    *,
    now: datetime,
    environment: Mapping[str, str],
    fix: bool = False,
    every: bool = False,
    progress: Progress = no_progress,
) -> Iterator[Finding]:
    """The findings of every check, at least one of each; of a home that does not exist, that alone.

    ``now`` is in UTC; ``every`` reads all archived bodies instead of a sample.
    """
    examination = Examination(
        home=home, now=now, environment=environment, fix=fix, every=every, progress=progress
    )
    for name, check in CHECKS.items():
        progress(Step(f"checking {name}"))
        found = list(_findings(name, check, examination))
        yield from found[:MAX_LINES_PER_CHECK]
        if rest := found[MAX_LINES_PER_CHECK:]:
            worst = max((finding.level for finding in rest), key=LEVELS.index)
            yield Finding(level=worst, check=name, what=f"{len(rest)} more like these")
        if name == "home" and not home.root.is_dir():
            return


def _findings(name: str, check: Check, examination: Examination) -> Iterator[Finding]:
    try:
        for level, what, where, remedy in check(examination):
            yield Finding(level=level, check=name, what=what, where=where, remedy=remedy)
    except OSError as error:
        yield Finding(level="fail", check=name, what=disk_error_text(error, examination.home))
