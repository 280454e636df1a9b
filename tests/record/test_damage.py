"""One bad file of the record stops nothing: it is set aside, named, and its days are read again.

Two days of three small sources are recorded and published; each test damages files of a copy.
"""

import shutil
import sqlite3
from collections.abc import Iterator
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
from pipeline.contracts.incidents import Incident
from pipeline.contracts.outcome import Outcome, SourceResult
from pipeline.home import paths
from pipeline.home.disk import UnwritableError
from pipeline.home.paths import Home
from pipeline.record.incidents import kept_incidents
from pipeline.record.journal import Journal
from pipeline.record.mending import damages, mend, report_strays
from pipeline.record.months import Month, file_of, rows_of, write_days
from pipeline.record.records import Records
from pipeline.refresh.ingest import read_again, record_day
from pipeline.refresh.publishing import publish_day
from pipeline.refresh.refresh import refresh
from pipeline.warehouse import plan_cache
from pipeline.warehouse.build import Report
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import create, prepare
from pipeline.warehouse.history import bring_up_to_date
from pipeline.warehouse.load_record import NEEDED_REJECTS_DAYS, missing_days
from pipeline.warehouse.plan_cache import damage_of as damage_of_kept
from pipeline.warehouse.plan_cache import state_of_model
from pipeline.warehouse.query import ask, reader
from tests.conftest import PAGES, shared_folder
from tests.nightly.stress.homes import made_once, planned_home, small_catalogue
from tests.offers.builders import offer
from tests.warehouse.full_load import load_record

FIRST, SECOND = date(2026, 8, 21), date(2026, 8, 22)
NOW = datetime(2026, 8, 22, 7, tzinfo=UTC)
SOURCES = ("ecb", "scaleway", "crusoe")


def read_day(home: Home, source: str, day: date, pages: Path = PAGES) -> Any:
    config = source_config(source)
    return record_day(
        config, day, [capture_pages(pages, config, day=day, archive=Archive(home.archive))], home
    )


@pytest.fixture(scope="module", autouse=True)
def few_workloads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The plans are computed again wherever the cache is damaged, so that there must be few."""
    with pytest.MonkeyPatch.context() as patch:
        shared = shared_folder(tmp_path_factory)
        patch.setattr(paths, "CATALOG_DIR", made_once(shared / "catalog", small_catalogue))
        yield


@pytest.fixture(scope="module")
def two_days(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Two days of three sources, the first one published."""
    home = planned_home(shared_folder(tmp_path_factory), tmp_path_factory.mktemp("two-days") / "home")
    for source in SOURCES:
        assert read_day(home, source, FIRST).accepted
    publish_day(home, FIRST, NOW)
    for source in SOURCES:
        assert read_day(home, source, SECOND).accepted
    return home


@pytest.fixture
def home(two_days: Home, tmp_path: Path) -> Home:
    shutil.copytree(two_days.root, tmp_path / "home")
    return Home(tmp_path / "home")


def incidents(home: Home) -> list[Incident]:
    return kept_incidents(home)


