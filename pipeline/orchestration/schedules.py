"""When things run: the exchange rates, then each source in a job of its own, the publishing, the morning.

All times are UTC. GPUFARE_HOURLY_SOURCES (names with commas between) lists sources that are captured every
hour; the publishing then runs every hour, too.
"""

import os
from collections.abc import Iterator

import dagster as dg

from pipeline.capture.permissions import read_choices, why_off
from pipeline.catalog.source_config import SourceConfig, source_config
from pipeline.contracts.errors import GpufareError
from pipeline.orchestration.keys import (
    MORNING,
    SOURCE_TAG,
    enabled_sources,
    offers_key,
    raw_key,
)
from pipeline.orchestration.morning import sources_are_healthy
from pipeline.orchestration.resources import GpufareHome
from pipeline.orchestration.tables import plans_ahead, published_tables, report

HOURLY_VARIABLE = "GPUFARE_HOURLY_SOURCES"

RATES_MINUTE, RATES_HOUR = 30, 5
SOURCES_HOUR = 6
LAST_MINUTE = 50
"""Sources begin between 06:00 and 06:50: a visit is over by then, before the publishing at 07:00."""
PUBLISH_HOUR = 7
MORNING_CRON = "15 7 * * *"

publish_job = dg.define_asset_job(
    "publish_tables",
    selection=dg.AssetSelection.assets(*published_tables.keys, report.key, plans_ahead.key),
    description="Build every table from what was accepted, swap the published file, write the report, and "
    "plan ahead.",
)

morning_job = dg.define_asset_job(
    "morning_digest",
    selection=dg.AssetSelection.assets(MORNING) | dg.AssetSelection.checks(sources_are_healthy),
    description="Check every source, and say what moved, what broke and what is held. Posts the digest.",
)


def hourly_sources() -> frozenset[str]:
    """The sources that are captured every hour. Raises GpufareError for a name that is no source."""
    names = [name.strip() for name in os.environ.get(HOURLY_VARIABLE, "").split(",")]
    try:
        return frozenset(source_config(name).name for name in names if name)
    except GpufareError as error:
        raise GpufareError(f"{HOURLY_VARIABLE}: {error}") from error


def crons() -> dict[str, str]:
    """When each enabled source is captured. Prices are spread evenly over the hour before the publishing,
    those that may take longest first."""
    hourly = hourly_sources()
    prices = [config for config in enabled_sources() if config.kind == "prices"]
    prices.sort(key=lambda config: (-config.time_limit_seconds, config.name))
    times = {config.name: (RATES_MINUTE, RATES_HOUR) for config in enabled_sources()}
    for place, config in enumerate(prices):
        times[config.name] = (place * LAST_MINUTE // max(1, len(prices) - 1), SOURCES_HOUR)
    return {name: _cron(minute, hour, name in hourly) for name, (minute, hour) in times.items()}


def _cron(minute: int, hour: int, hourly: bool) -> str:
    return f"{minute} {'*' if hourly else hour} * * *"


def _capture_schedule(config: SourceConfig, cron: str) -> dg.ScheduleDefinition:
    """A source's own job and its schedule, so that the list of runs says which source broke."""
    job = dg.define_asset_job(
        f"capture_{config.name}",
        selection=dg.AssetSelection.assets(raw_key(config.name), offers_key(config.name)),
        tags={SOURCE_TAG: config.name},
        description=f"Capture {config.title} and read its answers.",
    )

    @dg.schedule(
        name=f"capture_{config.name}",
        job=job,
        cron_schedule=cron,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def capture(
        context: dg.ScheduleEvaluationContext, home: GpufareHome
    ) -> Iterator[dg.RunRequest | dg.SkipReason]:
        if config.needs_key and (missing := config.missing_keys(os.environ)):
            yield dg.SkipReason(f"{config.title} needs a key: set {' and '.join(missing)}")
            return
        # A replay needs no permission.
        why = None if home.replay_server() else why_off(config, read_choices(home.folders()), os.environ)
        if why is not None:
            yield dg.SkipReason(f"{config.title} is off: {why}")
            return
        moment = context.scheduled_execution_time
        yield dg.RunRequest(run_key=moment.isoformat(), partition_key=moment.date().isoformat())

    return capture


def schedules() -> list[dg.ScheduleDefinition]:
    """Every schedule, running by default. Raises GpufareError."""
    times = crons()
    captures = [_capture_schedule(config, times[config.name]) for config in enabled_sources()]
    running = dg.DefaultScheduleStatus.RUNNING
    publish = dg.ScheduleDefinition(
        name="publish_tables",
        job=publish_job,
        cron_schedule=_cron(0, PUBLISH_HOUR, bool(hourly_sources())),
        default_status=running,
    )
    morning = dg.ScheduleDefinition(
        name="morning_digest", job=morning_job, cron_schedule=MORNING_CRON, default_status=running
    )
    return [*captures, publish, morning]
