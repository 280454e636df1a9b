"""How every database of gpufare is opened: in UTC, without a progress bar, within a share of the machine's
memory, and never over a network."""

import os
import re
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from pipeline.contracts.errors import GpufareError

STORAGE_VERSION = "v1.5.0"
"""The oldest DuckDB whose shell opens the published file."""

MEMORY_VARIABLE = "GPUFARE_MEMORY_LIMIT"

MEMORY_SHARE = 0.25
LEAST_MEMORY_BYTES = 2**30
DUCKDB_MEMORY_SHARE = 0.8
"""What DuckDB takes of the memory that the machine, or its container, has."""


class SettingError(GpufareError):
    """A setting in the environment cannot be used: says which, and what it may be."""


def connect(file: Path | None = None) -> duckdb.DuckDBPyConnection:
    """Connect to a database file, created if missing, or to one in memory; never to a network.

    What does not fit into the memory limit goes beside the file, into the folder ``spill_folder``; without a
    file into the system's folder for temporary files, where there is one. Raises SettingError.
    """
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    )
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET memory_limit = '{_memory_limit(connection)}'")
    folder = _temporary_folder() if file is None else str(spill_folder(file))
    connection.execute("SET temp_directory = ?", [folder])
    if file is not None:
        connection.execute(f"ATTACH '{quoted(file)}' AS gpufare (STORAGE_VERSION '{STORAGE_VERSION}')")
        connection.execute("USE gpufare")
    return connection


def spill_folder(file: Path) -> Path:
    """The folder of what does not fit into memory while a database is written: gone when that is closed, and
    swept with the file itself where it never was."""
    return file.with_suffix(".tmp")


def _memory_limit(connection: duckdb.DuckDBPyConnection) -> str:
    """As DuckDB reads it: $GPUFARE_MEMORY_LIMIT, or a quarter of what the machine or its container has and at
    least 1 GiB. Raises SettingError."""
    asked = os.environ.get(MEMORY_VARIABLE, "").strip()
    if not asked:
        ((most,),) = connection.execute(
            "SELECT parse_formatted_bytes(current_setting('memory_limit'))"
        ).fetchall()
        return f"{min(most, max(LEAST_MEMORY_BYTES, int(most * MEMORY_SHARE / DUCKDB_MEMORY_SHARE)))}B"
    if not re.fullmatch(r"0*[1-9]\d*(\.\d+)? ?[KMGT]i?B", asked, re.IGNORECASE):
        raise SettingError(f"{MEMORY_VARIABLE} is {asked!r}: it must be a number and a unit, such as 2GB")
    return asked


def _temporary_folder() -> str:
    """A folder that DuckDB makes once something does not fit into memory, and removes. Its name is not to be
    guessed by other users. '' where no place is writable: what does not fit is then an error."""
    try:
        return str(Path(tempfile.gettempdir()) / f"gpufare-{secrets.token_hex(8)}")
    except FileNotFoundError:
        return ""


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
