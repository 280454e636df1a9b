"""Prices that are accepted at once, prices that are held, and their release."""

import math
from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.catalog.source_config import ReviewedPrice, SourceConfig
from pipeline.contracts.offer import Offer
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.gates import price_bounds
from pipeline.gates.held import Before, HeldPrice
from pipeline.gates.history import History, moves_at_other_sources, read_history
from pipeline.gates.judge import Screened, screen
from pipeline.gates.price_bounds import Seen
from pipeline.gates.prices import price_key
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.home.paths import Home
from pipeline.record.records import Records
from tests.offers.builders import config, offer

DAY = date(2026, 8, 22)
YESTERDAY = DAY - timedelta(days=1)

HELD_DAYS, MIN_HELD_READINGS = THRESHOLDS.held_days, THRESHOLDS.min_held_readings

STEADY = [offer(f"{number + 5}.00", raw_label=f"card {number}", gpu_id=None) for number in range(3)]
"""Prices of cards that are not compared by their GPU."""


def screened(now: Iterable[Offer], before: Iterable[Offer], expect: SourceConfig | None = None) -> Screened:
    return screen([*STEADY, *now], History([*STEADY, *before], YESTERDAY), expect or config(), DAY)


def reasons(result: Screened) -> list[RejectReason]:
    return [reject.reason for reject in result.rejects]


# ------------------------------------------------------------------ jumps


@pytest.mark.parametrize(
    ("before", "now", "held"),
    [
        ("2.00", "3.19", False),
        ("2.00", "3.20", False),
        ("2.00", "3.21", True),
        ("3.19", "2.00", False),
        ("3.20", "2.00", False),
        ("3.21", "2.00", True),
    ],
)
def test_a_price_may_move_by_exactly_max_day_change(before: str, now: str, held: bool) -> None:
    """0.6 of the smaller price, up and down."""
    assert reasons(screened([offer(now)], [offer(before)])) == [RejectReason.PRICE_JUMP] * held


def test_held_price_names_its_move_and_its_release() -> None:
    (reject,) = screened([offer("8.00")], [offer("2.00")]).rejects
    assert reject.detail == (
        "'H100 SXM' went from 2.00 to 8.00 USD; held until the market moves with it, until it has been read "
        "for 5 days, or until a person confirms it under reviewed_prices in catalog/sources/acme.yaml"
    )


def test_only_a_jump_may_be_released_by_the_market() -> None:
    (reject,) = screened([offer("2.00", native_currency="EUR")], [offer("2.00")]).rejects
    assert reject.reason == RejectReason.CURRENCY_CHANGED
    assert "; held until it has been read for 5 days, or until a person confirms it" in reject.detail


@pytest.mark.parametrize(
    ("now", "held"), [("1.24", True), ("1.25", False), ("2.25", False), ("4.00", False), ("4.01", True)]
)
def test_a_new_name_is_compared_with_the_nearer_end_of_the_cards_prices(now: str, held: bool) -> None:
    before = [offer("2.00", gpu_id="l40s", raw_label="a"), offer("2.50", gpu_id="l40s", raw_label="b")]
    new = offer(now, gpu_id="l40s", raw_label="new")
    assert bool(screened([new, *before], before).rejects) is held


def test_the_nearest_of_several_prices_with_one_key_is_compared() -> None:
    before = [offer("1.00"), offer("2.00")]
    assert reasons(screened([offer("9.00")], before)) == [RejectReason.PRICE_JUMP]
    assert reasons(screened([offer("3.20")], before)) == []


@pytest.mark.parametrize("tier", ["marketplace_verified", "marketplace"])
def test_an_ask_on_a_marketplace_is_compared_with_its_own_earlier_price_only(tier: str) -> None:
    before = offer("2.00", tier=tier)
    assert reasons(screened([offer("9.00", tier=tier)], [before])) == [RejectReason.PRICE_JUMP]
    assert reasons(screened([offer("9.00", tier=tier, raw_label="another host")], [before])) == []


