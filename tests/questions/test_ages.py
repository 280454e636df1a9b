"""Ages are computed on the day of the question, in every interface; ranking uses the published day."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from pipeline.health.source_states import why_text
from pipeline.home.paths import Home
from pipeline.refresh.demo import sample_days
from pipeline.warehouse.query import age_note, ask, reader
from tests.conftest import PAGES, gpufare, reader_on

DAY = sample_days(PAGES)[0]
AGES = {
    "cheapest_gpu_per_workload": ("price_age_days", "price_day"),
    "offers_latest": ("age_days", "day"),
    "publication": ("age_days", "as_of_day"),
    "rentals": ("price_age_days", "price_day"),
    "source_health": ("age_days", "last_accepted_day"),
}
QLORA = ("cheapest", "--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "100M", "--limit", "3")


@pytest.fixture(scope="module")
def after_91_days(sample_home: Home) -> Iterator[duckdb.DuckDBPyConnection]:
    with reader_on(sample_home.published, DAY + timedelta(days=91)) as connection:
        yield connection


def test_an_age_in_the_published_file_counts_to_the_day_of_the_question(
    sample_home: Home, after_91_days: duckdb.DuckDBPyConnection
) -> None:
    before = datetime.now(UTC).date()
    with reader(sample_home.published) as connection:
        for table, (age, day) in AGES.items():
            query = f"SELECT DISTINCT {age} FROM main.{table} WHERE {day} IS NOT NULL"
            assert ask(after_91_days, query).rows == [(91,)], table
            ask(connection, "SET VARIABLE today = NULL")
            ages = {row[0] for row in ask(connection, query).rows}
            assert ages <= {(before - DAY).days, (before - DAY).days + 1}, table


def test_every_age_of_the_published_file_is_one_of_these(after_91_days: duckdb.DuckDBPyConnection) -> None:
    query = """SELECT name, column_name FROM main.data_dictionary
                WHERE kind = 'column' AND column_name LIKE '%age_days' ORDER BY ALL"""
    assert ask(after_91_days, query).rows == [(table, age) for table, (age, _) in sorted(AGES.items())]


def test_ages_do_not_depend_on_the_time_zone(sample_home: Home) -> None:
    """Kiritimati is 14 hours ahead of UTC and Pago Pago 11 behind: on one of them it is another day."""
    seen = set()
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH '{sample_home.published}' AS published (READ_ONLY); USE published")
            connection.execute(f"SET TimeZone = '{zone}'")
            seen.add((datetime.now(UTC).date(), *ask(connection, "SELECT age_days FROM publication").rows[0]))
    assert all(age == (today - DAY).days for today, age in seen)


def test_no_source_of_an_old_file_is_called_current(after_91_days: duckdb.DuckDBPyConnection) -> None:
    query = "FROM main.source_health WHERE last_accepted_day IS NOT NULL"
    health = {row["source"]: row for row in ask(after_91_days, query).dicts()}
    assert {row["state"] for row in health.values()} == {"stale"}
    why = str(why_text(health["lambda"]))
    assert f"prices of {DAY} are older than 7 days and still ranked, because nothing newer" in why


def test_what_is_ranked_was_decided_on_the_published_day(after_91_days: duckdb.DuckDBPyConnection) -> None:
    ((ranked, stale),) = ask(
        after_91_days, "SELECT count(*) FILTER (ranked), count(*) FILTER (stale) FROM main.offers_latest"
    ).rows
    assert ranked > 100
    assert stale == 0


def test_the_command_gives_one_age_in_all_formats(sample_home: Home) -> None:
    age = (datetime.now(UTC).date() - DAY).days
    table = gpufare(*QLORA, home=sample_home)
    rows = csv.DictReader(io.StringIO(gpufare(*QLORA, "--format", "csv", home=sample_home).stdout))
    lines = gpufare(*QLORA, "--format", "jsonl", home=sample_home)
    assert f"{age} days" not in table.stdout
    assert {row["price_age_days"] for row in rows} == {str(age)}
    assert {json.loads(line)["price_age_days"] for line in lines.stdout.splitlines()} == {age}
    note = f"note: published as of {DAY}, {age} days ago; run `gpufare refresh` for newer prices"
    assert table.stderr.splitlines() == lines.stderr.splitlines() == [note]


def test_an_old_file_is_called_old_and_a_demo_is_not_told_to_refresh(
    sample_home: Home, tmp_path: Path
) -> None:
    demo = Home(tmp_path)
    demo.demo.touch()
    with reader(sample_home.published) as connection:

        def note(days: int, home: Home = sample_home) -> str | None:
            return age_note(connection, home, DAY + timedelta(days=days))

        assert [note(days) for days in (0, 1)] == [None, None]
        for days in (2, 91):
            assert f"{days} days ago; run `gpufare refresh`" in str(note(days))
        assert f"which is after today ({DAY - timedelta(days=1)} UTC); run" in str(note(-1))
        todays = "for today's: unset GPUFARE_HOME; gpufare refresh"
        assert note(91, demo) == f"note: sample prices of {DAY}, 91 days ago; {todays}"


def test_sql_notes_the_age_on_stderr_and_a_day_that_is_asked_for_by_name_is_not_called_old(
    sample_home: Home,
) -> None:
    answer = gpufare("sql", "SELECT 1 AS one", "--format", "csv", home=sample_home)
    assert answer.stdout == "one\n1\n"
    assert answer.stderr.startswith(f"note: published as of {DAY}, ")
    assert gpufare(*QLORA, "--day", str(DAY), home=sample_home).stderr == ""


def test_prices_of_a_day_after_today_are_refused(sample_home: Home) -> None:
    answer = gpufare(*QLORA, "--day", "2062-08-22", home=sample_home)
    (line,) = answer.stderr.splitlines()
    assert answer.returncode == 2
    assert line.startswith("Error: --day 2062-08-22 is after today (")


def test_ages_and_states_are_exported(sample_home: Home, tmp_path: Path) -> None:
    gpufare("export", str(tmp_path), "--tables", ",".join(AGES), home=sample_home)
    for table, (age, day) in AGES.items():
        ((least, most),) = duckdb.sql(
            f"SELECT min({age}), max({age}) FROM read_parquet(?) WHERE {day} IS NOT NULL",
            params=[[*map(str, [*tmp_path.glob(f"{table}.parquet"), *tmp_path.glob(f"{table}/*.parquet")])]],
        ).fetchall()
        assert least == most >= (datetime.now(UTC).date() - DAY).days - 1
    assert duckdb.sql(f"SELECT count(state) FROM '{tmp_path}/source_health.parquet'").fetchall() >= [(29,)]
