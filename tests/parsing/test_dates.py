"""Dates on price pages, and when the prices of a column are valid."""

from datetime import UTC, date, datetime, timedelta, timezone

from pipeline.contracts.listing import Answer
from pipeline.parsing.dates import Validity, day_of, effective_from, is_superseded, validity
from tests.sources.helpers import answer

NEW_YEAR = date(2027, 1, 1)


def on(day: date) -> Answer:
    return answer("", observed_at=datetime(day.year, day.month, day.day, 6, tzinfo=UTC))


def test_the_day_of_an_answer_is_that_of_utc() -> None:
    evening = datetime(2026, 8, 22, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert day_of(answer("", observed_at=evening)) == date(2026, 8, 23)


def test_only_a_later_day_is_announced_ahead() -> None:
    page = on(date(2026, 8, 22))
    assert effective_from(date(2026, 8, 22), page) is None
    assert effective_from(date(2026, 8, 23), page) == date(2026, 8, 23)
    assert effective_from(None, page) is None


def test_a_day_without_a_year_is_the_nearest_one() -> None:
    for today in (date(2026, 1, 1), date(2026, 7, 2), date(2027, 12, 31)):
        for distance in range(-180, 181, 15):
            day = today + timedelta(days=distance)
            assert validity(f"from {day:%B} {day.day}", on(today)) == Validity(day)


def test_a_column_that_ended_is_superseded_even_alone() -> None:
    old = Validity(ended_on=NEW_YEAR)
    assert not is_superseded(old, [old], on(date(2026, 12, 31)))
    assert is_superseded(old, [old], on(NEW_YEAR))
    assert not is_superseded(Validity(), [old], on(NEW_YEAR))
