"""The daily job in one call: capture, read, build, publish. Dagster runs the same steps as assets.

One broken source never stops the rest: whatever happens to it is an outcome row, and its last good offers
stay published with their age.
"""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

from pipeline.capture.archive import Archive
from pipeline.capture.captured import Captured, captured_from_archive, captured_of
from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.outcome import CaptureOutcome, RequestOutcome
from pipeline.capture.replay import capture_pages, page_entries
from pipeline.capture.visit import capture_all
from pipeline.catalog.source_config import SourceConfig, configs, source_config
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.paths import HOME_VARIABLE, Home
from pipeline.contracts.progress import Progress
from pipeline.daily.ingest import record
from pipeline.offers.changes import changes
from pipeline.offers.records import Outcome, Records
from pipeline.warehouse.build import Report
from pipeline.warehouse.publish import publish
from pipeline.warehouse.scripts import BuildError

MAX_SHOWN_CHANGES = 20

ARCHIVE = "archive"
"""The value of ``pages`` that reads a day of the archive again with today's readers."""


class RefreshError(GpufareError):
    """The refresh cannot begin: says which option is wrong and what it may be."""


@dataclass(slots=True)
class RefreshReport:
    """What became of each source, and what was published."""

    day: date
    outcomes: list[Outcome] = field(default_factory=list)
    changes: dict[str, list[str]] = field(default_factory=dict)
    published_day: date | None = None
    published: Report | None = None
    publish_error: str | None = None

    def lines(self) -> list[str]:
        """One line per source and one on what was published."""
        width = max((len(outcome.source) for outcome in self.outcomes), default=0)
        lines = [f"{outcome.source:<{width}}  {_sentence(outcome)}" for outcome in self.outcomes]
        for source, changed in self.changes.items():
            lines.append(f"{source}: {len(changed)} changes against what was published of {self.day}")
            lines += [f"  {change}" for change in changed[:MAX_SHOWN_CHANGES]]
        if self.published:
            lines += [f"warning: {warning}" for warning in self.published.warnings]
            offers = self.published.rows.get("offers_latest", 0)
            lines.append(f"published as of {self.published_day}: {offers} current offers")
        return lines

    def why_not_published(self) -> str:
        """The reason, in one line."""
        if self.publish_error:
            return f"nothing was published: {self.publish_error}"
        reasons = "; ".join(f"{outcome.source}: {_sentence(outcome)}" for outcome in self.outcomes)
        return f"nothing was published, because no source has accepted offers ({reasons})"


def _sentence(outcome: Outcome) -> str:
    if not outcome.accepted:
        told = outcome.error if outcome.error and outcome.error != outcome.reason else None
        return f"NOT ACCEPTED  {outcome.reason}" + (f" ({told})" if told else "")
    rejected = f", {outcome.rejects} rejected" if outcome.rejects else ""
    unsettled = outcome.ambiguous + outcome.unknown
    open_labels = f", {unsettled} with an open GPU" if unsettled else ""
    partly = f"  PARTIAL {outcome.error}" if outcome.status == "partial" else ""
    warned = f"  warning: {'; '.join(outcome.warnings)}" if outcome.warnings else ""
    return f"accepted  {outcome.rows} offers{rejected}{open_labels}{partly}{warned}"


def refresh(
    home: Home,
    *,
    day: date | None = None,
    sources: Sequence[str] = (),
    pages: str | None = None,
    environment: Mapping[str, str],
    progress: Progress = lambda text: None,
    now: datetime | None = None,
    limits: Limits | None = None,
) -> RefreshReport:
    """Capture and read the chosen sources (all of them by default) and publish.

    ``pages`` is None for the providers themselves, a folder of saved answers, the URL of a replay server,
    or "archive". ``limits`` bounds every answer; None takes the client's own. Raises GpufareError when the
    job cannot begin; what goes wrong in one source is in the report, and so is a failed build.
    """
    chosen = [source_config(name) for name in sources] or list(configs().values())
    _refuse_home_that_keeps_nothing(home)
    if pages and pages != ARCHIVE and not _is_url(pages):
        chosen = _with_pages(chosen, Path(pages), named=bool(sources))
    day = day or _day_of(pages, chosen)
    if pages == ARCHIVE:
        chosen = _with_captures(Archive(home.archive), chosen, day, named=bool(sources))
    report = RefreshReport(day)
    records = Records(home)
    captured = _capture(home, chosen, day, pages, environment, progress, limits)
    for config in sorted(chosen, key=lambda config: config.kind != "exchange_rates"):
        progress(f"reading {config.name}")
        report.outcomes.append(_record(config, day, captured[config.name], records, report))
    _publish(home, records, now or datetime.now(UTC), report, progress)
    return report


def _refuse_home_that_keeps_nothing(home: Home) -> None:
    """Asking providers for answers that then cannot be kept would only burden them."""
    try:
        home.root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home.root):
            pass
    except OSError as error:
        told = f"nothing can be kept in {home.root} ({error.strerror})"
        raise RefreshError(f"{told}: set {HOME_VARIABLE} to a folder that can be written") from error


