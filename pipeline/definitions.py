"""The one entry point of Dagster: puts the parts together, has none of its own."""

import dagster as dg

from pipeline.orchestration.assets import (
    calibration,
    model_does_not_get_worse,
    published_tables,
    source_assets,
)
from pipeline.orchestration.resources import GpufareHome
from pipeline.orchestration.schedules import jobs, schedules, sensors

defs = dg.Definitions(
    assets=[*source_assets, published_tables, calibration],
    asset_checks=[model_does_not_get_worse],
    jobs=jobs,
    schedules=schedules,
    sensors=sensors,
    resources={"home": GpufareHome()},
    executor=dg.in_process_executor,
)
