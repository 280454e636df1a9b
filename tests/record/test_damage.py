"""Bad files of the record stop nothing: each is named, and its days are read again from the archive.

Two days of three small sources are recorded and the first is published; each test damages a copy."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.replay import capture_pages
from pipeline.catalog.source_config import source_config
from pipeline.home.paths import Home
from pipeline.record.incidents import kept_incidents
from pipeline.record.journal import Journal
from pipeline.record.months import Month, file_of, rows_of, write_days
from pipeline.record.records import Records
from pipeline.refresh.ingest import record_day
from pipeline.refresh.publishing import publish_day
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import create, prepare
from pipeline.warehouse.history import bring_up_to_date
from pipeline.warehouse.load_record import NEEDED_REJECTS_DAYS, missing_days
from pipeline.warehouse.query import ask, reader
from tests.conftest import PAGES
from tests.offers.builders import offer
from tests.record.builders import outcome, rewritten
from tests.warehouse.full_load import load_record

FIRST, SECOND = date(2026, 8, 21), date(2026, 8, 22)
NOW = datetime(2026, 8, 22, 7, tzinfo=UTC)
TABLES = ("offers", "rejects", "capture_outcomes", "exchange_rates")


def read_day(home: Home, source: str, day: date) -> Any:
    config, archive = source_config(source), Archive(home.archive)
    return record_day(config, day, [capture_pages(PAGES, config, day=day, archive=archive)], home)


@pytest.fixture(scope="module")
def two_days(small_homes: Callable[[Path], Home], tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = small_homes(tmp_path_factory.mktemp("two-days") / "home")
    for day in (FIRST, SECOND):
        for source in ("ecb", "scaleway", "crusoe"):
            assert read_day(home, source, day).accepted
        if day == FIRST:
            publish_day(home, FIRST, NOW)
    return home


@pytest.fixture
def home(two_days: Home, tmp_path: Path) -> Home:
    return Home(Path(shutil.copytree(two_days.root, tmp_path / "home")))


def loaded(home: Home, *, damaged: int = 0) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of the record, as it is published."""
    with connect() as connection:
        create(connection, *TABLES)
        assert len(load_record(connection, home, SECOND)) == damaged
        return {table: connection.execute(f"FROM main.{table} ORDER BY ALL").fetchall() for table in TABLES}


def month_of(home: Home, table: str, source: str = "scaleway") -> Path:
    return file_of(home, Month(table, source, f"{FIRST:%Y-%m}"))


def cut_in_half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


UNKNOWN = "its rows are skipped: bring back catalog/sources/acme.yaml and its reader"


