"""Loads the prices that the user imported from elsewhere into their own table."""

from datetime import date
from pathlib import Path

import duckdb

from pipeline.home.paths import Home
from pipeline.offers.imported import imported_files


def load_imports(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> dict[Path, str]:
    """Load the imported prices of days up to ``day``. Return the files that cannot be loaded, and why."""
    connection.execute("DELETE FROM main.imported_prices")
    damaged = {}
    for path in imported_files(home):
        try:
            connection.execute(_INSERT, [str(path)])
        except duckdb.Error as error:
            damaged[path] = str(error).splitlines()[0]
    connection.execute("DELETE FROM main.imported_prices WHERE day > ?", [day])
    connection.execute(_ONCE)
    return damaged


_INSERT = """
INSERT INTO main.imported_prices BY NAME
SELECT * FROM read_parquet(?, union_by_name = true) ORDER BY gpu_id, day, file, line
"""

_ONCE = """
DELETE FROM main.imported_prices
WHERE rowid NOT IN (
    SELECT min(rowid)
    FROM main.imported_prices
    GROUP BY
        day, gpu_id, raw_label, gpu_count, provider, price_kind, term_days, tier, usd_per_gpu_hour, region,
        country, observation_source, evidence
)
"""
"""An observation that several files state alike counts once."""
