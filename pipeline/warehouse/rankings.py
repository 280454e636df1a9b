"""The ranking of each published day, saved so that later builds show it as it was published."""

from datetime import date

import duckdb

from pipeline.contracts.paths import Home
from pipeline.offers.records import replacing
from pipeline.warehouse.connection import quoted
from pipeline.warehouse.scripts import BuildError

RANKING = "cheapest_gpu_per_workload"


def load_earlier_rankings(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> None:
    """Add the saved rankings of the days before ``day`` to the table. Raises BuildError."""
    earlier = [path for path in home.rankings.glob("*.parquet") if date.fromisoformat(path.stem) < day]
    for path in sorted(earlier):
        try:
            # Files of earlier versions have the price's age, which is computed when it is asked.
            columns = "COLUMNS(lambda name: name <> 'price_age_days')"
            connection.execute(
                f"INSERT INTO main.{RANKING} BY NAME SELECT {columns} FROM read_parquet(?)",  # noqa: S608
                [str(path)],
            )
        except duckdb.Error as error:
            raise BuildError(f"the ranking {path} cannot be loaded: {error}") from error


def save_ranking(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> None:
    """Save the ranking of ``day``."""
    with replacing(home.rankings / f"{day}.parquet") as temporary:
        connection.execute(
            f"COPY (SELECT * EXCLUDE (price_age_days) FROM main.{RANKING}"  # noqa: S608
            f" WHERE day = getvariable('as_of_day')) TO '{quoted(temporary)}' (FORMAT parquet)"
        )
