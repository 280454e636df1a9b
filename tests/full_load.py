"""The record in a database, all at once: what a build that goes on from the one before is compared with."""

from datetime import date

import duckdb

from pipeline.home.paths import Home
from pipeline.record.record_files import Damage, record_files
from pipeline.warehouse.load import LOADERS, MARK_THE_ATTEMPTS_THAT_STAND, load_files


def load_record(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Load the record up to a day and no further. What cannot be loaded is left out and returned."""
    damages: list[Damage] = []
    for folder, (table, insert) in LOADERS.items():
        connection.execute(f"DELETE FROM main.{table}")
        files = [file for file in record_files(home, folder) if file.day <= day]
        damages += load_files(connection, files, insert)
    connection.execute(MARK_THE_ATTEMPTS_THAT_STAND)
    return damages
