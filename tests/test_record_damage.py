"""One bad file of the record stops nothing: it is moved aside, named, and made again where it can be.

Two days of three small sources are recorded and published; each test damages files of a copy and publishes.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import pipeline
from pipeline.capture.archive import Archive
from pipeline.capture.replay import capture_pages
from pipeline.catalog.source_config import source_config
from pipeline.contracts.capture import Outcome, SourceResult
from pipeline.contracts.incidents import Incident
from pipeline.home import paths
from pipeline.home.disk import UnwritableError, replacing
from pipeline.home.paths import Home
from pipeline.record.incidents import kept_files, kept_incidents
from pipeline.record.record_files import record_files, stray_files
from pipeline.record.records import Records
from pipeline.refresh.housekeeping import merge_months
from pipeline.refresh.import_file import import_file
from pipeline.refresh.ingest import read_again, record_day
from pipeline.refresh.publishing import publish_day
from pipeline.refresh.refresh import left_out_again, refresh
from pipeline.refresh.repair import mend, report_strays
from pipeline.warehouse import plan_cache as prepared
from pipeline.warehouse.build import Report
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import create, prepare
from pipeline.warehouse.history import bring_up_to_date
from pipeline.warehouse.load import NEEDED_REJECTS_DAYS, missing_files
from pipeline.warehouse.plan_cache import damage_of, state_of_model
from pipeline.warehouse.query import ask, reader
from pipeline.warehouse.sql_files import BuildError
from tests.conftest import PAGES, shared_folder
from tests.full_load import load_record
from tests.offers.builders import offer
from tests.stress.homes import made_once, planned_home, small_catalogue

FIRST, SECOND = date(2026, 8, 21), date(2026, 8, 22)
NOW = datetime(2026, 8, 22, 7, tzinfo=UTC)
SOURCES = ("ecb", "scaleway", "crusoe")

Spoil = Callable[[Path], None]


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
    return kept_incidents(kept_files(home))


def loaded(home: Home) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of the record, as it is published."""
    with connect() as connection:
        tables = ("offers", "rejects", "capture_outcomes", "exchange_rates")
        create(connection, *tables)
        assert load_record(connection, home, SECOND) == []
        return {table: connection.execute(f"FROM main.{table} ORDER BY ALL").fetchall() for table in tables}


# ------------------------------------------------------------------ every kind of damage, every kind of file


def cut_in_half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def of_another_shape(path: Path) -> None:
    """A whole file of its format, with other content."""
    if path.suffix == ".parquet":
        pl.DataFrame({"source": ["crusoe"], "price": [1.0]}).write_parquet(path)
    else:
        path.write_text("[]")


def of_other_types(path: Path) -> None:
    if path.suffix == ".parquet":
        frame = pl.read_parquet(path)
        frame.with_columns(observed_at=pl.lit("yesterday")).write_parquet(path)
    else:
        rows = json.loads(path.read_text())
        for row in rows if isinstance(rows, list) else [rows]:
            row |= {"usd_per_unit": "dear", "requests": "many"}
        path.write_text(json.dumps(rows))


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def out_of_place(path: Path) -> None:
    """A whole file of another source or day."""
    if path.suffix == ".parquet":
        frame = pl.read_parquet(path)
        changes = {"source": pl.lit("vast")} if "offers" in str(path) else {"source": pl.lit("oci")}
        frame.with_columns(**changes).write_parquet(path)
    else:
        path.write_text(path.read_text().replace("2026-08-2", "2026-07-2"))


SPOILS: list[Spoil] = [cut_in_half, emptied, of_another_shape, of_other_types, made_a_folder, out_of_place]
FOLDERS = ("offers", "rejects", "outcomes", "exchange_rates")


