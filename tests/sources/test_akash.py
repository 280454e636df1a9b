"""Akash's summary of bids: the floor of each card, which must not win a ranking."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.helpers import answer, page, read
from tests.sources.test_sources import read_sample


def models(**changes: Any) -> dict[str, Any]:
    body = json.loads(page("akash", "gpu_prices.json"))
    return body | {"models": [body["models"][1] | changes]}


def price(**changes: Any) -> dict[str, Any]:
    return models()["models"][0]["price"] | changes


def test_the_lowest_bid_of_a_month_is_a_floor() -> None:
    (row,), rejects = read("akash", answer(models()))
    assert not rejects
    assert (row.native_price, row.native_unit) == (Decimal("2.04"), "gpu_hour")
    assert row.flag_reason == "starting_price"


def test_no_price_of_a_summary_can_win_a_ranking() -> None:
    offers = read_sample("akash").offers
    assert offers
    assert {offer.flag_reason for offer in offers} == {"starting_price"}
    assert {offer.tier_class for offer in offers} == {"marketplace"}


def test_no_other_statistic_replaces_a_missing_floor() -> None:
    listings, rejects = read("akash", answer(models(price=price(min=0))))
    assert not listings
    assert [reject.reason for reject in rejects] == ["zero_price"]


def test_card_without_bids_is_not_offered() -> None:
    listings, rejects = read("akash", answer(models(price=None)))
    assert not listings
    assert [reject.reason for reject in rejects] == ["not_offered"]


@pytest.mark.parametrize(
    ("changes", "context"),
    [
        ({}, {"form_factor": "SXM5", "vram_gb": 80.0}),
        ({"interface": "", "ram": "24Gi"}, {"vram_gb": 24.0}),
        ({"interface": None, "ram": "much"}, {}),
    ],
)
def test_memory_and_interface_tell_cards_apart(changes: dict[str, Any], context: dict[str, Any]) -> None:
    (row,), _ = read("akash", answer(models(**changes)))
    assert row.context == context


def test_the_networks_token_is_not_taken_for_dollars() -> None:
    (row,), _ = read("akash", answer(models(price=price(currency="uakt"))))
    assert row.native_currency == "uakt"


@pytest.mark.parametrize(("available", "expected"), [(3, True), (0, False), (None, None)])
def test_whether_any_are_free(available: int | None, expected: bool | None) -> None:
    (row,), _ = read("akash", answer(models(availability={"total": 68, "available": available})))
    assert row.available is expected


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": ""}, "missing_field"),
        ({"price": price(currency=None)}, "missing_field"),
        ({"price": price(min="2.04 AKT")}, "unreadable_price"),
    ],
)
def test_unreadable_rows_are_rejected(changes: dict[str, Any], reason: str) -> None:
    listings, rejects = read("akash", answer(models(**changes)))
    assert not listings
    assert [reject.reason for reject in rejects] == [reason]


@pytest.mark.parametrize("body", [{"models": []}, {"models": {}}])
def test_another_shape_is_a_change(body: Any) -> None:
    with pytest.raises(SourceChangedError):
        read("akash", answer(body))
