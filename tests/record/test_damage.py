"""Bad files of the record stop nothing: each is named, and its days are read again from the archive.

Two days of three small sources are recorded and the first is published; each test damages a copy."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import pipeline
from pipeline.capture.archive import Archive
from pipeline.capture.replay import capture_pages
from pipeline.catalog.source_config import source_config
from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.record.incidents import kept_incidents
from pipeline.record.journal import Journal
from pipeline.record.months import Month, file_of, rows_of, write_days
from pipeline.record.records import Records
from pipeline.refresh.ingest import record_day
from pipeline.refresh.publishing import publish_day
from pipeline.refresh.refresh import refresh
from pipeline.warehouse import plan_cache
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import create, prepare
from pipeline.warehouse.history import bring_up_to_date
from pipeline.warehouse.load_record import NEEDED_REJECTS_DAYS, missing_days
from pipeline.warehouse.plan_cache import state_of_model
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


def test_damaged_files_are_skipped_and_everything_else_is_loaded(home: Home) -> None:
    """Without moving anything, as a question does it."""
    expected, spoilt = loaded(home), [month_of(home, "offers"), month_of(home, "rejects", "crusoe")]
    for path in spoilt:
        cut_in_half(path)
    found = loaded(home, damaged=2)
    assert found["offers"] == [row for row in expected["offers"] if row[1] == "crusoe"] != []
    assert found["rejects"] == [row for row in expected["rejects"] if row[1] == "scaleway"] != []
    assert all(path.exists() for path in spoilt)


@pytest.fixture(scope="module")
def repaired(two_days: Home, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A home with damaged files, a value that the database refuses, and rows of a source that the catalogue
    lacks, published again; and what it was before."""
    home = Home(Path(shutil.copytree(two_days.root, tmp_path_factory.mktemp("repaired") / "home")))
    before, records = loaded(home), Records(home)
    spoilt = [month_of(home, "offers"), month_of(home, "rejects"), month_of(home, "rankings", "")]
    for path in spoilt:
        cut_in_half(path)
    month = Month.of("offers", "crusoe", SECOND)
    negative = rows_of(home, month)[SECOND].with_columns(gpu_count=-pl.col("gpu_count"))
    write_days(home, month, {SECOND: negative})
    records.write_accepted(SECOND, "acme", [offer("2", source="acme")])
    records.write_outcome(outcome(SECOND, rows=1))
    report = publish_day(home, SECOND, NOW)
    spoilt.append(file_of(home, month))
    return {"home": home, "report": report, "before": before, "spoilt": spoilt}


UNKNOWN = (
    "record/offers/acme: the catalogue has no source acme; its rows are skipped: bring back "
    "catalog/sources/acme.yaml and its reader"
)


def test_damaged_files_are_named_and_publishing_continues(repaired: dict[str, Any]) -> None:
    home, report = repaired["home"], repaired["report"]
    damaged = {str(path.relative_to(home.root)) for path in repaired["spoilt"]}
    assert {i.path: i.kind for i in kept_incidents(home)} == {
        **dict.fromkeys(damaged, "damaged_file"),
        "record/offers/acme": "unknown_source",
    }
    assert all((home.damaged / path).is_file() for path in damaged)
    assert UNKNOWN in [incident.line() for incident in report.incidents]
    with reader(home.published) as connection:
        told = ask(connection, "SELECT path, kind, source, reason <> '' FROM main.incidents").rows
        ranked = ask(connection, "SELECT DISTINCT day FROM main.cheapest_gpu_per_workload").rows
        sources = ask(connection, "SELECT DISTINCT source FROM main.offers WHERE day = ?", [SECOND]).rows
    assert {row[:2] for row in told} == {(i.path, i.kind.value) for i in kept_incidents(home)}
    assert all(has_reason for *_, has_reason in told)
    assert ("record/offers/acme", "unknown_source", None, True) in told
    assert (ranked, set(sources)) == ([(SECOND,)], {("scaleway",), ("crusoe",)})


def test_the_days_of_damaged_files_are_read_again_unchanged(repaired: dict[str, Any]) -> None:
    home, before = repaired["home"], repaired["before"]
    after = {table: [row for row in rows if row[1] != "acme"] for table, rows in loaded(home).items()}
    assert after == before
    remedies = {i.path: i.remedy for i in kept_incidents(home)}
    for table, source in (("offers", "scaleway"), ("rejects", "scaleway"), ("offers", "crusoe")):
        path = str(month_of(home, table, source).relative_to(home.root))
        assert remedies[path].endswith("; 2 days were read again from the archive")
    assert Records(home).accepted_days("acme") == [SECOND]


