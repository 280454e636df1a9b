"""Prices that moved, and new offers, compared with the source's earlier prices: moves.csv, and counts."""

from datetime import timedelta
from decimal import Decimal

import pytest

from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.gates.held import HeldPrice
from pipeline.gates.history import History
from pipeline.gates.judge import screen
from pipeline.gates.prices import price_key
from tests.gates.screening import DAY, H100, STEADY, YESTERDAY, doubts, offers_in, reasons, rows, screened
from tests.offers.builders import config, offer
from tests.record.builders import reject

JUMP, MIXED_UP, TOO_FAR = "price_jump", "price_of_another_offer", RejectReason.PRICE_TOO_FAR


def test_prices_after_those_of_the_day_before_are_held_as_in_the_table() -> None:
    """Each held price has its reason, also in words."""
    wrong = []
    for row in rows("moves.csv"):
        found = doubts(screened(offers_in(row["now"]), offers_in(row["before"])))
        words = " | ".join(f"{reason}: {text}" for reason, text in found)
        wrong += [] if words == row["held"] else [(row, words)]
    assert wrong == []


def test_the_yaml_overrides_how_far_a_price_may_move() -> None:
    wider = config(max_day_change=Decimal("0.7"))
    assert reasons([offer("3.40")], [offer("2.00")], expect=wider) == []
    assert reasons([offer("3.41")], [offer("2.00")], expect=wider) == [JUMP]


def test_all_that_is_kept_of_a_held_price() -> None:
    """The last believed offer stays in its place, marked with the doubt and its day."""
    before = offer("2.00", region="eu")
    result = screened([offer("8.50", region="eu")], [before])
    stays = before.model_copy(update={"doubt": "price_too_far", "believed_on": YESTERDAY})
    assert (result.believed, result.stays, result.failure) == (STEADY, [stays], None)
    assert result.offers == [*STEADY, stays]
    (kept,) = result.rejects
    assert kept == reject(
        reason=RejectReason.PRICE_TOO_FAR,
        detail="'H100 SXM' went from 2.00 to 8.50 USD; held until other sources' prices for the card move "
        "alike, or you confirm it with `gpufare confirm acme`",
        raw={
            "price_key": ["H100 SXM", H100, None, 1, "on_demand", None, "eu", None, "gpu_hour", None],
            "native_price": "8.50",
            "native_currency": "USD",
        },
    )
    (jump,) = screened([offer("3.80")], [offer("2.00")]).rejects
    assert "; held until it is read again on another day, other sources' prices" in jump.detail
    (new,) = screened([offer("9.00", raw_label="new")], [offer("2.00")]).rejects
    assert new.detail.endswith("; held until you confirm it with `gpufare confirm acme`")


def test_the_last_believed_price_stays_for_as_long_as_its_newer_one_is_held() -> None:
    stays = offer("2.00", doubt="price_jump", believed_on=YESTERDAY - timedelta(days=3))
    assert screened([offer("8.50")], [stays]).stays == [stays.model_copy(update={"doubt": "price_too_far"})]
    assert screened([offer("2.10")], [stays]).offers == [*STEADY, offer("2.10")]
    # Of two offers with one key, the one stays that the held one is nearest to.
    pair = [offer("1.00", vcpus=8), offer("2.40", vcpus=64)]
    result = screened([offer("1.00", vcpus=8), offer("9.50", vcpus=64)], pair)
    assert [(each.native_price, each.vcpus) for each in result.offers[3:]] == [(1, 8), (Decimal("2.40"), 64)]
    both = [offer("1.80"), offer("1.40", native_currency="EUR", usd_per_gpu_hour=Decimal("1.64"))]
    dear = offer("9.00", native_currency="EUR", usd_per_gpu_hour=Decimal("10.53"))
    (euros,) = screened([both[0], dear], both).stays
    assert (euros.native_price, euros.native_currency) == (Decimal("1.40"), "EUR")
    (sold_out,) = screened([offer("8.50", available=False)], [offer("2.00", available=True)]).stays
    assert sold_out.available is False
    two = [offer("2.00"), offer("2.50")]
    assert len(screened([offer("8.50"), offer("9.00")], two).stays) == 2
    assert screened([offer("8.50", raw_label="new")], two).stays == []
    assert screened([], [stays]).stays == []  # no longer listed


def test_a_source_fails_when_more_than_half_of_its_prices_are_held() -> None:
    fails = {(1, 1): False, (2, 1): False, (2, 2): True, (3, 1): False, (3, 2): True, (4, 2): False}
    found = {}
    for compared, jumped in fails:
        before = [offer("2.00", raw_label=f"{number}") for number in range(compared)]
        now = [offer(f"{9 + n}.13" if n < jumped else "2.00", raw_label=f"{n}") for n in range(compared)]
        result = screen([*now, *STEADY], History(before, YESTERDAY), config(), DAY)
        assert (len(result.rejects), len(result.stays)) == (jumped, jumped)
        found[compared, jumped] = result.failure
    text = "{1} of {0} compared prices are not believed (price_too_far): " + TOO_FAR.sentence
    assert found == {case: text.format(*case) if failing else None for case, failing in fails.items()}


def test_new_offers_that_can_be_compared_count_for_that() -> None:
    """With vanished offers, or with prices that are still held."""
    now = offers_in("1.00 raw_label=a | 2.00 raw_label=b")
    spot = [each.model_copy(update={"price_kind": "spot", "raw_label": f"{n}"}) for n, each in enumerate(now)]
    held = {price_key(each): HeldPrice(TOO_FAR, each.native_price, YESTERDAY) for each in now}
    for history in (History(spot, YESTERDAY), History((), YESTERDAY, held)):
        failure = screen(now, history, config(), DAY).failure
        assert (failure or "").startswith("2 of 2 compared prices are not believed")


@pytest.mark.parametrize("reason", [RejectReason.PRICE_OF_ANOTHER_OFFER, RejectReason.PRICE_OUT_OF_LINE])
def test_a_mixed_up_offer_stays_held_when_its_counterpart_vanishes(reason: RejectReason) -> None:
    """A price out of line is compared again instead."""
    new = offer("2.86", gpu_id="rtx-4090", price_kind="serverless")
    held = {price_key(new): HeldPrice(reason, Decimal("2.86"), YESTERDAY)}
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
