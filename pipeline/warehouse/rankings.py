"""The best of the ranking of each published day, kept so that later builds show it as it was published."""

from datetime import date

import duckdb

from pipeline.home.paths import Home
from pipeline.record.months import SCHEMAS
from pipeline.record.records import Records

SAVED_RANKS = 5
"""Ranks kept of each workload, price kind and objective: which of them are published may change."""


def save_ranking(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> None:
    """Keep the ranking of ``day``. Raises UnwritableError and RecordError."""
    rows = connection.execute(
        f"SELECT {', '.join(SCHEMAS['rankings'])} FROM main.cheapest_gpu_per_workload"  # noqa: S608
        f" WHERE rank <= {SAVED_RANKS} ORDER BY workload, price_kind, objective, rank"
    ).fetchall()
    Records(home).write_ranking(day, rows)
