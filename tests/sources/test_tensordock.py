"""TensorDock's two shapes, and that a GPU's price is never taken for a machine's."""

from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.helpers import answer, page, read

GPU = {"v0Name": "l40-pcie-48gb", "displayName": "NVIDIA L40 PCIe 48GB", "max_count": 2, "price_per_hr": 0.95}
HOST = {
    "status": {"online": True},
    "location": {"country": "United States", "region": "Texas", "city": "Dallas"},
    "specs": {
        "gpu": {
            "h100-sxm5-80gb": {"amount": 8, "price": 2.25},
            "l40-pcie-48gb": {"amount": 0, "price": 0.95},
        },
        "cpu": {"amount": 96, "price": 0.003},
        "storage": {"amount": 4000, "price": 0.00005},
    },
}


def test_locations_give_one_flagged_offer_per_gpu() -> None:
    listings, rejects = read("tensordock", answer(page("tensordock", "locations.json")))
    assert [(row.raw_label, row.native_price, row.region, row.available) for row in listings] == [
        ("NVIDIA H100 SXM5 80GB", Decimal("2.25"), "Dallas, Texas, United States", True),
        ("NVIDIA GeForce RTX 4090 PCIe 24GB", Decimal("0.35"), "Manassas, Virginia, United States", True),
        ("NVIDIA L40 PCIe 48GB", Decimal("0.95"), "Manassas, Virginia, United States", True),
    ]
    assert {row.flag_reason for row in listings} == {"cpu_and_memory_charged_extra"}
    assert listings[0].storage_usd_per_gb_month == Decimal("0.0365")
    assert [reject.reason for reject in rejects] == ["zero_price"]


def test_host_nodes_of_v0_are_read_too() -> None:
    listings, rejects = read(
        "tensordock", answer({"success": True, "hostnodes": {"u1": HOST, "u2": {"specs": {}}}})
    )
    assert rejects == []
    assert [(row.raw_label, row.gpu_count, row.native_price, row.available) for row in listings] == [
        ("h100-sxm5-80gb", 1, Decimal("2.25"), True),
        ("l40-pcie-48gb", 1, Decimal("0.95"), False),
    ]
    assert (listings[0].region, listings[0].country) == ("Dallas, Texas, United States", "United States")
    assert listings[0].storage_usd_per_gb_month == Decimal("0.0365")  # 730 hours at 0.00005


def test_bare_list_of_locations_without_optional_fields() -> None:
    bare = {"gpus": [{"v0Name": "l40-pcie-48gb", "price_per_hr": "0.95"}]}
    (listing,), _ = read("tensordock", answer([bare]))
    assert (listing.raw_label, listing.region, listing.available) == ("l40-pcie-48gb", None, None)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"price_per_hr": None}, "not_offered"),
        ({"price_per_hr": "call us"}, "unreadable_price"),
        ({"price_per_hr": 0}, "zero_price"),
        ({"displayName": None, "v0Name": 7}, "missing_field"),
    ],
)
def test_gpu_without_a_price_or_a_name_is_a_reject(change: dict[str, Any], reason: str) -> None:
    listings, rejects = read("tensordock", answer({"data": {"locations": [{"gpus": [GPU, GPU | change]}]}}))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == [reason]


def test_optional_fields_that_cannot_be_read_cost_no_offer() -> None:
    odd = GPU | {"max_count": "many", "pricing": "on request", "resources": 5}
    listings, rejects = read("tensordock", answer({"data": {"locations": [{"gpus": [odd, "?"]}]}}))
    assert [(row.available, row.storage_usd_per_gb_month) for row in listings] == [(None, None)]
    assert rejects == []


@pytest.mark.parametrize(
    "body",
    ['{"data": {"locations": []}}', '{"hostnodes": {'],
)
def test_answer_of_another_shape_or_without_gpus_fails_the_source(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("tensordock", answer(body))
