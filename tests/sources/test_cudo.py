"""CUDO's parts added up to the price of a machine."""

import csv
from decimal import Decimal
from typing import Any

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import SourceChangedError
from pipeline.home import paths
from tests.sources.helpers import answer, page, read

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


def test_the_sample_adds_up_and_passes_over_cpu_machines() -> None:
    listings, rejects = read("cudo", answer(page("cudo", "machine_types.json")))
    assert len(listings) == 7
    assert [reject.reason for reject in rejects] == ["zero_price"]
    assert {row.instance_type: row.available for row in listings}["sapphire-rapids-h100"] is False


def test_machine_types_of_2026_06() -> None:
    rtx_3080 = MACHINE | {
        "dataCenterId": "br-saopaulo-1",
        "machineType": "cascade-lake",
        "gpuModel": "RTX 3080",
        "gpuModelId": "nvidia-rtx-3080",
        "minVcpuPerGpu": 1,
        "maxVcpuPerGpu": 13,
        "vcpuPriceHr": {"value": "0.002500"},
        "memoryGibPriceHr": {"value": "0.003800"},
        "gpuPriceHr": {"value": "0.05"},
        "minStorageGibPriceHr": {"value": "0.00013"},
        "maxGpuFree": 5,
        "totalGpuFree": 24,
    }
    rtx_a5000 = rtx_3080 | {
        "dataCenterId": "no-luster-1",
        "machineType": "epyc-rome-rtx-a5000",
        "gpuModel": "RTX A5000",
        "gpuModelId": "nvidia-rtx-a5000",
        "maxVcpuPerGpu": 16,
        "minVcpuPerMemoryGib": 0.259109,
        "maxVcpuPerMemoryGib": 1.036437,
        "vcpuPriceHr": {"value": "0.002100"},
        "memoryGibPriceHr": {"value": "0.003400"},
        "gpuPriceHr": {"value": "0.520000"},
        "renewableEnergy": False,
        "maxGpuFree": 4,
        "totalGpuFree": 7,
    }
    listings, rejects = read("cudo", answer({"machineTypes": [rtx_3080, rtx_a5000]}))
    assert not rejects
    # 0.05 + 8 x 0.0025 + 32 x 0.0038, and 0.52 + 8 x 0.0021 + 30 x 0.0034 (8 vCPUs / 0.259109 are 30.9 GiB)
    assert [(r.raw_label, r.instance_type, r.region, r.native_price) for r in listings] == [
        ("RTX 3080", "cascade-lake", "br-saopaulo-1", Decimal("0.1916")),
        ("RTX A5000", "epyc-rome-rtx-a5000", "no-luster-1", Decimal("0.6388")),
    ]
    assert [row.available for row in listings] == [True, True]
    assert listings[0].storage_usd_per_gb_month == Decimal("0.088383")


@pytest.mark.parametrize(
    ("change", "price", "vcpus", "ram_gib"),
    [
        ({}, "1.032", 8, 32),  # 0.9 + 8 x 0.0025 + 32 x 0.0035
        ({"maxVcpuPerGpu": 7}, "1.0155", 7, 28),  # no more than 4 GiB for each of 7 vCPUs
        ({"maxVcpuPerGpu": "4"}, "0.966", 4, 16),
        ({"maxVcpuPerGpu": None, "minVcpuPerMemoryGib": None}, "1.032", 8, 32),
        ({"minVcpuPerGpu": 10}, "1.037", 10, 32),
        ({"minVcpuPerMemoryGib": 0.3}, "1.011", 8, 26),  # 26.7 GiB at most
        ({"minVcpuPerMemoryGib": 0.1, "maxVcpuPerMemoryGib": "0.15"}, "1.109", 8, 54),  # 53.3 GiB at least
        ({"maxVcpuPerMemoryGib": None}, "1.032", 8, 32),
        ({"gpuPriceHr": "0.9"}, "1.032", 8, 32),
    ],
)
def test_a_machine_that_can_feed_its_gpu(
    change: dict[str, Any], price: str, vcpus: int, ram_gib: int
) -> None:
    (row,), rejects = read("cudo", answer([MACHINE | change]))
    assert not rejects
    assert (row.native_price, row.vcpus, row.ram_gib) == (Decimal(price), vcpus, ram_gib)


def test_the_machine_wanted_is_the_one_of_the_cost_parameters() -> None:
    with (paths.CATALOG_DIR / "cost_parameters.csv").open(encoding="utf-8", newline="") as file:
        defaults = {
            row["name"]: float(row["value"]) for row in csv.DictReader(file) if row["applies_to"] == "default"
        }
    settings = source_config("cudo").settings
    assert settings["vcpus_per_gpu"] == defaults["least_vcpus_per_gpu"]
    assert settings["ram_gib_per_gpu"] == defaults["host_ram_gib_per_gpu"]


@pytest.mark.parametrize(("memory_gib_free", "available"), [(31, False), (32, True)])
def test_what_no_host_has_room_for_is_not_available(memory_gib_free: int, available: bool) -> None:
    free = {"maxGpuFree": 3, "maxVcpuFree": 64, "maxMemoryGibFree": memory_gib_free}
    (row,), _ = read("cudo", answer([MACHINE | free]))
    assert row.available is available


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"gpuPriceHr": {"value": "0"}}, "zero_price"),
        ({"gpuPriceHr": None}, "not_offered"),
        ({"vcpuPriceHr": {}}, "not_offered"),
        ({"memoryGibPriceHr": {"value": "cheap"}}, "unreadable_price"),
        ({"minVcpuPerGpu": None}, "missing_field"),
        ({"maxVcpuPerMemoryGib": 0}, "missing_field"),
        ({"minVcpuPerMemoryGib": "few"}, "missing_field"),
        ({"maxVcpuPerGpu": "many"}, "missing_field"),
        ({"gpuModel": ""}, "missing_field"),
    ],
)
def test_a_machine_without_all_its_parts_is_rejected(change: dict[str, Any], reason: str) -> None:
    listings, rejects = read("cudo", answer({"machineTypes": [MACHINE | change]}))
    assert not listings
    assert [reject.reason for reject in rejects] == [reason]


@pytest.mark.parametrize("body", ['{"machineTypes": [', '{"machineTypes": []}', '{"types": []}'])
def test_what_holds_no_gpu_is_a_change(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("cudo", answer(body))


@pytest.mark.parametrize(
    ("free", "gpu_counts"),
    [
        ({}, None),
        ({"maxGpuFree": 0}, None),
        ({"maxGpuFree": 5}, (1, 2, 3, 4, 5)),
        ({"maxGpuFree": 5, "maxVcpuFree": 31, "maxMemoryGibFree": 400}, (1, 2, 3)),
        ({"maxGpuFree": 5, "maxVcpuFree": 64, "maxMemoryGibFree": 95}, (1, 2)),
        ({"maxVcpuFree": 64, "maxMemoryGibFree": 100}, None),
    ],
)
def test_a_machine_is_as_large_as_the_host_with_most_room(
    free: dict[str, int], gpu_counts: tuple[int, ...] | None
) -> None:
    """One GPU has 8 vCPUs and 32 GiB; 24 free GPUs on all hosts together are no machine of 24."""
    ((listing,), rejects) = read("cudo", answer({"machineTypes": [MACHINE | {"totalGpuFree": 24} | free]}))
    assert not rejects
    assert listing.gpu_counts == gpu_counts
