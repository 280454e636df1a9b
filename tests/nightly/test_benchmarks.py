"""The sizes that benchmarks measure do not grow: rows read, bytes, peak memory and query plans. Nothing
here is timed."""

import json
import shutil
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pytest

from benchmarks.market import SMALL, Market, write_market
from pipeline.home.paths import Home
from pipeline.record.mending import damages
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.marts import query_of, rows_by_key
from tests.nightly.processes import output_of
from tests.warehouse.full_load import load_record

PROJECT = Path(__file__).parents[2]
DAY = date(2026, 8, 22)

MOST_BYTES_PER_OFFER = 40
MOST_PEAK_MEGABYTES = 640
"""A ranking of the sample pages in parts of 100,000 ways to rent takes 500 MB, in one part 730."""


@pytest.fixture
def database(sample_home: Home, tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(Path(shutil.copy(sample_home.published, tmp_path / "own.duckdb"))) as connection:
        connection.execute("SET VARIABLE as_of_day = (SELECT as_of_day FROM main.publication)")
        yield connection


def test_a_part_prices_no_more_rows_than_it_is_weighed_at(database: duckdb.DuckDBPyConnection) -> None:
    weights = dict(rows_by_key(database, "workload"))
    assert len(weights) > 200
    priced = database.execute("""
        WITH _jobs AS (
            SELECT *, price_kinds() AS price_kinds FROM workload_jobs() WHERE hash(job) % 20 = 0
        ),
        _plans AS (FROM workload_plans() SEMI JOIN _jobs USING (job))
        SELECT job, count(*) FROM job_candidates('_jobs', '_plans') GROUP BY job
    """).fetchall()
    assert priced
    assert {job: count for job, count in priced if count > weights[job]} == {}
    assert sum(count for _, count in priced) > 0.3 * sum(weights[job] for job, _ in priced)


@pytest.mark.parametrize("mart", ["cheapest_gpu_per_workload", "spot_savings"])
def test_the_marts_multiply_rows_with_single_ones_only(
    database: duckdb.DuckDBPyConnection, mart: str
) -> None:
    explained = json.loads(database.execute(f"EXPLAIN (FORMAT json) {query_of(mart)}").fetchall()[0][1])
    products = [
        [_estimated_rows(side) for side in step["children"]]
        for step in _steps(explained)
        if step["name"].strip() in ("CROSS_PRODUCT", "BLOCKWISE_NL_JOIN", "NESTED_LOOP_JOIN")
    ]
    assert products
    assert [sides for sides in products if min(sides) > 1] == []
    assert any(step["name"].strip() == "HASH_JOIN" for step in _steps(explained))


def _steps(tree: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for step in tree for each in (step, *_steps(step["children"]))]


def _estimated_rows(step: dict[str, Any]) -> int:
    stated = step.get("extra_info", {}).get("Estimated Cardinality")
    return int(stated) if stated else max(map(_estimated_rows, step["children"]))


_RANK = """
import sys
from pathlib import Path

from benchmarks.lines import peak_megabytes
from pipeline.warehouse import marts
from pipeline.warehouse.connection import connect

marts.ROWS_IN_A_PART = 100_000
with connect(Path(sys.argv[1])) as connection:
    connection.execute("SET threads = 2")
    connection.execute("SET VARIABLE as_of_day = (SELECT as_of_day FROM main.publication)")
    connection.execute("DELETE FROM main.cheapest_gpu_per_workload")
    marts.fill(connection, "cheapest_gpu_per_workload")
print(peak_megabytes())
"""


def test_a_ranking_takes_no_more_memory_than_its_parts_need(sample_home: Home, tmp_path: Path) -> None:
    copy = shutil.copy(sample_home.published, tmp_path / "own.duckdb")
    said = output_of([sys.executable, "-c", _RANK, str(copy)], cwd=PROJECT)
    assert 50 < float(said) < MOST_PEAK_MEGABYTES


def test_a_made_up_market_is_a_whole_record(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert write_market(home, SMALL, DAY, 2) == 2 * 447
    assert damages(home) == []
    with in_memory("offers", "capture_outcomes", "exchange_rates", "rejects", "sources") as connection:
        assert load_record(connection, home, DAY.replace(day=23)) == []
        counted = connection.execute("SELECT count(*), count(DISTINCT day) FROM main.offers").fetchall()
        assert counted == [(2 * 447, 2)]


def test_a_day_of_a_source_takes_few_bytes_per_offer(tmp_path: Path) -> None:
    count = write_market(Home(tmp_path), Market(sellers=2, gpus=45), DAY, 1)
    files = list((tmp_path / "record" / "offers").rglob("*.parquet"))
    assert (len(files), count) == (2, 1350)
    assert sum(file.stat().st_size for file in files) / count < MOST_BYTES_PER_OFFER
