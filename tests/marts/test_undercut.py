"""A rental that its source undercuts elsewhere is no answer to a job that asks for no place: left out before
anything is priced, it changes no ranking."""

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipeline.home.paths import Home
from pipeline.warehouse.connection import connect

ANSWERS = """
WITH my_jobs AS (
    SELECT 'llama-3.1-8b' AS model, 'lora' AS method, 10e6 AS tokens, 2048 AS seq_len,
        unnest(['cost', 'time']) AS objective, {asked} AS country
)
SELECT * EXCLUDE (observed_at, price_age_days) FROM cheapest_published('my_jobs')
"""


def _answers(connection: duckdb.DuckDBPyConnection, asked: str) -> list[tuple[Any, ...]]:
    return connection.execute(ANSWERS.format(asked=asked)).fetchall()


@pytest.fixture(scope="module")
def market(sample_home: Home, tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    return connect(
        Path(shutil.copy(sample_home.published, tmp_path_factory.mktemp("undercut") / "own.duckdb"))
    )


def test_dropping_undercut_offers_loses_no_answer(market: duckdb.DuckDBPyConnection) -> None:
    places = ["NULL::VARCHAR", "'JP'"]
    ((undercut, in_japan),) = market.execute(
        "SELECT count(*), count(*) FILTER (country = 'JP') FROM main.rentals WHERE is_undercut"
    ).fetchall()
    assert undercut > 50
    assert in_japan > 0
    found = [_answers(market, place) for place in places]
    assert all(found)
    market.execute("UPDATE main.rentals SET is_undercut = FALSE")
    assert [_answers(market, place) for place in places] == found


def test_only_jobs_without_a_place_are_spared_the_undercut(market: duckdb.DuckDBPyConnection) -> None:
    market.execute("UPDATE main.rentals SET is_undercut = TRUE")
    assert _answers(market, "NULL::VARCHAR") == []
    assert len(_answers(market, "'JP'")) > 0
