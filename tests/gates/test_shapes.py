"""Shapes of a misread that only many prices together show: a list that moved by one factor, apart or back."""

from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.offer import Offer
from pipeline.contracts.rates import Rate
from pipeline.gates.factors import is_unit, known_factor
from pipeline.gates.history import History
from pipeline.gates.judge import Screened, screen
from pipeline.gates.thresholds import THRESHOLDS
from tests.gates.screening import DAY, H100, YESTERDAY, doubts, screened
from tests.offers.builders import config, offer

RATES = {"EUR": Rate(Decimal("1.1699")), "USD": Rate(Decimal(1))}


def prices(count: int, **facts: Any) -> list[Offer]:
    """Return offers of unknown cards at 2.00, 3.00 and so on."""
    return [offer(f"{n + 2}.00", raw_label=f"c{n}", **({"gpu_id": None} | facts)) for n in range(count)]


def times(offers: list[Offer], *factors: str, **changes: Any) -> list[Offer]:
    """Return offers at their price times their factor."""
    return [
        each.model_copy(update={"native_price": each.native_price * Decimal(factor)} | changes)
        for each, factor in zip(offers, factors, strict=True)
    ]


def moved(*factors: str, kind: str = "on_demand", source: str = "acme", **changes: Any) -> Screened:
    """Screen prices that moved by these factors."""
    before = prices(len(factors), price_kind=kind, source=source)
    return screen(times(before, *factors, **changes), History(before, YESTERDAY, {}, RATES), config(), DAY)


def reasons(result: Screened) -> list[str]:
    return [reason for reason, _ in doubts(result)]


def test_a_list_that_moved_by_one_factor_is_held_by_what_the_factor_is() -> None:
    one_factor: Mapping[tuple[str, ...], list[str]] = {
        ("0.8548",) * 4: ["moved_by_a_currency"] * 4,  # euros read as dollars
        ("1.1699",) * 4: ["moved_by_a_currency"] * 4,
        ("0.8",) * 4: ["moved_by_a_discount"] * 4,
        ("2",) * 4: ["moved_by_a_unit"] * 4,
        ("0.125",) * 4: ["moved_by_a_unit"] * 4,
        ("0.7",) * 4: ["list_moved"] * 4,
        ("1.08",) * 4: ["list_moved"] * 4,
        ("1.6",) * 4: ["list_moved"] * 4,
        ("1.61",) * 4: ["price_too_far"] * 4,
        ("0.7", "0.7", "0.7", "1"): ["list_moved"] * 3,
        ("0.7", "0.7", "0.7", "1", "1", "1"): ["list_moved"] * 3,  # exactly half
        ("0.7", "0.7", "0.7", "1", "1", "1", "1"): ["price_jump"] * 3,  # no list, but list prices
        ("0.8", "0.8"): ["moved_by_a_discount"] * 2,  # all that there are
        ("0.8",): ["price_jump"],
        ("0.96",) * 4: [],  # too little: an ordinary cut of all prices
        ("1.0500001",) * 3: ["list_moved"] * 3,
        ("1.0499",) * 3: [],
    }
    assert {factors: reasons(moved(*factors)) for factors in one_factor} == one_factor
    assert doubts(moved("0.7", "0.7", "0.7", "1"))[1] == (
        "list_moved",
        "'c1' went from 3.00 to 2.100 USD; 3 of 4 prices moved, by a factor of 0.7 (the whole list moved)",
    )
    assert moved("0.7", "0.7", "0.7", tier_class="marketplace").rejects == []


def test_rounding_to_cents_does_not_hide_a_factor() -> None:
    before = [offer(f"0.{n}7", raw_label=f"{n}", gpu_id=None, source="scaleway") for n in range(1, 8)]
    now = [
        each.model_copy(update={"native_price": round(each.native_price * Decimal("1.2"), 2)})
        for each in before
    ]
    found = screen(now, History(before, YESTERDAY), config(), DAY)
    assert reasons(found) == ["moved_by_a_tax"] * 7


def test_prices_that_moved_apart_are_another_page() -> None:
    apart: Mapping[tuple[str, ...], list[str]] = {
        ("0.80", "0.75", "1.3", "0.7"): ["most_prices_moved"] * 4,
        ("1.1000001", "1.15", "0.90"): ["most_prices_moved"] * 3,
        ("1.0999", "1.15", "0.90"): ["price_jump"] * 2,  # one of them too little
        ("0.95", "0.94", "1.05", "1.04"): [],
    }
    assert {factors: reasons(moved(*factors)) for factors in apart} == apart


