"""A clock that is wrong is noticed by the dates of the day's answers, and nothing is published under it."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.contracts.request import Entry
from pipeline.health.digest import Problem, digest_of
from pipeline.home.paths import Home
from pipeline.record.incidents import kept_incidents
from pipeline.refresh.clock import MAX_ERROR, REMEDY, clock_problem
from pipeline.refresh.publishing import publish_day
from pipeline.warehouse.query import ask, reader
from pipeline.warehouse.sql_files import BuildError
from tests.scenario import MENDED, noon

NOW = datetime(2026, 8, 25, 7, tzinfo=UTC)
DAY = NOW.date()
SECOND = timedelta(seconds=1)


def answered(
    home: Home,
    source: str,
    *ahead: timedelta,
    age: str = "",
    replayed: str | None = None,
    day: date = DAY,
    is_finished: bool = True,
) -> None:
    """Archive a capture with answers that arrived when this machine's clock was this far ahead."""
    writer = Archive(home.archive).start(source, day, replayed_from=replayed)
    at = datetime.combine(day, NOW.time(), UTC)
    for each in ahead:
        headers = {"date": format_datetime(at - each, usegmt=True)} | ({"age": age} if age else {})
        writer.add(Entry(url=f"https://{source}.example", observed_at=at, status=404, headers=headers), None)
    if is_finished:
        writer.finish()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_clock_may_be_off_by_an_hour(sign: int, tmp_path: Path) -> None:
    home = Home(tmp_path)
    for source in ("lambda", "modal"):
        answered(home, source, sign * MAX_ERROR)
    assert clock_problem(home, DAY) is None
    for source in ("lambda", "modal"):
        answered(home, source, sign * (MAX_ERROR + SECOND))
    off = "1.0 hours ahead" if sign > 0 else "1.0 hours behind"
    said = f"the clock of this machine was {off} on {DAY}, by the dates in the answers of 2 sources"
    assert clock_problem(home, DAY) == said


def test_one_source_alone_says_nothing(tmp_path: Path) -> None:
    answered(Home(tmp_path), "lambda", timedelta(days=99))
    assert clock_problem(Home(tmp_path), DAY) is None


def test_a_capture_that_another_process_is_making_does_not_count(tmp_path: Path) -> None:
    for source in ("lambda", "modal"):
        answered(Home(tmp_path), source, timedelta(days=99), is_finished=False)
    assert clock_problem(Home(tmp_path), DAY) is None


def test_the_newest_answers_of_most_sources_count(tmp_path: Path) -> None:
    """A host's clock may be wrong, an answer may come from a cache, and a replayed page is old."""
    home, far = Home(tmp_path), timedelta(days=99)
    answered(home, "lambda", far, timedelta(0))
    answered(home, "modal", far)
    answered(home, "modal", timedelta(hours=30), age=f"{30 * 3600}")
    answered(home, "linode", far)
    answered(home, "vultr", far, replayed="tests/pages")
    answered(home, "verda", far, day=DAY - timedelta(days=1))
    assert clock_problem(home, DAY) is None
    for source in ("civo", "cudo"):
        answered(home, source, far)
    assert "was 99 days ahead" in str(clock_problem(home, DAY))


def test_headers_that_are_no_dates_say_nothing(tmp_path: Path) -> None:
    writer = Archive(tmp_path / "archive").start("lambda", DAY)
    for headers in ({}, {"date": ""}, {"date": "yesterday"}, {"date": "0", "age": "9" * 30}):
        writer.add(Entry(url="https://a.example", observed_at=NOW, headers=headers), None)
    for age in ("9" * 30, "old"):
        headers = {"date": format_datetime(NOW - timedelta(days=9), usegmt=True), "age": age}
        writer.add(Entry(url="https://a.example", observed_at=NOW, headers=headers), None)
    writer.finish()
    assert clock_problem(Home(tmp_path), DAY) is None


def test_nothing_is_published_under_a_wrong_clock(copy_of: Callable[..., Home]) -> None:
    home, ahead = copy_of(MENDED), noon(MENDED) + timedelta(days=200)
    for source in ("lambda", "modal"):
        answered(home, source, timedelta(days=200), day=ahead.date())
    before = home.published.read_bytes()
    off = f"200 days ahead on {ahead.date()}"
    problem = f"the clock of this machine was {off}, by the dates in the answers of 2 sources"
    with pytest.raises(BuildError) as raised:
        publish_day(home, ahead.date(), ahead)
    assert str(raised.value) == f"{problem}: {REMEDY}"
    assert home.published.read_bytes() == before
    incident = kept_incidents(home)[-1]
    assert (incident.kind, incident.reason, incident.remedy) == ("wrong_clock", problem, REMEDY)
    assert Problem("clock", problem, step=REMEDY) in digest_of(home, ahead).problems
    sentence = incident.kind.sentence.rstrip(".")
    told = Problem("wrong_clock", sentence, problem, step=REMEDY.replace("`", "'"))
    assert told in digest_of(home, datetime.now(UTC)).problems


def test_what_is_published_never_goes_back_in_time(copy_of: Callable[..., Home]) -> None:
    home, published = copy_of(MENDED), noon(MENDED)
    before = home.published.read_bytes()
    with pytest.raises(BuildError, match="a refresh that began later has published; the next one publishes"):
        publish_day(home, MENDED, published - SECOND)
    assert home.published.read_bytes() == before
    assert [each.kind for each in kept_incidents(home)][-1:] == ["not_published"]
    publish_day(home, MENDED, published)
    future = datetime.now(UTC) + timedelta(days=400)
    publish_day(home, MENDED, future)
    (told, *_) = digest_of(home, published).problems
    why = "the clock of this machine is wrong, or was when that was built"
    people_see = f"people see the file of {MENDED}, built {future:%Y-%m-%d %H:%M} UTC"
    assert told == Problem("publication", "PUBLISHED IN THE FUTURE", why, people_see, REMEDY)
    with pytest.raises(BuildError) as raised:
        publish_day(home, MENDED, datetime.now(UTC))
    assert f"{home.published} is of {future:%Y-%m-%d %H:%M:%S} UTC, later than this build of" in str(
        raised.value
    )
    assert "set the clock of this machine or, if the clock is right, move that file away" in str(raised.value)
    home.published.rename(home.root / "away")
    now = datetime.now(UTC)
    publish_day(home, MENDED, now)
    with reader(home.published) as connection:
        assert ask(connection, "SELECT as_of_time FROM main.publication").rows == [(now,)]
