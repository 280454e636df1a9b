"""Opens databases in UTC, without a progress bar, within a share of the machine's memory, and never over a
network."""

import atexit
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pipeline.contracts.errors import GpufareError
from pipeline.warehouse.engine import duckdb

STORAGE_VERSION = "v1.2.0"
"""The oldest version of DuckDB that can open the published file. The macros also run in older versions than
this project's, from 1.4 on (docs/how-to/sql-and-bi.md)."""

MEMORY_VARIABLE = "GPUFARE_MEMORY_LIMIT"

MEMORY_SHARE = 0.25
LEAST_MEMORY_BYTES = 2**30
DUCKDB_MEMORY_SHARE = 0.8
"""The share of the machine's or container's memory that DuckDB takes by default."""


class SettingError(GpufareError):
    """A setting in the environment is invalid; the message names it and the valid values."""


def connect(file: Path | None = None) -> duckdb.DuckDBPyConnection:
    """Connect to a database file, creating it if missing, or to a database in memory; never over a network.

    Data beyond the memory limit spills to ``spill_folder`` or, without a file, to the system's folder for
    temporary files. Raises SettingError.
    """
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    )
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET memory_limit = '{_memory_limit(connection)}'")
    folder = _temporary_folder() if file is None else path_for_duckdb(spill_folder(file))
    connection.execute("SET temp_directory = ?", [folder])
    if file is not None:
        connection.execute(f"ATTACH '{quoted(file)}' AS gpufare (STORAGE_VERSION '{STORAGE_VERSION}')")
        connection.execute("USE gpufare")
    return connection


def spill_folder(file: Path) -> Path:
    """Return the folder to which data beyond the memory limit spills. DuckDB removes the folder on closing;
    after a crash, the folder is swept together with the file."""
    return file.with_suffix(".tmp")


def _memory_limit(connection: duckdb.DuckDBPyConnection) -> str:
    """Return the memory limit in DuckDB's notation: $GPUFARE_MEMORY_LIMIT, or a quarter of the machine's or
    container's memory, but at least 1 GiB. Raises SettingError."""
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
    """Return a folder for DuckDB to spill to, with a name that other users cannot guess; '' if no place is
    writable, so that exceeding the memory limit is an error."""
    try:
        return str(Path(tempfile.gettempdir()) / f"gpufare-{secrets.token_hex(8)}")
    except FileNotFoundError:
        return ""


def quoted(path: Path) -> str:
    """Return a path that DuckDB can open, escaped for use within single quotes in SQL."""
    return path_for_duckdb(path).replace("'", "''")


def path_for_duckdb(path: Path) -> str:
    """Return a path that DuckDB takes literally: the path itself, or one through a link to its folder.

    DuckDB reads a backslash as a slash, expands ``*``, ``?`` and ``[`` in the paths of files that it reads,
    and accepts only UTF-8.
    """
    whole = path.absolute()
    return str(_link_to(whole.parent) / whole.name if _MISREAD.search(str(whole.parent)) else whole)


_MISREAD = re.compile(r"[?*\[\\\ud800-\udfff]")


def place_to_build(file: Path, name: str) -> Path:
    """Return where DuckDB can write a database that then replaces ``file``: under this name in the same
    folder, or in a new one. DuckDB puts the suffix of its log before the first ``?`` of a path, even if a
    link hides it."""
    if "?" not in str(file.parent.resolve()):
        return file.with_name(name)
    return _own_folder() / name


def _own_folder() -> Path:
    """Make a folder for temporary files that lasts until this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="gpufare-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _link_to(folder: Path) -> Path:
    link = _own_folder() / "folder"
    link.symlink_to(folder)
    return link


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Commit all statements within the block, or none of them."""
    connection.begin()
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()
