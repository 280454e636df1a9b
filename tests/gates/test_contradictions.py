"""Prices of one source that contradict each other are flagged."""

from typing import Any

import pytest

from pipeline.catalog.source_config import ReviewedPrice, source_config
from pipeline.contracts.offer import Offer
from pipeline.contracts.reject_reasons import FlagReason
from pipeline.gates.contradictions import flag_contradictions
from tests.offers.builders import offer


def flags(*offers: Offer, reviewed: tuple[ReviewedPrice, ...] = ()) -> list[str | None]:
    config = source_config("runpod").model_copy(update={"reviewed_prices": reviewed})
    return [each.flag_reason for each in flag_contradictions(offers, config)]


def reserved(price: str, term_days: int, **changes: Any) -> Offer:
    return offer(price, price_kind="reserved", term_days=term_days, **changes)


SPOT = FlagReason.SPOT_NOT_BELOW_ON_DEMAND
FLEX = FlagReason.FLEX_START_ABOVE_ON_DEMAND
RESERVED = FlagReason.RESERVED_NOT_BELOW_ON_DEMAND
LONGER = FlagReason.LONGER_TERM_DEARER
OLDER = FlagReason.OLDER_GPU_DEARER
ONE = FlagReason.ONE_PRICE_FOR_ALL
UNEVEN = FlagReason.UNEVEN_PRICES


def test_spot_is_below_on_demand() -> None:
    assert flags(offer("2.00"), offer("1.99", price_kind="spot")) == [None, None]
    assert flags(offer("2.00"), offer("2.00", price_kind="spot")) == [None, SPOT]


def test_spot_is_below_every_on_demand_price_that_the_source_gives() -> None:
    conflict = FlagReason.CONFLICTING_PRICES
    unsure = [offer(price, flag_reason=conflict) for price in ("2.00", "2.10")]
    assert flags(*unsure, offer("2.10", price_kind="spot")) == [conflict, conflict, SPOT]
    assert flags(*unsure, offer("2.09", price_kind="spot")) == [conflict, conflict, None]
    two = [offer(price, vcpus=vcpus) for price, vcpus in (("2.10", 8), ("2.00", 4))]
    assert flags(*two, offer("2.05", price_kind="spot")) == [None, None, None]


def test_flex_start_is_not_above_on_demand() -> None:
    queued = {"price_kind": "flex_start", "tier": "calendar_mode"}
    assert flags(offer("2.00"), offer("2.00", **queued)) == [None, None]
    assert flags(offer("2.00"), offer("2.01", **queued)) == [FLEX, FLEX]
    assert flags(offer("2.00", tier="community"), offer("2.01", **queued)) == [None, None]
    assert flags(offer("2.00"), offer("2.01", gpu_count=8, **queued)) == [None, None]
    dear = reserved("2.02", 365)
    assert flags(offer("2.00"), offer("2.01", **queued), dear) == [FLEX, FLEX, RESERVED]


def test_a_reserved_price_is_below_on_demand() -> None:
    assert flags(offer("2.00"), reserved("1.99", 365)) == [None, None]
    assert flags(offer("2.00"), reserved("2.01", 365)) == [RESERVED, RESERVED]
    assert flags(offer("2.00"), reserved("2.01", 365, tier="resource_cud")) == [RESERVED, RESERVED]
    assert flags(offer("2.00", tier="community"), reserved("2.01", 365, tier="secure")) == [None, None]
    assert flags(offer("2.00"), reserved("2.01", 365, gpu_count=8)) == [None, None]


def test_a_price_that_a_person_confirmed_is_in_no_contradiction() -> None:
    confirmed = ReviewedPrice.model_validate(
        {
            "offer": {"raw_label": "H100 SXM", "price_kind": "reserved"},
            "price": "2.01",
            "by": "A. Person",
            "on": "2026-08-22",
            "why": "the page explains it",
        }
    )
    pair = offer("2.00"), reserved("2.01", 365)
    assert flags(*pair) == [RESERVED, RESERVED]
    assert flags(*pair, reviewed=(confirmed,)) == [None, None]


def test_a_longer_term_is_not_dearer() -> None:
    assert flags(reserved("2.00", 30), reserved("1.50", 365)) == [None, None]
    assert flags(reserved("2.00", 30), reserved("2.00", 365)) == [None, None]
    assert flags(reserved("1.50", 30), reserved("2.00", 365)) == [LONGER, LONGER]
    assert flags(reserved("1.50", 30), reserved("2.00", 365, region="eu")) == [None, None]


