"""What is exchanged with a lake: a source's day of the record, whole, or a day's exchange rates and ranking.

A unit has a frame per folder of the record. Its digest is of the values, not of the bytes of files: it is the
same after a way through the lake, which is how a pulled unit is checked.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl
from pydantic import BaseModel

from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.home.disk import replacing
from pipeline.home.paths import Home
from pipeline.record.record_files import (
    DAY_FOLDERS,
    MERGED_FOLDERS,
    SOURCE_FOLDERS,
    RecordFile,
    record_files,
)
from pipeline.record.records import Records, parquet_schema

Frames = Mapping[str, pl.DataFrame]
"""By folder of the record."""

_CONTRACTS: Mapping[str, type[BaseModel]] = {"offers": Offer, "rejects": RejectedRow}

_TEXTS = ("outcomes", "exchange_rates")
"""Folders of JSON files, which are kept to the letter."""

RANKINGS = "rankings"

PLACE = ("unit", "position")
"""Columns of every table of the lake that are of no file: the unit, and the row's place in it."""


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """A source's day; ``source`` is '' for what a day has of no source, its exchange rates or its ranking."""

    source: str
    day: date
    is_ranking: bool = False

    @property
    def name(self) -> str:
        """As the lake has it."""
        return f"/ranking/{self.day}" if self.is_ranking else f"{self.source}/{self.day}"


def units_of(home: Home, since: date) -> dict[Unit, list[RecordFile]]:
    """The units of a home since a day, and their files."""
    found: dict[Unit, list[RecordFile]] = defaultdict(list)
    for folder in (*SOURCE_FOLDERS, *DAY_FOLDERS):
        for file in record_files(home, folder):
            if file.day >= since:
                found[Unit(file.source or "", file.day, folder == RANKINGS)].append(file)
    return dict(sorted(found.items()))


def records_of(home: Home) -> Mapping[str, Records]:
    """Readers by folder: each remembers the month that it read last."""
    return {folder: Records(home) for folder in MERGED_FOLDERS}


def read_unit(files: Sequence[RecordFile], records: Mapping[str, Records]) -> Frames:
    """The content of a unit's files. Raises what a damaged file makes its reader raise."""
    texts: dict[str, list[RecordFile]] = defaultdict(list)
    frames = {}
    for file in files:
        if file.folder in _TEXTS:
            texts[file.folder].append(file)
        elif file.folder in records:
            frames[file.folder] = _in_shape(file.folder, records[file.folder].frame(file))
        else:
            frames[file.folder] = pl.read_parquet(file.path, glob=False)
    for folder, ours in texts.items():
        rows = [(file.attempt, records[folder].text(file)) for file in ours]
        frames[folder] = pl.DataFrame(
            sorted(rows), schema={"attempt": pl.String, "content": pl.String}, orient="row"
        )
    return frames


def _in_shape(folder: str, frame: pl.DataFrame) -> pl.DataFrame:
    """With the columns and types of today's contract; those of earlier versions lack some, which are null."""
    if folder not in _CONTRACTS:
        return frame
    schema = parquet_schema(_CONTRACTS[folder])
    return frame.select(
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in schema.items()
    )


def newest_attempt(frames: Frames) -> str:
    """Of a source's day; '' where there is none, or one of an earlier version."""
    return max(frames["outcomes"]["attempt"], default="") if "outcomes" in frames else ""


def digest_of(frames: Frames) -> str:
    """A hash of the values; columns without one do not count."""
    hashed = hashlib.sha256()
    for folder in sorted(frames):
        frame = frames[folder]
        hashed.update(f"{folder} {frame.height}\n".encode())
        for name in sorted(frame.columns):
            if frame[name].null_count() < frame.height:
                hashed.update(f"{name} {_plain(frame[name]).to_list()!r}\n".encode())
    return hashed.hexdigest()


def _plain(values: pl.Series) -> pl.Series:
    """In types whose Python values are written the same whatever the version."""
    if isinstance(values.dtype, pl.Datetime):
        return values.dt.epoch("us")
    if isinstance(values.dtype, pl.Date):
        return values.dt.epoch("d")
    if isinstance(values.dtype, pl.Decimal):
        return values.cast(pl.String)
    return values.cast(pl.Float64) if values.dtype.is_float() else values


def rows_for_lake(unit: Unit, frames: Frames) -> Frames:
    """With the unit, the row's place in it, and what else people ask by."""
    found = {}
    for folder, frame in frames.items():
        added = {"day": pl.lit(unit.day), "source": pl.lit(unit.source or None, pl.String)}
        found[folder] = frame.with_columns(
            pl.lit(unit.name).alias("unit"),
            pl.int_range(pl.len(), dtype=pl.Int32).alias("position"),
            *(value.alias(name) for name, value in added.items() if name not in frame.columns),
        )
    return found


def frames_from_lake(rows: Frames, unit: Unit, folders: Sequence[str]) -> Frames:
    """The frames of a unit out of those of many. A folder without rows has an empty frame."""
    frames = {}
    for folder in folders:
        frame = rows[folder].filter(pl.col("unit") == unit.name).sort("position").drop(PLACE)
        if folder in _TEXTS:
            frames[folder] = frame.select("attempt", "content")
        else:
            frames[folder] = _in_shape(folder, frame)
    return frames


def write_unit(home: Home, unit: Unit, frames: Frames) -> None:
    """Write the files of a unit, each whole or not at all. Raises UnwritableError."""
    for folder, frame in frames.items():
        top = home.root / folder / unit.source if unit.source else home.root / folder
        if folder in _TEXTS:
            for attempt, content in frame.iter_rows():
                _write_text(
                    top / f"{unit.day}" / f"{attempt}.json" if attempt else top / f"{unit.day}.json", content
                )
        else:
            with replacing(top / f"{unit.day}.parquet") as temporary:
                frame.write_parquet(temporary)


def _write_text(path: Path, content: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(content, encoding="utf-8")
