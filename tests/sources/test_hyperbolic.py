"""Hyperbolic's options: cents of the whole option, its supplier's price, and options of several machines."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import ReaderWarning, SourceChangedError
from pipeline.sources import hyperbolic
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


def test_a_new_price_beside_the_known_one_is_reported_and_not_read() -> None:
    rows = list(
        hyperbolic.read([answer([option(reservedCostPerHourCents=900)])], source_config("hyperbolic"))
    )
    assert [row.native_price for row in rows if hasattr(row, "native_price")] == [Decimal("25.52")]
    assert any("reservedCostPerHourCents" in row.text for row in rows if isinstance(row, ReaderWarning))


def test_an_option_of_several_machines_is_no_machine_of_as_many_gpus() -> None:
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
def test_what_cannot_be_read_is_rejected(changes: dict[str, Any], reason: str) -> None:
    listings, rejects = read("hyperbolic", answer([option(**changes), option()]))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == [reason]


@pytest.mark.parametrize("body", ["[", "<html></html>", "[]", '{"message": "Unauthorized"}', "[1, 2]"])
def test_another_shape_is_a_change(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("hyperbolic", answer(body))