def card(gpu_id: str, price: str, **changes: Any) -> Offer:
    return offer(price, gpu_id=gpu_id, raw_label=gpu_id, **changes)


def test_an_older_card_is_not_dearer_than_its_successor() -> None:
    assert flags(card("a100-sxm-80gb", "2.00"), card("h100-sxm-80gb", "2.00")) == [None, None]
    assert flags(card("a100-sxm-80gb", "3.20"), card("h100-sxm-80gb", "1.60")) == [OLDER, OLDER]
    assert flags(card("rtx-4090", "2.69"), card("h100-sxm-80gb", "0.34")) == [OLDER, OLDER]
    # An SXM board is dearer than single cards of the next generation.
    assert flags(card("a100-sxm-80gb", "2.00"), card("h100-pcie-80gb", "1.60")) == [None, None]
    assert flags(
        card("a100-sxm-80gb", "3.20", price_kind="spot"), card("h100-sxm-80gb", "1.60", price_kind="spot")
    ) == [None, None]


def test_an_older_card_may_be_dearer_by_as_much_as_was_seen() -> None:
    """An H100 at more than an H200 is frequent; an aftermarket board with more memory is no older card."""
    assert flags(card("h100-sxm-80gb", "2.40"), card("h200-sxm-141gb", "2.00")) == [None, None]
    assert flags(card("h100-sxm-80gb", "2.41"), card("h200-sxm-141gb", "2.00")) == [OLDER, OLDER]
    assert flags(card("rtx-4090", "0.60"), card("rtx-5090", "0.38")) == [OLDER, OLDER]
    assert flags(card("rtx-4090-48gb", "0.60"), card("rtx-5090", "0.38")) == [None, None]


def test_prices_seen_at_the_source_settle_which_card_is_wrong() -> None:
    """At Hyperstack, an A100 was seen at 1.60."""
    a100, h100 = (
        card("a100-sxm-80gb", "1.60", source="hyperstack"),
        card("h100-sxm-80gb", "0.80", source="hyperstack"),
    )
    assert flags(a100, h100) == [None, OLDER]


def test_one_price_for_most_cards_is_none_of_theirs() -> None:
    models = ["h100-sxm-80gb", "h200-sxm-141gb", "b200-sxm-180gb"]
    assert flags(*(card(model, "3.99") for model in models)) == [ONE] * 3
    assert flags(*(card(model, "3.99") for model in models[:2])) == [None, None]
    dear = [card(model, "9.99") for model in ("b300-sxm-288gb", "gb200", "gb300")]
    assert flags(*(card(model, "3.99") for model in models), *dear[:2]) == [ONE] * 3 + [None] * 2


def test_one_card_costs_about_the_same_in_every_machine() -> None:
    one, eight = offer("4.00", raw_label="1x"), offer("1.01", raw_label="8x", gpu_count=8)
    assert flags(one, eight) == [None, None]
    assert flags(one, eight.model_copy(update={"usd_per_gpu_hour": one.usd_per_gpu_hour / 4})) == [UNEVEN] * 2
    # Lambda's H100 was seen at 3.78 to 4.29, so the other price is the wrong one.
    ours = [each.model_copy(update={"source": "lambda"}) for each in (one, offer("0.50", raw_label="8x"))]
    assert flags(*ours) == [None, UNEVEN]
    others = [offer("4.00", raw_label=f"{count}x", gpu_count=count) for count in (1, 2, 4)]
    assert flags(*others, offer("0.50", raw_label="8x", gpu_count=8)) == [None, None, None, UNEVEN]


@pytest.mark.parametrize(
    "offers",
    [
        (offer("2.00"), reserved("2.01", 365)),
        (card("a100-sxm-80gb", "3.20"), card("h100-sxm-80gb", "1.60")),
        (offer("9.00", raw_label="1x"), offer("1.00", raw_label="8x")),
    ],
)
def test_hosts_of_a_marketplace_are_not_compared(offers: tuple[Offer, Offer]) -> None:
    asks = [each.model_copy(update={"tier_class": "marketplace"}) for each in offers]
    assert flags(*asks) == [None, None]


def test_an_earlier_reason_stays_and_takes_the_price_out_of_the_comparison() -> None:
    superseded = offer("1.00", flag_reason="superseded")
    assert flags(superseded, reserved("1.50", 365)) == ["superseded", None]
