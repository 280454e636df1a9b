"""Prices that moved, and new offers, compared with the source's earlier prices: moves.csv, and counts."""

from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.gates.held import HeldPrice
from pipeline.gates.history import History
from pipeline.gates.judge import Screened, screen
from pipeline.gates.prices import price_key
from tests.gates.screening import DAY, STEADY, YESTERDAY, doubts, offers_in, reasons, rows, screened
from tests.offers.builders import config, offer
from tests.record.builders import reject

JUMP, MIXED_UP = "price_jump", "price_of_another_offer"
REASONS = {" went from ": JUMP, " is new at ": JUMP, " was ": "currency_changed", ", before the ": MIXED_UP}


def test_prices_after_those_of_the_day_before_are_held_as_in_the_table() -> None:
    """Each held price has its reason in words."""
    wrong = []
    for row in rows("moves.csv"):
        found = doubts(screened(offers_in(row["now"]), offers_in(row["before"])))
        named = [next(reason for words, reason in REASONS.items() if words in text) for _, text in found]
        if " | ".join(text for _, text in found) != row["held"] or named != [reason for reason, _ in found]:
            wrong.append((row, found))
    assert wrong == []


def test_the_yaml_overrides_how_far_a_price_may_move() -> None:
    wider = config(max_day_change=Decimal("0.7"))
    assert reasons([offer("3.40")], [offer("2.00")], expect=wider) == []
    assert reasons([offer("3.41")], [offer("2.00")], expect=wider) == [JUMP]


def test_all_that_is_kept_of_a_held_price() -> None:
    result = screened([offer("8.00", region="eu")], [offer("2.00", region="eu")])
    assert (result.offers, result.failure) == (STEADY, None)
    (kept,) = result.rejects
    assert kept == reject(
        reason=RejectReason.PRICE_JUMP,
        detail="'H100 SXM' went from 2.00 to 8.00 USD; held until the market moves with it, until it has "
        "been read for 5 days, or until a person confirms it under reviewed_prices in "
        "catalog/sources/acme.yaml",
        raw={
            "price_key": ["H100 SXM", None, 1, "on_demand", None, "eu", None, "gpu_hour", None],
            "native_price": "8.00",
            "native_currency": "USD",
            "before": {"native_price": "2.00", "native_currency": "USD", "usd_per_gpu_hour": "2.00"}
            | {"day": "2026-08-21"},
        },
    )
    (mixed_up,) = screened(offers_in("2.860"), offers_in("3.290 | 2.860 price_kind=spot")).rejects
    assert mixed_up.raw["before"]["native_price"] == "3.290"
    # Only a jump of a known offer may be released by the market.
    for now in ("2.00 native_currency=EUR", "9.00 raw_label=new"):
        (row,) = screened(offers_in(now), [offer("2.00")]).rejects
        assert "; held until it has been read for 5 days, or until a person confirms it" in row.detail


def test_a_source_fails_when_more_than_half_of_its_prices_are_held() -> None:
    fails = {(1, 1): False, (2, 1): False, (2, 2): True, (3, 1): False, (3, 2): True, (4, 2): False}
    found = {}
    for compared, jumped in fails:
        before = [offer(raw_label=f"{number}") for number in range(compared)]
        now = [offer("20.00" if n < jumped else "2.00", raw_label=f"{n}") for n in range(compared)]
        result = screen([*now, *STEADY], History(before, YESTERDAY), config(), DAY)
        assert (len(result.rejects), len(result.offers)) == (jumped, compared - jumped + 3)
        found[compared, jumped] = result.failure
    text = "{1} of {0} compared prices are not believed (price_jump): The price moved too far at once."
    assert found == {case: text.format(*case) if failing else None for case, failing in fails.items()}


def test_new_offers_that_can_be_compared_count_for_that() -> None:
    """With vanished offers, or with prices that are still held."""
    now = offers_in("1.00 raw_label=a | 2.00 raw_label=b")
    spot = [each.model_copy(update={"price_kind": "spot", "raw_label": f"{n}"}) for n, each in enumerate(now)]
    reason = RejectReason.CURRENCY_CHANGED
    held = {price_key(each): HeldPrice(reason, each.native_price, YESTERDAY, 1) for each in now}
    for history in (History(spot, YESTERDAY), History((), YESTERDAY, held)):
        failure = screen(now, history, config(), DAY).failure
        assert (failure or "").startswith("2 of 2 compared prices are not believed")


