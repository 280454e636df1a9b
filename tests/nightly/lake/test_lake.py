"""The record through a real DuckLake: PostgreSQL where there is one, Parquet files, and the commands."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import duckdb
import pytest
from pydantic import TypeAdapter

from benchmarks.market import Market, write_market
from pipeline.catalog.source_config import configs
from pipeline.cli.lake import PACKAGES
from pipeline.contracts.outcome import Outcome
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.lake.catalogue import LAKE_VARIABLE, LakeError, catalogue_and_password, quoted
from pipeline.lake.exchange import Content, content_of, stands
from pipeline.lake.source_days import days_here, read_day, write_day
from pipeline.record.months import Month, SourceDay, file_of
from pipeline.record.records import Records
from pipeline.warehouse.publish import publish
from tests.conftest import gpufare, gpufare_process, with_plans
from tests.nightly.processes import output_of

DAY = date(2026, 8, 22)
ATTEMPT = "%Y%m%dT%H%M%S.%fZ"
(RATES_SOURCE,) = (name for name, config in configs().items() if config.kind == "exchange_rates")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def market(home: Home, *, sellers: int = 4, days: int = 2) -> list[str]:
    """Write a record, and return its sources of prices."""
    write_market(home, Market(sellers=sellers, gpus=3, regions=2), DAY, days)
    return sorted(source for source in configs() if Records(home).accepted_days(source))


def copied(home: Home, to: Path) -> Home:
    shutil.copytree(home.root, to)
    return Home(to)


def contents(home: Home) -> dict[SourceDay, Content]:
    records = Records(home)
    days = days_here(records, date.min).items()
    return {place: content_of(read_day(records, place, tables)) for place, tables in days}


def read_again(home: Home, source: str, day: date = DAY) -> None:
    """As with a reader that finds one offer less in the same answers."""
    Records(home).write_accepted(day, source, Records(home).offers(source, day)[1:])


def asked_again(home: Home, source: str) -> None:
    """Another attempt, an hour after the newest one."""
    row = Records(home).outcome(source, DAY)
    assert row is not None
    later = datetime.strptime(row["attempt"], ATTEMPT) + timedelta(hours=1)
    changed = {"attempt": later.strftime(ATTEMPT), "warnings": ()}
    Records(home).write_outcome(TypeAdapter(Outcome).validate_python(row | changed))


def exchanged(direction: str, home: Home) -> tuple[int, int, int]:
    """Days that were moved, are the same on both sides, and are newer on the other."""
    code = "from pipeline.cli.main import main; sys.stderr = sys.stdout; main(['lake', sys.argv[2]])"
    said = output_of(with_extensions(code, direction), env=os.environ | {HOME_VARIABLE: str(home.root)})
    moved, same, newer = (int(word) for word in said.split() if word.isdigit())
    return moved, same, newer


push, pull = partial(exchanged, "push"), partial(exchanged, "pull")

BEGIN = """
import json, sys, time
from datetime import date
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from pipeline.home.paths import Home
from pipeline.lake.catalogue import attached
from pipeline.lake.exchange import pull, push
from pipeline.record.months import Month, file_of
from pipeline.record.records import Records
"""


def with_extensions(code: str, *arguments: object) -> list[str]:
    """A command that runs code with DuckDB's extensions for a lake."""
    return [sys.executable, "-c", BEGIN + code, str(PACKAGES), *map(str, arguments)]


def sql(statement: str) -> list[list[Any]]:
    """Run a statement on the lake from another connection."""
    code = "with attached() as lake: print(json.dumps(lake.execute(sys.argv[2]).fetchall(), default=str))"
    return json.loads(output_of(with_extensions(code, statement)))


# ------------------------------------------------------------------ push and pull


def test_pushed_rows_are_pulled_value_by_value(home: Home, tmp_path: Path, lake: str) -> None:
    market(home)
    days = 5 * 2  # with the source of exchange rates
    assert push(home) == (days, 0, 0)
    other = Home(tmp_path / "other")
    assert pull(other) == (days, 0, 0)
    assert contents(other) == contents(home)
    assert Records(other).usd_rates(DAY) == Records(home).usd_rates(DAY) != {}
    assert (push(home), push(other), pull(other)) == ((0, days, 0),) * 3


