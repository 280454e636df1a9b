"""Loads the prices that the user imported from elsewhere into their own table."""

from collections.abc import Sequence
from datetime import date

import duckdb

from pipeline.home.paths import Home
from pipeline.offers.imported import imported_files
from pipeline.record.record_files import Damage, RecordFile
from pipeline.warehouse.load import load_files


def load_imports(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Load the imported prices of days up to ``day``. What cannot be loaded is left out and returned."""
    connection.execute("DELETE FROM main.imported_prices")
    files = [RecordFile(path, "imported", day) for path in imported_files(home)]
    damages = load_files(connection, files, _insert)
    connection.execute("DELETE FROM main.imported_prices WHERE day > ?", [day])
    connection.execute(_ONCE)
    return damages


def _insert(connection: duckdb.DuckDBPyConnection, files: Sequence[RecordFile]) -> None:
    connection.execute(
        "INSERT INTO main.imported_prices BY NAME"
        " SELECT * FROM read_parquet(?, union_by_name = true) ORDER BY gpu_id, day, file, line",
        [[str(file.path) for file in files]],
    )


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