def file_of(home: Home, folder: str, day: date = FIRST) -> Path:
    source = None if folder == "exchange_rates" else "scaleway"
    (file,) = (each for each in record_files(home, folder, source) if each.day == day)
    return file.path


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__)
def test_damaged_files_are_left_out_and_everything_else_is_loaded(spoil: Spoil, home: Home) -> None:
    """Without moving anything, as a question does it."""
    spoilt = {folder: file_of(home, folder) for folder in FOLDERS}
    for path in spoilt.values():
        spoil(path)
    with connect() as connection:
        create(connection, "offers", "rejects", "capture_outcomes", "exchange_rates")
        damages = load_record(connection, home, SECOND)
        days = connection.execute("SELECT DISTINCT day FROM main.offers WHERE source = 'scaleway'").fetchall()
        others = connection.execute("SELECT DISTINCT source, day FROM main.offers").fetchall()
    assert {damage.file.path for damage in damages} == set(spoilt.values())
    assert all(damage.reason for damage in damages)
    assert days == [(SECOND,)]
    assert {("crusoe", FIRST), ("crusoe", SECOND)} <= set(others)
    assert all(path.exists() for path in spoilt.values())


@pytest.fixture(scope="module")
def repaired(two_days: Home, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A home with one damaged file of every kind, published again; and what it was before."""
    home = Home(tmp_path_factory.mktemp("repaired") / "home")
    shutil.copytree(two_days.root, home.root)
    before = loaded(home)
    spoilt = [file_of(home, folder) for folder in FOLDERS]
    spoilt += [home.rankings / f"{FIRST}.parquet", *sorted(home.cache.iterdir())]
    for path in spoilt:
        cut_in_half(path)
    report = publish_day(home, SECOND, NOW)
    return {"home": home, "report": report, "before": before, "spoilt": spoilt}


def test_every_damaged_file_is_moved_aside_and_publishing_goes_on(repaired: dict[str, Any]) -> None:
    home, report = repaired["home"], repaired["report"]
    assert isinstance(report, Report)
    relative = {str(path.relative_to(home.root)) for path in repaired["spoilt"]}
    assert {incident.path for incident in report.incidents} == relative
    for path in relative:
        assert (home.damaged / path).is_file()
    with reader(home.published) as connection:
        told = ask(connection, "SELECT path, kind, reason <> '' FROM main.incidents").rows
        ranked = ask(connection, "SELECT DISTINCT day FROM main.cheapest_gpu_per_workload").rows
    assert set(told) == {(path, "damaged_file", True) for path in relative}
    assert ranked == [(SECOND,)]


def test_a_sources_day_is_read_again_and_is_what_it_was(repaired: dict[str, Any]) -> None:
    assert loaded(repaired["home"]) == repaired["before"]
    remedies = {i.path.split("/")[0]: i.remedy for i in repaired["report"].incidents}
    for folder in FOLDERS:
        assert remedies[folder].endswith("made again from the archive"), folder
    assert "lost" in remedies["rankings"]
    assert "computed again" in remedies["cache"]


def test_a_cache_is_computed_again(repaired: dict[str, Any], two_days: Home) -> None:
    (again,) = repaired["home"].cache.iterdir()
    assert damage_of(again) is None
    assert repaired["report"].rows["plans"] > 0


def test_a_damaged_file_is_never_moved_over_an_earlier_one(home: Home) -> None:
    for content in (b"first", b"second", b"third"):
        path = file_of(home, "offers")
        path.write_bytes(content)
        read_day(home, "scaleway", FIRST)
    kept = home.damaged / "offers" / "scaleway"
    assert sorted(path.read_bytes() for path in kept.iterdir()) == [b"first", b"second", b"third"]


def test_files_that_are_gone_are_made_again(home: Home) -> None:
    expected = loaded(home)
    gone = [home.offers / "crusoe" / f"{FIRST}.parquet", home.exchange_rates / f"{FIRST}.json"]
    lost = home.offers / "scaleway" / f"{FIRST}.parquet"
    shutil.rmtree(home.archive / "scaleway" / str(FIRST))
    for path in (*gone, lost):
        path.unlink()
    for _ in range(2):
        with connect() as connection:
            prepare(connection)
            assert bring_up_to_date(connection, home, SECOND) == []
            missing = missing_files(connection, home, SECOND)
        mend(home, missing, lambda source, day: read_again(source, day, home))
    assert [damage.file.path for damage in missing] == [lost]
    assert loaded(home)["exchange_rates"] == expected["exchange_rates"]
    assert [row for row in expected["offers"] if row[1] == "crusoe"] == [
        row for row in loaded(home)["offers"] if row[1] == "crusoe"
    ]
    kept = {incident.path: incident for incident in incidents(home)}
    assert set(kept) == {str(path.relative_to(home.root)) for path in (*gone, lost)}
    assert {incident.kind.value for incident in kept.values()} == {"missing_file"}
    assert len(incidents(home)) == len(kept)
    assert "lost" in kept[str(lost.relative_to(home.root))].remedy


def test_rejects_that_are_gone_are_made_again(home: Home) -> None:
    expected = loaded(home)
    rejected = [file.path for file in record_files(home, "rejects", "scaleway")]
    for path in rejected:
        path.unlink()
    later = SECOND + timedelta(days=NEEDED_REJECTS_DAYS)
    with connect() as connection:
        prepare(connection)
        bring_up_to_date(connection, home, later)
        assert missing_files(connection, home, later) == []
    report = publish_day(home, SECOND, NOW)
    assert [(i.kind, i.path, i.remedy) for i in report.incidents] == [
        (
            "missing_file",
            str(path.relative_to(home.root)),
            "there was nothing to move; made again from the archive",
        )
        for path in rejected
    ]
    assert loaded(home) == expected


def test_what_the_archive_does_not_have_is_lost_and_said_so(home: Home) -> None:
    shutil.rmtree(home.archive / "crusoe" / str(FIRST))
    cut_in_half(home.offers / "crusoe" / f"{FIRST}.parquet")
    damages = Records(home).damages("offers")
    (incident,) = mend(home, damages, lambda source, day: read_again(source, day, home))
    assert (incident.source, incident.day) == ("crusoe", FIRST)
    assert incident.remedy.endswith("lost: the archive has no complete capture for it")


def test_damaged_days_before_are_mended_before_the_new_day_is_compared_with_them(home: Home) -> None:
    """A rate and all earlier offers of the source are damaged; the next day's reading mends them all."""
    expected = loaded(home)
    for path in [*home.exchange_rates.iterdir(), *(home.offers / "scaleway").iterdir()]:
        cut_in_half(path)
    outcome = read_day(home, "scaleway", SECOND + timedelta(days=1))
    assert (outcome.accepted, outcome.reason) == (True, None)
    after = loaded(home)
    assert (after["exchange_rates"], after["offers"]) == (expected["exchange_rates"], expected["offers"])
    assert len(incidents(home)) == 4


def test_a_damaged_outcome_of_a_day_before_does_not_refuse_the_new_day(home: Home) -> None:
    (path,) = (home.outcomes / "scaleway" / f"{SECOND}").iterdir()
    cut_in_half(path)
    outcome = read_day(home, "scaleway", SECOND + timedelta(days=1))
    assert (outcome.accepted, outcome.reason) == (True, None)
    assert [incident.path for incident in incidents(home)] == [str(path.relative_to(home.root))]
    assert Records(home).outcome("scaleway", SECOND) is not None


def test_a_damaged_incident_is_moved_aside_and_is_one_itself(home: Home) -> None:
    home.incidents.mkdir(exist_ok=True)
    for name, content in (("1.json", "{"), ("2.json", "[]"), ("3.json", "")):
        (home.incidents / name).write_text(content)
    (incident, *others) = publish_day(home, SECOND, NOW).incidents
    assert len(others) == 2
    assert (incident.path, incident.remedy) == ("incidents/1.json", "moved to damaged/: what it said is lost")
    assert len(list((home.damaged / "incidents").iterdir())) == 3
    with reader(home.published) as connection:
        assert ask(connection, "SELECT count(*) FROM main.incidents").rows == [(3,)]


# ------------------------------------------------------------------ what does not belong there


def test_stray_files_are_ignored_and_reported_once(home: Home) -> None:
    expected = loaded(home)
    strays = [
        "offers/crusoe/2026-08-22 (copy).parquet",
        "offers/.DS_Store",
        "offers/crusoe/2026-08-22.parquet.bak",
        "offers/crusoe/20260822.parquet",
        "outcomes/crusoe/2026-08-22/20260822T060000.000000Z (copy).json",
        "outcomes/crusoe/notes.txt",
        "exchange_rates/old",
        "rankings/2026-08-22 (copy).parquet",
    ]
    for stray in strays:
        path = home.root / stray
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"whatever")
    assert loaded(home) == expected
    records = Records(home)
    assert records.accepted_days("crusoe") == [FIRST, SECOND]
    assert records.rate_days() == [FIRST, SECOND]
    assert [len(report_strays(home)) for _ in range(2)] == [len(strays), 0]
    assert sorted(i.path or "" for i in incidents(home)) == sorted(strays)
    assert {incident.kind.value for incident in incidents(home)} == {"stray_file"}
    assert all((home.root / stray).exists() for stray in strays)


