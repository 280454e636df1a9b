"""Akash's summary of bids: the floor of each card, which must not win a ranking."""

import json
from typing import Any

from tests.sources.helpers import answer, page, read, read_sample

BODY = json.loads(page("akash", "gpu_prices.json"))


def models(**changes: Any) -> dict[str, Any]:
    return BODY | {"models": [BODY["models"][1] | changes]}


def test_no_price_of_a_summary_can_win_a_ranking() -> None:
    offers = read_sample("akash").offers
    assert {(offer.flag_reason, offer.tier_class) for offer in offers} == {("starting_price", "marketplace")}


def test_memory_and_interface_tell_cards_apart() -> None:
    for changes, context in (
        ({}, {"form_factor": "SXM5", "vram_gb": 80.0}),
        ({"interface": "", "ram": "24Gi"}, {"vram_gb": 24.0}),
        ({"interface": None, "ram": "much"}, {}),
    ):
        (row,), _ = read("akash", answer(models(**changes)))
        assert row.context == context


def test_the_networks_token_is_not_taken_for_dollars() -> None:
    price = BODY["models"][1]["price"]
    (row,), _ = read("akash", answer(models(price=price | {"currency": "uakt"})))
    assert row.native_currency == "uakt"


def test_whether_any_are_free() -> None:
    for available, expected in ((3, True), (0, False), (None, None)):
        (row,), _ = read("akash", answer(models(availability={"total": 68, "available": available})))
        assert row.available is expected
