"""Hosts that are charged apart from their GPUs: the yamls of such sources agree with the cost parameters."""

import csv

from pipeline.catalog.source_config import source_config
from pipeline.home import paths


def test_the_hosts_of_the_yamls_are_those_of_the_cost_parameters() -> None:
    with (paths.CATALOG_DIR / "cost_parameters.csv").open(encoding="utf-8", newline="") as file:
        values = {(row["name"], row["applies_to"]): float(row["value"]) for row in csv.DictReader(file)}
    settings = source_config("cudo").settings
    assert settings["vcpus_per_gpu"] == values["least_vcpus_per_gpu", "default"]
    assert settings["ram_gib_per_gpu"] == values["host_ram_gib_per_gpu", "default"]
    counted = source_config("daytona").settings["counted_host_prices"]
    assert 2 * float(counted["vcpuPerHour"]) == values["host_usd_per_core_hour", "source:daytona"]
    assert float(counted["memoryGiBPerHour"]) == values["host_usd_per_gib_hour", "source:daytona"]
