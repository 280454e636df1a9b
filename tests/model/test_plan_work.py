"""The work of one question, counted instead of timed."""

import json
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from pipeline.warehouse.database import in_memory

ONE_JOB = """
WITH my_job AS (
    SELECT 'job' AS job, 'llama-3.1-8b' AS model, 'qlora' AS method, 4096 AS seq_len, 16 AS lora_rank,
        8 AS max_gpus, 100e6 AS tokens
)
"""


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with in_memory("cheapest_for", "cheapest_published") as connection:
        yield connection


def scans(database: duckdb.DuckDBPyConnection, macro: str) -> list[str]:
    """The tables that a question reads, as often as it does."""
    ((_, plan),) = database.execute(f"EXPLAIN (FORMAT json) {ONE_JOB} FROM {macro}('my_job')").fetchall()

    def tables(operator: dict[str, Any]) -> Iterator[str]:
        if table := operator.get("extra_info", {}).get("Table"):
            yield table.rpartition(".")[2]
        for child in operator["children"]:
            yield from tables(child)

    return [table for operator in json.loads(plan) for table in tables(operator)]


def test_a_question_plans_once(database: duckdb.DuckDBPyConnection) -> None:
    assert scans(database, "cheapest_for").count("recipe_memory") == 1


def test_a_question_on_published_plans_plans_nothing(database: duckdb.DuckDBPyConnection) -> None:
    read = scans(database, "cheapest_published")
    assert "plan_grid" in read
    assert not {"recipe_memory", "recipe_work", "model_constants", "measured_runs"} & set(read)
