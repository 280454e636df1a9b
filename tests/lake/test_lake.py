"""The record through a real DuckLake: PostgreSQL, Parquet files in a folder, and the engine's own process."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from urllib.request import Request, urlopen

import duckdb
import polars as pl
import pytest
from pipeline.record.compaction import Compaction, compact

from benchmarks.market import Market, write_market
from pipeline.home.paths import Home
from pipeline.home.postgres import PostgresError
from pipeline.lake.exchange import create, days_in, in_lake, pull, push
from pipeline.lake.request import ENGINE
from pipeline.lake.settings import LAKE_VARIABLE, PYTHON_VARIABLE, Lake, LakeError, lake_of
from pipeline.lake.tables import publish_tables
from pipeline.lake.units import Unit, digest_of, read_unit, records_of, units_of
from pipeline.record.records import Records
from pipeline.warehouse.publish import publish
from tests.conftest import gpufare_process, with_plans
from tests.lake.postgres import new_database

ALL = date.min
DAY = date(2026, 8, 22)
ENVIRONMENT = Path(__file__).parents[2] / ".venv-lake"


@pytest.fixture(scope="session")
def empty_lake(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake that tests copy. Their data are in one folder, in files whose names are drawn."""
    chosen = os.environ.get(PYTHON_VARIABLE)
    python = Path(chosen or ENVIRONMENT / "bin" / "python")
    if not chosen and not (ENVIRONMENT / ".ready").exists():
        pytest.skip("there is no environment with DuckDB 1.5.5 and its extensions: make .venv-lake/.ready")
    lake = Lake(new_database(postgres_server), python)
    create(lake, str(tmp_path_factory.mktemp("lake")))
    return lake


@pytest.fixture
def lake(empty_lake: Lake, postgres_server: str) -> Lake:
    """An empty lake."""
    return replace(empty_lake, catalogue=new_database(postgres_server, of=empty_lake.catalogue))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def market(home: Home, *, sellers: int = 4, days: int = 2, first_day: date = DAY) -> None:
    write_market(home, Market(sellers=sellers, gpus=3, regions=2), first_day, days)


def sources(home: Home) -> list[str]:
    return sorted(path.name for path in home.offers.iterdir())


def digests(home: Home) -> dict[str, str]:
    units = units_of(home, ALL)
    return {unit.name: digest_of(read_unit(files, records_of(home))) for unit, files in units.items()}


def read_again(home: Home, source: str, day: date = DAY) -> None:
    """As with a reader that finds one offer less in the same answers."""
    Records(home).write_accepted(day, source, Records(home).offers(source, day)[1:])


def test_what_was_pushed_is_pulled_value_by_value(home: Home, tmp_path: Path, lake: Lake) -> None:
    market(home)
    pushed = push(home, lake, ALL)
    assert len(pushed.moved) == 5 * 2 + 2  # with the source of exchange rates, and two days' rates
    other = Home(tmp_path / "other")
    assert pull(other, lake, ALL).moved == sorted(pushed.moved)
    assert digests(other) == digests(home)
    # Nothing is left to do on either side when days are merged into months, and neither without the notes.
    merged = Compaction()
    compact(home, date(2026, 11, 22), merged)
    assert merged.files > 0
    assert push(home, lake, ALL).moved == []
    for one in (home, other):
        (one.store / "lake.json").unlink()
    assert (push(home, lake, ALL).moved, pull(other, lake, ALL).moved) == ([], [])


def test_a_day_that_is_read_again_replaces_itself(home: Home, tmp_path: Path, lake: Lake) -> None:
    market(home, sellers=2)
    push(home, lake, ALL)
    other = Home(tmp_path / "other")
    pull(other, lake, ALL)
    source = sources(home)[0]
    offers = len(Records(home).offers(source, DAY))
    read_again(home, source)
    assert pull(home, lake, ALL).left == {f"{source}/{DAY}": "it was changed here: push"}
    assert push(home, lake, ALL).moved == [f"{source}/{DAY}"]
    # Who has the day of before does not push it over the new one, but pulls that.
    assert push(other, lake, ALL).moved == []
    assert pull(other, lake, ALL).moved == [f"{source}/{DAY}"]
    assert digests(other) == digests(home)
    (day,) = [each for each in days_in(lake, DAY) if each.unit == Unit(source, DAY)]
    assert day.offers == offers - 1


