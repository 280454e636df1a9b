"""io.net's machines: priced whole, without the fees of a booking, from hosts and from partners."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.helpers import answer, page, read
from tests.sources.test_sources import read_sample


def hardware(**changes: Any) -> dict[str, Any]:
    machines = json.loads(page("ionet", "hardware.json"))["data"]["hardware"]
    return {"data": {"hardware": [machines[3] | changes]}}


def test_the_price_is_of_the_whole_machine() -> None:
    (row,), _ = read("ionet", answer(hardware()))
    assert (row.gpu_count, row.native_price, row.native_unit) == (2, Decimal("0.6"), "instance_hour")


def test_a_price_without_its_fees_cannot_win_a_ranking() -> None:
    offers = read_sample("ionet").offers
    assert offers
    assert {offer.flag_reason for offer in offers} == {"parts_priced_apart"}


def test_every_digit_of_the_price_is_kept() -> None:
    listings, _ = read("ionet", answer(page("ionet", "hardware.json")))
    assert listings[0].native_price == Decimal("27.875342465753423")


def test_a_machine_without_gpus_is_not_ours() -> None:
    body = hardware()
    body["data"]["hardware"].append({"id": "1CPU__US", "name": "", "num_cards": 0, "price": 0.1})
    listings, rejects = read("ionet", answer(body))
    assert (len(listings), rejects) == (1, [])


@pytest.mark.parametrize(
    ("changes", "tier", "available"),
    [
        ({}, "community", True),
        ({"supplier": "external", "sold_out": True}, "partner", False),
        ({"sold_out": None}, "community", None),
    ],
)
def test_whose_machine_it_is_and_whether_it_is_free(
    changes: dict[str, Any], tier: str, available: bool | None
) -> None:
    (row,), _ = read("ionet", answer(hardware(**changes)))
    assert (row.tier, row.available) == (tier, available)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"price": 0}, "zero_price"),
        ({"price": None}, "not_offered"),
        ({"num_cards": None}, "unknown_gpu_count"),
        ({"name": ""}, "missing_field"),
        ({"supplier": "third"}, "unknown_terms"),
        ({"supplier": ["internal"]}, "unknown_terms"),
    ],
)
def test_unreadable_rows_are_rejected(changes: dict[str, Any], reason: str) -> None:
    listings, rejects = read("ionet", answer(hardware(**changes)))
    assert not listings
    assert [reject.reason for reject in rejects] == [reason]


@pytest.mark.parametrize("body", [{"data": {"hardware": []}}, {"data": []}])
def test_another_shape_is_a_change(body: Any) -> None:
    with pytest.raises(SourceChangedError):
        read("ionet", answer(body))