def test_prices_that_lost_their_digits() -> None:
    """A single price may have been cut to a round one."""

    def after(*pairs: tuple[str, str]) -> list[str]:
        before, now = (
            [offer(pair[n], raw_label=f"{place}", gpu_id=None) for place, pair in enumerate(pairs)]
            for n in (0, 1)
        )
        return reasons(screened(now, before))

    assert after(("2.79", "2"), ("1.99", "1")) == ["digits_lost"] * 2
    assert after(("2.09", "2.9"), ("1.05", "1.5")) == ["digits_lost"] * 2
    assert after(("2.79", "2"), ("1.99", "1.8")) == ["price_jump"] * 2
    assert after(("2.79", "2.7"), ("1.99", "1.9"), ("7", "7")) == []
    assert after(("25.12", "25"), ("20.04", "20"), ("7", "7")) == []  # hardly a change


def test_spot_prices_move_every_day_but_not_by_one_factor() -> None:
    assert moved("0.80", "0.75", "1.3", "0.7", kind="spot").rejects == []
    assert reasons(moved("1.30", "1.30", "1.30", kind="spot")) == ["list_moved"] * 3
    assert (
        reasons(moved("0.80", "0.80", "0.80", kind="spot")) == ["list_moved"] * 3
    )  # a discount says nothing
    assert reasons(moved("2", "2", "2", kind="spot")) == ["price_too_far"] * 3
    # If the list is another page's, so are its spot prices.
    before = [*prices(4), *prices(1, price_kind="spot")]
    now = times(before, "0.80", "0.75", "1.3", "0.7", "0.98")
    assert reasons(screen(now, History(before, YESTERDAY), config(), DAY)) == ["most_prices_moved"] * 5


def test_a_part_of_a_list_that_moved_by_a_known_factor() -> None:
    """A kind, a tier, a region or a page; another factor is a change of prices."""
    rest = prices(5)
    for part in ({"tier": "vm"}, {"region": "eu"}, {"capture_sha256": "1" * 64}):
        before = [*rest, *prices(3, **part)]
        for factor, found in (("0.8548", ["moved_by_a_currency"] * 3), ("0.7", ["price_jump"] * 3)):
            now = times(before, *["1"] * 5, *[factor] * 3)
            history = History(before, YESTERDAY, {}, RATES)
            assert reasons(screen(now, history, config(), DAY)) == found


def test_which_factors_are_known() -> None:
    """Taxes are added, by the sources that do; discounts are subtracted; units are mistaken both ways."""
    known = {
        ("8", "acme"): "moved_by_a_unit",
        ("0.125", "acme"): "moved_by_a_unit",
        ("8.032", "acme"): "moved_by_a_unit",
        ("8.04", "acme"): None,
        ("1.2", "acme"): None,
        ("1.2", "scaleway"): "moved_by_a_tax",
        ("1.0811", "exoscale"): "moved_by_a_tax",
        ("1.081", "scaleway"): None,
        ("0.75", "acme"): "moved_by_a_discount",
        ("1.3333", "acme"): None,
        ("1.193", "acme"): "moved_by_a_currency",
        ("1.194", "acme"): None,
        ("1", "acme"): None,
    }
    found = {case: known_factor(Decimal(case[0]), case[1], RATES) for case in known}
    assert {case: shape and shape[0].value for case, shape in found.items()} == known
    cents = {"3.98": True, "3.996": True, "3.97": False, "1.00": True, "1.01": False}
    assert {now: is_unit(Decimal("1.995"), Decimal(now)) for now in cents} == cents


def test_a_page_of_an_earlier_day() -> None:
    """Most prices moved, and back to where they were on one day."""
    then, before = prices(4), times(prices(4), "1.03", "1.02", "1.04", "1.01")
    weeks_ago = DAY - timedelta(weeks=3)
    found = screened(then, before, earlier={weeks_ago: then})
    assert reasons(found) == ["earlier_page"] * 4
    assert doubts(found)[0][1].endswith("; 4 of 4 moved prices are those of 2026-08-01")
    mixed = {weeks_ago: then[:2], weeks_ago + timedelta(days=1): then[2:]}
    assert screened(then, before, earlier=mixed).rejects == []
    assert screened(then[:2] + before[2:], before, earlier={weeks_ago: then}).rejects == []


@pytest.mark.parametrize("price", ["2.10", "2.00"])
def test_a_page_that_says_it_is_older_than_the_last_reading(price: str) -> None:
    lag = THRESHOLDS.max_page_lag_days
    held = {lag: [], lag + 1: ["earlier_page"] if price != "2.00" else []}
    for days, expected in held.items():
        page: Mapping[str, date] = {offer().capture_sha256: YESTERDAY - timedelta(days=days)}
        assert reasons(screened([offer(price)], [offer("2.00", gpu_id=H100)], page_days=page)) == expected
