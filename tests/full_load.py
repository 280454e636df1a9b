"""The record in a database, all at once: what a build that continues from the one before is compared with."""

from datetime import date

import duckdb

from pipeline.catalog.source_config import configs
from pipeline.home.paths import Home
from pipeline.record.damage import Damage, RecordError
from pipeline.record.months import BY_SOURCE, days_of, months
from pipeline.warehouse.load_record import load_days, load_journal


def load_record(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Load the record up to a day and no further. Returns the damaged files, which are skipped."""
    for table in (*BY_SOURCE, "capture_outcomes", "exchange_rates"):
        connection.execute(f"DELETE FROM main.{table}")
    damages = load_journal(connection, home, day, 0, configs().keys())
    for table in BY_SOURCE:
        wanted = []
        for month in months(home, table):
            try:
                wanted += [(month.source, each) for each in days_of(home, month) if each <= day]
            except RecordError as error:
                damages.append(error.damage)
        damages += load_days(connection, home, table, wanted)
    return damages
