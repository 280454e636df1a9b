"""CUDO's parts added up to the price of a machine."""

from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.helpers import answer, page, read

MACHINE: dict[str, Any] = {
    "dataCenterId": "se-stockholm-1",
    "machineType": "epyc-l40s",
    "gpuModel": "L40S",
    "gpuModelId": "nvidia-l40s",
    "minVcpuPerGpu": 2,
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
    # 0.05 + 1 x 0.0025 + 1 x 0.0038, and 0.52 + 1 x 0.0021 + 1 x 0.0034 (1 vCPU needs 0.965 GiB: 1 GiB)
    assert [(r.raw_label, r.instance_type, r.region, r.native_price) for r in listings] == [
        ("RTX 3080", "cascade-lake", "br-saopaulo-1", Decimal("0.0563")),
        ("RTX A5000", "epyc-rome-rtx-a5000", "no-luster-1", Decimal("0.5255")),
    ]
    assert [row.available for row in listings] == [True, True]
    assert listings[0].storage_usd_per_gb_month == Decimal("0.088383")


@pytest.mark.parametrize(
    ("change", "price", "ram_gib"),
    [
        ({}, "0.912", 2),  # 0.9 + 2 x 0.0025 + 2 x 0.0035
        ({"maxVcpuPerMemoryGib": 0.5}, "0.919", 4),  # 0.9 + 2 x 0.0025 + 4 x 0.0035
        ({"maxVcpuPerMemoryGib": "0.6"}, "0.919", 4),  # 3.33 GiB are 4 GiB
        ({"maxVcpuPerMemoryGib": None}, "0.9085", 1),
        ({"gpuPriceHr": "0.9"}, "0.912", 2),
        ({"minVcpuPerGpu": "2"}, "0.912", 2),
    ],
)
def test_the_smallest_machine(change: dict[str, Any], price: str, ram_gib: int) -> None:
    (row,), rejects = read("cudo", answer([MACHINE | change]))
    assert not rejects
    assert (row.native_price, row.ram_gib, row.vcpus) == (Decimal(price), ram_gib, 2)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"gpuPriceHr": {"value": "0"}}, "zero_price"),
        ({"gpuPriceHr": None}, "not_offered"),
        ({"vcpuPriceHr": {}}, "not_offered"),
        ({"memoryGibPriceHr": {"value": "cheap"}}, "unreadable_price"),
        ({"minVcpuPerGpu": None}, "missing_field"),
        ({"maxVcpuPerMemoryGib": 0}, "missing_field"),
        ({"gpuModel": ""}, "missing_field"),
    ],
)
def test_a_machine_without_all_its_parts_is_rejected(change: dict[str, Any], reason: str) -> None:
    listings, rejects = read("cudo", answer({"machineTypes": [MACHINE | change]}))
    assert not listings
    assert [reject.reason for reject in rejects] == [reason]


@pytest.mark.parametrize(
    "body", ['{"machineTypes": [', "<html></html>", '{"machineTypes": []}', '{"types": []}']
)
def test_what_holds_no_gpu_is_a_change(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("cudo", answer(body))


@pytest.mark.parametrize(
    ("free", "gpu_counts"),
    [
        ({}, None),
        ({"maxGpuFree": 0}, None),
        ({"maxGpuFree": 5}, (1, 2, 3, 4, 5)),
        ({"maxGpuFree": 5, "maxVcpuFree": 7, "maxMemoryGibFree": 100}, (1, 2, 3)),
        ({"maxGpuFree": 5, "maxVcpuFree": 64, "maxMemoryGibFree": 5}, (1, 2)),
        ({"maxVcpuFree": 64, "maxMemoryGibFree": 100}, None),
    ],
)
def test_a_machine_is_as_large_as_the_host_with_most_room(
    free: dict[str, int], gpu_counts: tuple[int, ...] | None
) -> None:
    """One GPU needs 2 vCPUs and 2 GiB; 24 free GPUs on all hosts together are no machine of 24."""
    ((listing,), rejects) = read("cudo", answer({"machineTypes": [MACHINE | {"totalGpuFree": 24} | free]}))
    assert not rejects
    assert listing.gpu_counts == gpu_counts