def test_a_day_that_is_read_again_replaces_itself(home: Home, tmp_path: Path, lake: str) -> None:
    """And whoever has the day of before does not push it over the new one, but pulls that."""
    source, *_ = market(home, sellers=2, days=1)
    push(home)
    other = copied(home, tmp_path / "other")
    read_again(home, source)
    assert pull(home) == (0, 2, 1)
    assert push(home) == (1, 2, 0)
    assert push(other) == (0, 2, 1)
    assert pull(other) == (1, 2, 0)
    assert contents(other) == contents(home)
    assert sql(f"SELECT count(*) FROM lake.offers WHERE source = '{source}'") == [
        [len(Records(home).offers(source, DAY))]
    ]


def test_the_attempts_of_two_machines_meet(home: Home, tmp_path: Path, lake: str) -> None:
    (source,) = market(home, sellers=1, days=1)
    other = copied(home, tmp_path / "other")
    asked_again(other, source)
    read_again(other, source)
    assert push(other) == (2, 0, 0)
    assert push(home) == (0, 1, 1)
    assert pull(home) == (1, 1, 0)
    assert contents(home) == contents(other)


def test_the_days_of_a_damaged_month_are_skipped_by_name(home: Home, lake: str) -> None:
    source, *_ = market(home, sellers=2, days=1)
    push(home)
    file_of(home, Month.of("offers", source, DAY)).write_bytes(b"PAR1 and no more")
    for command in ("push", "pull"):
        run = gpufare_process("lake", command, home=home)
        assert run.returncode == 1
        assert run.stderr.splitlines()[-1].startswith(f"skipped {source} {DAY}: ")
        assert "is damaged" in run.stderr


def test_tables_built_from_the_lake_are_those_built_from_the_files(
    sample_home: Home, tmp_path: Path, lake: str
) -> None:
    """The same sql/, for each table of the published file; only rankings are not exchanged."""
    push(sample_home)
    other = with_plans(tmp_path / "other", sample_home)
    pull(other)
    shutil.copytree(sample_home.record / "rankings", other.record / "rankings", dirs_exist_ok=True)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{sample_home.published}' AS files (READ_ONLY)")
        publish(
            other, *connection.execute("SELECT as_of_day, as_of_time FROM files.publication").fetchall()[0]
        )
        connection.execute(f"ATTACH '{other.published}' AS lake (READ_ONLY)")
        query = (
            "SELECT table_name FROM duckdb_tables() WHERE (database_name, schema_name) = ('files', 'main')"
        )
        tables = [table for (table,) in connection.execute(query).fetchall()]
        assert len(tables) > 40
        for table in tables:
            one, more = (f"FROM {side}.{table}" for side in ("files", "lake"))
            different = f"({one} EXCEPT ALL {more}) UNION ALL ({more} EXCEPT ALL {one}) LIMIT 1"
            assert connection.execute(different).fetchall() == [], table


def test_the_content_that_wins() -> None:
    old = Content(["offers", "outcomes"], "20260822T060000.000000Z", "a")
    read_anew = old._replace(digest="b", earlier=["a"])
    next_attempt = Content(["offers", "outcomes"], "20260822T070000.000000Z", "c")
    failed = Content(["outcomes"], "20260822T080000.000000Z", "d")  # takes no prices away
    assert stands(old, None)
    assert not stands(old, old)
    for winner, loser in ((read_anew, old), (next_attempt, read_anew), (old, failed)):
        assert (stands(winner, loser), stands(loser, winner)) == (True, False)


# ------------------------------------------------------------------ several machines at a time

READER = """
folder, stop, polls, torn = Path(sys.argv[2]), Path(sys.argv[3]), 0, []
print("reads", flush=True)
while not stop.exists():
    records = Records(Home(folder / f"{polls}"))
    torn += [[*place, verdict] for place, verdict in pull(records, date.min) if verdict != "moved"]
    polls += 1
    time.sleep(0.5)
print(json.dumps({"polls": polls, "torn": torn}, default=str))
"""
"""A pull compares all rows of a day with their hash: half of a day would be named."""

WRITER = """
folder, source, day, rounds = sys.argv[2:]
records, day, verdicts = Records(Home(Path(folder))), date.fromisoformat(day), []
for _ in range(int(rounds)):
    records.write_accepted(day, source, records.offers(source, day)[1:])
    verdicts += [verdict for place, verdict in push(records, day) if place == (source, day)]
print(json.dumps(verdicts))
"""


