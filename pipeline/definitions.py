"""The one entry point of Dagster: puts the parts together, has none of its own."""

import dagster as dg

from pipeline.home import paths
from pipeline.orchestration.failures import canceled_runs, failed_runs
from pipeline.orchestration.keys import is_first, sources_here
from pipeline.orchestration.morning import morning_digest
from pipeline.orchestration.partitions import daily_partitions
from pipeline.orchestration.resources import GpufareHome
from pipeline.orchestration.schedules import schedules
from pipeline.orchestration.source_assets import source_assets
from pipeline.orchestration.tables import (
    calibration,
    model_does_not_get_worse,
    plans_ahead,
    published_tables,
    report,
)

days = daily_partitions(paths.home())

defs = dg.Definitions(
    assets=[
        *([source_assets(sources_here(), days)] if sources_here() else []),
        *([published_tables, report, plans_ahead, morning_digest, calibration] if is_first() else []),
    ],
    asset_checks=[model_does_not_get_worse] if is_first() else [],
    schedules=schedules(),
    sensors=[failed_runs, canceled_runs],
    resources={"home": GpufareHome()},
    executor=dg.in_process_executor,
)