def loaded(home: Home) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of the record, as it is published."""
    with connect() as connection:
        tables = ("offers", "rejects", "capture_outcomes", "exchange_rates")
        create(connection, *tables)
        assert load_record(connection, home, SECOND) == []
        return {table: connection.execute(f"FROM main.{table} ORDER BY ALL").fetchall() for table in tables}


# ------------------------------------------------------------------ every kind of file


def cut_in_half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def month_of(home: Home, table: str, source: str = "scaleway") -> Path:
    return file_of(home, Month(table, source, f"{FIRST:%Y-%m}"))


def mend_all(home: Home) -> list[Incident]:
    return mend(home, damages(home), lambda source, day: read_again(source, day, home))


def test_damaged_files_are_skipped_and_everything_else_is_loaded(home: Home) -> None:
    """Without moving anything, as a question does it."""
    spoilt = [month_of(home, "offers"), month_of(home, "rejects", "crusoe")]
    for path in spoilt:
        cut_in_half(path)
    with connect() as connection:
        create(connection, "offers", "rejects", "capture_outcomes", "exchange_rates")
        found = load_record(connection, home, SECOND)
        offers = connection.execute("SELECT DISTINCT source, day FROM main.offers").fetchall()
        rejects = connection.execute("SELECT DISTINCT source FROM main.rejects").fetchall()
    assert {damage.path for damage in found} == set(spoilt)
    assert set(offers) == {("crusoe", FIRST), ("crusoe", SECOND)}
    assert set(rejects) == {("scaleway",)}
    assert all(path.exists() for path in spoilt)


@pytest.fixture(scope="module")
def repaired(two_days: Home, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A home with a damaged file of every kind, published again; and what it was before."""
    home = Home(tmp_path_factory.mktemp("repaired") / "home")
    shutil.copytree(two_days.root, home.root)
    before = loaded(home)
    spoilt = [month_of(home, "offers"), month_of(home, "rejects"), month_of(home, "rankings", "")]
    spoilt += [Journal(home).path]
    spoilt += sorted(home.cache.iterdir())
    for path in spoilt:
        cut_in_half(path)
    report = publish_day(home, SECOND, NOW)
    return {"home": home, "report": report, "before": before, "spoilt": spoilt}


def test_damaged_files_are_reported_and_publishing_continues(
    repaired: dict[str, Any],
) -> None:
    home, report = repaired["home"], repaired["report"]
    assert isinstance(report, Report)
    relative = {str(path.relative_to(home.root)) for path in repaired["spoilt"]}
    assert {incident.path for incident in incidents(home)} == relative
    kept = {path for path in relative if (home.damaged / path).is_file()}
    assert kept == {path for path in relative if path.startswith("record/")}
    with reader(home.published) as connection:
        told = ask(connection, "SELECT path, kind, reason <> '' FROM main.incidents").rows
        ranked = ask(connection, "SELECT DISTINCT day FROM main.cheapest_gpu_per_workload").rows
    assert set(told) == {(path, "damaged_file", True) for path in relative}
    assert ranked == [(SECOND,)]


def test_a_sources_days_are_read_again_unchanged(repaired: dict[str, Any]) -> None:
    home = repaired["home"]
    assert loaded(home) == repaired["before"]
    remedies = {i.path: i.remedy for i in incidents(home)}
    for table in ("offers", "rejects"):
        path = str(month_of(home, table).relative_to(home.root))
        assert remedies[path] == f"moved to damaged/{path}; 2 days were read again from the archive"
    assert remedies["record/rankings/2026-08.parquet"].endswith(
        "lost: the rankings kept in 2026-08, as those of past days are not computed again"
    )
    assert "days were read again from the archive" in remedies["record/journal.sqlite"]
    assert damage_of_kept(next(home.cache.iterdir())) is None


def test_a_value_that_the_database_refuses_costs_its_file_and_no_other(home: Home) -> None:
    """A file whose shape is right."""
    expected, path = loaded(home), month_of(home, "offers")
    month = Month.of("offers", "scaleway", SECOND)
    rows = rows_of(home, month)[SECOND].with_columns(gpu_count=-pl.col("gpu_count"))
    write_days(home, month, {SECOND: rows})
    (incident,) = publish_day(home, SECOND, NOW).incidents
    assert incident.path == str(path.relative_to(home.root))
    assert incident.remedy.endswith("2 days were read again from the archive")
    assert loaded(home) == expected


def test_a_damaged_file_is_never_moved_over_an_earlier_one(home: Home) -> None:
    path = month_of(home, "offers")
    for content in (b"first", b"second", b"third"):
        path.write_bytes(content)
        read_day(home, "scaleway", FIRST)
    kept = home.damaged / "record" / "offers" / "scaleway"
    assert sorted(path.read_bytes() for path in kept.iterdir()) == [b"first", b"second", b"third"]