def moved(*factors: str, kind: str = "on_demand", **changes: Any) -> Screened:
    """Screen prices without a GPU that moved by these factors."""
    facts: dict[str, Any] = {"gpu_id": None, "price_kind": kind}
    before = [offer(f"{n + 2}.00", raw_label=f"c{n}", **facts) for n in range(len(factors))]
    now = [
        each.model_copy(update={"native_price": each.native_price * Decimal(factor)} | changes)
        for each, factor in zip(before, factors, strict=True)
    ]
    return screen(now, History(before, YESTERDAY), config(), DAY)


def test_most_prices_moving_at_once_are_held() -> None:
    held = {
        ("0.855",) * 4: 4,  # euros read as dollars
        ("0.855", "0.855", "0.855", "1"): 3,
        ("0.855", "0.855", "0.855", "1", "1", "1"): 3,  # exactly half
        ("0.855", "0.855", "0.855", "1", "1", "1", "1"): 0,
        ("0.855", "0.855"): 0,  # too few
        ("0.96",) * 4: 0,  # too little: an ordinary cut of all prices
        ("1.0500001",) * 3: 3,
        ("1.0499",) * 3: 0,
        ("0.80", "0.75", "1.3", "0.7"): 4,  # another page
        ("1.1000001", "1.15", "0.90"): 3,
        ("1.0999", "1.15", "0.90"): 0,  # by different factors, one of them too little
        ("0.95", "0.94", "1.05", "1.04"): 0,
    }
    found = {factors: [reason for reason, _ in doubts(moved(*factors))] for factors in held}
    assert found == {factors: ["most_prices_moved"] * count for factors, count in held.items()}
    assert doubts(moved("0.855", "0.855", "0.855", "1"))[1] == (
        "most_prices_moved",
        "'c1' went from 3.00 to 2.56500 USD on a day when 3 of 4 prices moved",
    )
    assert moved("0.855", "0.855", "0.855", tier_class="marketplace").rejects == []


def test_spot_prices_move_every_day_but_not_by_one_factor() -> None:
    assert moved("0.80", "0.75", "1.3", "0.7", kind="spot").rejects == []
    assert moved("1.20", "1.20", "1.2122", kind="spot").rejects == []  # 0.0101 apart in logarithms
    assert moved("1.20", "1.20", "1.2119", kind="spot").failure == (
        "3 of 3 compared prices are not believed (most_prices_moved): "
        + RejectReason.MOST_PRICES_MOVED.sentence
    )


@pytest.mark.parametrize("reason", [RejectReason.PRICE_OF_ANOTHER_OFFER, RejectReason.PRICE_OUT_OF_LINE])
def test_a_mixed_up_offer_stays_held_when_its_counterpart_vanishes(reason: RejectReason) -> None:
    """A price out of line is compared again instead."""
    new = offer("2.86", gpu_id="rtx-4090", price_kind="serverless")
    held = {price_key(new): HeldPrice(reason, Decimal("2.86"), YESTERDAY, 1)}
    again = {
        price: doubts(screened([new.model_copy(update={"native_price": Decimal(price)})], held=held))
        for price in ("2.86", "3.00", "3.01")  # the same price, up to a twentieth
    }
    detail = "'H100 SXM' at {} USD is held since 2026-08-21"
    is_held = reason == RejectReason.PRICE_OF_ANOTHER_OFFER
    assert again == {
        price: [(MIXED_UP, detail.format(price))] if is_held and price != "3.01" else [] for price in again
    }
    assert reasons([new], [new], held=held) == ([MIXED_UP] if is_held else [])


def test_one_of_two_conflicting_prices_is_judged_like_a_first_price() -> None:
    conflict = [offer(price, flag_reason=FlagReason.CONFLICTING_PRICES) for price in ("2.00", "0.20")]
    first = screen([offer("0.20")], History(), config(), DAY)
    result = screen([offer("0.20")], History(conflict, YESTERDAY), config(), DAY)
    assert doubts(result) == doubts(first) != []
    assert screen([offer("2.00")], History(conflict, YESTERDAY), config(), DAY).rejects == []