@pytest.mark.parametrize(
    "change",
    [
        {"raw_label": "H100"},
        {"instance_type": "h100.1"},
        {"gpu_count": 2},
        {"price_kind": "spot"},
        {"term_days": 365},
        {"region": "eu"},
        {"tier": "secure"},
        {"native_unit": "instance_hour"},
        {"effective_from": date(2026, 9, 1)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_part_of_the_key_tells_offers_apart(change: dict[str, Any]) -> None:
    """A jump of the one offer is compared with its own earlier price, not with the other's."""
    before = [offer("2.00"), offer("9.00", **change)]
    assert price_key(before[0]) != price_key(before[1])
    assert reasons(screened(before, before)) == []
    swapped = [offer("9.00"), offer("2.00", **change)]
    assert reasons(screened(swapped, before)) == [RejectReason.PRICE_JUMP] * 2


@pytest.mark.parametrize(
    "change",
    [
        {"usd_per_hour": None},
        {"gpu_id": None},
        {"flag_reason": "coming_soon"},
        {"native_currency": "EUR"},
    ],
)
def test_nothing_else_is_part_of_the_key(change: dict[str, Any]) -> None:
    assert price_key(offer().model_copy(update=change)) == price_key(offer("3.00"))


@pytest.mark.parametrize(
    ("compared", "jumped", "fails"),
    [
        (1, 1, False),  # one price alone says nothing of the page
        (2, 1, False),  # exactly half
        (2, 2, True),
        (3, 1, False),
        (3, 2, True),
        (4, 2, False),  # exactly half
    ],
)
def test_a_source_fails_when_more_than_half_of_its_prices_are_held(
    compared: int, jumped: int, fails: bool
) -> None:
    before = [offer(raw_label=f"card {number}") for number in range(compared)]
    now = [offer("20.00" if n < jumped else "2.00", raw_label=f"card {n}") for n in range(compared)]
    result = screen(now, History(before, YESTERDAY), config(), DAY)
    assert len(result.rejects) == jumped
    assert (result.failure is not None) is fails
    assert not fails or f"{jumped} of {compared} compared prices" in (result.failure or "")


# ------------------------------------------------------------------ currencies


def test_a_price_in_another_currency_is_compared_in_dollars_and_held() -> None:
    euros = offer("1.71", native_currency="EUR", usd_per_gpu_hour=Decimal("2.00"))
    (reject,) = screened([euros], [offer("2.00")]).rejects
    assert reject.reason == RejectReason.CURRENCY_CHANGED
    assert "was 2.00 USD and is 1.71 EUR: 2 USD and 2 USD per GPU-hour" in reject.detail


def test_a_source_with_price_lists_in_two_currencies_keeps_both() -> None:
    both = [offer("2.00"), offer("1.71", native_currency="EUR", usd_per_gpu_hour=Decimal("2.00"))]
    assert reasons(screened(both, both)) == []


# ------------------------------------------------------------------ mixed-up offers


def test_a_price_that_becomes_that_of_another_offer_is_held() -> None:
    """The six-month price under the heading of the on-demand price: too small a move for a jump."""
    before = [offer("3.29"), offer("2.86", price_kind="reserved", term_days=180)]
    now = [offer("2.86"), offer("2.86", price_kind="reserved", term_days=180)]
    assert reasons(screened(now, before)) == [RejectReason.PRICE_OF_ANOTHER_OFFER]
    assert reasons(screened([offer("2.87"), before[1]], before)) == []


def test_a_new_offer_at_the_price_of_a_vanished_one_is_held() -> None:
    """A missing spot mark: the spot price is gone, and on-demand has its figure."""
    spot, other = offer("0.73", price_kind="spot"), offer("0.73", price_kind="on_demand", raw_label="H100")
    assert reasons(screened([other], [spot])) == [RejectReason.PRICE_OF_ANOTHER_OFFER]
    assert reasons(screened([other, spot], [spot])) == []
    renamed = spot.model_copy(update={"raw_label": "H100 80GB"})
    assert reasons(screened([renamed], [spot])) == []


# ------------------------------------------------------------------ most prices


def moved(*factors: str, kind: str = "on_demand") -> Screened:
    before = [
        offer(f"{n + 2}.00", raw_label=f"c{n}", gpu_id=None, price_kind=kind) for n in range(len(factors))
    ]
    now = [
        each.model_copy(update={"native_price": each.native_price * Decimal(factor)})
        for each, factor in zip(before, factors, strict=True)
    ]
    return screen(now, History(before, YESTERDAY), config(), DAY)


@pytest.mark.parametrize(
    ("factors", "held"),
    [
        (["0.855"] * 4, 4),  # euros read as dollars
        (["0.855", "0.855", "0.855", "1"], 3),
        (["0.855", "0.855", "0.855", "1", "1", "1"], 3),  # exactly half
        (["0.855", "0.855", "0.855", "1", "1", "1", "1"], 0),
        (["0.855", "0.855"], 0),  # too few
        (["0.96"] * 4, 0),  # too little: an ordinary cut of all prices
        (["0.80", "0.75", "1.3", "0.7"], 4),  # another page
        (["0.95", "0.94", "1.05", "1.04"], 0),  # by different factors, each too little
    ],
)
def test_most_prices_moving_at_once_are_held(factors: list[str], held: int) -> None:
    assert reasons(moved(*factors)) == [RejectReason.MOST_PRICES_MOVED] * held


def test_spot_prices_move_every_day_but_not_by_one_factor() -> None:
    assert reasons(moved("0.80", "0.75", "1.3", "0.7", kind="spot")) == []
    assert len(moved("0.855", "0.855", "0.855", kind="spot").rejects) == 3


# ------------------------------------------------------------------ what the source did not have before


@pytest.mark.parametrize(
    ("price", "kind", "reason"),
    [
        ("4.29", "on_demand", None),
        ("2.10", "on_demand", None),
        ("1.95", "on_demand", RejectReason.PRICE_OUT_OF_LINE),  # Lambda was seen at 3.78 to 4.29
        ("8.30", "on_demand", RejectReason.PRICE_OUT_OF_LINE),
        ("3.29", "on_demand", RejectReason.PRICE_OF_ANOTHER_OFFER),  # the H100 PCIe's
        ("0.95", "spot", None),  # within a third of what other sources ask
        ("0.15", "spot", RejectReason.PRICE_OUT_OF_LINE),
    ],
)
def test_a_first_price_is_compared_with_seen_prices_of_the_card(
    price: str, kind: str, reason: RejectReason | None
) -> None:
    first = offer(price, source="lambda", price_kind=kind)
    result = screen([first], History(), config(), DAY)
    assert reasons(result) == ([reason] if reason else [])


def card_at(gpu_id: str, price: str, kind: str = "on_demand") -> Offer:
    return offer(price, source="lambda", gpu_id=gpu_id, raw_label=gpu_id, price_kind=kind)


SEEN_THERE = {
    ("h100-sxm-80gb", "on_demand"): "4.00",
    ("h100-sxm-80gb", "spot"): "2.50",
    ("h100-pcie-80gb", "on_demand"): "3.00",
    ("h100-80gb", "on_demand"): "3.70",
    ("a100-sxm-80gb", "on_demand"): "2.20",
}
H100, H100_PCIE, A100 = "h100-sxm-80gb", "h100-pcie-80gb", "a100-sxm-80gb"


@pytest.fixture
def seen_there(monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = date(2026, 5, 24), date(2026, 6, 15)
    rows = {
        ("lambda", *key): Seen(*key, Decimal(price), Decimal(price), 1, first, last, "lambda")
        for key, price in SEEN_THERE.items()
    }
    monkeypatch.setattr(price_bounds, "_seen", lambda: rows)


@pytest.mark.usefixtures("seen_there")
@pytest.mark.parametrize(
    ("beside", "held"),
    [
        ([card_at(A100, "3.10")], True),  # the A100's price, and the A100 has another
        ([card_at(A100, "2.20")], False),  # the A100 still costs that: two cards at one price
        ([card_at(A100, "3.10"), card_at(A100, "2.20")], False),
        ([], False),  # no A100 in the reading, whose label is not like this one's
    ],
)
def test_a_first_price_that_was_another_cards_is_held_when_that_card_has_another_now(
    beside: list[Offer], held: bool
) -> None:
    first = card_at(H100, "2.20")
    result = screen([first, *beside], History(), config(max_day_change=Decimal(9)), DAY)
    mixed_up = [each.detail for each in result.rejects if each.reason == RejectReason.PRICE_OF_ANOTHER_OFFER]
    assert any("'h100-sxm-80gb'" in detail for detail in mixed_up) is held


@pytest.mark.usefixtures("seen_there")
def test_a_missing_card_of_the_same_model_may_be_mislabelled_but_not_one_without_its_form_factor() -> None:
    assert reasons(screen([card_at(H100, "3.00")], History(), config(), DAY)) == [
        RejectReason.PRICE_OF_ANOTHER_OFFER
    ]
    assert reasons(screen([card_at(H100_PCIE, "3.70")], History(), config(), DAY)) == []


@pytest.mark.usefixtures("seen_there")
@pytest.mark.parametrize(
    ("kind", "price", "beside", "held"),
    [
        ("on_demand", "2.50", [], True),  # a missing spot mark
        ("on_demand", "2.50", [card_at(H100, "2.50", "spot")], True),
        ("on_demand", "2.50", [card_at(H100, "1.40", "spot")], False),  # spot is there, and below
        ("spot", "4.00", [], True),
        ("spot", "4.00", [card_at(H100, "4.00")], True),
        ("spot", "4.00", [card_at(H100, "4.30")], False),
    ],
)
def test_a_first_price_that_was_another_kinds_is_held_unless_that_kind_is_in_its_place(
    kind: str, price: str, beside: list[Offer], held: bool
) -> None:
    result = screen([card_at(H100, price, kind), *beside], History(), config(), DAY)
    found = [each.raw["price_key"][3] for each in result.rejects]
    assert (kind in found) is held


def test_market_of_a_single_day_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    first = date(2026, 5, 24)
    for last, held in ((date(2026, 5, 25), True), (first, False)):
        seen = {("", H100, "on_demand"): Seen(H100, "on_demand", Decimal(1), Decimal(2), 3, first, last)}
        monkeypatch.setattr(price_bounds, "_seen", lambda seen=seen: seen)
        assert bool(screen([card_at(H100, "5.01")], History(), config(), DAY).rejects) is held


def test_card_with_few_known_prices_is_accepted() -> None:
    unknown = offer("900.00", gpu_id="k80")
    assert screen([unknown], History(), config(), DAY).offers == [unknown]


# ------------------------------------------------------------------ release


def held_since(days: int, readings: int, price: str = "8.00") -> History:
    before = Before(Decimal("2.00"), "USD", Decimal("2.00"), DAY - timedelta(days=days + 1))
    held = HeldPrice(RejectReason.PRICE_JUMP, Decimal(price), DAY - timedelta(days=days), readings, before)
    return History(STEADY, YESTERDAY, {price_key(offer()): held})


@pytest.mark.parametrize(
    ("history", "held"),
    [
        (held_since(1, 1), True),  # repeated on a second day
        (held_since(HELD_DAYS, MIN_HELD_READINGS), False),
        (held_since(HELD_DAYS - 1, HELD_DAYS), True),
        (held_since(HELD_DAYS, MIN_HELD_READINGS - 1), True),
        (held_since(HELD_DAYS, HELD_DAYS, price="8.40"), False),  # the same, within a twentieth
        (held_since(HELD_DAYS, HELD_DAYS, price="8.41"), True),
    ],
)
def test_a_jump_is_believed_after_the_stated_days_and_not_for_being_repeated(
    history: History, held: bool
) -> None:
    result = screen([*STEADY, offer("8.00")], history, config(), DAY)
    assert reasons(result) == [RejectReason.PRICE_JUMP] * held


def test_a_price_that_returns_to_its_old_value_is_believed_at_once() -> None:
    assert screen([*STEADY, offer("2.00")], held_since(1, 1), config(), DAY).rejects == []


def test_a_mixed_up_offer_stays_held_when_its_counterpart_vanishes() -> None:
    held = HeldPrice(RejectReason.PRICE_OF_ANOTHER_OFFER, Decimal("2.86"), YESTERDAY, 1)
    new = offer("2.86", gpu_id="rtx-4090", price_kind="reserved")
    history = History(STEADY, YESTERDAY, {price_key(new): held})
    assert reasons(screen([*STEADY, new], history, config(), DAY)) == [RejectReason.PRICE_OF_ANOTHER_OFFER]


@pytest.mark.parametrize(
    ("change_elsewhere", "held"),
    [("2.00", True), ("3.99", True), ("4.00", False), ("8.00", False), ("32.00", False), ("32.10", True)],
)
def test_a_jump_is_believed_when_another_source_moves_with_it(change_elsewhere: str, held: bool) -> None:
    """From 2 to 8; the other from 2 to between 4 and 32: half to twice as far in logarithms."""

    def moves(gpu_id: str, kind: str, since: date) -> list[float]:
        assert (gpu_id, kind, since) == ("h100-sxm-80gb", "on_demand", YESTERDAY)
        return [math.log(float(change_elsewhere) / 2)]

    history = History([*STEADY, offer("2.00")], YESTERDAY)
    assert bool(screen([*STEADY, offer("8.00")], history, config(), DAY, moves).rejects) is held


def test_moves_of_other_sources_are_read_from_their_records(tmp_path: Path) -> None:
    records = Records(Home(tmp_path))
    for day, price in ((YESTERDAY, "2.00"), (DAY, "4.00")):
        records.write_accepted(day, "lambda", [offer(price, source="lambda")])
        records.write_accepted(day, "vast", [offer(price, source="vast", tier="marketplace_verified")])
        records.write_accepted(day, "runpod", [offer(price, source="runpod")])
    moves = partial(moves_at_other_sources, records, "runpod", DAY)
    assert list(moves("h100-sxm-80gb", "on_demand", YESTERDAY)) == [pytest.approx(math.log(2))]
    assert list(moves("h100-sxm-80gb", "spot", YESTERDAY)) == []
    assert list(moves("h100-sxm-80gb", "on_demand", DAY)) == []


REVIEWED: dict[str, Any] = {
    "offer": {"raw_label": "H100 SXM", "price_kind": "on_demand"},
    "price": "8.00",
    "by": "A. Person",
    "on": "2026-08-22",
    "why": "the page announces the price",
}


@pytest.mark.parametrize(
    ("change", "held"),
    [
        ({}, False),
        ({"price": "8.10"}, True),
        ({"currency": "EUR"}, True),
        ({"offer": {"raw_label": "H100 PCIe"}}, True),
        ({"offer": {"raw_label": "H100 SXM", "gpu_count": 8}}, True),
    ],
)
def test_a_persons_line_in_the_yaml_releases_its_price_only(change: dict[str, Any], held: bool) -> None:
    reviewed = ReviewedPrice.model_validate(REVIEWED | change)
    by_a_person = config().model_copy(update={"reviewed_prices": (reviewed,)})
    assert bool(screened([offer("8.00")], [offer("2.00")], by_a_person).rejects) is held


@pytest.mark.parametrize(
    "change",
    [{"offer": {"price_kind": "spot"}}, {"offer": {"raw_label": "x", "gpu": 1}}, {"by": ""}, {"why": ""}],
)
def test_reviewed_price_names_its_offer_reviewer_and_reason(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ReviewedPrice.model_validate(REVIEWED | change)


# ------------------------------------------------------------------ what the record keeps


def after(records: Records, day: date, price: str) -> list[RejectReason]:
    """Record a day's reading as the daily job does."""
    history = read_history(records, "acme", day)
    result = screen([*STEADY, offer(price)], history, config(), day)
    if result.failure is None:
        records.write_accepted(day, "acme", result.offers)
    records.write_rejects(day, "acme", result.rejects)
    return reasons(result)


def test_a_jump_stays_held_over_the_days_of_the_record(tmp_path: Path) -> None:
    records = Records(Home(tmp_path))
    assert after(records, DAY, "2.00") == []
    for number in range(1, HELD_DAYS + 1):
        assert after(records, DAY + timedelta(days=number), "8.00") == [RejectReason.PRICE_JUMP]
    assert after(records, DAY + timedelta(days=HELD_DAYS + 1), "8.00") == []


def test_a_jump_of_a_source_that_is_seldom_read_is_released_as_well(tmp_path: Path) -> None:
    records = Records(Home(tmp_path))
    assert after(records, DAY, "2.00") == []
    for number in range(1, MIN_HELD_READINGS + 1):
        assert after(records, DAY + timedelta(days=40 * number), "8.00") == [RejectReason.PRICE_JUMP]
    assert after(records, DAY + timedelta(days=40 * (MIN_HELD_READINGS + 1)), "8.00") == []


def test_a_held_price_is_read_back_with_the_price_before_it(tmp_path: Path) -> None:
    records = Records(Home(tmp_path))
    before = Before(Decimal("2.00"), "USD", Decimal("2.00"), YESTERDAY - timedelta(days=1))
    (jump,) = screen(
        [*STEADY, offer("8.00")], History([*STEADY, offer("2.00")], before.day), config(), DAY
    ).rejects
    records.write_rejects(YESTERDAY, "acme", [jump])
    held = read_history(records, "acme", DAY).held
    assert held == {
        price_key(offer()): HeldPrice(RejectReason.PRICE_JUMP, Decimal("8.00"), YESTERDAY, 1, before)
    }


def test_one_of_two_conflicting_prices_is_judged_like_a_first_price() -> None:
    conflict = [offer(price, flag_reason=FlagReason.CONFLICTING_PRICES) for price in ("2.00", "0.20")]
    result = screen([offer("0.20")], History(conflict, YESTERDAY), config(), DAY)
    assert reasons(result) == reasons(screen([offer("0.20")], History(), config(), DAY)) != []
    assert screen([offer("2.00")], History(conflict, YESTERDAY), config(), DAY).rejects == []
