"""Offers, rejects and rankings on disk: one Parquet file per source and month (for rankings, per month).

A file is written whole under another name and swapped in, so a reader sees either the new file or the old
one. The rows are ordered by day. The metadata lists each day with the number and the hash of its rows, which
reveals days without rows and days that changed. The metadata also contains a hash of the file itself.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import date
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import polars as pl
from filelock import FileLock

from pipeline.catalog.schema import read_table
from pipeline.home.disk import Stamp, flush, replacing, stamp_of
from pipeline.home.paths import Home
from pipeline.record.damage import Damage, RecordError, readable

_PARQUET_TYPES: Mapping[str, Any] = {
    "VARCHAR": pl.String,
    "BOOLEAN": pl.Boolean,
    "INTEGER": pl.Int32,
    "INTEGER[]": pl.List(pl.Int32),
    "DOUBLE": pl.Float64,
    "DECIMAL(18,8)": pl.Decimal(18, 8),
    "DECIMAL(18,4)": pl.Decimal(18, 4),
    "DECIMAL(9,2)": pl.Decimal(9, 2),
    "DATE": pl.Date,
    "TIMESTAMP WITH TIME ZONE": pl.Datetime("us", "UTC"),
}
"""The polars type for each DuckDB type in the record."""


def _schema(table: str) -> dict[str, Any]:
    """Return the polars types of a published table's columns, except ``day``, in order."""
    columns = read_table(table).described()
    return {column.name: _PARQUET_TYPES[column.type] for column in columns if column.name != "day"}


SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "offers": _schema("offers"),
    "rejects": _schema("rejects"),
    "rankings": _schema("ranking_history"),
}
"""The polars types of each table's columns; a file also contains the column ``day``."""

BY_SOURCE = ("offers", "rejects")
TABLES = tuple(SCHEMAS)

DAYS_KEY = "gpufare:days"
"""Metadata key for a file's days, which are JSON of the form {day: [rows, hash]}."""

JOURNAL = "journal.sqlite"
BESIDE = (JOURNAL, f"{JOURNAL}-journal", "lock")
"""Files beside the tables' folders in the record's folder: the journal, SQLite's second file for the
journal, and the lock."""

SEAL_KEY = "gpufare:sha256"
"""Metadata key for the hash of all the file's bytes, computed with ``_UNSEALED`` in place of the hash
itself."""

_UNSEALED = b"unsealed".ljust(64, b"-")

CACHED_FILES = 4
"""Number of months whose rows are kept in memory, since a reading asks for consecutive days."""

_NAME = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")


T = TypeVar("T")


class Month(NamedTuple):
    """A month of a table; ``name`` is YYYY-MM, and ``source`` is empty for rankings."""

    table: str
    source: str
    name: str

    @classmethod
    def of(cls, table: str, source: str, day: date) -> "Month":
        """Return the month that contains a day."""
        return cls(table, source, f"{day:%Y-%m}")


class SourceDay(NamedTuple):
    """A source ('' for rankings and exchange rates) and a day (UTC)."""

    source: str
    day: date


class Day(NamedTuple):
    """A day in a month's file: the number and the hash of its rows."""

    rows: int
    digest: str


def months(home: Home, table: str, source: str | None = None) -> list[Month]:
    """Return the months of a table that have a file, sorted by source and name."""
    top = home.record / table
    if table not in BY_SOURCE:
        parents = {"": top}
    elif source is not None:
        parents = {source: top / source}
    else:
        parents = {path.name: path for path in _entries(top) if path.is_dir()}
    return sorted(
        Month(table, name, path.stem)
        for name, parent in parents.items()
        for path in _entries(parent)
        if path.suffix == ".parquet" and _NAME.fullmatch(path.stem)
    )


def file_of(home: Home, month: Month) -> Path:
    """Return the path of a month's file."""
    return home.record / month.table / month.source / f"{month.name}.parquet"


def days_of(home: Home, month: Month) -> Mapping[date, Day]:
    """Return the days in a month's file; empty if there is no file. Raises RecordError."""
    return _read(home, month, _days)


def rows_of(home: Home, month: Month) -> Mapping[date, pl.DataFrame]:
    """Return the rows of each day in a month's file, without the column ``day``; empty if there is no file.

    Raises RecordError for a file that is not intact, or that belongs to another source or month.
    """
    return _read(home, month, _rows)


def _read(
    home: Home, month: Month, read: Callable[[Path, Month, Stamp], Mapping[date, T]]
) -> Mapping[date, T]:
    path = file_of(home, month)
    with readable(path, month.table, month.source), suppress(FileNotFoundError):
        if (stamp := stamp_of(path)) is not None:
            return read(path, month, stamp)
    return {}