def test_missing_files_are_read_again_or_reported_as_lost(home: Home) -> None:
    expected = loaded(home)
    month_of(home, "offers", "crusoe").unlink()
    month_of(home, "offers").unlink()
    shutil.rmtree(home.archive / "scaleway" / str(FIRST))
    with sqlite3.connect(Journal(home).path) as connection:
        connection.execute("DELETE FROM entries WHERE kind = 'exchange_rates' AND day = ?", [f"{FIRST}"])
    connection.close()
    for _ in range(2):
        with connect() as connection:
            prepare(connection)
            assert bring_up_to_date(connection, home, SECOND) == []
            missing = missing_days(connection, home, SECOND)
        mend(home, missing, lambda source, day: read_again(source, day, home))
    assert [(damage.source, damage.day) for damage in missing] == [("scaleway", FIRST)]
    after = loaded(home)
    assert after["exchange_rates"] == expected["exchange_rates"]
    assert [row for row in after["offers"] if row[1] == "crusoe"] == [
        row for row in expected["offers"] if row[1] == "crusoe"
    ]
    told = [(i.kind.value, i.source, i.day, i.remedy.partition("; ")[2]) for i in incidents(home)]
    again = "1 days were read again from the archive"
    lost = f"lost, as the archive gives nothing for them: {FIRST}"
    assert sorted(told, key=str) == sorted(
        [
            ("missing_file", "ecb", FIRST, again),
            ("missing_file", "crusoe", FIRST, again),
            ("missing_file", "crusoe", SECOND, again),
            ("missing_file", "scaleway", FIRST, lost),
            ("missing_file", "scaleway", SECOND, again),
        ],
        key=str,
    )


def test_missing_rejects_are_reported_for_a_month(home: Home) -> None:
    expected = loaded(home)
    month_of(home, "rejects").unlink()
    later = SECOND + timedelta(days=NEEDED_REJECTS_DAYS)
    with connect() as connection:
        prepare(connection)
        bring_up_to_date(connection, home, later)
        assert missing_days(connection, home, later) == []
    report = publish_day(home, SECOND, NOW)
    assert [(i.kind, i.day) for i in report.incidents] == [("missing_file", FIRST), ("missing_file", SECOND)]
    assert loaded(home) == expected


def test_days_of_a_damaged_month_that_the_archive_lacks_are_named(home: Home) -> None:
    shutil.rmtree(home.archive / "crusoe" / str(FIRST))
    cut_in_half(month_of(home, "offers", "crusoe"))
    (incident,) = mend_all(home)
    assert (incident.source, incident.day) == ("crusoe", None)
    assert incident.remedy.endswith(
        f"1 days were read again from the archive; lost, as the archive gives nothing for them: {FIRST}"
    )


def test_damaged_months_are_mended_before_the_new_day_is_compared_with_them(home: Home) -> None:
    expected = loaded(home)
    cut_in_half(month_of(home, "offers"))
    cut_in_half(month_of(home, "rejects"))
    cut_in_half(Journal(home).path)
    outcome = read_day(home, "scaleway", SECOND + timedelta(days=1))
    assert (outcome.accepted, outcome.reason) == (True, None)
    assert loaded(home) == expected
    assert len(incidents(home)) == 3


@pytest.mark.parametrize("next_month", [False, True])
def test_an_earlier_month_that_proves_damaged_while_a_day_is_read_is_mended(
    next_month: bool, home: Home
) -> None:
    expected = loaded(home)
    cut_in_half(month_of(home, "offers"))
    outcome = read_day(home, "scaleway", SECOND + timedelta(days=10 if next_month else 1))
    assert (outcome.accepted, outcome.reason) == (True, None)
    assert loaded(home) == expected


def failed_attempt(source: str, day: date, hour: int) -> Outcome:
    """Return the outcome of an attempt without an archived answer."""
    return Outcome(
        day=day,
        source=source,
        attempt=f"{day:%Y%m%d}T{hour:02}0000.000000Z",
        status="failed",
        accepted=False,
        reason="it answered HTTP 503",
        requests=1,
        failed_requests=1,
        error="it answered HTTP 503",
        result=SourceResult.UNREACHABLE,
    )


