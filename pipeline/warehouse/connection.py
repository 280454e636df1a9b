"""How every database of gpufare is opened: in UTC, without a progress bar, and never over a network."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

STORAGE_VERSION = "v1.5.0"
"""The oldest DuckDB whose shell opens the published file."""


def connect(file: Path | None = None) -> duckdb.DuckDBPyConnection:
    """Connect to a database file, created if missing, or to one in memory; never to a network."""
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    )
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")
    if file is not None:
        connection.execute(f"ATTACH '{quoted(file)}' AS gpufare (STORAGE_VERSION '{STORAGE_VERSION}')")
        connection.execute("USE gpufare")
    return connection


def quoted(path: Path) -> str:
    """A path for use within single quotes in SQL."""
    return str(path).replace("'", "''")


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Commit what is done within, or nothing of it."""
    connection.begin()
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()
