"""When things run: the exchange rates first, then each source in its own run, then the publishing."""

import os
from collections.abc import Iterator

import dagster as dg

from pipeline.catalog.source_config import SourceConfig, configs
from pipeline.orchestration.assets import offers_key, published_tables, raw_key, source_assets

capture_job = dg.define_asset_job(
    "capture",
    selection=dg.AssetSelection.assets(*(key for asset in source_assets for key in asset.keys)),
    description="Capture one source and read its offers. The schedule starts one run per source.",
)

publish_job = dg.define_asset_job(
    "publish_tables",
    selection=dg.AssetSelection.assets(*published_tables.keys),
    description="Build every table from what was accepted and swap the published file.",
)


def _runs(kind: str, context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
    """One run per source of a kind; a source whose key is not set is left out."""
    day = context.scheduled_execution_time.date().isoformat()
    for config in configs().values():
        if config.kind == kind and config.disabled is None and _has_key(config):
            yield dg.RunRequest(
                run_key=f"{config.name}-{day}",
                partition_key=day,
                asset_selection=[raw_key(config.name), offers_key(config.name)],
                tags={"source": config.name},
            )


def _has_key(config: SourceConfig) -> bool:
    return not config.needs_key or all(os.environ.get(name) for name in config.key_variables)


@dg.schedule(job=capture_job, cron_schedule="30 5 * * *", default_status=dg.DefaultScheduleStatus.RUNNING)
def exchange_rates_daily(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
    """The exchange rates come first: prices in euros need them."""
    yield from _runs("exchange_rates", context)


@dg.schedule(job=capture_job, cron_schedule="0 6 * * *", default_status=dg.DefaultScheduleStatus.RUNNING)
def sources_daily(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
    """Every source in its own run: a broken one stops no other."""
    yield from _runs("prices", context)


publish_daily = dg.ScheduleDefinition(
    name="publish_daily",
    job=publish_job,
    cron_schedule="0 7 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)


@dg.run_failure_sensor(monitored_jobs=[capture_job, publish_job])
def report_failure(context: dg.RunFailureSensorContext) -> None:
    """Log which source or table failed in the daemon's log; connect an alert here."""
    source = context.dagster_run.tags.get("source", context.dagster_run.job_name)
    context.log.error(f"{source} failed: {context.failure_event.message}")


jobs = [capture_job, publish_job]
schedules = [exchange_rates_daily, sources_daily, publish_daily]
sensors = [report_failure]