def test_a_newer_attempt_of_another_machine_stays(home: Home, tmp_path: Path, lake: Lake) -> None:
    market(home, sellers=1, days=1)
    (source,) = sources(home)
    (row,) = Records(home).outcomes(source, DAY)
    other = Home(tmp_path / "other")
    shutil.copytree(home.root, other.root)
    later = datetime.strptime(row["attempt"], "%Y%m%dT%H%M%S.%fZ") + timedelta(hours=1)
    newer = row | {"attempt": later.strftime("%Y%m%dT%H%M%S.%fZ")}
    folder = other.outcomes / source / f"{DAY}"
    (folder / f"{newer['attempt']}.json").write_text(json.dumps(newer))
    read_again(other, source)
    push(other, lake, ALL)
    assert push(home, lake, ALL).left == {f"{source}/{DAY}": "the lake has a newer attempt: pull"}
    assert pull(home, lake, ALL).moved == [f"{source}/{DAY}"]
    assert digests(home) == digests(other)


def test_a_damaged_file_is_left_alone_by_name_and_mended_by_a_pull(home: Home, lake: Lake) -> None:
    market(home, sellers=2, days=1)
    push(home, lake, ALL)
    before = digests(home)
    source = sources(home)[0]
    (home.offers / source / f"{DAY}.parquet").write_bytes(b"PAR1 and no more")
    (left,) = push(home, lake, ALL).left.items()
    assert left[0] == f"{source}/{DAY}"
    assert left[1].startswith("damaged here: ")
    assert pull(home, lake, ALL).moved == [f"{source}/{DAY}"]
    assert digests(home) == before


@pytest.mark.slow
def test_tables_built_from_the_lake_are_those_built_from_the_files(
    sample_home: Home, home: Home, tmp_path: Path, lake: Lake
) -> None:
    """The same sql/, for each table of the published file."""
    for folder in ("offers", "rejects", "outcomes", "exchange_rates", "rankings"):
        shutil.copytree(sample_home.root / folder, home.root / folder)
    push(home, lake, ALL)
    other = with_plans(tmp_path / "other", sample_home)
    pull(other, lake, ALL)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{sample_home.published}' AS files (READ_ONLY)")
        ((day, moment),) = connection.execute(
            "SELECT as_of_day, as_of_time FROM files.publication"
        ).fetchall()
        publish(other, day, moment)
        connection.execute(f"ATTACH '{other.published}' AS lake (READ_ONLY)")
        tables = connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = 'files' AND schema_name = 'main'"
        ).fetchall()
        assert len(tables) > 40
        counted = {}
        for (table,) in tables:
            counted[table] = connection.execute(f"SELECT count(*) FROM files.{table}").fetchall()[0][0]
            ((different,),) = connection.execute(
                f"SELECT count(*) FROM ((FROM files.{table} EXCEPT ALL FROM lake.{table})"
                f" UNION ALL (FROM lake.{table} EXCEPT ALL FROM files.{table}))"
            ).fetchall()
            assert different == 0, table


COMPARE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import engine
connection = engine._attached({"catalogue": sys.argv[2]})
connection.execute(f"ATTACH '{sys.argv[3]}' AS file (READ_ONLY)")
found = {}
for (table,) in connection.execute(
    "SELECT table_name FROM duckdb_tables() WHERE database_name = 'file' AND schema_name = 'main'"
).fetchall():
    there, here = f"lake.published.{table}", f"file.main.{table}"
    found[table] = connection.execute(
        f"SELECT (SELECT count(*) FROM {here}), (SELECT count(*) FROM ((FROM {here} EXCEPT ALL FROM {there})"
        f" UNION ALL (FROM {there} EXCEPT ALL FROM {here})))"
    ).fetchall()[0]
