"""The one entry point of Dagster: puts the parts together, holds none."""

import dagster as dg

from pipeline.orchestration.assets import calibration, published_tables, source_assets
from pipeline.orchestration.resources import GpufareHome
from pipeline.orchestration.schedules import jobs, schedules, sensors

defs = dg.Definitions(
    assets=[*source_assets, published_tables, calibration],
    jobs=jobs,
    schedules=schedules,
    sensors=sensors,
    resources={"home": GpufareHome()},
    executor=dg.in_process_executor,
)
