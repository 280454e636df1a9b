"""The file of a month: a source's rows of many days, and in its metadata which days those are.

A day without rows is known from the metadata alone. ``position`` is a row's place in its day.
"""

import json
import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from io import BytesIO
from pathlib import Path

import polars as pl

from pipeline.contracts.disk import is_exhaustion

DAYS_KEY = "gpufare:days"
"""The metadata of the file: a JSON list of [day, rows, bytes, mtime_ns]."""

ROWS_PER_GROUP = 122_880

_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")

_ALIKE = (
    "gpu_id",
    "price_kind",
    "region",
    "raw_label",
    "instance_type",
    "tier",
    "gpu_count",
    "term_days",
    "reason",
    "detail",
)
"""Rows that are alike in these columns are next to each other, by day: so they compress best, and one GPU's
history is read in one go."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The size and the time of change of a file."""

    bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class MergedDay:
    """A day in a month's file: how many rows it has, and the stamp of its own file when it was merged."""

    rows: int
    stamp: Stamp


def stamp_of(path: Path) -> Stamp:
    """The stamp of a file. Raises OSError."""
    status = path.stat()
    return Stamp(status.st_size, status.st_mtime_ns)


def is_month(name: str) -> bool:
    """Whether a name is that of a month: YYYY-MM."""
    return _MONTH.fullmatch(name) is not None


def days_of_month(name: str) -> list[date]:
    """Every day of the month of that name."""
    year, month = map(int, name.split("-"))
    return [date(year, month, day) for day in range(1, monthrange(year, month)[1] + 1)]


def merged_days(path: Path) -> Mapping[date, MergedDay] | None:
    """The days that a month's file has; None when it is damaged or gone."""
    try:
        return _merged_days(path, path.stem, stamp_of(path))
    except Exception:  # whatever a damaged file makes its reader raise: whoever reads its rows says what
        return None


@lru_cache(maxsize=100_000)
def _merged_days(path: Path, month: str, _stamp: Stamp) -> Mapping[date, MergedDay]:
    rows = json.loads(pl.read_parquet_metadata(path)[DAYS_KEY])
    found = {
        date.fromisoformat(day): MergedDay(count, Stamp(size, mtime_ns))
        for day, count, size, mtime_ns in rows
    }
    if not found.keys() <= set(days_of_month(month)):
        raise ValueError("it has days of another month")
    return found


def damage_of_month(path: Path, source: str) -> str | None:
    """Why a month's file is damaged; None where all of its rows can be read and are of the source.

    Raises FileNotFoundError, and what ``is_exhaustion`` knows.
    """
    try:
        foreign = {name for rows in read_month(path, path.stem).values() for name in rows["source"].unique()}
    except FileNotFoundError:
        raise
    except Exception as error:
        if is_exhaustion(error):
            raise
        return (str(error).splitlines() or [type(error).__name__])[0][:200]
    return "it has rows of another source, which is not its place" if foreign - {source} else None


def month_bytes(frames: Mapping[date, pl.DataFrame], stamps: Mapping[date, Stamp]) -> bytes:
    """A month's file of the rows of its days. Columns that only some of the days have are null in others."""
    days = [
        frame.with_columns(day=pl.lit(day), position=pl.int_range(pl.len(), dtype=pl.Int32))
        for day, frame in sorted(frames.items())
    ]
    rows = pl.concat(days, how="diagonal")
    order = [name for name in _ALIKE if name in rows.columns]
    index = [
        (f"{day}", frame.height, stamps[day].bytes, stamps[day].mtime_ns)
        for day, frame in sorted(frames.items())
    ]
    buffer = BytesIO()
    rows.sort([*order, "day", "position"]).write_parquet(
        buffer,
        compression="zstd",
        row_group_size=ROWS_PER_GROUP,
        metadata={DAYS_KEY: json.dumps(index, separators=(",", ":"))},
    )
    return buffer.getvalue()


def read_month(path: Path, month: str) -> dict[date, pl.DataFrame]:
    """The rows of each day of a month's file, in their order.

    Raises FileNotFoundError when it is gone, ValueError, KeyError and polars' errors when it is damaged.
    """
    rows = pl.read_parquet(path, glob=False)
    merged = _merged_days(path, month, stamp_of(path))
    by_day = {
        day: frame.sort("position").drop("day", "position")
        for (day,), frame in rows.partition_by("day", as_dict=True).items()
    }
    found = {day: frame.height for day, frame in by_day.items()}
    if found != {day: each.rows for day, each in merged.items() if each.rows}:
        raise ValueError("it has not the rows that its metadata says")
    empty = rows.clear().drop("day", "position")
    return {day: by_day.get(day, empty) for day in merged}
