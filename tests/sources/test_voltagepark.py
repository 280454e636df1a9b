"""Voltage Park's nodes per network and its machine presets."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.helpers import answer, page, read

LOCATIONS = "locations.json"
PRESETS = "instant_deploy_presets.json"


def location(**changes: Any) -> dict[str, Any]:
    return json.loads(page("voltagepark", LOCATIONS))["results"][0] | changes


def preset(**changes: Any) -> dict[str, Any]:
    return json.loads(page("voltagepark", PRESETS))[0] | changes


def test_a_node_is_priced_per_gpu_and_rented_whole() -> None:
    listings, rejects = read("voltagepark", answer(page("voltagepark", LOCATIONS)))
    assert not rejects
    assert [(r.tier, r.gpu_count, r.native_price, r.native_unit, r.available) for r in listings] == [
        ("bare_metal_ethernet", 8, Decimal("1.99"), "gpu_hour", True),
        ("bare_metal_infiniband", 8, Decimal("2.49"), "gpu_hour", False),
    ]
    assert [row.node_network_gbps for row in listings] == [None, 3200]


def test_a_machine_costs_its_compute_and_its_disk() -> None:
    listings, rejects = read("voltagepark", answer(page("voltagepark", PRESETS)))
    assert not rejects
    assert [(r.gpu_count, r.native_price, r.available) for r in listings] == [
        (8, Decimal("15.92"), False),
        (1, Decimal("1.99"), True),
        (4, Decimal("7.96"), False),
        (2, Decimal("3.98"), False),
    ]


def test_bare_items_and_numbers_instead_of_text() -> None:
    bare = location(gpu_price_ethernet=1.99, gpu_price_infiniband=2)
    listings, _ = read("voltagepark", answer([bare]))
    assert [row.native_price for row in listings] == [Decimal("1.99"), Decimal(2)]


def test_a_new_price_field_is_not_guessed_at() -> None:
    listings, rejects = read("voltagepark", answer([location(gpu_price_spot="0.99")]))
    assert len(listings) == 2
    assert [reject.reason for reject in rejects] == ["unknown_terms"]


def test_a_network_without_a_price_is_not_offered() -> None:
    listings, rejects = read("voltagepark", answer([location(gpu_price_infiniband=None)]))
    assert [row.tier for row in listings] == ["bare_metal_ethernet"]
    assert [reject.reason for reject in rejects] == ["not_offered"]


def test_a_further_page_is_counted() -> None:
    body = {"results": [location()], "total_result_count": 30, "has_next": True}
    _, rejects = read("voltagepark", answer(body))
    assert [reject.reason for reject in rejects] == ["unread_page"]


def test_a_machine_without_a_disk_price_is_flagged() -> None:
    item = preset()
    del item["storage_rate_hourly"]
    (row,), _ = read("voltagepark", answer([item]))
    assert (row.native_price, row.flag_reason) == (Decimal("15.12"), "disk_not_priced")


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (location(specs_per_node={"gpu_count": 8}), "missing_field"),
        (location(specs_per_node={"gpu_model": "h100-sxm5-80gb"}), "unknown_gpu_count"),
        (preset(compute_rate_hourly="0.000000"), "zero_price"),
        (preset(compute_rate_hourly=None), "not_offered"),
        (preset(resources={"gpus": {"a": {"count": 1}, "b": {"count": 1}}}), "missing_field"),
        (preset(resources={"gpus": {"h100-sxm5-80gb": {}}}), "unknown_gpu_count"),
    ],
)
def test_unreadable_rows_are_rejected(item: dict[str, Any], reason: str) -> None:
    listings, rejects = read("voltagepark", answer([item]))
    assert not listings
    assert [reject.reason for reject in rejects] == [reason]


def test_one_odd_object_does_not_take_the_others_along() -> None:
    odd = location() | {"specs_per_node": "?"}
    idle = location() | {"specs_per_node": {"gpu_model": "h100-sxm5-80gb", "gpu_count": 0}}
    preset = {"id": "p", "compute_rate_hourly": "1.89", "resources": {"gpus": {"h100-sxm5-80gb": "?"}}}
    listings, rejects = read("voltagepark", answer([odd, {"id": "a", "price": 1}, idle, preset, location()]))
    assert len(listings) == 2
    reasons = [reject.reason for reject in rejects]
    assert reasons == ["missing_field", "unreadable_row", "unknown_gpu_count", "unknown_gpu_count"]


@pytest.mark.parametrize(
    "body",
    [
        '{"results": [',
        '{"results": []}',
        json.dumps([{k: v for k, v in location().items() if not k.startswith("gpu_price")}]),
    ],
)
def test_another_shape_is_a_change(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("voltagepark", answer(body))
