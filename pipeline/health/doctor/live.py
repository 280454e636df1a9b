"""Asks sources whether their readers still work: a refresh into a home that is gone afterwards.

robots.txt, terms of use, pauses and the client's limits apply as in a refresh, and readings are judged as on
a first day, since that home has no earlier prices. Nothing is published.
"""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Limits
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.outcome import Outcome
from pipeline.contracts.progress import Progress, no_progress
from pipeline.health.doctor.saved_pages import check_free, save_pages
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.advice import next_step_of
from pipeline.refresh.inputs import captures_of, chosen_sources, is_url
from pipeline.refresh.permissions import off_lines
from pipeline.refresh.refresh import read_captures
from pipeline.refresh.report import RefreshReport, announcement
from pipeline.warehouse.query import Result

_LOOK_THROUGH = (
    "they have no keys and no cookies, but look through them before you hand them on: a page may show the "
    "address that it was asked from"
)

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
"""Those of capture_outcomes that are shown."""


@dataclass(slots=True)
class LiveReport:
    """The outcome of each source as of a refresh; the folders in which answers were saved, and why others
    were not, by source."""

    refresh: RefreshReport
    saved: dict[str, Path] = field(default_factory=dict)
    not_saved: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> list[Outcome]:
        """The outcomes of sources that were asked and would give a refresh no prices."""
        return [outcome for outcome in self.refresh.asked if not outcome.accepted]

    def lines(self) -> list[str]:
        """A line per source, those that failed alike in one, and where the answers are."""
        lines = [*self.refresh.source_lines(recorded=False), *self.refresh.off]
        lines += [f"{source}: not saved: {reason}" for source, reason in self.not_saved.items()]
        if self.saved:
            folder = next(iter(self.saved.values())).parent
            lines.append(f"saved in {folder}: {', '.join(self.saved)}; {_LOOK_THROUGH}")
        return lines

    def table(self) -> Result:
        """A row per source: columns of capture_outcomes, what to do, and the folder with its answers."""
        rows = [
            (
                *(getattr(outcome, name) for name in _COLUMNS),
                next_step_of(outcome),
                str(self.saved.get(outcome.source, "")) or None,
            )
            for outcome in self.refresh.outcomes
        ]
        names = (*_COLUMNS, "next_step", "saved_to")
        return Result(names, ("VARCHAR",) * len(names), rows)


def examine_live(
    home: Home,
    *,
    names: Sequence[str] = (),
    now: datetime,
    environment: Mapping[str, str],
    save: Path | None = None,
    pages: str | None = None,
    progress: Progress = no_progress,
    limits: Limits | None = None,
) -> LiveReport:
    """Visit the sources (all by default), in parallel, and judge what they answered.

    ``home`` gives the user's permissions and exchange rates, and is not written to. ``save`` keeps the
    answers as DIR/<source>/; ``pages`` is the URL of a replay server that is asked in place of the providers.
    ``now`` is in UTC. Raises GpufareError when it cannot begin.
    """
    if pages is not None and not is_url(pages):
        raise GpufareError(f"--pages {pages}: doctor --live takes the URL of a replay server")
    chosen = chosen_sources(names, pages)
    if save is not None:
        check_free(save, chosen)
    for line in announcement(chosen, home, environment)[:1] if pages is None else ():
        progress(line)
    with tempfile.TemporaryDirectory(prefix="gpufare-doctor-") as folder:
        apart = _home_apart(home, Path(folder))
        archive, day = Archive(apart.archive), now.date()
        captures = captures_of(
            chosen, day, pages, archive, environment, named=True, progress=progress, limits=limits
        )
        report = RefreshReport(day, replay_url=pages)
        report.off = off_lines(chosen, home, environment) if pages is None else []
        read_captures(chosen, captures, apart, report, progress)
        live = LiveReport(report)
        if save is not None:
            for name in (outcome.source for outcome in report.outcomes):
                try:
                    if saved := save_pages(save / name, captures[name][0], archive, environment):
                        live.saved[name] = saved
                except GpufareError as error:
                    live.not_saved[name] = str(error)
        return live


def _home_apart(home: Home, folder: Path) -> Home:
    """A home that is thrown away, with the user's permissions and exchange rates."""
    apart = Home(folder / "home")
    apart.root.mkdir()
    try:
        shutil.copyfile(home.permissions, apart.permissions)
    except FileNotFoundError:
        pass
    except OSError:
        apart.permissions.touch()  # one that cannot be read is one that is damaged: nothing is asked
    with suppress(GpufareError):  # prices in other currencies are then rejects, with that reason
        kept = Records(home)
        for day in kept.rate_days()[-1:]:
            Records(apart).write_exchange_rates(day, kept.exchange_rates(day))
    return apart
