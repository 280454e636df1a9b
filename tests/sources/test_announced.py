"""When the prices of a column hold, as its header says."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts.listing import SourceChangedError
from pipeline.parsing.dates import Validity, is_superseded, validity
from pipeline.parsing.tables import price_columns, require_on_demand
from pipeline.parsing.text import UnreadableError
from tests.sources.helpers import answer

NEW_YEAR = date(2027, 1, 1)


def on(day: date) -> object:
    return answer("", observed_at=datetime(day.year, day.month, day.day, 6, tzinfo=UTC))


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("PRICE/GPU/HR*", Validity()),
        ("Price from", Validity()),
        ("On-demand, GPU-hour", Validity()),
        ("Prices may vary", Validity()),
        ("PRICE/GPU/HR* from January 1, 2027", Validity(NEW_YEAR)),
        ("PRICE/GPU/HR* (from 1 January)", Validity(NEW_YEAR)),
        ("GPU-hour (Effective January 1, 2027)", Validity(NEW_YEAR)),
        ("GPU-hour (effective from: 1st January 2027)", Validity(NEW_YEAR)),
        ("effective 2027-01-01", Validity(NEW_YEAR)),
        ("Starting on Jan 1", Validity(NEW_YEAR)),
        ("Valid from Jan. 1st, 2027, per GPU-hour", Validity(NEW_YEAR)),
        ("Item — from January 1, 2027", Validity(NEW_YEAR)),
        ("Item — before January 1, 2027", Validity(ended_on=NEW_YEAR)),
        ("Price until 31 December 2026", Validity(ended_on=NEW_YEAR)),
        ("Price valid until 31 December", Validity(ended_on=NEW_YEAR)),
        ("from Sept 30, 2026", Validity(date(2026, 9, 30))),
    ],
)
def test_what_a_header_says(header: str, expected: Validity) -> None:
    assert validity(header, on(date(2026, 11, 22))) == expected


@pytest.mark.parametrize(
    "header",
    [
        "Effective price",
        "GPU-hour (effective soon)",
        "Price 2027",
        "Price (January 1)",
        "from February 30, 2027",
        "from January 1, 2027, before March 1, 2027",
        "from January 1, 2027 (announced December 1, 2026)",
        "from 01/02/2027",
    ],
)
def test_a_date_that_is_not_understood_is_refused(header: str) -> None:
    with pytest.raises(UnreadableError, match="the date in the column"):
        validity(header, on(date(2026, 11, 22)))


@given(st.dates(date(2020, 1, 1), date(2090, 1, 1)), st.integers(min_value=-180, max_value=180))
def test_a_day_without_a_year_is_the_nearest_one(today: date, distance: int) -> None:
    day = today + timedelta(days=distance)
    if (day.month, day.day) != (2, 29):
        assert validity(f"from {day:%B} {day.day}", on(today)) == Validity(day)


@given(
    st.dates(date(2021, 1, 1), date(2090, 1, 1)),
    st.integers(min_value=0, max_value=400),
    st.sampled_from(["from {day}", "(effective {day})", "starting {day}"]),
)
def test_of_two_columns_one_holds_on_every_day(change: date, distance: int, form: str) -> None:
    for today in (change - timedelta(days=distance + 1), change + timedelta(days=distance)):
        later = validity(form.format(day=f"{change:%B} {change.day}, {change.year}"), on(today))
        columns = [Validity(), later]
        replaced = [is_superseded(column, columns, on(today)) for column in columns]
        assert replaced == [today >= change, False]


def test_a_column_that_ended_is_superseded_even_alone() -> None:
    old = Validity(ended_on=NEW_YEAR)
    assert not is_superseded(old, [old], on(date(2026, 12, 31)))
    assert is_superseded(old, [old], on(NEW_YEAR))


HEADERS = ["GPU", "On-demand", "On-demand (from 1 January)", "Spot until 31 December", "Spot from January 1"]


@pytest.mark.parametrize(
    ("today", "superseded"),
    [
        (date(2026, 11, 22), [False, False, False, False]),
        (date(2026, 12, 31), [False, False, False, False]),
        (date(2027, 1, 1), [True, False, True, False]),
    ],
)
def test_price_columns_know_from_when_they_hold(today: date, superseded: list[bool]) -> None:
    prices = price_columns(HEADERS, on(today))
    assert [price.effective_from for price in prices] == [None, NEW_YEAR, None, NEW_YEAR]
    assert [price.flag_reason == "superseded" for price in prices] == superseded
    require_on_demand(prices, HEADERS, on(today))


def test_columns_of_other_kinds_or_terms_supersede_nothing() -> None:
    headers = ["On-demand", "Reserved 1 year from January 1, 2026", "Reserved 3 years"]
    prices = price_columns(headers, on(date(2026, 11, 22)))
    assert [price.flag_reason for price in prices] == [None, None, None]


@pytest.mark.parametrize(
    "headers",
    [
        ["GPU", "Spot"],
        ["GPU", "On-demand", "On-demand, monthly"],
        ["GPU", "On-demand from January 1, 2027", "On demand (effective 2027-01-01)"],
    ],
)
def test_on_demand_columns_that_leave_two_prices_for_a_day_are_refused(headers: list[str]) -> None:
    today = on(date(2026, 11, 22))
    with pytest.raises(SourceChangedError, match="not one on-demand column"):
        require_on_demand(price_columns(headers, today), headers, today)


def test_a_price_column_with_a_date_that_is_not_understood_is_refused() -> None:
    with pytest.raises(SourceChangedError, match="the date in the column"):
        price_columns(["GPU", "On-demand (effective soon)"], on(date(2026, 11, 22)))
