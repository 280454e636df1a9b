"""The machine that CUDO's parts are added up to."""

import csv

from pipeline.catalog.source_config import source_config
from pipeline.home import paths


def test_the_machine_wanted_is_the_one_of_the_cost_parameters() -> None:
    with (paths.CATALOG_DIR / "cost_parameters.csv").open(encoding="utf-8", newline="") as file:
        defaults = {
            row["name"]: float(row["value"]) for row in csv.DictReader(file) if row["applies_to"] == "default"
        }
    settings = source_config("cudo").settings
    assert settings["vcpus_per_gpu"] == defaults["least_vcpus_per_gpu"]
    assert settings["ram_gib_per_gpu"] == defaults["host_ram_gib_per_gpu"]