def test_what_is_of_a_source_that_left_the_catalogue_does_not_stop_publishing(home: Home) -> None:
    records = Records(home)
    records.write_accepted(SECOND, "acme", [offer("2", source="acme")])
    began = "20260822T060000.000000Z"
    records.write_outcome(
        Outcome(
            day=SECOND, source="acme", attempt=began, status="captured", accepted=True, reason=None, rows=1
        )
    )
    (home.rejects / "empty").mkdir()
    kept = {path: path.read_bytes() for path in home.root.glob("o*/acme/**/*") if path.is_file()}
    for _ in range(2):  # it is said each time, and kept once
        report = publish_day(home, SECOND, NOW)
        assert [incident.line() for incident in left_out_again([], report)] == [
            "offers/acme: the catalogue has no source acme; published without what offers, outcomes have of "
            "it: bring back catalog/sources/acme.yaml and its reader, or delete its folder in each"
        ]
        assert left_out_again(report.incidents, report) == []
    with reader(home.published) as connection:
        assert ask(connection, "SELECT kind, path, source FROM main.incidents").rows == [
            ("unknown_source", "offers/acme", None)
        ]
        query = "SELECT DISTINCT source FROM main.offers WHERE day = ? ORDER BY 1"
        assert ask(connection, query, [SECOND]).rows == [("crusoe",), ("scaleway",)]
    assert {path: path.read_bytes() for path in kept} == kept