def test_entries_that_can_be_read_of_a_damaged_journal_are_kept(home: Home) -> None:
    """Attempts without an archived answer are kept, too; entries on the damaged page are read again."""
    records = Records(home)
    for hour in range(24):
        records.write_outcome(failed_attempt("aws", SECOND, hour))
    expected = loaded(home)
    path = Journal(home).path
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE entries SET content = '{' WHERE source = 'crusoe' OR name LIKE '%T230000%'"
        )
    connection.close()
    (incident,) = mend_all(home)
    assert (incident.path, incident.reason) == ("record/journal.sqlite", "an entry is not JSON")
    assert len(records.outcomes("aws", SECOND)) == 23
    after = loaded(home)
    lost = [row for row in expected["capture_outcomes"] if row not in after["capture_outcomes"]]
    assert [row[2] for row in lost] == ["20260822T230000.000000Z"]
    assert (home.damaged / "record" / "journal.sqlite").is_file()


@pytest.mark.parametrize("after", ["replaced", "read"])
def test_a_mending_that_was_interrupted_is_finished_by_the_next(
    after: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = loaded(home)
    with sqlite3.connect(Journal(home).path) as connection:
        connection.execute("UPDATE entries SET content = '{' WHERE source <> 'ecb'")
    connection.close()

    def killed(source: str, day: date) -> Outcome | None:
        if after == "read":
            read_again(source, day, home)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mend(home, damages(home), killed)
    (damage,) = damages(home)
    assert damage.reason == "its mending was interrupted"
    publish_day(home, SECOND, NOW)
    assert damages(home) == []
    assert loaded(home) == expected


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
    expected = loaded(home)
    for name in ("st*r", "a=b"):
        assert loaded(Home(tmp_path / name / "home")) == expected


def test_a_missing_journal_is_rebuilt_from_the_archive(home: Home) -> None:
    expected = loaded(home)
    Journal(home).path.unlink()
    assert publish_day(home, SECOND, NOW).rows["offers"] == len(expected["offers"])
    assert loaded(home) == expected
    (incident,) = incidents(home)
    assert (incident.reason, incident.remedy.partition(";")[0]) == ("it is gone", "it was gone")


# ------------------------------------------------------------------ what does not belong there


def test_stray_files_are_ignored_and_reported_once(home: Home) -> None:
    expected = loaded(home)
    strays = ["record/offers/crusoe/2026-08 (copy).parquet", "record/rankings/notes.txt"]
    for stray in strays:
        (home.root / stray).write_bytes(b"whatever")
    assert [len(report_strays(home)) for _ in range(2)] == [len(strays), 0]
    assert sorted(i.path or "" for i in incidents(home)) == sorted(strays)
    assert {incident.kind.value for incident in incidents(home)} == {"stray_file"}
    assert all((home.root / stray).exists() for stray in strays)
    assert loaded(home) == expected


def test_rows_of_a_source_that_left_the_catalogue_are_skipped(home: Home) -> None:
    records = Records(home)
    records.write_accepted(SECOND, "acme", [offer("2", source="acme")])
    began = "20260822T060000.000000Z"
    records.write_outcome(
        Outcome(
            day=SECOND,
            source="acme",
            attempt=began,
            status="captured",
            result=SourceResult.FRESH,
            accepted=True,
            reason=None,
            rows=1,
        )
    )
    for _ in range(2):  # it is reported each time, and kept once
        report = publish_day(home, SECOND, NOW)
        assert [incident.line() for incident in report.incidents] == [
            "record/offers/acme: the catalogue has no source acme; its rows are skipped: bring back "
            "catalog/sources/acme.yaml and its reader"
        ]
    with reader(home.published) as connection:
        assert ask(connection, "SELECT kind, path, source FROM main.incidents").rows == [
            ("unknown_source", "record/offers/acme", None)
        ]
        query = "SELECT DISTINCT source FROM main.offers WHERE day = ? ORDER BY 1"
        assert ask(connection, query, [SECOND]).rows == [("crusoe",), ("scaleway",)]
    assert records.accepted_days("acme") == [SECOND]


# ------------------------------------------------------------------ what cannot be written


def made_a_file(folder: Path) -> None:
    """Nothing can be written in it, not even by root."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("in the way")


def test_a_folder_that_cannot_be_written_costs_its_source_and_is_named(home: Home, tmp_path: Path) -> None:
    blocked = {"crusoe": "record/offers", "scaleway": "record/rejects", "vultr": "archive"}
    for source, folder in blocked.items():
        made_a_file(home.root / folder / source)
        shutil.copytree(PAGES / source, tmp_path / "pages" / source)
    shutil.copytree(PAGES / "verda", tmp_path / "pages" / "verda")
    shutil.copytree(PAGES / "lambda", tmp_path / "pages" / "lambda")
    day, later = SECOND + timedelta(days=1), NOW + timedelta(days=1)
    report = refresh(home, day=day, pages=str(tmp_path / "pages"), environment={}, now=later)
    accepted = {outcome.source: outcome.accepted for outcome in report.outcomes}
    assert accepted == {"crusoe": False, "scaleway": False, "lambda": True, "vultr": False, "verda": True}
    assert report.published
    for source, folder in blocked.items():
        (line,) = (line for line in report.lines() if line.startswith(f"{source} "))
        assert str(home.root / folder / source) in line
    assert {i.source for i in report.incidents if i.kind == "unwritable"} == set(blocked) - {"vultr"}
    with reader(home.published) as connection:
        published = ask(connection, "SELECT source FROM main.offers WHERE day = ?", [day]).rows
    assert set(published) == {("verda",), ("lambda",)}


def test_publishing_continues_without_optional_history(home: Home) -> None:
    for folder in (home.record / "rankings", home.cache):
        made_a_file(folder)
    report = publish_day(home, SECOND, NOW)
    assert report.rows["cheapest_gpu_per_workload"] > 0
    places = {(i.kind.value, i.path) for i in report.incidents if i.kind == "unwritable"}
    assert ("unwritable", "record/rankings/2026-08.parquet") in places
    assert {path.split("/")[0] for _, path in places if path} == {"record", "cache"}


def write_until_full(records: Records) -> None:
    for number in range(200):
        records.write_accepted(FIRST, f"acme{number}", [offer("2.00", source=f"acme{number}")])


def test_a_full_disk_is_named_with_a_remedy(small_disk: Path) -> None:
    with pytest.raises(UnwritableError) as full:
        write_until_full(Records(Home(small_disk)))
    assert str(small_disk / "record") in str(full.value)
    assert "No space left on device" in str(full.value)
    assert "free some space" in str(full.value)
    assert "GPUFARE_HOME" in str(full.value)


# ------------------------------------------------------------------ what the cache depends on


def test_the_cache_is_of_its_schema_and_of_its_duckdb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = tmp_path / "sql"
    shutil.copytree(paths.SQL_DIR, sql)
    monkeypatch.setattr(paths, "SQL_DIR", sql)
    states = [state_of_model()]
    with (sql / "schema" / "plans.yaml").open("a") as schema:
        schema.write("# a column more\n")
    states.append(state_of_model())
    monkeypatch.setattr(duckdb, "__version__", "3.0.0")
    states.append(state_of_model())
    (sql / "examples" / "plans.sql").write_text("-- what does not matter\n")
    assert len(set(states)) == 3
    assert state_of_model() == states[-1]


def test_the_cache_is_of_the_code_that_loads_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = tmp_path / "pipeline"
    shutil.copytree(Path(pipeline.__file__).parent, rooms, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(pipeline, "__file__", str(rooms / "__init__.py"))
    states = []
    for room in ("catalog", "contracts", "gpus", "warehouse"):
        (rooms / room / "another.py").write_text("")
        plan_cache._code.cache_clear()
        states.append(state_of_model())
    monkeypatch.undo()
    plan_cache._code.cache_clear()
    assert len({state_of_model(), *states}) == 5
