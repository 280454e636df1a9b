"""No query reads or writes anything but the published file, or keeps the machine busy."""

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from pipeline.assistant import queries
from pipeline.assistant.answers import MOST_BYTES
from pipeline.assistant.query_process import (
    MOST_CELL_CHARACTERS,
    MOST_CHARACTERS,
    MOST_COLUMNS,
    MOST_ROWS,
    answer,
)
from pipeline.home.paths import Home
from pipeline.warehouse.connection import MEMORY_VARIABLE
from pipeline.warehouse.query import QueryError, reader
from tests.assistant.conftest import Called, text_of

NOT_READING, NOT_PUBLISHED, NO_TABLE = "sql runs one SELECT", "is not part of it", "does not exist"
NOT_WRITTEN = "must be written out"

HOSTILE = {
    # Files and networks.
    "COPY (SELECT 1) TO '{folder}/x.csv'": NOT_READING,
    "EXPORT DATABASE '{folder}/x'": NOT_READING,
    "ATTACH '{folder}/x.db'": NOT_READING,
    "INSTALL httpfs": NOT_READING,
    "LOAD httpfs": NOT_READING,
    "FROM read_csv('{folder}/secret.csv')": NOT_PUBLISHED,
    "FROM read_text('{folder}/secret.csv')": NOT_PUBLISHED,
    "FROM read_blob('/proc/self/environ')": NOT_PUBLISHED,
    "FROM read_json('http://127.0.0.1/')": NOT_PUBLISHED,
    "FROM glob('/*')": NOT_PUBLISHED,
    "FROM sniff_csv('{folder}/secret.csv')": NOT_PUBLISHED,
    "FROM '{folder}/secret.csv'": "Cannot access file",
    "FROM 'https://example.com/x.parquet'": "Cannot access file",
    "SELECT (SELECT content FROM read_text('{folder}/secret.csv'))": NOT_PUBLISHED,
    "WITH x AS (FROM read_text('{folder}/secret.csv')) FROM x": NOT_PUBLISHED,
    "FROM query('FROM read_text(''{folder}/secret.csv'')')": NOT_PUBLISHED,
    "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))": NOT_PUBLISHED,
    "FROM pandas_scan(12345)": NOT_PUBLISHED,
    # This machine: paths, keys, settings, the variables of Python.
    "SELECT getenv('HOME')": NOT_PUBLISHED,
    "SELECT current_setting('allowed_paths')": NOT_PUBLISHED,
    "SELECT list_transform(['home_directory'], lambda x: current_setting(x))": NOT_PUBLISHED,
    "FROM duckdb_settings()": NOT_PUBLISHED,
    "SELECT path FROM duckdb_databases()": NOT_PUBLISHED,
    "FROM system.main.duckdb_databases": NOT_PUBLISHED,
    "SUMMARIZE duckdb_databases": NOT_PUBLISHED,
    "FROM duckdb_secrets()": NOT_PUBLISHED,
    "FROM duckdb_extensions()": NOT_PUBLISHED,
    "FROM job_entries('duckdb_databases', 'x', 'y')": NOT_PUBLISHED,
    "FROM job_entries('system.main.\"duckdb_databases\"')": NOT_PUBLISHED,
    "FROM job_entries(duckdb_databases)": NOT_PUBLISHED,
    'FROM job_entries(system.main."duckdb_databases")': NOT_PUBLISHED,
    "FROM job_entries([duckdb_databases])": NOT_PUBLISHED,
    "FROM job_entries(E'duckdb\\x5fdatabases')": NOT_PUBLISHED,
    "FROM job_entries('duckdb_' || 'databases')": NOT_WRITTEN,
    "FROM job_entries(['duckdb_' || 'databases'])": NOT_WRITTEN,
    "FROM job_entries(jobs := 'duckdb_' || 'databases')": NOT_WRITTEN,
    "FROM job_entries(chr(100) || 'uckdb_databases')": NOT_WRITTEN,
    "FROM job_entries('\\x64uckdb_databases'::BLOB::VARCHAR)": NOT_WRITTEN,
    "FROM job_entries(['\\x64uckdb_databases'::BLOB::VARCHAR])": NOT_WRITTEN,
    "FROM job_entries(TRY_CAST('\\x64uckdb_databases'::BLOB AS VARCHAR))": NOT_WRITTEN,
    "FROM job_entries(x'6475636b64625f646174616261736573')": NOT_WRITTEN,
    "FROM job_entries(CASE WHEN true THEN 'offers' END)": NOT_WRITTEN,
    "FROM job_entries(coalesce('offers', NULL))": NOT_WRITTEN,
    "FROM job_entries('offers' COLLATE nocase)": NOT_WRITTEN,
    "FROM job_entries('offers_'[1:6])": NOT_WRITTEN,
    "FROM job_entries(list_value('x' ORDER BY 'a' || 'b'))": NOT_WRITTEN,
    "FROM job_entries((SELECT 'offers'))": NOT_WRITTEN,
    "FROM job_entries(?)": NOT_WRITTEN,
    "FROM job_entries($jobs)": NOT_WRITTEN,
    "SELECT (SELECT count(*) FROM job_entries('\\x64uckdb_databases'::BLOB::VARCHAR))": NOT_WRITTEN,
    "WITH x AS (FROM job_entries('\\x64uckdb_databases'::BLOB::VARCHAR)) FROM x": NOT_WRITTEN,
    "FROM connection": NO_TABLE,
    # What would last or change other answers.
    "PRAGMA database_list": NOT_READING,
    "SET memory_limit = '1TB'": NOT_READING,
    "SET VARIABLE today = DATE '2020-01-01'": NOT_READING,
    "CREATE TEMP TABLE x AS SELECT 1": NOT_READING,
    "CREATE MACRO memory.main.f() AS 1": NOT_READING,
    "DELETE FROM offers": NOT_READING,
    "WITH x AS (DELETE FROM models RETURNING model) FROM x": "read-only",
    "SELECT write_log('x')": NOT_PUBLISHED,
    "PREPARE x AS SELECT 1": NOT_READING,
    "CALL enable_logging()": NOT_READING,
    "DETACH gpufare": NOT_READING,
    "USE memory": NOT_READING,
    "SELECT 1; SELECT 2": NOT_READING,
    "SELECT 1; DROP TABLE offers": NOT_READING,
    "EXPLAIN ANALYZE SELECT 1": NOT_READING,
    "": NOT_READING,
    "-- nothing": NOT_READING,
}