def test_four_writers_and_readers_that_see_whole_days(home: Home, tmp_path: Path, lake: str) -> None:
    sources, rounds, stop = market(home, sellers=4, days=1), 3, tmp_path / "stop"
    push(home)

    def write(source: str) -> list[str]:
        own = copied(home, tmp_path / source).root
        return json.loads(output_of(with_extensions(WRITER, own, source, DAY, rounds)))

    with ExitStack() as stack:
        readers = []
        for number in range(2):
            command = with_extensions(READER, tmp_path / f"read{number}", stop)
            readers.append(stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)))
            stack.callback(readers[-1].kill)
        assert [reader.stdout.readline() for reader in readers if reader.stdout] == ["reads\n"] * 2
        with ThreadPoolExecutor(4) as writers:
            verdicts = list(writers.map(write, sources))
        stop.touch()
        seen = [json.loads(reader.communicate()[0]) for reader in readers]
    assert verdicts == [["moved"] * rounds] * 4
    assert [each["torn"] for each in seen] == [[], []]
    assert all(each["polls"] > 1 for each in seen)
    offers = len(Records(home).offers(sources[0], DAY)) - rounds
    assert sql("SELECT source, count(*), max(position) FROM lake.offers GROUP BY ALL ORDER BY ALL") == [
        [source, offers, offers - 1] for source in sources
    ]
    assert sql("SELECT len(earlier) FROM lake.days WHERE list_contains(tables, 'offers')") == [[rounds]] * 4


def test_two_machines_with_the_same_day_push_it_once(home: Home, tmp_path: Path, lake: str) -> None:
    market(home, sellers=2, days=1)
    homes = [home, copied(home, tmp_path / "other")]
    with ThreadPoolExecutor(2) as writers:
        found = list(writers.map(push, homes))
    assert sum(moved for moved, _, _ in found) == sum(same for _, same, _ in found) == 3
    assert sql("SELECT count(*), count(DISTINCT source) FROM lake.days") == [[3, 3]]


# ------------------------------------------------------------------ where it is, and who may read


def test_two_processes_use_a_catalogue_that_is_a_file_at_once(
    home: Home, tmp_path: Path, file_lake: str
) -> None:
    market(home, sellers=1, days=1)
    other = Home(tmp_path / "other")
    with ThreadPoolExecutor(2) as both:
        pushed, _ = both.submit(push, home), both.submit(pull, other)
    assert pushed.result() == (2, 0, 0)
    pull(other)
    assert contents(other) == contents(home)