def damage_of(home: Home, month: Month) -> Damage | None:
    """Read a month's whole file and return its damage; None if the file is sound."""
    try:
        rows_of(home, month)
    except RecordError as error:
        return error.damage
    return None


def write_days(home: Home, month: Month, rows: Mapping[date, pl.DataFrame]) -> None:
    """Replace the rows of some days in the file of their month.

    Raises UnwritableError, leaving the file as it was, and RecordError if the file is damaged.
    """
    path = file_of(home, month)
    with lock(home):
        frames = {**rows_of(home, month), **rows}
        days = {
            **days_of(home, month),
            **{day: Day(each.height, _digest(each)) for day, each in rows.items()},
        }
        content = _content(frames, days)
        with replacing(path) as temporary:
            temporary.write_bytes(content)
        flush(path.parent)


def remove_source(home: Home, source: str) -> None:
    """Remove a source's months. Raises OSError."""
    with lock(home):
        for table in BY_SOURCE:
            for month in months(home, table, source):
                file_of(home, month).unlink(missing_ok=True)


def lock(home: Home) -> AbstractContextManager[object]:
    """Return the lock to hold while months' files are written, or are read by name more than once."""
    home.record.mkdir(parents=True, exist_ok=True)
    return FileLock(home.record / "lock", is_singleton=True)


def strays(home: Home) -> list[Path]:
    """Return the files and folders in the record's folder that do not belong to the record."""
    known = {home.record / name for name in (*TABLES, *BESIDE)}
    known |= {file_of(home, month) for table in TABLES for month in months(home, table)}
    known |= {path for table in BY_SOURCE for path in _entries(home.record / table) if path.is_dir()}
    found = _entries(home.record)
    found += (
        path
        for table in TABLES
        for top in [home.record / table]
        for path in [*_entries(top), *(e for p in _entries(top) if p.is_dir() for e in _entries(p))]
    )
    return sorted(set(found) - known)


def _entries(folder: Path) -> list[Path]:
    """Return the entries of a folder, except files being written; an empty list if there is no folder."""
    try:
        return [path for path in folder.iterdir() if not path.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _content(frames: Mapping[date, pl.DataFrame], days: Mapping[date, Day]) -> bytes:
    """Return the content of a month's file, made in memory because polars reports a full disk poorly."""
    rows = pl.concat(
        [frame.with_columns(day=pl.lit(day)) for day, frame in sorted(frames.items())],
        how="diagonal_relaxed",
    )
    index = {f"{day}": list(days[day]) for day in sorted(days)}
    buffer = BytesIO()
    rows.write_parquet(
        buffer,
        compression="zstd",
        metadata={DAYS_KEY: json.dumps(index, separators=(",", ":")), SEAL_KEY: _UNSEALED.decode()},
    )
    unsealed = buffer.getvalue()
    return unsealed.replace(_UNSEALED, hashlib.sha256(unsealed).hexdigest().encode())


def _digest(rows: pl.DataFrame) -> str:
    """Return a hash of a day's rows, which shows whether the day changed."""
    buffer = BytesIO()
    rows.write_ndjson(buffer)
    return hashlib.sha256(buffer.getbuffer()).hexdigest()[:16]


@lru_cache(maxsize=100_000)
def _days(path: Path, month: Month, _stamp: Stamp) -> Mapping[date, Day]:
    return _index(pl.read_parquet_metadata(path)[DAYS_KEY], month.name)


def _index(text: str, name: str) -> Mapping[date, Day]:
    found = {date.fromisoformat(day): Day(rows, digest) for day, (rows, digest) in json.loads(text).items()}
    if foreign := [day for day in found if f"{day:%Y-%m}" != name]:
        raise ValueError(f"it lists {foreign[0]}, which is in another month")
    return found


@lru_cache(maxsize=CACHED_FILES)
def _rows(path: Path, month: Month, _stamp: Stamp) -> Mapping[date, pl.DataFrame]:
    content = path.read_bytes()  # the same file throughout, even if it is replaced meanwhile
    metadata = pl.read_parquet_metadata(BytesIO(content))
    index, seal = _index(metadata[DAYS_KEY], month.name), metadata[SEAL_KEY]
    if hashlib.sha256(content.replace(seal.encode(), _UNSEALED)).hexdigest() != seal:
        raise ValueError("its bytes are not those that were written")
    rows = pl.read_parquet(BytesIO(content))
    if month.source and (foreign := set(rows["source"].unique()) - {month.source}):
        raise ValueError(f"it has rows of {', '.join(sorted(map(str, foreign)))}, another source")
    by_day = {day: frame.drop("day") for (day,), frame in rows.partition_by("day", as_dict=True).items()}
    empty = rows.clear().drop("day")
    return {day: by_day.get(day, empty) for day in index}