def _is_url(pages: str) -> bool:
    return pages.startswith(("http://", "https://"))


def _with_pages(chosen: list[SourceConfig], folder: Path, *, named: bool) -> list[SourceConfig]:
    if not folder.is_dir():
        raise RefreshError(f"--pages {folder}: there is no such folder")
    found = [config for config in chosen if (folder / config.name).is_dir()]
    missing = [config.name for config in chosen if config not in found]
    if named and missing:
        raise RefreshError(f"--pages {folder}: there is no folder for {', '.join(missing)} in it")
    if not found:
        raise RefreshError(f"--pages {folder}: none of its folders has the name of a source")
    return found


def _day_of(pages: str | None, chosen: Iterable[SourceConfig]) -> date:
    """Saved answers belong to the day on which they were observed, everything else to today."""
    if pages and pages != ARCHIVE and not _is_url(pages):
        moments = [
            entry.observed_at
            for config in chosen
            for entry in page_entries(Path(pages) / config.name, config)
            if entry.observed_at
        ]
        if moments:
            return max(moments).date()
    return datetime.now(UTC).date()


def _with_captures(
    archive: Archive, chosen: list[SourceConfig], day: date, *, named: bool
) -> list[SourceConfig]:
    """The sources captured that day; what became of the others then stays as it was told."""
    days = sorted({each for config in chosen for each in archive.days(config.name)})
    if day not in days:
        kept = f"it has captures of {days[0]} to {days[-1]}" if days else "it is empty"
        raise RefreshError(f"the archive holds no captures of {day}; {kept}")
    return chosen if named else [config for config in chosen if day in archive.days(config.name)]


def _capture(
    home: Home,
    chosen: Sequence[SourceConfig],
    day: date,
    pages: str | None,
    environment: Mapping[str, str],
    progress: Progress,
    limits: Limits | None,
) -> dict[str, Captured]:
    archive = Archive(home.archive)
    if pages == ARCHIVE:
        return {config.name: captured_from_archive(config, day, archive) for config in chosen}
    if pages and not _is_url(pages):
        outcomes = {c.name: capture_pages(Path(pages), c, day=day, archive=archive) for c in chosen}
    else:
        outcomes = capture_live(
            chosen, day, archive, environment, replay_url=pages, progress=_shown(progress), limits=limits
        )
    return {name: captured_of(outcome, archive) for name, outcome in outcomes.items()}


def capture_live(
    chosen: Sequence[SourceConfig],
    day: date,
    archive: Archive,
    environment: Mapping[str, str],
    *,
    replay_url: str | None = None,
    progress: Callable[[str, RequestOutcome | CaptureOutcome], None] | None = None,
    limits: Limits | None = None,
) -> dict[str, CaptureOutcome]:
    """Ask the providers, or one replay server in their place. Raises PastDayError for a day not today."""
    try:
        replay = ReplayServer(replay_url) if replay_url else None
    except ValueError as error:
        raise RefreshError(f"--pages {replay_url}: {error}") from error
    with Client(limits=limits, replay=replay) as client:
        return capture_all(
            chosen, environment=environment, day=day, archive=archive, client=client, progress=progress
        )


def _shown(progress: Progress) -> Callable[[str, RequestOutcome | CaptureOutcome], None]:
    def show(source: str, outcome: RequestOutcome | CaptureOutcome) -> None:
        if isinstance(outcome, CaptureOutcome):
            progress(
                f"{source}: {outcome.status}, {outcome.bytes:,} bytes in {outcome.duration_seconds:.1f} s"
            )

    return show


def _record(
    config: SourceConfig, day: date, captured: Captured, records: Records, report: RefreshReport
) -> Outcome:
    try:
        return _read_and_record(config, day, captured, records, report)
    except Exception as error:  # a damaged record of its own, or a defect of ours: the others go on
        reason = str(error) if isinstance(error, GpufareError) else f"{type(error).__name__}: {error}"
        outcome = Outcome(
            day=day, source=config.name, status=captured.status, accepted=False, reason=reason, error=reason
        )
        records.write_outcome(outcome)
        return outcome


def _read_and_record(
    config: SourceConfig, day: date, captured: Captured, records: Records, report: RefreshReport
) -> Outcome:
    published = records.offers(config.name, day) if day in records.accepted_days(config.name) else None
    outcome = record(config, day, captured, records)
    if published is not None and outcome.accepted:
        told = changes(published, records.offers(config.name, day))
        if told:
            report.changes[config.name] = told
    return outcome


def _publish(home: Home, records: Records, now: datetime, report: RefreshReport, progress: Progress) -> None:
    """Publish as of the newest day: a past day that was read again does not turn the clock back."""
    days = [day for name in configs() for day in records.accepted_days(name)]
    if not days:
        return
    report.published_day = max(report.day, *days)
    try:
        report.published = publish(home, report.published_day, now, progress)
    except BuildError as error:
        report.publish_error = str(error)
