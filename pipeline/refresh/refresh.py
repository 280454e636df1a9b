"""The daily job in one call: capture, read, build, publish. Dagster runs the same steps as assets.

One broken source never stops the rest: its outcome row gives the reason, and its last accepted offers stay
published with their age.
"""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Limits
from pipeline.catalog.source_config import SourceConfig, asked_configs
from pipeline.contracts.capture import Capture
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.progress import Progress, Step, no_progress
from pipeline.gates.held import HELD_REASONS
from pipeline.home.litter import sweep
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.record.damage import RecordError
from pipeline.record.incidents import cause_of, kept_incidents, report_incident
from pipeline.record.records import Records
from pipeline.refresh.ingest import mend_journal, record_day
from pipeline.refresh.inputs import (
    captures_of,
    chosen_sources,
    day_to_read,
    is_url,
    reject_demo_home,
)
from pipeline.refresh.permissions import off_lines
from pipeline.refresh.publishing import publish_day, publish_plans, store_published
from pipeline.refresh.report import RefreshReport, announcement
from pipeline.warehouse.query import reader
from pipeline.warehouse.replays import replays_text, unlike_live
from pipeline.warehouse.sql_files import BuildError


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
    or "archive". ``limits`` bounds every answer; None means the client's own limits. Raises GpufareError if
    the job cannot begin; the report gives the failures of individual sources and of the build. ``now`` is
    the current time; no later day is read or published.
    """
    now = (now or datetime.now(UTC)).astimezone(UTC)
    chosen = chosen_sources(sources, pages)
    replay_url = pages if is_url(pages) else None
    report = RefreshReport(day_to_read(day, chosen, pages, now.date()), replay_url=replay_url)
    if pages is None:
        reject_demo_home(home)
    _check_writable(home)
    report.swept_files = len(sweep(home))
    mend_journal(home)
    known: list[Incident] = []
    with suppress(RecordError):  # a file that cannot be moved is reported when it is read below
        known = kept_incidents(home)
    if pages is None:
        report.off = off_lines(chosen, home, environment)
        for line in announcement(chosen, home, environment) if report.day == now.date() else ():
            progress(line)
    archive, named = Archive(home.archive), bool(sources)
    captures = captures_of(
        chosen, report.day, pages, archive, environment, named=named, progress=progress, limits=limits
    )
    found = _future_days(home, now)
    read_captures(chosen, captures, home, report, progress)
    _publish(home, now, report, progress)
    report.stored = store_published(home, environment, progress)
    if report.published and report.published_day:
        found += report.published.incidents
        # A replay shows its prices without the minutes that the plans of every model take.
        if pages is None and (with_plans := publish_plans(home, report.published_day, now, progress)):
            report.published = with_plans
            report.stored = store_published(home, environment, progress)
    new = [incident for incident in kept_incidents(home) if incident not in known]
    # A lasting cause is recorded once, but every report names it.
    reported = {cause_of(incident) for incident in new}
    again = [each for each in found if cause_of(each) not in reported]
    report.incidents = [*new, *again]
    return report


def _future_days(home: Home, now: datetime) -> list[Incident]:
    """Return an incident for each day in the home that is after the day of ``now`` (UTC), left by a clock
    that was ahead. Such days are neither read nor published."""
    archive = Archive(home.archive)
    archived = {day for name in archive.sources() for day in archive.days(name)}
    days = sorted(day for day in archived | Records(home).recorded_days() if day > now.date())
    reason = "the home has data of this future date"
    remedy = "it is ignored until that day comes: check the clock of this machine"
    kind = IncidentKind.FUTURE_DAY
    found = [Incident(kind=kind, day=day, reason=reason, remedy=remedy) for day in days]
    for incident in found:
        report_incident(home, incident)
    return found


def _check_writable(home: Home) -> None:
    """Raise GpufareError if the home cannot be written to: requests whose answers cannot be stored would only
    burden the providers."""
    try:
        home.root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home.root):
            pass
    except OSError as error:
        problem = f"nothing can be written in {home.root} ({error.strerror})"
        raise GpufareError(f"{problem}: set {HOME_VARIABLE} to a folder that can be written") from error


def read_captures(
    chosen: Sequence[SourceConfig],
    captures: Mapping[str, Sequence[Capture]],
    home: Home,
    report: RefreshReport,
    progress: Progress,
) -> None:
    """Read the sources' captures into the record, exchange rates first, and report the outcomes."""
    for config in sorted(chosen, key=lambda config: config.kind != "exchange_rates"):
        if config.name in captures:
            progress(Step(f"reading {config.name}"))
            _record(config, captures[config.name], home, report)


def _record(config: SourceConfig, captures: Sequence[Capture], home: Home, report: RefreshReport) -> None:
    """Read a source's captures into the record, and report the outcome and the held prices."""
    outcome = record_day(config, report.day, captures, home)
    report.outcomes.append(outcome)
    with suppress(RecordError):  # failed reads and writes are reported in the outcome or an incident
        if outcome.rejects and (held := _held(Records(home), config.name, report.day)):
            report.held[config.name] = held


def _held(records: Records, source: str, day: date) -> list[str]:
    """Return the details of a day's rejects that hold a price."""
    return [row["detail"] for row in records.rejects(source, day) if row["reason"] in HELD_REASONS]


def _publish(home: Home, now: datetime, report: RefreshReport, progress: Progress) -> None:
    """Publish as of the newest day that is not after ``now``: reading a past day again does not
    publish an older day, and future days are ignored."""
    records = Records(home)
    recorded = {day for name in asked_configs() for day in records.days_with_offers(name)}
    days = [day for day in recorded if day <= now.date()]
    if not days:
        return
    report.newest_price_day = max(days)
    report.published_day = max(report.day, report.newest_price_day)
    try:
        report.published = publish_day(home, report.published_day, now, progress)
    except BuildError as error:
        report.publish_error = str(error)
        return
    with reader(home.published) as connection:
        report.replayed = replays_text(unlike_live(connection))
