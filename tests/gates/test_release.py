"""Held prices are believed after days, with the market, or by a person's word; and what the record keeps."""

import math
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.held import Before, HeldPrice
from pipeline.gates.history import History, moves_at_other_sources, read_history
from pipeline.gates.judge import screen
from pipeline.gates.prices import price_key
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.home.paths import Home
from pipeline.record.records import Records
from tests.gates.screening import DAY, H100, STEADY, YESTERDAY, offers_in, reasons, reviewed, screened
from tests.offers.builders import config, offer

DAYS, READINGS = THRESHOLDS.held_days, THRESHOLDS.min_held_readings
TWO = Before(Decimal("2.00"), "USD", Decimal("2.00"), DAY - timedelta(days=9))


def after(days: int, readings: int, held: str = "8.00", now: str = "8.00") -> list[str]:
    """Return why a price is held that was held ``days`` ago, after a price of two dollars."""
    price = HeldPrice(RejectReason.PRICE_JUMP, Decimal(held), DAY - timedelta(days=days), readings, TWO)
    return reasons([offer(now)], held={price_key(offer()): price})


def test_a_jump_is_believed_after_the_stated_days_and_not_for_being_repeated() -> None:
    jump = [RejectReason.PRICE_JUMP]
    assert after(1, 1) == after(DAYS - 1, DAYS) == after(DAYS, READINGS - 1) == jump
    assert after(DAYS, READINGS) == []
    assert after(DAYS, DAYS, held="8.40") == []  # the same, up to a twentieth
    assert after(DAYS, DAYS, held="8.41") == jump


def test_a_price_that_returns_to_its_old_value_is_believed_at_once() -> None:
    assert after(1, 1, now="2.00") == []
    moved = HeldPrice(RejectReason.MOST_PRICES_MOVED, Decimal("2.05"), YESTERDAY, 1, TWO)
    held = {price: reasons([offer(price)], held={price_key(offer()): moved}) for price in ("2.00", "2.002")}
    assert held == {"2.00": [], "2.002": []}
    assert reasons([offer("2.003")], held={price_key(offer()): moved}) == ["most_prices_moved"]


def test_a_jump_is_believed_when_another_source_moves_with_it() -> None:
    """From 2 to 8; the other from 2 to between 4 and 32: half to twice as far in logarithms."""
    held = {"2.00": True, "3.99": True, "4.00": False, "32.00": False, "32.10": True, "0.50": True}
    asked: list[tuple[Any, ...]] = []

    def moves(*to: str) -> Any:
        def moves_since(*about: Any) -> list[float]:
            asked.append(about)
            return [math.log(float(each) / 2) for each in to]

        return moves_since

    now, before, with_it = [offer("8.00")], [offer("2.00")], moves("8.00")
    assert {to: bool(reasons(now, before, moves=moves(to))) for to in held} == held
    assert reasons(now, before, moves=moves("2.00", "8.00")) == []
    assert set(asked) == {(H100, "on_demand", YESTERDAY)}
    # The market says nothing of other doubts, of unknown cards and of names without an earlier price.
    assert reasons(offers_in("8 native_currency=EUR usd=2"), before, moves=with_it) == ["currency_changed"]
    unknown = [offer(price, gpu_id=None) for price in ("2.00", "8.00")]
    assert reasons(unknown[1:], unknown[:1], moves=with_it) == ["price_jump"]
    assert reasons([offer("8.00", raw_label="new")], before, moves=with_it) == ["price_jump"]


def test_moves_of_other_sources_are_read_from_their_records(tmp_path: Path) -> None:
    records = Records(Home(tmp_path))
    later = DAY + timedelta(days=1)
    for day, price in ((YESTERDAY, "2.00"), (DAY, "4.00"), (later, "9.00")):
        flat = [offer("2.00", price_kind="spot"), offer("7.00", gpu_id="l40s"), offer("90", raw_label="dear")]
        several = [offer(price, raw_label=f"{n}") for n in range(3)]
        ours = [each.model_copy(update={"source": "lambda"}) for each in (*several, *flat)]
        records.write_accepted(day, "lambda", ours)
        records.write_accepted(day, "vast", [offer(price, source="vast", tier="marketplace_verified")])
        records.write_accepted(day, "runpod", [offer(price, source="runpod")])
    records.write_accepted(DAY, "vultr", [offer("5.00", source="vultr")])
    records.write_accepted(YESTERDAY, "crusoe", [offer("5.00", source="crusoe")])
    damaged = Home(tmp_path).record / "offers" / "nebius" / "2026-08.parquet"
    for day in (YESTERDAY, DAY):
        records.write_accepted(day, "nebius", [offer("2.00", source="nebius")])
    damaged.write_bytes(damaged.read_bytes().replace(b"PAR1", b"XXXX", 1))

    def moves(kind: str, since: date, day: date = DAY) -> Sequence[float]:
        return list(moves_at_other_sources(records, "runpod", day, H100, kind, since))

    assert moves("on_demand", YESTERDAY) == [pytest.approx(math.log(2))]
    assert moves("on_demand", YESTERDAY, later) == [pytest.approx(math.log(4.5))]
    assert moves("on_demand", DAY, later) == [pytest.approx(math.log(9 / 4))]
    assert moves("spot", YESTERDAY) == [0]
    assert moves("reserved", YESTERDAY) == moves("on_demand", DAY) == []


