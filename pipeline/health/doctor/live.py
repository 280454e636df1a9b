"""Checks whether the sources' readers still work, by refreshing into a temporary home.

robots.txt, terms of use, pauses and the client's limits apply as in a refresh, and readings are judged as if
this were the first day, since a temporary home has no earlier prices. Nothing is published.
"""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Limits
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.progress import Progress, no_progress
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.advice import next_step_of
from pipeline.refresh.inputs import captures_of, chosen_sources, is_url
from pipeline.refresh.permissions import off_lines
from pipeline.refresh.refresh import read_captures
from pipeline.refresh.report import RefreshReport
from pipeline.warehouse.query import Result

_COLUMNS = (
    "source",
    "result",
    "accepted",
    "reason",
    "error",
    "code",
    "requests",
    "failed_requests",
    "bytes",
    "duration_seconds",
    "rows",
    "rejects",
)
"""Columns of capture_outcomes that are shown."""


def examine_live(
    home: Home,
    *,
    names: Sequence[str] = (),
    now: datetime,
    environment: Mapping[str, str],
    pages: str | None = None,
    progress: Progress = no_progress,
    limits: Limits | None = None,
) -> RefreshReport:
    """Visit the sources (all by default), in parallel, and judge their answers.

    ``home`` supplies the permissions and exchange rates, and is not changed. ``pages`` is the URL of a replay
    server to ask instead of the providers. ``now`` is in UTC. Raises GpufareError if no visit can begin.
    """
    if pages is not None and not is_url(pages):
        raise GpufareError(f"--pages {pages}: doctor --live takes the URL of a replay server")
    chosen = chosen_sources(names, pages)
    with tempfile.TemporaryDirectory(prefix="gpufare-doctor-") as folder:
        apart = _temporary_home(home, Path(folder))
        archive, day = Archive(apart.archive), now.date()
        captures = captures_of(
            chosen, day, pages, archive, environment, named=True, progress=progress, limits=limits
        )
        report = RefreshReport(day, replay_url=pages)
        report.off = off_lines(chosen, home, environment) if pages is None else []
        read_captures(chosen, captures, apart, report, progress)
    return report


def outcomes_table(report: RefreshReport) -> Result:
    """Return one row per source, with columns of capture_outcomes and the next step."""
    rows = [
        (*(getattr(outcome, name) for name in _COLUMNS), next_step_of(outcome)) for outcome in report.outcomes
    ]
    names = (*_COLUMNS, "next_step")
    return Result(names, ("VARCHAR",) * len(names), rows)


def _temporary_home(home: Home, folder: Path) -> Home:
    """Return a home in a temporary folder, with the user's permissions and exchange rates."""
    apart = Home(folder / "home")
    apart.root.mkdir()
    try:
        shutil.copyfile(home.permissions, apart.permissions)
    except FileNotFoundError:
        pass
    except OSError:
        apart.permissions.touch()  # An empty file counts as damaged, so nothing is asked.
    with suppress(GpufareError):  # Without them, prices in other currencies stay unconverted.
        kept = Records(home)
        for day in kept.rate_days()[-1:]:
            Records(apart).write_exchange_rates(day, kept.exchange_rates(day))
    return apart
