"""CUDO's parts added up to the price of a machine."""

import csv
from decimal import Decimal
from typing import Any

from pipeline.catalog.source_config import source_config
from pipeline.home import paths
from tests.sources.helpers import answer, read

MACHINE: dict[str, Any] = {
    "dataCenterId": "se-stockholm-1",
    "machineType": "epyc-l40s",
    "gpuModel": "L40S",
    "gpuModelId": "nvidia-l40s",
    "minVcpuPerGpu": 2,
    "maxVcpuPerGpu": 22,
    "minVcpuPerMemoryGib": 0.25,
    "maxVcpuPerMemoryGib": 1,
    "vcpuPriceHr": {"value": "0.002500"},
    "memoryGibPriceHr": {"value": "0.003500"},
    "gpuPriceHr": {"value": "0.900000"},
    "totalGpuFree": 3,
}


def test_a_machine_that_can_feed_its_gpu() -> None:
    for change, price, vcpus, ram_gib in (
        ({}, "1.032", 8, 32),  # 0.9 + 8 x 0.0025 + 32 x 0.0035
        ({"maxVcpuPerGpu": 7}, "1.0155", 7, 28),  # no more than 4 GiB for each of 7 vCPUs
        ({"maxVcpuPerGpu": "4"}, "0.966", 4, 16),
        ({"maxVcpuPerGpu": None, "minVcpuPerMemoryGib": None}, "1.032", 8, 32),
        ({"minVcpuPerGpu": 10}, "1.037", 10, 32),
        ({"minVcpuPerMemoryGib": 0.3}, "1.011", 8, 26),  # 26.7 GiB at most
        ({"minVcpuPerMemoryGib": 0.259109, "maxVcpuPerMemoryGib": 1.036437}, "1.025", 8, 30),
        ({"minVcpuPerMemoryGib": 0.1, "maxVcpuPerMemoryGib": "0.15"}, "1.109", 8, 54),  # 53.3 GiB at least
        ({"maxVcpuPerMemoryGib": None}, "1.032", 8, 32),
        ({"gpuPriceHr": "0.9"}, "1.032", 8, 32),
    ):
        (row,), rejects = read("cudo", answer([MACHINE | change]))
        assert (row.native_price, row.vcpus, row.ram_gib) == (Decimal(price), vcpus, ram_gib), change
        assert rejects == []


def test_storage_is_priced_per_gb_and_month() -> None:
    (row,), _ = read("cudo", answer([MACHINE | {"minStorageGibPriceHr": {"value": "0.00013"}}]))
    assert row.storage_usd_per_gb_month == Decimal("0.088383")


def test_the_machine_wanted_is_the_one_of_the_cost_parameters() -> None:
    with (paths.CATALOG_DIR / "cost_parameters.csv").open(encoding="utf-8", newline="") as file:
        defaults = {
            row["name"]: float(row["value"]) for row in csv.DictReader(file) if row["applies_to"] == "default"
        }
    settings = source_config("cudo").settings
    assert settings["vcpus_per_gpu"] == defaults["least_vcpus_per_gpu"]
    assert settings["ram_gib_per_gpu"] == defaults["host_ram_gib_per_gpu"]


def test_a_machine_without_all_its_parts_is_rejected() -> None:
    for change, reason, detail in (
        ({"vcpuPriceHr": {}}, "not_offered", "vcpuPriceHr: no price is given: None"),
        ({"memoryGibPriceHr": {"value": "?"}}, "unreadable_price", "memoryGibPriceHr: '?' is not a number"),
        ({"maxVcpuPerMemoryGib": 0}, "missing_field", "maxVcpuPerMemoryGib is 0"),
        ({"minVcpuPerMemoryGib": "few"}, "missing_field", "minVcpuPerMemoryGib: 'few' is not a number"),
    ):
        listings, (reject,) = read("cudo", answer({"machineTypes": [MACHINE | change]}))
        assert (listings, reject.reason) == ([], reason)
        assert reject.detail == f"epyc-l40s, se-stockholm-1: {detail}"


def test_a_machine_is_as_large_as_the_host_with_most_room() -> None:
    """One GPU has 8 vCPUs and 32 GiB; 24 free GPUs on all hosts together are no machine of 24."""
    for free, gpu_counts, available in (
        ({}, None, True),
        ({"maxGpuFree": 0}, None, False),
        ({"maxGpuFree": 5}, (1, 2, 3, 4, 5), True),
        ({"maxGpuFree": 5, "maxVcpuFree": 31, "maxMemoryGibFree": 400}, (1, 2, 3), True),
        ({"maxGpuFree": 5, "maxVcpuFree": 64, "maxMemoryGibFree": 95}, (1, 2), True),
        ({"maxGpuFree": 3, "maxVcpuFree": 64, "maxMemoryGibFree": 32}, (1,), True),
        ({"maxGpuFree": 3, "maxVcpuFree": 64, "maxMemoryGibFree": 31}, None, False),
        ({"maxVcpuFree": 64, "maxMemoryGibFree": 100}, None, True),
    ):
        (row,), _ = read("cudo", answer({"machineTypes": [MACHINE | {"totalGpuFree": 24} | free]}))
        assert (row.gpu_counts, row.available) == (gpu_counts, available), free