print(json.dumps(found))
"""


def test_the_published_tables_in_the_lake_are_those_of_the_file(sample_home: Home, lake: Lake) -> None:
    first = publish_tables(sample_home, lake)
    assert first.replaced == first.tables
    command = [
        str(lake.python),
        "-c",
        COMPARE,
        str(ENGINE.parent),
        lake.catalogue,
        str(sample_home.published),
    ]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert len(found) == first.tables > 40
    assert found["cheapest_gpu_per_workload"][0] > 1_000
    assert {different for _, different in found.values()} == {0}


def test_published_tables_that_differ_are_replaced_and_an_older_publication_is_refused(
    home: Home, lake: Lake
) -> None:
    home.published.parent.mkdir(parents=True)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{home.published}' AS file (STORAGE_VERSION 'v1.5.0')")
        connection.execute(
            "CREATE TABLE file.publication AS SELECT DATE '2026-08-22' AS as_of_day, now() AS as_of_time"
        )
        connection.execute("CREATE TABLE file.workloads AS SELECT 'tuned' AS workload FROM range(20)")
    first = publish_tables(home, lake)
    assert (first.tables, first.replaced) == (2, 2)
    sql(
        lake,
        "DELETE FROM lake.published.workloads; CREATE TABLE lake.published.gone (x INTEGER);"
        " UPDATE lake.published.publication SET as_of_time = as_of_time - INTERVAL 1 MINUTE",
    )
    assert publish_tables(home, lake).replaced == 2
    assert publish_tables(home, lake).replaced == 0
    with pytest.raises(subprocess.CalledProcessError):
        sql(lake, "FROM lake.published.gone")
    sql(lake, "UPDATE lake.published.publication SET as_of_time = as_of_time + INTERVAL 1 MINUTE")
    with pytest.raises(LakeError, match="the lake has a newer publication"):
        publish_tables(home, lake)


def test_rankings_are_pushed_on_request_and_those_made_here_stay(
    home: Home, tmp_path: Path, lake: Lake
) -> None:
    other = Home(tmp_path / "other")
    for one, usd in ((home, 1), (other, 2)):
        one.rankings.mkdir(parents=True)
        pl.DataFrame({"day": [DAY], "usd": [usd]}).write_parquet(one.rankings / f"{DAY}.parquet")
    assert push(other, lake, ALL).moved == []
    assert push(home, lake, ALL, rankings=True).moved == [f"/ranking/{DAY}"]
    found = pull(other, lake, ALL)
    assert (found.moved, found.own, found.left) == ([], [f"/ranking/{DAY}"], {})
    assert pull(Home(tmp_path / "third"), lake, ALL).moved == [f"/ranking/{DAY}"]


def test_another_lake_gets_what_the_first_one_has(
    home: Home, lake: Lake, empty_lake: Lake, postgres_server: str
) -> None:
    market(home, sellers=1, days=1)
    pushed = push(home, lake, ALL).moved
    other = replace(lake, catalogue=new_database(postgres_server, of=empty_lake.catalogue))
    assert push(home, other, ALL).moved == pushed


READER = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, str(Path(sys.argv[1]).parent))
import engine
connection = engine._attached({"catalogue": sys.argv[2]})
polls, torn, end = 0, [], time.monotonic() + 60
print("reads", flush=True)
while not Path(sys.argv[3]).exists() and time.monotonic() < end:
    torn += connection.execute(
        "SELECT d.unit, d.offers, count(o.unit) FROM lake.days AS d FULL JOIN lake.offers AS o USING (unit)"
        " GROUP BY ALL HAVING count(o.unit) <> coalesce(d.offers, -1)"
    ).fetchall()
    polls += 1
    time.sleep(0.1)
print(json.dumps({"polls": polls, "torn": torn}))
"""


@contextmanager
def readers(lake: Lake, stop: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Two processes that read again and again until the file is there."""
    command = [str(lake.python), "-c", READER, str(ENGINE), lake.catalogue, str(stop)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        assert all(process.stdout and process.stdout.readline() == "reads\n" for process in processes)
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_four_writers_and_readers_that_see_whole_days(home: Home, tmp_path: Path, lake: Lake) -> None:
    """The first day of all sources is in one file of the lake, of which each writer replaces its own part."""
    market(home, sellers=4, days=1)
    push(home, lake, ALL)

    def write(source: str) -> None:
        own = Home(tmp_path / source)
        for folder in ("offers", "outcomes"):
            shutil.copytree(home.root / folder / source, own.root / folder / source)
        read_again(own, source)
        tomorrow = DAY + timedelta(days=1)
        Records(own).write_accepted(tomorrow, source, Records(own).offers(source, DAY))
        assert push(own, lake, ALL).moved == [f"{source}/{DAY}", f"{source}/{tomorrow}"]

    stop = tmp_path / "stop"
    with readers(lake, stop) as processes:
        with ThreadPoolExecutor(4) as writers:
            list(writers.map(write, sources(home)))
        stop.touch()
        seen = [json.loads(process.stdout.readline()) for process in processes if process.stdout]
    assert [each["torn"] for each in seen] == [[], []]
    assert all(each["polls"] > 1 for each in seen)
    per_source = len(Records(home).offers(sources(home)[0], DAY))
    counted = [day.offers for day in days_in(lake, ALL) if "offers" in day.parts]
    assert counted == [per_source - 1] * 8


def test_two_machines_with_the_same_day_push_it_once(home: Home, tmp_path: Path, lake: Lake) -> None:
    market(home, sellers=2, days=1)
    homes = [home, Home(tmp_path / "other")]
    shutil.copytree(home.root, homes[1].root)
    with ThreadPoolExecutor(2) as writers:
        found = list(writers.map(lambda one: push(one, lake, ALL), homes))
    assert sorted(len(each.moved) for each in found) == [0, 4]
    names = [day.unit.name for day in days_in(lake, ALL)]
    assert len(names) == len(set(names)) == 4


def test_the_data_on_s3(
    home: Home,
    tmp_path: Path,
    empty_lake: Lake,
    postgres: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Moto's server on loopback, with keys and address from the environment."""
    moto = pytest.importorskip("moto.server", reason="no S3 server: moto is not installed")
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "lake")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
        urlopen(Request(f"http://{host}:{port}/records", method="PUT")).close()
        lake = replace(empty_lake, catalogue=postgres)
        create(lake, "s3://records/lake")
        market(home, sellers=1, days=1)
        push(home, lake, ALL)
        pull(Home(tmp_path / "other"), lake, ALL)
    finally:
        server.stop()
    assert digests(Home(tmp_path / "other")) == digests(home)


