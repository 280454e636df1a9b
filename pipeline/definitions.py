"""Dagster's single entry point, which assembles the parts and defines nothing itself."""

import dagster as dg

from pipeline.home import paths
from pipeline.orchestration.failures import canceled_runs, failed_runs
from pipeline.orchestration.keys import enabled_sources
from pipeline.orchestration.resources import GpufareHome
from pipeline.orchestration.schedules import schedules
from pipeline.orchestration.source_assets import daily_partitions, source_assets
from pipeline.orchestration.tables import (
    morning_digest,
    plans_ahead,
    published_tables,
    report,
)

days = daily_partitions(paths.home())

defs = dg.Definitions(
    assets=[
        source_assets(enabled_sources(), days),
        published_tables,
        report,
        plans_ahead,
        morning_digest,
    ],
    schedules=schedules(),
    sensors=[failed_runs, canceled_runs],
    resources={"home": GpufareHome()},
    executor=dg.in_process_executor,
)
