"""Dagster's single entry point, which assembles the parts and defines nothing itself."""

import dagster as dg

from pipeline.orchestration.failures import canceled_runs, failed_runs
from pipeline.orchestration.keys import enabled_sources
from pipeline.orchestration.morning import morning_digest
from pipeline.orchestration.resources import GpufareHome
from pipeline.orchestration.schedules import schedules
from pipeline.orchestration.source_assets import source_assets
from pipeline.orchestration.tables import published_tables, report

defs = dg.Definitions(
    assets=[
        source_assets(enabled_sources()),
        published_tables,
        report,
        morning_digest,
    ],
    schedules=schedules(),
    sensors=[failed_runs, canceled_runs],
    resources={"home": GpufareHome()},
    executor=dg.in_process_executor,
)