def sql(lake: Lake, statement: str) -> None:
    """What somebody else does to the lake."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import engine;"
        " engine._attached({'catalogue': sys.argv[2]}).execute(sys.argv[3])"
    )
    subprocess.run([lake.python, "-c", code, str(ENGINE.parent), lake.catalogue, statement], check=True)


def test_what_is_not_what_was_pushed_is_refused(home: Home, tmp_path: Path, lake: Lake) -> None:
    market(home, sellers=1, days=1)
    push(home, lake, ALL)
    (source,) = sources(home)
    other = Home(tmp_path / "other")
    sql(lake, "UPDATE lake.offers SET usd_per_gpu_hour = 0.01 WHERE position = 0")
    with pytest.raises(LakeError, match=f"{source}/{DAY} in the lake is not what was pushed"):
        pull(other, lake, ALL)
    assert not other.offers.exists()
    for row in (
        ["x", "../../etc", f"{DAY}", "", "0", "offers", 1],
        ["x", source, f"{DAY}", "../../x", "0", "offers", 1],
        ["x", source, f"{DAY}", "", "0", "../offers", 1],
    ):
        with pytest.raises(LakeError, match="that no gpufare writes"):
            in_lake(row)


def test_the_commands_and_what_they_need(home: Home, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    market(home, sellers=1, days=1)
    monkeypatch.setenv(PYTHON_VARIABLE, str(lake.python))
    monkeypatch.setenv(LAKE_VARIABLE, lake.catalogue)
    pushed = gpufare_process("lake", "push", "--since", f"{DAY}", home=home)
    assert (pushed.returncode, pushed.stderr) == (0, "pushed 3 days; 0 were there already\n")
    with pytest.raises(LakeError, match="run `make"):
        lake_of({LAKE_VARIABLE: lake.catalogue, PYTHON_VARIABLE: "/nowhere/python"})
    with pytest.raises(LakeError, match=f"set {LAKE_VARIABLE}=postgresql://"):
        lake_of({})


def test_without_a_lake_or_its_database_the_error_says_so_and_shows_no_password(
    home: Home, lake: Lake, postgres_server: str
) -> None:
    market(home, sellers=1, days=1)
    secret = postgres_server.replace("gpufare@", "gpufare:geheim@")
    with pytest.raises(LakeError, match="make one with `gpufare lake create`") as absent:
        push(home, replace(lake, catalogue=f"{secret}/postgres"), ALL)
    with pytest.raises(PostgresError, match="Connection refused") as refused:
        push(home, replace(lake, catalogue="postgresql://gpufare:geheim@127.0.0.1:9/lake"), ALL)
    assert "geheim" not in f"{absent.value}{refused.value}"


def test_a_place_for_the_data_that_not_all_machines_can_find_is_refused(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(LakeError, match="give a whole path or s3://"):
        create(lake, "data/lake")
    with pytest.raises(LakeError, match="there is one in this database already, with its data at /"):
        create(lake, str(tmp_path))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    with pytest.raises(LakeError, match="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        create(lake, "s3://bucket/lake")