def test_bad_files_are_skipped_then_named_and_their_days_read_again(home: Home) -> None:
    """Cut files, a refused value, days that are gone, and a source that the catalogue lacks:
    loading moves nothing, publishing repairs what it can."""
    before, records = loaded(home), Records(home)
    offers, rejects = month_of(home, "offers"), month_of(home, "rejects", "crusoe")
    for path in (offers, rejects):
        cut_in_half(path)
    skipped = loaded(home, damaged=2)
    assert skipped["offers"] == [row for row in before["offers"] if row[1] == "crusoe"] != []
    assert skipped["rejects"] == [row for row in before["rejects"] if row[1] == "scaleway"] != []
    assert (offers.exists(), rejects.exists()) == (True, True)

    rankings, month = month_of(home, "rankings", ""), Month.of("offers", "crusoe", SECOND)
    cut_in_half(rankings)
    negative = rows_of(home, month)[SECOND].with_columns(gpu_count=-pl.col("gpu_count"))
    write_days(home, month, {SECOND: negative})
    month_of(home, "rejects").unlink()
    shutil.rmtree(home.archive / "scaleway" / str(FIRST))
    with closing(sqlite3.connect(Journal(home).path)) as connection, connection:
        connection.execute("DELETE FROM entries WHERE kind = 'exchange_rates' AND day = ?", [f"{FIRST}"])
    records.write_accepted(SECOND, "acme", [offer("2", source="acme")])
    records.write_outcome(outcome(SECOND, rows=1))
    home.published.unlink()
    home.published.mkdir()  # no file can replace a folder
    publish_day(home, SECOND, NOW)

    published = home.published.relative_to(home.root)
    again, gone = "days were read again from the archive", "there was nothing to set aside"
    no_capture = f"lost, as the archive gives nothing for them: {FIRST}"
    lost_rejects = "record/rejects/scaleway/2026-08.parquet"
    rows = [
        ("record/journal.sqlite", "missing_file", "ecb", FIRST, f"{gone}; 1 {again}"),
        ("record/offers/acme", "unknown_source", None, None, UNKNOWN),
        (lost_rejects, "missing_file", "scaleway", FIRST, f"{gone}; {no_capture}"),
        (lost_rejects, "missing_file", "scaleway", SECOND, f"{gone}; 1 {again}"),
        (f"{published}", "damaged_file", None, None, f"moved to damaged/{published}; published again"),
    ]
    no_ranking = "lost: the rankings kept in 2026-08, as those of past days are not computed again"
    for path, source, result in (
        (file_of(home, month), "crusoe", f"2 {again}"),
        (offers, "scaleway", f"1 {again}; {no_capture}"),
        (rankings, None, no_ranking),
        (rejects, "crusoe", f"2 {again}"),
    ):
        name = str(path.relative_to(home.root))
        rows.append((name, "damaged_file", source, None, f"moved to damaged/{name}; {result}"))
        assert (home.damaged / name).is_file()
    told = {(i.path, i.kind.value, i.source, i.day, i.remedy) for i in kept_incidents(home)}
    assert told == set(rows)
    with reader(home.published) as connection:
        shown = ask(connection, "SELECT path, kind, source FROM main.incidents WHERE reason <> ''").rows
        ranked = ask(connection, "SELECT DISTINCT day FROM main.cheapest_gpu_per_workload").rows
        sources = ask(connection, "SELECT DISTINCT source FROM main.offers WHERE day = ?", [SECOND]).rows
    assert set(shown) == {each[:3] for each in told}
    assert (ranked, set(sources)) == ([(SECOND,)], {("scaleway",), ("crusoe",)})
    after = {table: [row for row in rows if row[1] != "acme"] for table, rows in loaded(home).items()}
    lost = {"offers": before["offers"], "rejects": before["rejects"]}
    lost = {table: [row for row in rows if row[:2] != (FIRST, "scaleway")] for table, rows in lost.items()}
    assert after == before | lost
    assert records.accepted_days("acme") == [SECOND]


def test_missing_rejects_are_looked_for_for_a_month(home: Home) -> None:
    month_of(home, "rejects").unlink()
    month = timedelta(days=NEEDED_REJECTS_DAYS)
    missing = {SECOND: [FIRST, SECOND], FIRST + month: [SECOND], SECOND + month: []}
    with connect() as connection:
        prepare(connection)
        bring_up_to_date(connection, home, SECOND)
        found = {day: [damage.day for damage in missing_days(connection, home, day)] for day in missing}
    assert found == missing


def test_damaged_months_are_mended_before_a_day_of_the_next_month_is_compared_with_them(home: Home) -> None:
    expected = loaded(home)
    for path in (month_of(home, "offers"), month_of(home, "rejects"), Journal(home).path):
        cut_in_half(path)
    outcome = read_day(home, "scaleway", SECOND + timedelta(days=10))
    assert (outcome.accepted, outcome.reason) == (True, None)
    assert loaded(home) == expected
    assert len(kept_incidents(home)) == 3


def test_a_home_whose_path_is_a_pattern_loads_its_own_rows(home: Home, tmp_path: Path) -> None:
    for name in ("star", "st*r", "a=b"):
        shutil.copytree(home.root, tmp_path / name / "home")
    rewritten(month_of(Home(tmp_path / "star" / "home"), "offers"))
    expected = loaded(home)
    for name in ("st*r", "a=b"):
        assert loaded(Home(tmp_path / name / "home")) == expected
