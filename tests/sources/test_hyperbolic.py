"""Hyperbolic's options: cents of the whole option, its supplier's price, and options of several machines."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.helpers import answer, page, read


def option(**changes: Any) -> dict[str, Any]:
    return json.loads(page("hyperbolic", "rental_options.json"))[3] | changes


def test_the_price_is_of_the_whole_option_in_cents() -> None:
    (row,), rejects = read("hyperbolic", answer([option()]))
    assert not rejects
    assert (row.gpu_count, row.native_price, row.native_unit) == (8, Decimal("25.52"), "instance_hour")


def test_part_of_a_cent_is_kept() -> None:
    (row,), _ = read("hyperbolic", answer([option(costPerHourCents=1432.5)]))
    assert row.native_price == Decimal("14.325")


def test_what_the_supplier_is_paid_is_never_a_price() -> None:
    listings, rejects = read("hyperbolic", answer([option(costPerHourCents=None)]))
    assert not listings
    assert [reject.reason for reject in rejects] == ["not_offered"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"reservedCostPerHourCents": 900}, "unknown_terms"),
        ({"minHours": 24}, "unknown_terms"),
        ({"machineType": "container"}, "other_product"),
        ({"machineType": None}, "other_product"),
    ],
)
def test_an_option_with_terms_that_are_new_is_refused(changes: dict[str, Any], reason: str) -> None:
    listings, rejects = read("hyperbolic", answer([option(), option(**changes)]))
    assert [row.native_price for row in listings] == [Decimal("25.52")]
    assert [reject.reason for reject in rejects] == [reason]


def test_both_known_types_of_machines_are_read() -> None:
    listings, _ = read("hyperbolic", answer([option(), option(machineType="virtual-machine")]))
    assert [row.tier for row in listings] == ["bare-metal_infiniband", "virtual-machine_infiniband"]


def test_an_option_of_several_machines_is_not_one_machine_of_all_their_gpus() -> None:
    machine = option()["nodes"][0]
    listings, rejects = read("hyperbolic", answer([option(gpuCount=16, nodes=[machine, machine])]))
    assert not listings
    assert [(reject.reason, "2 machines" in reject.detail) for reject in rejects] == [("unknown_terms", True)]


@pytest.mark.parametrize(
    ("changes", "available"),
    [
        ({"totalAvailable": 3}, True),
        ({"totalAvailable": 0}, False),
        ({}, None),
        ({"enabled": False, "totalAvailable": 3}, False),
    ],
)
def test_a_missing_count_is_not_sold_out(changes: dict[str, Any], available: bool | None) -> None:
    (row,), _ = read("hyperbolic", answer([option(**changes)]))
    assert row.available is available


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"costPerHourCents": 0}, "zero_price"),
        ({"costPerHourCents": "25.52 USD"}, "unreadable_price"),
        ({"gpuCount": None}, "unknown_gpu_count"),
        ({"gpuCount": 4}, "unknown_gpu_count"),
        ({"gpuType": None}, "missing_field"),
        ({"nodes": []}, "unknown_terms"),
        ({"nodes": None}, "unknown_terms"),
    ],
)
def test_unreadable_rows_are_rejected(changes: dict[str, Any], reason: str) -> None:
    listings, rejects = read("hyperbolic", answer([option(**changes), option()]))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == [reason]


@pytest.mark.parametrize("body", ["[]"])
def test_another_shape_is_a_change(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("hyperbolic", answer(body))
