"""The record in a database, all at once: what a build that continues from the one before is compared with."""

from datetime import date

import duckdb

from pipeline.home.paths import Home
from pipeline.record.damage import Damage, RecordError
from pipeline.record.journal import Journal
from pipeline.record.months import BY_SOURCE, SourceDay, days_of, months
from pipeline.warehouse.load_record import JOURNAL_KINDS, LOADED_INTO, load_days


def load_record(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Load the record up to a day and no further. Returns the damaged files, which are skipped."""
    damages = []
    for table in (*JOURNAL_KINDS, *BY_SOURCE):
        connection.execute(f"DELETE FROM main.{LOADED_INTO[table]}")
        wanted = set(Journal(home).digests(table, day))
        for month in months(home, table) if table in BY_SOURCE else ():
            try:
                wanted |= {SourceDay(month.source, each) for each in days_of(home, month) if each <= day}
            except RecordError as error:
                damages.append(error.damage)
        damages += load_days(connection, home, table, wanted)
    return damages
