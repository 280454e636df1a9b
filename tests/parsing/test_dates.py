"""Dates on price pages, and when the prices of a column are valid."""

from datetime import UTC, date, datetime, timedelta, timezone

from pipeline.contracts.listing import Answer
from pipeline.parsing.dates import Validity, date_of, day_of, effective_from, is_superseded, validity
from tests.parsing.cases import outcome, wrong
from tests.sources.helpers import answer

NEW_YEAR = date(2027, 1, 1)


def on(day: date) -> Answer:
    return answer("", observed_at=datetime(day.year, day.month, day.day, 6, tzinfo=UTC))


NOVEMBER = on(date(2026, 11, 22))


def test_a_date_is_read_in_each_spelling() -> None:
    spellings = [
        *("2026-10-01", " 2026-10-01 ", "2026-10-01T00:00:00Z", "2026-10-01 00:00:00", "October 1, 2026"),
        *("October 1 2026", "Oct 1, 2026", "Oct 01 2026", "1 October 2026", "1 Oct 2026"),
    ]
    assert wrong(date_of, [(text, date(2026, 10, 1)) for text in spellings]) == []
    others = ["", "2026", "2026-13-01", "10/01/2026", "October 2026", "2026-10-01x", "x"]
    assert wrong(date_of, [(text, None) for text in others]) == []


def test_the_day_of_an_answer_is_that_of_utc() -> None:
    evening = datetime(2026, 8, 22, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert day_of(answer("", observed_at=evening)) == date(2026, 8, 23)


def test_only_a_later_day_is_announced_ahead() -> None:
    page = on(date(2026, 8, 22))
    assert effective_from(date(2026, 8, 22), page) is None
    assert effective_from(date(2026, 8, 23), page) == date(2026, 8, 23)
    assert effective_from(None, page) is None


def test_what_a_header_says_of_its_dates() -> None:
    always = ["PRICE/GPU/HR*", "Price from", "On-demand, GPU-hour", "Prices may vary", ""]
    from_new_year = [
        *("PRICE/GPU/HR* from January 1, 2027", "PRICE/GPU/HR* (from 1 January)", "effective 2027-01-01"),
        *("GPU-hour (Effective January 1, 2027)", "GPU-hour (effective from: 1st January 2027)"),
        *("Starting on Jan 1", "Valid from Jan. 1st, 2027, per GPU-hour", "Item — from January 1, 2027"),
    ]
    cases = [
        *((header, Validity()) for header in always),
        *((header, Validity(NEW_YEAR)) for header in from_new_year),
        ("from Sept 30, 2026", Validity(date(2026, 9, 30))),
        ("Item — before January 1, 2027", Validity(ended_on=NEW_YEAR)),
        ("Price until 31 December 2026", Validity(ended_on=NEW_YEAR)),
        ("Price valid until 31 December", Validity(ended_on=NEW_YEAR)),
        ("through 31 December 2026", Validity(ended_on=NEW_YEAR)),
    ]
    assert wrong(lambda header: validity(header, NOVEMBER), cases) == []


def test_a_date_that_is_not_understood_is_refused() -> None:
    unread = [
        *("Effective price", "GPU-hour (effective soon)", "Price 2027", "Price (January 1)"),
        *("from January 1, 2027, before March 1, 2027", "from 01/02/2027"),
        "from January 1, 2027 (announced December 1, 2026)",
    ]
    cases = [(header, f"the date in the column {header!r} cannot be read") for header in unread]
    for header in ("from February 30, 2027", "from 30 February"):
        cases.append((header, f"the date in the column {header!r} is not a day"))
    assert wrong(lambda header: outcome(validity, header, NOVEMBER), cases) == []


def test_a_day_without_a_year_is_the_nearest_one() -> None:
    for today in (date(2026, 1, 1), date(2026, 7, 2), date(2027, 12, 31)):
        for distance in range(-180, 181, 15):
            day = today + timedelta(days=distance)
            assert validity(f"from {day:%B} {day.day}", on(today)) == Validity(day)


def test_of_two_columns_one_holds_on_every_day() -> None:
    for form in ("from {}", "(effective {})", "starting {}"):
        for today in (date(2026, 12, 31), NEW_YEAR, date(2027, 6, 1)):
            columns = [Validity(), validity(form.format("January 1, 2027"), on(today))]
            replaced = [is_superseded(column, columns, on(today)) for column in columns]
            assert replaced == [today >= NEW_YEAR, False]


def test_a_column_that_ended_is_superseded_even_alone() -> None:
    old = Validity(ended_on=NEW_YEAR)
    assert not is_superseded(old, [old], on(date(2026, 12, 31)))
    assert is_superseded(old, [old], on(NEW_YEAR))
    assert not is_superseded(Validity(), [old], on(NEW_YEAR))