def test_a_file_that_is_being_written_is_no_stray(home: Home) -> None:
    with replacing(home.offers / "crusoe" / "2026-08-23.parquet") as temporary:
        temporary.write_bytes(b"half")
        assert stray_files(home) == []
        assert Records(home).accepted_days("crusoe") == [FIRST, SECOND]


# ------------------------------------------------------------------ what cannot be written


def made_a_file(folder: Path) -> None:
    """Nothing can be written in it, not even by root."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("in the way")


def test_a_folder_that_cannot_be_written_costs_its_source_and_is_named(home: Home, tmp_path: Path) -> None:
    blocked = {"crusoe": "offers", "scaleway": "rejects", "lambda": "outcomes", "vultr": "archive"}
    for source, folder in blocked.items():
        made_a_file(home.root / folder / source)
        shutil.copytree(PAGES / source, tmp_path / "pages" / source)
    shutil.copytree(PAGES / "verda", tmp_path / "pages" / "verda")
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


@pytest.mark.slow
def test_publishing_goes_on_without_what_it_only_keeps(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    (home.offers / "stray.txt").write_text("x")
    for folder in (home.rankings, home.cache, home.incidents):
        made_a_file(folder)
    report = publish_day(home, SECOND, NOW)
    assert report.rows["cheapest_gpu_per_workload"] > 0
    places = [(i.kind.value, (i.path or "").split("/")[0]) for i in report.incidents]
    assert set(places) == {("stray_file", "offers"), ("unwritable", "rankings"), ("unwritable", "cache")}
    for incident in report.incidents:
        assert incident.line() in caplog.text


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk that can be filled. Mounting one needs rights that not everyone who runs the tests has."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no small disk can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def write_until_full(records: Records) -> None:
    for day in range(31):
        records.write_accepted(FIRST + timedelta(days=day), "acme", [offer("2.00")])


@pytest.mark.skipif(sys.platform != "linux", reason="tmpfs is Linux's")
def test_a_full_disk_is_named_with_its_free_space_and_a_remedy(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "64k") as disk:
        records = Records(Home(disk))
        with pytest.raises(UnwritableError) as full:
            write_until_full(records)
    assert str(disk / "offers" / "acme") in str(full.value)
    assert "No space left on device" in str(full.value)
    assert "are free on the disk" in str(full.value)
    assert "GPUFARE_HOME" in str(full.value)


@pytest.mark.skipif(sys.platform != "linux", reason="tmpfs is Linux's")
@pytest.mark.slow
def test_a_full_disk_is_not_taken_for_damaged_files(two_days: Home, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "24m") as disk:
        home = Home(disk / "home")
        shutil.copytree(two_days.root, home.root, ignore=shutil.ignore_patterns("published", "cache"))
        with pytest.raises(BuildError, match=r"No space left on device.*free some space"):
            publish_day(home, SECOND, NOW)
        assert not home.damaged.exists()
        assert not home.published.exists()
        assert list(home.published.parent.iterdir()) == []


# ------------------------------------------------------------------ what the cache depends on


def test_the_cache_is_of_its_schema_and_of_its_duckdb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = tmp_path / "sql"
    shutil.copytree(paths.SQL_DIR, sql)
    monkeypatch.setattr(paths, "SQL_DIR", sql)
    states = [state_of_model()]
    with (sql / "schema" / "plans.sql").open("a") as schema:
        schema.write("-- a column more\n")
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
    for room in ("catalog", "contracts", "offers", "warehouse"):
        (rooms / room / "another.py").write_text("")
        prepared._code.cache_clear()
        states.append(state_of_model())
    monkeypatch.undo()
    prepared._code.cache_clear()
    assert len({state_of_model(), *states}) == 5


# ------------------------------------------------------------------ files of whole months


AFTER_THE_MONTH = datetime(2026, 9, 20, 7, tzinfo=UTC)


@pytest.fixture
def merged_home(home: Home) -> Home:
    """Both days of each source in the file of their month."""
    done = merge_months(home, AFTER_THE_MONTH)
    assert done.left == []
    assert {path.name for path in home.offers.glob("*/*")} == {"2026-08.parquet"}
    return home


def test_a_damaged_month_is_moved_aside_and_its_days_are_read_again(home: Home) -> None:
    before = loaded(home)
    merge_months(home, AFTER_THE_MONTH)
    assert loaded(home) == before
    folders = ("exchange_rates", "offers/scaleway", "rejects/scaleway", "outcomes/scaleway")
    for folder in folders:
        cut_in_half(home.root / folder / "2026-08.parquet")
    report = publish_day(home, SECOND, NOW)
    assert loaded(home) == before
    told = {incident.path: incident.remedy for incident in report.incidents}
    of_outcomes = (
        f"attempts made again from the archive: 2; attempts after {FIRST} that failed without an archived"
        " answer, if there were any, are lost: they may not be published"
    )
    assert told == {
        f"{folder}/2026-08.parquet": f"moved to damaged/{folder}/2026-08.parquet; "
        + (of_outcomes if folder.startswith("outcomes") else "2 days made again from the archive")
        for folder in folders
    }


def failed_attempt(source: str, day: date, hour: int) -> Outcome:
    """One of which the archive has nothing."""
    return Outcome(
        day=day,
        source=source,
        attempt=f"{day:%Y%m%d}T{hour:02}0000.000000Z",
        status="failed",
        accepted=False,
        reason="it answered HTTP 503",
        warnings=("one", "another"),
        requests=1,
        failed_requests=1,
        error="it answered HTTP 503",
        observed_at=datetime(day.year, day.month, day.day, hour, 0, 1, 5, tzinfo=UTC),
        result=SourceResult.UNREACHABLE,
    )


def mend_attempts(home: Home, source: str) -> str:
    """Damages the month of a source's outcomes, mends it and says what the incident says of it."""
    cut_in_half(home.outcomes / source / "2026-08.parquet")
    damages = Records(home).damages("outcomes", source)
    (incident,) = mend(home, damages, lambda source, day: read_again(source, day, home))
    place, _, result = incident.remedy.partition("; ")
    assert place == f"moved to damaged/outcomes/{source}/2026-08.parquet"
    return result