@pytest.mark.usefixtures("extensions")
def test_the_data_on_s3(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moto's server on loopback, with keys and address from the environment."""
    moto = pytest.importorskip("moto.server", reason="no S3 server: moto is not installed")
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        url = "http://{}:{}".format(*server.get_host_and_port())
        for name, value in (
            ("AWS_ENDPOINT_URL", url), ("AWS_ACCESS_KEY_ID", "lake"), ("AWS_SECRET_ACCESS_KEY", "wJalrXUt"),
            (LAKE_VARIABLE, str(tmp_path / "it's.ducklake")),
        ):  # fmt: skip
            monkeypatch.setenv(name, value)
        urlopen(Request(f"{url}/records", method="PUT")).close()
        made = gpufare_process("lake", "create", "--data", "s3://records/it's a lake")
        assert made.returncode == 0, made.stderr
        market(home, sellers=1, days=1)
        push(home)
        pull(Home(tmp_path / "other"))
        absent = gpufare_process("lake", "create", "--data", "s3://none/lake", home=home)
    finally:
        server.stop()
    assert contents(Home(tmp_path / "other")) == contents(home)
    assert absent.returncode == 1
    assert "wJalrXUt" not in absent.stderr


def test_rows_that_were_changed_or_are_of_an_unknown_source_are_not_written(
    home: Home, tmp_path: Path, file_lake: str
) -> None:
    source, *_ = market(home, sellers=2, days=1)
    push(home)
    sql(f"UPDATE lake.offers SET usd_per_gpu_hour = 0.01 WHERE source = {quoted(source)} AND position = 0")
    sql(f"UPDATE lake.days SET source = '../../x' WHERE source = '{RATES_SOURCE}'")
    other = Home(tmp_path / "other")
    run = gpufare_process("lake", "pull", home=other)
    assert run.returncode == 1
    done, *skipped = run.stderr.splitlines()
    assert done.startswith("pulled 1 days; 0 are the same")
    assert len(skipped) == 2
    assert f"skipped {source} {DAY}: its rows in the lake differ from those pushed" in run.stderr
    assert not Records(other).accepted_days(source)
    sql(f"DELETE FROM lake.days WHERE source IN ({quoted(source)}, '../../x')")
    assert push(home) == (2, 1, 0)
    assert pull(other) == (2, 1, 0)
    assert contents(other) == contents(home)


def test_names_that_would_be_paths_are_not_written(home: Home, tmp_path: Path) -> None:
    (source,) = market(home, sellers=1, days=1)
    place, other = SourceDay(source, DAY), Home(tmp_path / "other")
    rows = read_day(Records(home), place, ["offers", "outcomes"])
    (outcome,) = rows["outcomes"]
    for changed in ({"attempt": "../../x"}, {"source": "../../x"}, {"day": "2026-08-23"}):
        text = json.dumps(json.loads(outcome["outcome"]) | changed)
        with pytest.raises(ValueError, match="outcome of another source, day or attempt"):
            write_day(Records(other), place, {**rows, "outcomes": [{**outcome, "outcome": text}]})
    with pytest.raises(ValueError, match="does not know the source"):
        write_day(Records(other), SourceDay("../../x", DAY), rows)
    assert not other.root.exists()


# ------------------------------------------------------------------ errors, and what they do not show


def test_the_password_is_taken_out_of_the_address() -> None:
    addresses = {
        "/shared/lake.ducklake": ("/shared/lake.ducklake", ""),
        "postgresql://me:geheim@db:5432/x": ("postgres:postgresql://me@db:5432/x", "geheim"),
        "postgres://me@db/x?sslmode=require": ("postgres:postgres://me@db/x?sslmode=require", ""),
        "postgresql://me:gehe%2Fim%40@[::1]/x": ("postgres:postgresql://me@[::1]/x", "gehe/im@"),
    }
    assert {text: catalogue_and_password({LAKE_VARIABLE: text}) for text in addresses} == addresses


def test_an_address_that_is_malformed_is_refused_without_showing_it() -> None:
    for address in (
        "", "lake.ducklake", "redis://:geheim@db/0", "host=db password=geheim",
        "postgresql://me@db/x?password=geheim", *(f"postgresql://me:ge{sign}heim@db/x" for sign in "/#@"),
    ):  # fmt: skip
        with pytest.raises(LakeError, match=f"set {LAKE_VARIABLE} to the catalogue") as refused:
            catalogue_and_password({LAKE_VARIABLE: address})
        assert "heim" not in str(refused.value)


@pytest.mark.usefixtures("extensions")
def test_a_database_that_cannot_be_reached_is_named_without_its_password(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address in ("127.0.0.1:9", "127.0.0.1:nine"):
        monkeypatch.setenv(LAKE_VARIABLE, f"postgresql://me:geheim@{address}/lake")
        run = gpufare_process("lake", "push", home=home)
        assert run.returncode == 1
        assert "the lake cannot be used" in run.stderr
        assert address in run.stderr
        assert "geheim" not in run.stderr


def test_no_process_has_the_password_among_its_arguments(
    home: Home, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one that libpq would need: PostgreSQL trusts loopback, so any does."""
    if not lake.startswith("postgresql"):
        pytest.skip("PostgreSQL is not installed here")
    monkeypatch.setenv(LAKE_VARIABLE, lake.replace("gpufare@", "gpufare:geheim@"))
    seen = []
    run = subprocess.run

    def spy(command: list[str], **options: Any) -> Any:
        seen.append(command)
        return run(command, **options)

    monkeypatch.setattr("pipeline.cli.lake.subprocess.run", spy)
    assert gpufare("lake", "push", home=home).returncode == 0
    assert len(seen) == 1
    assert "geheim" not in f"{seen}"


def test_command_names_its_requirements(
    home: Home, file_lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for data, said in (
        ("data/lake", "give an absolute path"),
        (str(tmp_path / "elsewhere"), "does not match existing data path"),
    ):
        assert said in gpufare_process("lake", "create", "--data", data).stderr
    monkeypatch.setenv(LAKE_VARIABLE, str(tmp_path / "none.ducklake"))
    assert "`gpufare lake create` makes one" in gpufare_process("lake", "push", home=home).stderr
    monkeypatch.setattr("pipeline.cli.lake.PACKAGES", tmp_path / "nowhere")
    absent = gpufare("lake", "push", home=home)
    assert (absent.returncode, "run `make .venv/lake/.ready`" in absent.stderr) == (1, True)
