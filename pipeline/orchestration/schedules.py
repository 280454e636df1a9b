"""Dagster's schedules, in the order in which they run in the morning. All times are UTC.

| time | schedule | run |
|---|---|---|
| 06:00 | capture | every source is captured, and then read |
| 06:30 | capture_again | the sources that failed are captured once more |
| 07:00 | publish_tables | the tables are built from the accepted rows and published; the report is written |
| 07:15 | morning_digest | price moves, failures and held prices are posted |
"""

import os
from collections.abc import Iterator, Sequence
from datetime import date

import dagster as dg

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.outcome import NOT_ASKED
from pipeline.home.paths import Home
from pipeline.orchestration.keys import MORNING, SOURCES_GROUP, enabled_sources, offers_key
from pipeline.orchestration.resources import GpufareHome
from pipeline.orchestration.tables import published_tables, report
from pipeline.record.damage import RecordError
from pipeline.record.records import Records
from pipeline.refresh.permissions import off_sources

RUNNING = dg.DefaultScheduleStatus.RUNNING

capture_job = dg.define_asset_job(
    "capture",
    selection=dg.AssetSelection.groups(SOURCES_GROUP),
    tags={"dagster/max_retries": "0"},  # capture_again retries, but only failed sources
    description="Capture sources and read their answers.",
)

publish_job = dg.define_asset_job(
    "publish_tables",
    selection=dg.AssetSelection.assets(*published_tables.keys, report.key),
    description="Build every table from what was accepted, swap the published file, and write the report.",
)

morning_job = dg.define_asset_job(
    "morning_digest",
    selection=dg.AssetSelection.assets(MORNING),
    description="Post the digest: price moves, failed sources, held prices.",
)

_Tick = Iterator[dg.RunRequest | dg.SkipReason]


@dg.schedule(job=capture_job, cron_schedule="0 6 * * *", default_status=RUNNING)
def capture(context: dg.ScheduleEvaluationContext, home: GpufareHome) -> _Tick:
    """Ask every source that may be asked."""
    yield _request(context, home, enabled_sources())


@dg.schedule(job=capture_job, cron_schedule="30 6 * * *", default_status=RUNNING)
def capture_again(context: dg.ScheduleEvaluationContext, home: GpufareHome) -> _Tick:
    """Ask again the sources that failed today."""
    day = context.scheduled_execution_time.date()
    failed = [config for config in enabled_sources() if _failed(config, day, home.folders())]
    yield _request(context, home, failed)


def _request(
    context: dg.ScheduleEvaluationContext, home: GpufareHome, sources: Sequence[SourceConfig]
) -> dg.RunRequest | dg.SkipReason:
    """Return one run of the sources that may be asked; the tick's log says why each other source is off."""
    # A replay needs no permission.
    off = {} if home.saved_pages() else off_sources(sources, home.folders(), os.environ)
    for config in sources:
        if config.needs_key and (missing := config.missing_keys(os.environ)):
            off[config.name] = f"it needs a key: set {' and '.join(missing)}"
    reasons = "; ".join(f"{name} is off: {why}" for name, why in off.items())
    names = [config.name for config in sources if config.name not in off]
    if not names:
        return dg.SkipReason(reasons or "no source to ask")
    context.log.info(reasons or "no source is off")
    return dg.RunRequest(
        run_key=context.scheduled_execution_time.isoformat(),
        asset_selection=[offers_key(name) for name in names],
    )


def _failed(config: SourceConfig, day: date, home: Home) -> bool:
    """True if the day's newest attempt at the source was not accepted, or if its outcome is damaged."""
    try:
        row = Records(home).outcome(config.name, day)
    except RecordError:
        return True
    return row is not None and not row["accepted"] and row["status"] not in NOT_ASKED


def schedules() -> list[dg.ScheduleDefinition]:
    """Return all schedules, which run by default."""
    return [
        capture,
        capture_again,
        *(
            dg.ScheduleDefinition(name=job.name, job=job, cron_schedule=cron, default_status=RUNNING)
            for job, cron in (
                (publish_job, "0 7 * * *"),
                (morning_job, "15 7 * * *"),
            )
        ),
    ]