def test_attempts_that_the_archive_does_not_have_are_put_back_as_they_were_published(home: Home) -> None:
    """One source has a real attempt besides, the other has failed all month; the last was not published."""
    records = Records(home)
    for hour in (1, 2):
        records.write_outcome(failed_attempt("scaleway", SECOND, hour))
        records.write_outcome(failed_attempt("aws", SECOND, hour))
    publish_day(home, SECOND, AFTER_THE_MONTH)
    written = {source: records.outcomes(source, SECOND) for source in ("scaleway", "aws")}
    records.write_outcome(failed_attempt("aws", SECOND + timedelta(days=1), 3))
    merge_months(home, AFTER_THE_MONTH)
    after = f"attempts after {SECOND} that failed without an archived answer, if there were any, are lost"
    assert mend_attempts(home, "scaleway") == (
        "attempts made again from the archive: 2;"
        " put back as they were published, as the archive has none: 2;"
        f" {after}: they may not be published"
    )
    assert mend_attempts(home, "aws") == (
        f"put back as they were published, as the archive has none: 2; {after}: they may not be published"
    )
    assert {source: records.outcomes(source, SECOND) for source in written} == written


def test_attempts_that_are_gone_are_counted_where_the_month_still_names_them(home: Home) -> None:
    Records(home).write_outcome(failed_attempt("scaleway", SECOND, 1))
    merge_months(home, AFTER_THE_MONTH)
    spoilt_in_its_rows(home.outcomes / "scaleway" / "2026-08.parquet")
    damages = Records(home).damages("outcomes", "scaleway")
    (incident,) = mend(home, damages, lambda source, day: read_again(source, day, home))
    assert incident.remedy.endswith(
        f"attempts made again from the archive: 2; lost, as neither has them: 1, of {SECOND}"
    )


