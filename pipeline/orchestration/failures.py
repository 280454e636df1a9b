"""Outcomes and incidents of runs that failed, were killed or were canceled.

A run records the outcome of each of its sources before it fails. A source whose run was killed, took too long
or crashed gets its outcome and an incident here. A failed run without sources is an incident, too.
"""

from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any

import dagster as dg

from pipeline.capture.archive import ID_FORMAT
from pipeline.catalog.source_config import source_config
from pipeline.contracts.capture import Capture
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.home.paths import Home
from pipeline.orchestration.keys import CAPTURE_STEP, enabled_sources, offers_key
from pipeline.orchestration.resources import GpufareHome
from pipeline.record.incidents import report_incident
from pipeline.record.records import Records
from pipeline.refresh.ingest import record_day


@dg.run_failure_sensor(default_status=dg.DefaultSensorStatus.RUNNING)
def failed_runs(context: dg.RunFailureSensorContext, home: GpufareHome) -> None:
    """Record a failed run of any job, scheduled or started by hand."""
    failed = [event.step_failure_data for event in context.get_step_failure_events()]
    errors = [str((data.error.cause or data.error).message).strip() for data in failed if data.error]
    ended = f"it was ended from outside, killed, out of memory or too slow ({context.failure_event.message})"
    reason = "; ".join(errors) or ended
    # If gpufare itself raised the Failure, publish_day has already recorded the incident.
    is_kept = bool(failed) and all(data.user_failure_data for data in failed)
    _record_failure(context, home.folders(), reason, is_kept)


@dg.run_status_sensor(run_status=dg.DagsterRunStatus.CANCELED, default_status=dg.DefaultSensorStatus.RUNNING)
def canceled_runs(context: dg.RunStatusSensorContext, home: GpufareHome) -> None:
    """Record a run that a person or the daemon ended."""
    _record_failure(context, home.folders(), context.dagster_event.message or "it was canceled")


def _record_failure(
    context: dg.RunStatusSensorContext, home: Home, reason: str, is_kept: bool = False
) -> None:
    """Record the outcomes that the run did not record, and one incident.

    ``is_kept`` is True if a run without sources has already recorded its incident.
    """
    run = context.dagster_run
    began = _began(context)
    sources = _sources(context)
    day = _day(run, began.date()) if sources else None
    attempts = {name: Records(home).outcomes(name, day) if day else [] for name in sources}
    since = began.strftime(ID_FORMAT)
    missing = [name for name in sources if not any(row["attempt"] >= since for row in attempts[name])]
    of = ", ".join(missing)
    context.log.error(f"{of or run.job_name} failed: {reason}")
    if not missing and (sources or is_kept):
        return
    if day == began.date():
        for source in missing:
            error = f"the run ended without an outcome: {reason}"
            failed = Capture(source=source, day=day, capture_id=None, status="failed", error=error)
            record_day(source_config(source), day, [failed], home)
    incident = Incident(
        kind=IncidentKind.RUN_FAILED,
        day=day,
        source=of if len(missing) == 1 else None,
        reason=f"the run of {run.job_name}{f' ({of})' if of else ''} failed: {reason}",
        remedy=f"look at the run {run.run_id} in Dagster, and start it again",
    )
    report_incident(home, incident)


def _began(context: dg.RunStatusSensorContext) -> datetime:
    """Return the time at which the run began (UTC), or the current time if the run never began."""
    record = context.instance.get_run_record_by_id(context.dagster_run.run_id)
    began = record.start_time if record else None
    return datetime.now(UTC) if began is None else datetime.fromtimestamp(began, UTC)


def _day(run: dg.DagsterRun, began: date) -> date | None:
    """Return the day that a run of sources was to read: by default the day on which it ``began``; None if its
    config does not give a date."""
    config: Any = run.run_config
    given = config.get("ops", {}).get(CAPTURE_STEP, {}).get("config", {}).get("day")
    with suppress(ValueError):
        return date.fromisoformat(given) if given else began
    return None


def _sources(context: dg.RunStatusSensorContext) -> list[str]:
    """Return the sources that a run was to capture or read."""
    planned = context.instance.get_asset_keys_for_run(
        context.dagster_run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED
    )
    names = [config.name for config in enabled_sources()]
    return [name for name in names if offers_key(name) in planned]
