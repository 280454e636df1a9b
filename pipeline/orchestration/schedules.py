"""What Dagster runs, in the order of a morning. All times are UTC.

| time | schedule | run |
|---|---|---|
| 06:00 | capture | every source is captured, and then read |
| 06:30 | capture_again | the sources that failed, once more |
| 07:00 | publish_tables | the tables are built from what was accepted, and published; then the report |
| 07:15 | morning_digest | every source is checked, and the digest posted |
| 07:30 | plan_ahead | plans for the next publication are computed, and the model's errors checked |

GPUFARE_HOURLY_SOURCES (names with commas between) lists sources that capture_hourly captures every hour; the
publishing then runs every hour, too.
"""

import os
from collections.abc import Iterable, Iterator
from datetime import date

import dagster as dg

from pipeline.capture.permissions import Choices, read_choices, why_off
from pipeline.catalog.source_config import SourceConfig, source_config
from pipeline.contracts.capture import NOT_ASKED
from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import Home
from pipeline.orchestration.keys import MORNING, is_first, offers_key, raw_key, sources_here
from pipeline.orchestration.morning import sources_are_healthy
from pipeline.orchestration.resources import GpufareHome
from pipeline.orchestration.source_assets import EXPECTATIONS
from pipeline.orchestration.tables import (
    model_does_not_get_worse,
    plans_ahead,
    published_tables,
    report,
)
from pipeline.record.records import RecordError, Records

HOURLY_VARIABLE = "GPUFARE_HOURLY_SOURCES"

CAPTURE_CRON = "0 6 * * *"
AGAIN_CRON, HOURLY_CRON = "30 6 * * *", "30 * * * *"
PUBLISH_CRON, PUBLISH_HOURLY_CRON = "0 7 * * *", "0 * * * *"
MORNING_CRON = "15 7 * * *"
PLAN_CRON = "30 7 * * *"

RUNNING = dg.DefaultScheduleStatus.RUNNING

capture_job = dg.define_asset_job(
    "capture",
    selection=dg.AssetSelection.groups("raw", "offers") - dg.AssetSelection.checks(sources_are_healthy),
    tags={"dagster/max_retries": "0"},  # capture_again is the retry, of the failed sources alone
    description="Capture sources and read their answers.",
)

publish_job = dg.define_asset_job(
    "publish_tables",
    selection=dg.AssetSelection.assets(*published_tables.keys, report.key)
    - dg.AssetSelection.checks(model_does_not_get_worse),
    description="Build every table from what was accepted, swap the published file, and write the report.",
)

morning_job = dg.define_asset_job(
    "morning_digest",
    selection=dg.AssetSelection.assets(MORNING) | dg.AssetSelection.checks(sources_are_healthy),
    description="Check every source, and say what moved, what broke and what is held. Posts the digest.",
)

plan_job = dg.define_asset_job(
    "plan_ahead",
    selection=dg.AssetSelection.assets(plans_ahead) | dg.AssetSelection.checks(model_does_not_get_worse),
    description="Compute plans for jobs that people ask for most, which the next publication has, and "
    "compare the model's errors with those reviewed.",
)

_Tick = Iterator[dg.RunRequest | dg.SkipReason]


@dg.schedule(job=capture_job, cron_schedule=CAPTURE_CRON, default_status=RUNNING)
def capture(context: dg.ScheduleEvaluationContext, home: GpufareHome) -> _Tick:
    """Ask for every source that may be asked."""
    yield _request(context, home, sources_here())


@dg.schedule(job=capture_job, cron_schedule=AGAIN_CRON, default_status=RUNNING)
def capture_again(context: dg.ScheduleEvaluationContext, home: GpufareHome) -> _Tick:
    """Ask once more for the sources that failed today; those of every hour are asked again anyway."""
    hourly, day = hourly_sources(), context.scheduled_execution_time.date()
    daily = [config for config in sources_here() if config.name not in hourly]
    yield _request(context, home, [config for config in daily if _failed(config, day, home.folders())])


@dg.schedule(job=capture_job, cron_schedule=HOURLY_CRON, default_status=RUNNING)
def capture_hourly(context: dg.ScheduleEvaluationContext, home: GpufareHome) -> _Tick:
    """Ask for the sources of GPUFARE_HOURLY_SOURCES."""
    hourly = hourly_sources()
    yield _request(context, home, [config for config in sources_here() if config.name in hourly])


def hourly_sources() -> frozenset[str]:
    """The sources that are captured every hour. Raises GpufareError for a name that is no source."""
    names = [name.strip() for name in os.environ.get(HOURLY_VARIABLE, "").split(",")]
    try:
        return frozenset(source_config(name).name for name in names if name)
    except GpufareError as error:
        raise GpufareError(f"{HOURLY_VARIABLE}: {error}") from error


def _request(
    context: dg.ScheduleEvaluationContext, home: GpufareHome, sources: Iterable[SourceConfig]
) -> dg.RunRequest | dg.SkipReason:
    """One run of the sources that may be asked; the tick's log names the others with their reasons."""
    replayed = home.replay_server() is not None
    choices = read_choices(home.folders())
    chosen, off = list[SourceConfig](), list[str]()
    for config in sources:
        why = _why_not_asked(config, choices, replayed)
        if why is None:
            chosen.append(config)
        else:
            off.append(why)
            context.log.info(why)
    if not chosen:
        return dg.SkipReason("; ".join(off) or "there is no source to ask")
    moment = context.scheduled_execution_time
    return dg.RunRequest(
        run_key=moment.isoformat(),
        partition_key=moment.date().isoformat(),
        asset_selection=[key for config in chosen for key in (raw_key(config.name), offers_key(config.name))],
        asset_check_keys=[dg.AssetCheckKey(offers_key(config.name), EXPECTATIONS) for config in chosen],
    )


def _why_not_asked(config: SourceConfig, choices: Choices, replayed: bool) -> str | None:
    """Why a source is not asked, and how to change that; None if it is. A replay needs no permission."""
    if config.needs_key and (missing := config.missing_keys(os.environ)):
        return f"{config.title} needs a key: set {' and '.join(missing)}"
    why = None if replayed else why_off(config, choices, os.environ)
    return f"{config.title} is off: {why}" if why else None


def _failed(config: SourceConfig, day: date, home: Home) -> bool:
    """True if the day's newest attempt at the source was not accepted, or its outcome is damaged."""
    try:
        row = Records(home).outcome(config.name, day)
    except RecordError:
        return True
    return row is not None and not row["accepted"] and row["status"] not in NOT_ASKED


def schedules() -> list[dg.ScheduleDefinition]:
    """Every schedule of this code server, running by default. Raises GpufareError."""
    hourly = hourly_sources()
    captures = [capture, capture_again, *([capture_hourly] if hourly else [])] if sources_here() else []
    if not is_first():
        return captures
    publish_cron = PUBLISH_HOURLY_CRON if hourly else PUBLISH_CRON
    return [
        *captures,
        *(
            dg.ScheduleDefinition(name=job.name, job=job, cron_schedule=cron, default_status=RUNNING)
            for job, cron in ((publish_job, publish_cron), (morning_job, MORNING_CRON), (plan_job, PLAN_CRON))
        ),
    ]