@pytest.fixture(scope="module")
def connection(sample_home: Home) -> Iterator[duckdb.DuckDBPyConnection]:
    with reader(sample_home.published, spills=False) as opened:
        yield opened


def state_of(home: Home) -> tuple[str, list[str]]:
    """The hash of the published file, and every file of a home."""
    digest = hashlib.sha256(home.published.read_bytes()).hexdigest()
    return digest, sorted(str(path) for path in home.root.rglob("*"))


def test_hostile_queries_are_refused_and_change_nothing(
    connection: duckdb.DuckDBPyConnection, sample_home: Home, tmp_path: Path
) -> None:
    (tmp_path / "secret.csv").write_text("secret\n1\n")
    before = state_of(sample_home)
    for query, said in HOSTILE.items():
        with pytest.raises(QueryError) as refused:
            answer(connection, query.format(folder=tmp_path))
        assert said in str(refused.value), query
        assert str(sample_home.root) not in str(refused.value), query
    assert state_of(sample_home) == before
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


@pytest.mark.parametrize(
    "query",
    [
        "FROM offers SELECT count(*)",
        "WITH x AS (SELECT 1 AS one) FROM x",
        "DESCRIBE offers",
        "SHOW TABLES",
        "SUMMARIZE sources",
        "VALUES (1)",
        "SELECT i FROM range(3) AS t(i)",
        "FROM duckdb_tables() SELECT table_name, comment",
        "SELECT column_name FROM information_schema.columns",
        "FROM gpu_names()",
        "WITH j AS (SELECT 'h100' AS gpu) FROM prices_for('j')",
        "WITH j AS (SELECT 'h100' AS gpu) FROM prices_for(j)",
        "FROM fits_on('h100', gpus := 2)",
        "SELECT r.gpu_id FROM gpus AS g, gpu_readings(g.gpu_id) AS r",
        "FROM job_entries(['gpus'])",
    ],
)
def test_reading_queries_are_answered(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    assert answer(connection, query)["rows"]


def test_no_key_and_no_path_is_in_the_process(
    call: Called, sample_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, python = tmp_path / "environment", tmp_path / "python"
    python.write_text(f"#!/bin/sh\nenv > '{seen}'\nexec '{sys.executable}' \"$@\"\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("VAST_API_KEY", "secret-key")
    answered = call("sql", query="SELECT DISTINCT database_name FROM duckdb_tables() ORDER BY ALL")
    assert answered.structured_content["rows"] == [["gpufare"]]
    assert str(sample_home.root) not in text_of(answered)
    environment = seen.read_text()
    assert f"{MEMORY_VARIABLE}={queries.DUCKDB_MEMORY}" in environment.splitlines()
    assert "VAST_API_KEY" not in environment
    assert "secret-key" not in environment


LONG_CELL = f"repeat('é', {MOST_CELL_CHARACTERS})"
BOMBS = (
    # DuckDB cannot interrupt one call of a function.
    "SELECT levenshtein(repeat('a', 200000), repeat('b', 200000))",
    "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT 1 FROM t) SELECT count(*) FROM t",
    "SELECT list(range) FROM range(1000000000)",
    "SELECT len(range(1000000000))",
    "SELECT count(*) FROM (SELECT DISTINCT range FROM range(1000000000))",
    # What would be a large answer.
    f"SELECT {', '.join([LONG_CELL] * 150)} FROM range(1000)",
    f"SELECT {', '.join([LONG_CELL] * MOST_COLUMNS)} FROM range(1000)",
    "SELECT error(repeat('é', 100000000))",
)
STOPPED = "took more than 3 s|[Mm]emory|150 columns, more than|longer than 3,900 bytes"


@pytest.mark.parametrize("query", BOMBS)
def test_a_query_is_stopped_in_time_and_within_its_memory(
    call: Called, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, query: str
) -> None:
    monkeypatch.setattr(queries, "MOST_SECONDS", 3)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    result = call("sql", query=query)
    assert result.is_error
    assert re.search(STOPPED, text_of(result)), text_of(result)
    assert list(tmp_path.iterdir()) == []  # nothing spilled


def test_only_rows_that_an_answer_could_have_room_for_leave_the_process(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    found = answer(connection, f"SELECT {LONG_CELL}, {LONG_CELL} FROM range(2000)")
    assert (found["row_count"], found["is_cut"]) == (MOST_ROWS, True)
    *first, last = [len(json.dumps(row, ensure_ascii=False)) for row in found["rows"]]
    assert sum(first) <= MOST_CHARACTERS < sum(first) + last
    assert MOST_CHARACTERS > 3 * MOST_BYTES


def test_text_of_pages_has_no_control_characters(call: Called) -> None:
    result = call("sql", query="SELECT 'a' || chr(27) || '[31m' || chr(8238) || chr(10) || 'b', chr(0)")
    assert result.structured_content["rows"] == [
        ["a\N{REPLACEMENT CHARACTER}[31m b", "\N{REPLACEMENT CHARACTER}"]
    ]
