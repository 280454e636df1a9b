"""A clock that is wrong, or a mistyped day: no day after the present one is read, published or believed."""

import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pytest

from pipeline.contracts.errors import GpufareError
from pipeline.contracts.incidents import IncidentKind
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.refresh import RefreshReport, refresh
from pipeline.warehouse.query import age_note, ask, reader
from tests.conftest import PAGES, gpufare
from tests.pages_server import PagesServer

DAY = date(2026, 8, 22)
AHEAD = DAY + timedelta(days=400)
SOURCE = "crusoe"


@pytest.fixture
def home(small_home: Home) -> Home:
    return small_home


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    shutil.copytree(PAGES / SOURCE, tmp_path / "pages" / SOURCE)
    return tmp_path / "pages"


@pytest.fixture
def server(pages: Path) -> Iterator[PagesServer]:
    with PagesServer(pages) as running:
        yield running


def at(day: date) -> datetime:
    return datetime.combine(day, time(6), UTC)


def run(home: Home, server: PagesServer, day: date) -> RefreshReport:
    """A refresh of the source by a machine whose clock says that it is ``day``."""
    options = {"sources": (SOURCE,), "environment": {}, "now": at(day)}
    return refresh(home, day=day, pages=server.base_url, **options)  # type: ignore[arg-type]


def published(home: Home, query: str) -> list[tuple[object, ...]]:
    with reader(home.published) as connection:
        return ask(connection, query).rows


@pytest.mark.parametrize("origin", ["providers", "folder", "server", "archive"])
def test_a_day_after_today_is_refused_wherever_the_answers_come_from(
    origin: str, home: Home, pages: Path
) -> None:
    with PagesServer(pages) if origin == "server" else nullcontext() as server:
        given = {"folder": str(pages), "server": getattr(server, "base_url", None), "archive": "archive"}
        with pytest.raises(GpufareError, match=f"--day {DAY + timedelta(days=1)} is after today"):
            refresh(
                home,
                day=DAY + timedelta(days=1),
                pages=given.get(origin),
                sources=(SOURCE,),
                environment={},
                now=at(DAY),
            )
    assert [path.name for path in home.root.iterdir()] == ["cache"]


def test_saved_answers_that_were_observed_after_today_are_refused(home: Home, pages: Path) -> None:
    with pytest.raises(GpufareError, match=f"observed_at of a saved answer, {DAY} is after today"):
        refresh(home, pages=str(pages), environment={}, now=at(DAY - timedelta(days=1)))


@pytest.mark.parametrize(
    "arguments",
    [
        ("refresh", "--day", "2062-08-22"),
        ("refresh", "--day", "2062-08-22", "--pages", "archive"),
        ("refresh", "--day", "2062-08-22", "--pages", str(PAGES)),
        ("read", "runpod", str(PAGES / "runpod" / "gpu_types.json"), "--observed-at", "2062-08-22"),
    ],
    ids=["providers", "archive", "folder", "read"],
)
def test_a_mistyped_day_gives_one_line(arguments: tuple[str, ...], tmp_path: Path) -> None:
    answer = gpufare(*arguments, home=tmp_path / "home")
    assert answer.returncode != 0
    (line,) = answer.stderr.splitlines()
    assert "2062-08-22 is after today (" in line
    assert answer.stdout == ""


def test_data_from_a_clock_400_days_ahead_is_ignored_and_named_once(
    home: Home, pages: Path, server: PagesServer
) -> None:
    page = pages / SOURCE / "pricing.html"
    right = page.read_text(encoding="utf-8")
    page.write_text(right.replace("$4.29", "$5.29"), encoding="utf-8")
    assert right != page.read_text(encoding="utf-8")
    run(home, server, AHEAD)
    with reader(home.published) as connection:
        note = age_note(connection, DAY) or ""
    assert f"published as of {AHEAD}, which is after today" in note

    page.write_text(right, encoding="utf-8")
    for day in (DAY, DAY + timedelta(days=1)):
        report = run(home, server, day)
        assert (report.published_day, report.newest_price_day) == (day, day)
        assert [(each.kind, each.day) for each in report.incidents] == [(IncidentKind.FUTURE_DAY, AHEAD)]
        # Prices of days to come are compared with nothing: not one is held, none has changed.
        assert (report.outcomes[0].accepted, report.held) == (True, {})
    assert published(home, "SELECT max(day), max(native_price) FROM main.offers") == [
        (DAY + timedelta(days=1), max(offer.native_price for offer in Records(home).offers(SOURCE, DAY)))
    ]
    assert published(home, "SELECT max(day) FROM main.capture_outcomes") == [(DAY + timedelta(days=1),)]
    named = published(home, "SELECT day, reason FROM main.incidents WHERE kind = 'future_day'")
    assert named == [(AHEAD, "the home has data of this future date")]


def test_clock_set_back_publishes_its_own_day_and_reports_ignored_files(
    home: Home, server: PagesServer
) -> None:
    run(home, server, DAY + timedelta(days=2))
    report = run(home, server, DAY)
    assert report.published_day == DAY
    assert [each.day for each in report.incidents] == [DAY + timedelta(days=2)]
    assert report.failure() is None
    # When the day has come, its data are those of any day.
    report = run(home, server, DAY + timedelta(days=2))
    assert (report.published_day, report.incidents) == (DAY + timedelta(days=2), [])
