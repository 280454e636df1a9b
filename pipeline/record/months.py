"""The file of a month: a source's rows of many days, and in its metadata which days those are.

A day without rows is known from the metadata alone. ``position`` is a row's place in its day. Of outcomes, of
which a day has a file per attempt, a part of the month is an attempt, and its one row the text of that file.
"""

import json
import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from io import BytesIO
from pathlib import Path, PurePath
from typing import NamedTuple, TypeVar

import polars as pl

from pipeline.home.disk import is_exhaustion

DAYS_KEY = "gpufare:days"
"""The metadata of the file: a JSON list of [day, rows, bytes, mtime_ns], and of outcomes the attempt."""

ROWS_PER_GROUP = 122_880

_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")

ATTEMPT = re.compile(r"\d{8}T\d{6}\.\d{6}Z")
"""The name of an attempt."""

P = TypeVar("P", bound=PurePath)

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


class Part(NamedTuple):
    """What a month's file has of one day, or of outcomes of one attempt: what had a file of its own."""

    day: date
    attempt: str = ""


@dataclass(frozen=True, slots=True)
class MergedPart:
    """A part of a month's file: how many rows it has, and the stamp of its own file when it was merged."""

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


def merged_parts(path: Path) -> Mapping[Part, MergedPart] | None:
    """The parts that a month's file has; None when it is damaged or gone."""
    try:
        return _merged_parts(path, path.stem, stamp_of(path))
    except Exception:  # whatever a damaged file makes its reader raise: whoever reads its rows says what
        return None


@lru_cache(maxsize=100_000)
def _merged_parts(path: Path, month: str, _stamp: Stamp) -> Mapping[Part, MergedPart]:
    rows = json.loads(pl.read_parquet_metadata(path)[DAYS_KEY])
    found = {
        Part(date.fromisoformat(day), *attempt): MergedPart(count, Stamp(size, mtime_ns))
        for day, count, size, mtime_ns, *attempt in rows
    }
    if not {part.day for part in found} <= set(days_of_month(month)):
        raise ValueError("it has days of another month")
    return found


def month_and_part(path: P) -> tuple[P, Part] | None:
    """The file of the month into which a day's or an attempt's own file is merged, and as what; None for the
    name of any other file."""
    is_attempt = ATTEMPT.fullmatch(path.stem) is not None
    own = path.parent if is_attempt else path
    day = day_of(own.name if is_attempt else own.stem)
    if day is None:
        return None
    return own.with_name(f"{day:%Y-%m}.parquet"), Part(day, path.stem if is_attempt else "")


def day_of(text: str) -> date | None:
    """The day that a name says, in the one form in which they are written."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.isoformat() == text else None


def damage_of_month(path: Path, source: str) -> str | None:
    """Why a month's file is damaged; None where all of its rows can be read and are of the source.

    Raises FileNotFoundError, and what ``is_exhaustion`` knows.
    """
    try:
        parts = read_month(path, path.stem).values()
        foreign = {name for rows in parts for name in rows["source"].unique()}
        for rows in parts:
            for text in rows["content"] if "content" in rows.columns else ():
                json.loads(text)
    except FileNotFoundError:
        raise
    except Exception as error:
        if is_exhaustion(error):
            raise
        return (str(error).splitlines() or [type(error).__name__])[0][:200]
    return "it has rows of another source, which is not its place" if foreign - {source} else None


def month_bytes(frames: Mapping[Part, pl.DataFrame], stamps: Mapping[Part, Stamp]) -> bytes:
    """A month's file of the rows of its parts. Columns that only some of them have are null in others."""
    parts = sorted(frames.items())
    rows = pl.concat([frame for _, frame in parts], how="diagonal")
    places = [(*part, position) for part, frame in parts for position in range(frame.height)]
    place = pl.DataFrame(places, schema=_PLACE, orient="row")
    rows = rows.hstack(place.select(*_part_columns(rows), "position"))
    order = [name for name in _ALIKE if name in rows.columns]
    index = [
        (
            f"{part.day}",
            frame.height,
            stamps[part].bytes,
            stamps[part].mtime_ns,
            *filter(None, [part.attempt]),
        )
        for part, frame in parts
    ]
    buffer = BytesIO()
    rows.sort([*order, *_part_columns(rows), "position"]).write_parquet(
        buffer,
        compression="zstd",
        row_group_size=ROWS_PER_GROUP,
        metadata={DAYS_KEY: json.dumps(index, separators=(",", ":"))},
    )
    return buffer.getvalue()


_PLACE = {"day": pl.Date, "attempt": pl.String, "position": pl.Int32}


def _part_columns(rows: pl.DataFrame) -> list[str]:
    """The columns that say which part a row is of. Only texts are of attempts."""
    return ["day", "attempt"] if "content" in rows.columns else ["day"]


def read_month(path: Path, month: str) -> dict[Part, pl.DataFrame]:
    """The rows of each part of a month's file, in their order.

    Raises FileNotFoundError when it is gone, ValueError, KeyError and polars' errors when it is damaged.
    """
    rows = pl.read_parquet(path, glob=False)
    merged = _merged_parts(path, month, stamp_of(path))
    columns = _part_columns(rows)
    parts = (
        rows.sort([*columns, "position"])
        .drop("position")
        .partition_by(columns, as_dict=True, include_key=False, maintain_order=True)
    )
    by_part = {Part(*key): frame for key, frame in parts.items()}
    found = {part: frame.height for part, frame in by_part.items()}
    if found != {part: each.rows for part, each in merged.items() if each.rows}:
        raise ValueError("it has not the rows that its metadata says")
    empty = rows.clear().drop(*columns, "position")
    return {part: by_part.get(part, empty) for part in merged}
