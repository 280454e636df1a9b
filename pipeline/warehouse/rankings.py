"""The ranking of each published day, saved so that later builds show it as it was published."""

from collections.abc import Sequence
from datetime import date

import duckdb

from pipeline.contracts.paths import Home
from pipeline.offers.record_files import Damage, RecordFile, record_files
from pipeline.offers.records import replacing
from pipeline.warehouse.connection import quoted
from pipeline.warehouse.load import insert_parquet, load_files, tier_class_column

RANKING = "cheapest_gpu_per_workload"

# Files of earlier versions have the price's age, which is computed when it is asked, and no failures.
_OF_ITS_DAY = """
COLUMNS(lambda name: name NOT IN (
    'price_age_days', 'filename', 'day', 'tier_class', 'failures', 'failure_hours', 'failure_usd'
)),
coalesce(failures, 0) AS failures,
coalesce(failure_hours, 0) AS failure_hours,
coalesce(failure_usd, 0) AS failure_usd,
if(
    day = parse_filename(filename, true)::DATE, day, error('it is of ' || day || ', which is not its place')
) AS day"""


def load_earlier_rankings(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Add the saved rankings of the days before ``day`` to the table. Returns what cannot be loaded."""
    connection.execute(f"DELETE FROM main.{RANKING}")  # noqa: S608 - our own table
    return load_files(
        connection, [file for file in record_files(home, "rankings") if file.day < day], _insert
    )


def _insert(connection: duckdb.DuckDBPyConnection, files: Sequence[RecordFile]) -> None:
    insert_parquet(connection, RANKING, files, f"{_OF_ITS_DAY}, {tier_class_column()}")


def save_ranking(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> None:
    """Save the ranking of ``day``. Raises UnwritableError."""
    with replacing(home.rankings / f"{day}.parquet") as temporary:
        connection.execute(
            f"COPY (SELECT * EXCLUDE (price_age_days) FROM main.{RANKING}"  # noqa: S608
            f" WHERE day = getvariable('as_of_day')) TO '{quoted(temporary)}' (FORMAT parquet)"
        )