def test_a_persons_line_in_the_yaml_releases_its_price_only() -> None:
    held: list[tuple[dict[str, Any], bool]] = [
        ({}, False),
        ({"price": "8.008"}, False),  # the same figure
        ({"price": "8.009"}, True),
        ({"currency": "EUR"}, True),
        ({"offer": {"raw_label": "H100 PCIe"}}, True),
        ({"offer": {"raw_label": "H100 SXM", "gpu_count": 8}}, True),
    ]
    for change, is_held in held:
        by_a_person = config().model_copy(update={"reviewed_prices": (reviewed(**change),)})
        result = screened([offer("8.00")], [offer("2.00")], by_a_person)
        assert bool(result.rejects) is is_held, change


def test_reviewed_price_names_its_offer_reviewer_and_reason() -> None:
    offers = ({"price_kind": "spot"}, {"raw_label": "x", "gpu": 1})
    for change in (*({"offer": each} for each in offers), {"by": ""}, {"why": ""}, {"price": 0}):
        with pytest.raises(ValidationError):
            reviewed(**change)


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(Home(tmp_path))


def read_on(records: Records, day: date, price: str) -> list[RejectReason]:
    """Record a day's reading as a refresh does."""
    result = screen([*STEADY, offer(price)], read_history(records, "acme", day), config(), day)
    records.write_accepted(day, "acme", result.offers)
    records.write_rejects(day, "acme", result.rejects)
    return [row.reason for row in result.rejects]


@pytest.mark.parametrize(("days_between", "readings"), [(1, DAYS), (40, READINGS)])
def test_a_jump_stays_held_over_the_days_of_the_record(
    records: Records, days_between: int, readings: int
) -> None:
    """Also of a source that is seldom read."""
    days = [DAY + timedelta(days=days_between * n) for n in range(readings + 2)]
    found = [read_on(records, day, "8.00" if day > DAY else "2.00") for day in days]
    assert found == [[], *[[RejectReason.PRICE_JUMP]] * readings, []]


def test_held_prices_are_read_back_with_the_price_before_them(records: Records) -> None:
    key, before = price_key(offer()), Before(Decimal("2.00"), "USD", Decimal("2.00"), DAY)
    days = [DAY + timedelta(days=n) for n in range(6)]
    assert read_on(records, DAY, "2.00") == []
    assert read_history(records, "acme", DAY) == History([], None, {})
    for number, (price, since, readings) in enumerate(
        (("8.00", 1, 1), ("8.40", 1, 2), ("9.00", 3, 1)), start=1
    ):
        read_on(records, days[number], price)
        held = HeldPrice(RejectReason.PRICE_JUMP, Decimal(price), days[since], readings, before)
        assert read_history(records, "acme", days[number + 1]).held == {key: held}
    assert read_history(records, "acme", days[1]).held == {}
    read_on(records, days[4], "2.10")  # accepted, so that nothing is held any more
    last = read_history(records, "acme", days[5])
    assert (last.held, last.last_day, len(last.last)) == ({}, days[4], 4)


def test_a_price_held_beside_an_accepted_one_with_its_key_stays_held(records: Records) -> None:
    result = screened([offer("8.00"), offer("2.00")], [offer("2.00")])
    records.write_accepted(YESTERDAY, "acme", result.offers)
    records.write_rejects(YESTERDAY, "acme", result.rejects)
    assert price_key(offer()) in read_history(records, "acme", DAY).held


def test_held_prices_are_looked_up_in_the_latest_readings_only(records: Records) -> None:
    jump = screened([offer("8.00")], [offer("2.00")]).rejects
    for age in range(1, THRESHOLDS.history_readings + 1):
        records.write_rejects(DAY - timedelta(days=age), "acme", jump if age == 30 else [])
        records.write_rejects(DAY - timedelta(days=age), "other", [])
    assert read_history(records, "acme", DAY).held.keys() == {price_key(offer())}
    records.write_rejects(DAY, "acme", [])
    assert read_history(records, "acme", DAY + timedelta(days=1)).held == {}
