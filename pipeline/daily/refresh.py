"""The daily job in one call: capture, read, build, publish. Dagster runs the same steps as assets.

One broken source never stops the rest: whatever goes wrong with it is in its outcome row, and its last
accepted offers stay published with their age.
"""

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Limits
from pipeline.capture.litter import sweep
from pipeline.catalog.source_config import SourceConfig, configs
from pipeline.contracts.capture import Capture
from pipeline.contracts.paths import HOME_VARIABLE, Home
from pipeline.contracts.progress import Progress, no_progress
from pipeline.daily.ingest import record_day
from pipeline.daily.origin import RefreshError, captures_of, chosen_sources, default_day
from pipeline.daily.report import RefreshReport
from pipeline.offers.changes import changes
from pipeline.offers.records import RecordError, Records
from pipeline.warehouse.publish import publish
from pipeline.warehouse.scripts import BuildError


def refresh(
    home: Home,
    *,
    day: date | None = None,
    sources: Sequence[str] = (),
    pages: str | None = None,
    environment: Mapping[str, str],
    progress: Progress = no_progress,
    now: datetime | None = None,
    limits: Limits | None = None,
) -> RefreshReport:
    """Capture and read the chosen sources (all of them by default) and publish.

    ``pages`` is None for the providers themselves, a folder of saved answers, the URL of a replay server,
    or "archive". ``limits`` bounds every answer; None takes the client's own. Raises GpufareError when the
    job cannot begin; what goes wrong in one source is in the report, and so is a failed build.
    """
    chosen = chosen_sources(sources, pages)
    _check_writable(home)
    swept = sweep(home)
    day = day or default_day(chosen, pages)
    captures = captures_of(
        chosen,
        day,
        pages,
        Archive(home.archive),
        environment,
        named=bool(sources),
        progress=progress,
        limits=limits,
    )
    report = RefreshReport(day, swept_files=len(swept))
    for config in sorted(chosen, key=lambda config: config.kind != "exchange_rates"):
        if config.name in captures:
            progress(f"reading {config.name}")
            _record(config, captures[config.name], home, report)
    _publish(home, now or datetime.now(UTC), report, progress)
    return report


def _check_writable(home: Home) -> None:
    """Before any request is sent: those whose answers cannot be stored would only burden the providers."""
    try:
        home.root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home.root):
            pass
    except OSError as error:
        problem = f"nothing can be written in {home.root} ({error.strerror})"
        raise RefreshError(f"{problem}: set {HOME_VARIABLE} to a folder that can be written") from error


def _record(config: SourceConfig, captures: Sequence[Capture], home: Home, report: RefreshReport) -> None:
    """Read a source into the record, and report what changed where the day had accepted offers already."""
    records = Records(home)
    try:
        earlier = records.offers(config.name, report.day)
    except (FileNotFoundError, RecordError):
        earlier = None
    report.outcomes.append(record_day(config, report.day, captures, home))
    if earlier is not None and (changed := changes(earlier, records.offers(config.name, report.day))):
        report.changes[config.name] = changed


def _publish(home: Home, now: datetime, report: RefreshReport, progress: Progress) -> None:
    """Publish as of the newest day: reading a past day again does not turn the clock back."""
    records = Records(home)
    days = [day for name in configs() for day in records.accepted_days(name)]
    if not days:
        return
    report.published_day = max(report.day, *days)
    try:
        report.published = publish(home, report.published_day, now, progress)
    except BuildError as error:
        report.publish_error = str(error)