def test_missing_days_are_read_again_or_named(home: Home) -> None:
    expected = loaded(home)
    month_of(home, "offers").unlink()
    month_of(home, "rejects", "crusoe").unlink()
    shutil.rmtree(home.archive / "scaleway" / str(FIRST))
    with closing(sqlite3.connect(Journal(home).path)) as connection, connection:
        connection.execute("DELETE FROM entries WHERE kind = 'exchange_rates' AND day = ?", [f"{FIRST}"])
    publish_day(home, SECOND, NOW)
    told = {(i.kind.value, i.source, i.day, i.remedy.partition("; ")[2]) for i in kept_incidents(home)}
    again, lost = "1 days were read again from the archive", "lost, as the archive gives nothing for them: "
    assert told == {
        ("missing_file", "ecb", FIRST, again),
        ("missing_file", "crusoe", FIRST, again),
        ("missing_file", "crusoe", SECOND, again),
        ("missing_file", "scaleway", FIRST, lost + f"{FIRST}"),
        ("missing_file", "scaleway", SECOND, again),
    }
    after = loaded(home)
    assert (after["exchange_rates"], after["rejects"]) == (expected["exchange_rates"], expected["rejects"])
    assert after["offers"] == [row for row in expected["offers"] if row[:2] != (FIRST, "scaleway")]


def test_missing_rejects_are_looked_for_for_a_month(home: Home) -> None:
    month_of(home, "rejects").unlink()
    month = timedelta(days=NEEDED_REJECTS_DAYS)
    missing = {SECOND: [FIRST, SECOND], FIRST + month: [SECOND], SECOND + month: []}
    with connect() as connection:
        prepare(connection)
        bring_up_to_date(connection, home, SECOND)
        found = {day: [damage.day for damage in missing_days(connection, home, day)] for day in missing}
    assert found == missing


@pytest.mark.parametrize("days_later", [1, 10])
def test_damaged_months_are_mended_before_a_new_day_is_compared_with_them(
    home: Home, days_later: int
) -> None:
    """Also those of the month before."""
    expected = loaded(home)
    for path in (month_of(home, "offers"), month_of(home, "rejects"), Journal(home).path):
        cut_in_half(path)
    outcome = read_day(home, "scaleway", SECOND + timedelta(days=days_later))
    assert (outcome.accepted, outcome.reason) == (True, None)
    assert loaded(home) == expected
    assert len(kept_incidents(home)) == 3


def test_a_damaged_month_that_cannot_be_set_aside_does_not_stop_other_sources(home: Home) -> None:
    cut_in_half(month_of(home, "offers"))
    home.damaged.write_text("in the way")
    report = refresh(home, day=SECOND, pages="archive", environment={}, now=NOW)
    accepted = {outcome.source: outcome.accepted for outcome in report.outcomes}
    assert accepted == {"ecb": True, "crusoe": True, "scaleway": False}
    assert report.published


def test_a_home_whose_path_is_a_pattern_loads_its_own_rows(home: Home, tmp_path: Path) -> None:
    for name in ("star", "st*r", "a=b"):
        shutil.copytree(home.root, tmp_path / name / "home")
    rewritten(month_of(Home(tmp_path / "star" / "home"), "offers"))
    expected = loaded(home)
    for name in ("st*r", "a=b"):
        assert loaded(Home(tmp_path / name / "home")) == expected


def test_a_folder_that_cannot_be_written_costs_its_source_and_is_named(home: Home, tmp_path: Path) -> None:
    """A file is in its place, so that nothing can be written in it, not even by root."""
    blocked = {"crusoe": "record/offers", "scaleway": "record/rejects", "vultr": "archive"}
    for source, place in blocked.items():
        folder = home.root / place / source
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.write_text("in the way")
    for source in (*blocked, "lambda"):
        shutil.copytree(PAGES / source, tmp_path / "pages" / source)
    day, later = SECOND + timedelta(days=1), NOW + timedelta(days=1)
    report = refresh(home, day=day, pages=str(tmp_path / "pages"), environment={}, now=later)
    accepted = {outcome.source: outcome.accepted for outcome in report.outcomes}
    assert accepted == {**dict.fromkeys(blocked, False), "lambda": True}
    assert report.published
    for source, place in blocked.items():
        (line,) = (line for line in report.lines() if line.startswith(f"{source} "))
        assert str(home.root / place / source) in line
    assert {i.source for i in report.incidents if i.kind == "unwritable"} == {"crusoe", "scaleway"}
    with reader(home.published) as connection:
        published = ask(connection, "SELECT DISTINCT source FROM main.offers WHERE day = ?", [day]).rows
    assert published == [("lambda",)]


# ------------------------------------------------------------------ what the cache depends on


def test_the_cache_is_of_its_schema_its_duckdb_and_the_code_that_loads_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql, rooms = tmp_path / "sql", tmp_path / "pipeline"
    shutil.copytree(paths.SQL_DIR, sql)
    shutil.copytree(Path(pipeline.__file__).parent, rooms, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(paths, "SQL_DIR", sql)
    monkeypatch.setattr(pipeline, "__file__", str(rooms / "__init__.py"))
    states = []

    def note_the_state() -> None:
        plan_cache._code.cache_clear()
        states.append(state_of_model())

    note_the_state()
    with (sql / "schema" / "plans.yaml").open("a") as schema:
        schema.write("# a column more\n")
    note_the_state()
    for room in ("catalog", "contracts", "gpus", "warehouse"):
        (rooms / room / "another.py").write_text("")
        note_the_state()
    monkeypatch.setattr(duckdb, "__version__", "3.0.0")
    note_the_state()
    assert len(set(states)) == len(states) == 7
    (sql / "examples" / "plans.sql").write_text("-- what does not matter\n")
    note_the_state()
    assert states[-1] == states[-2]
    monkeypatch.undo()
    plan_cache._code.cache_clear()