def test_without_a_published_file_nobody_can_tell_which_attempts_failed(home: Home) -> None:
    for hour in (1, 2):
        Records(home).write_outcome(failed_attempt("aws", SECOND, hour))
    merge_months(home, AFTER_THE_MONTH)
    home.published.unlink()
    assert mend_attempts(home, "aws") == (
        "attempts that failed without an archived answer, if there were any, are lost:"
        " no published file can tell"
    )


def spoilt_in_its_rows(path: Path) -> None:
    """Its metadata stays whole, and so does its size."""
    content = bytearray(path.read_bytes())
    content[8 : len(content) // 3] = bytes(len(content) // 3 - 8)
    path.write_bytes(content)


@pytest.mark.slow
def test_a_month_that_is_damaged_after_it_was_loaded_is_mended(home: Home) -> None:
    before = loaded(home)
    merge_months(home, AFTER_THE_MONTH)
    assert publish_day(home, SECOND, NOW).incidents == []
    path = home.offers / "scaleway" / "2026-08.parquet"
    spoilt_in_its_rows(path)
    assert [file.day for file in record_files(home, "offers", "scaleway")] == [FIRST, SECOND]
    (incident,) = publish_day(home, SECOND, NOW).incidents
    assert (incident.kind, incident.path) == ("damaged_file", "offers/scaleway/2026-08.parquet")
    assert incident.remedy == (
        "moved to damaged/offers/scaleway/2026-08.parquet; 2 days made again from the archive"
    )
    assert loaded(home) == before
    assert publish_day(home, SECOND, NOW).incidents == []


def test_what_is_lost_of_a_damaged_month_is_named(merged_home: Home) -> None:
    shutil.rmtree(merged_home.archive / "scaleway" / f"{FIRST}")
    cut_in_half(merged_home.offers / "scaleway" / "2026-08.parquet")
    (incident,) = publish_day(merged_home, SECOND, NOW).incidents
    assert incident.day is None
    assert incident.remedy.endswith(
        f"1 days made again from the archive; lost, as the archive gives nothing of them: {FIRST}"
    )


def test_a_day_of_a_damaged_month_can_be_read_again_before_it_is_mended(merged_home: Home) -> None:
    month = merged_home.offers / "crusoe" / "2026-08.parquet"
    cut_in_half(month)
    outcome = read_again("crusoe", FIRST, merged_home)
    assert outcome is not None
    assert outcome.accepted
    assert [file.day for file in record_files(merged_home, "offers", "crusoe")] == [FIRST, SECOND]
    assert Records(merged_home).damages("offers") == []


def test_a_refresh_merges_what_is_over_and_says_so(home: Home) -> None:
    before = loaded(home)
    report = refresh(
        home, day=SECOND, sources=["crusoe"], pages="archive", environment={}, now=AFTER_THE_MONTH
    )
    assert report.published
    (line,) = (line for line in report.lines() if line.startswith("merged"))
    assert line.startswith("merged 16 files into 8 of months: ")
    assert loaded(home) == before


def test_a_refresh_that_cannot_merge_says_so_and_is_published(home: Home) -> None:
    in_the_way = home.offers / "crusoe" / f".2026-08.parquet.{os.getpid()}.tmp"
    in_the_way.mkdir()
    assert merge_months(home, AFTER_THE_MONTH).bytes_after == 0
    (incident,) = incidents(home)
    assert (incident.kind, incident.path) == ("unwritable", "offers/crusoe/2026-08.parquet")
    assert incident.remedy == "the files of single days stay; the next refresh merges them"


def test_imported_prices_are_history_and_nothing_else(home: Home, tmp_path: Path) -> None:
    """Cheaper than all that is captured, on a day with captures and one without; gone with their folders."""
    later, days = SECOND + timedelta(days=2), (FIRST, SECOND + timedelta(days=1))
    publish_day(home, later, NOW)
    before = _market(home)
    file = tmp_path / "elsewhere.csv"
    rows = [f"{day},l40s,{who},on_demand,0.40,list\n" for day in days for who in ("Crusoe", "New")]
    file.write_text("day,gpu_id,provider,price_kind,usd_per_gpu_hour,source\n" + "".join(rows))
    report = import_file(file, home, later)
    assert all(outcome.accepted and outcome.rows == 2 for outcome in report.outcomes)
    publish_day(home, later, NOW)
    assert _market(home) == before
    history = """SELECT day, provider, usd_per_gpu_hour FROM main.price_history
        WHERE source = 'imported' ORDER BY day, provider"""
    offers = "SELECT DISTINCT flag_reason, source_url FROM main.offers WHERE source = 'imported'"
    state = "SELECT state, why FROM main.source_health WHERE source = 'imported'"
    with reader(home.published) as connection:
        prices = [(day, who, Decimal("0.40")) for day in days for who in ("Crusoe", "New")]
        assert ask(connection, history).rows == prices
        assert ask(connection, offers).rows == [("imported", "list")]
        why = "never asked: gpufare import FILE.csv brings its prices"
        assert ask(connection, state).rows == [("disabled", why)]
    for folder in ("archive", "offers", "rejects", "outcomes"):
        shutil.rmtree(home.root / folder / "imported")
    assert publish_day(home, later, NOW).incidents == []
    with reader(home.published) as connection:
        assert ask(connection, history).rows == []


def _market(home: Home) -> list[Any]:
    """What is published of captured prices, but for the moment of it."""
    queries = [
        f"FROM main.{table} ORDER BY ALL"
        for table in (
            "offers_latest", "market_index", "cheapest_gpu_per_workload", "gpu_compare", "price_list",
            "rentals", "cost_hours_pareto", "claim_audit", "vram_requirements", "spot_savings",
            "unmatched_labels",
        )
    ]  # fmt: skip
    queries += [
        "FROM main.source_health WHERE source <> 'imported' ORDER BY ALL",
        "SELECT * EXCLUDE (as_of_time) FROM main.publication",
    ]
    with reader(home.published) as connection:
        return [ask(connection, query).rows for query in queries]
