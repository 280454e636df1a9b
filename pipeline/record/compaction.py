"""Merges the files of months that are over into one file a month: the same rows in less space.

A month's file is written whole and read back before any other file is deleted. As the own file of a day or an
attempt wins over its month's rows, nothing is counted twice after a crash in between, and a day that is read
again later is right at once; the next compaction merges it.
"""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import polars as pl
from pydantic import BaseModel

from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.home.disk import UnwritableError, disk_error, flush, is_exhaustion, replacing, size_text
from pipeline.home.paths import Home
from pipeline.home.publishing_lock import publishing_lock
from pipeline.record.months import (
    Part,
    Stamp,
    days_of_month,
    merged_parts,
    month_and_part,
    month_bytes,
    read_month,
    stamp_of,
)
from pipeline.record.record_files import MERGED_FOLDERS, Damage, RecordFile, own_and_months
from pipeline.record.records import RecordError, Records, parquet_schema

SETTLED_DAYS = 10
"""So long after its end a month is merged: by then hardly any of its days is read again."""

FEWEST_FILES = 2
"""One file of a month is left as it is: merging it saves nothing."""

CONTRACTS: Mapping[str, type[BaseModel]] = {"offers": Offer, "rejects": RejectedRow}
"""Folders whose files are rows; those of the others are texts, which are kept to the letter."""


@dataclass(slots=True)
class Compaction:
    """What was merged: months of a source, files of days and attempts and their size before and after.
    ``left`` are files that could not be read and stay as they are."""

    months: int = 0
    files: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    left: list[Damage] = field(default_factory=list)

    def line(self) -> str:
        """In one line for people; '' when there was nothing to do."""
        parts = []
        if self.files:
            sizes = f"{size_text(self.bytes_before)} are now {size_text(self.bytes_after)}"
            parts.append(f"merged {self.files} files into {self.months} of months: {sizes}")
        if self.left:
            first = self.left[0]
            such = f"such as {first.file.path.name} of {first.file.source}: {first.reason}"
            parts.append(f"{len(self.left)} files of past months stay as they are, {such}")
        return "; ".join(parts)


def mergeable(home: Home, today: date) -> dict[tuple[str, str, str], list[RecordFile]]:
    """The files of days and attempts to merge, by folder, source and month (YYYY-MM). Outcomes without an
    attempt, as earlier versions kept them, are left: a later reading may replace them."""
    found = defaultdict(list)
    with_month = set()
    for folder in MERGED_FOLDERS:
        own, months = own_and_months(home, folder)
        with_month |= {(folder, month.source or "", month.name) for month in months}
        for file in sorted(own, key=lambda file: (file.source or "", file.part)):
            month = f"{file.day:%Y-%m}"
            is_settled = days_of_month(month)[-1] + timedelta(days=SETTLED_DAYS) < today
            if is_settled and (folder != "outcomes" or file.attempt):
                found[folder, file.source or "", month].append(file)
    return {key: files for key, files in found.items() if len(files) >= FEWEST_FILES or key in with_month}


def compact(home: Home, today: date, done: Compaction) -> None:
    """Merge what can be merged as of ``today`` (UTC), and say in ``done`` what was. Waits while somebody else
    publishes, and only then looks what there is to do.

    Raises UnwritableError; what was merged until then stays, and a later call goes on.
    """
    if not mergeable(home, today) and not _taken_out(home):
        return
    with publishing_lock(home):
        for taken in _taken_out(home):
            _remove_taken(taken)
        for (folder, source, month), files in mergeable(home, today).items():
            try:
                _merge(home, folder, source, month, files, done)
            except OSError as error:
                raise UnwritableError(Path(error.filename or home.root / folder / source), error) from error


def _merge(
    home: Home, folder: str, source: str, month: str, files: list[RecordFile], done: Compaction
) -> None:
    path = home.root / folder / source / f"{month}.parquet"
    try:
        frames, stamps = _kept_parts(path, month)
    except Exception as error:
        _raise_exhaustion(error)
        done.left.append(Damage(files[0], f"the file of its month cannot be read ({_reason(error)})"))
        return
    before = stamp_of(path).bytes if frames else 0
    merged = []
    for file in files:
        try:
            stamp, rows = stamp_of(file.path), _rows(Records(home), file)
        except FileNotFoundError:
            continue
        except Exception as error:
            _raise_exhaustion(error)
            done.left.append(Damage(file, _reason(error)))
        else:
            stamps[file.part], frames[file.part] = stamp, rows
            merged.append(file)
    if not merged:
        return
    try:
        _write(path, month, frames, stamps)
    except ValueError as error:
        done.left.append(Damage(files[0], str(error)))
        return
    for file in merged:
        _remove(file, stamps[file.part])
    done.months += 1
    done.files += len(merged)
    done.bytes_before += before + sum(stamps[file.part].bytes for file in merged)
    done.bytes_after += stamp_of(path).bytes


def _kept_parts(path: Path, month: str) -> tuple[dict[Part, pl.DataFrame], dict[Part, Stamp]]:
    """The rows and stamps of a month's file, none when there is none."""
    if not path.exists():
        return {}, {}
    frames, merged = read_month(path, month), merged_parts(path)
    if merged is None:
        raise ValueError("its days are not known")
    return frames, {part: each.stamp for part, each in merged.items()}


def _rows(records: Records, file: RecordFile) -> pl.DataFrame:
    """A file's rows in the types of today, or its text. Raises RecordError or ValueError for a file that not
    every reader can read: it stays alone, so that it spoils no month."""
    records.check(file)
    if file.folder not in CONTRACTS:
        return pl.DataFrame({"source": [file.source or ""], "content": [records.text(file)]})
    written = records.frame(file)
    types = parquet_schema(CONTRACTS[file.folder])
    if all(types.get(name) == kind for name, kind in written.schema.items()):
        return written
    rows = written.cast({name: types[name] for name in written.columns})
    if not rows.cast(written.schema).equals(written):
        raise ValueError("its columns have not the types of the record")
    return rows


def _write(path: Path, month: str, frames: Mapping[Part, pl.DataFrame], stamps: Mapping[Part, Stamp]) -> None:
    """Write a month's file and read it back. Raises UnwritableError, and ValueError when it differs."""
    with replacing(path) as temporary:
        temporary.write_bytes(month_bytes(frames, stamps))
        flush(temporary)
        kept = read_month(temporary, month)
        for part, rows in frames.items():
            if not (rows.equals(kept[part]) or _in_shape(rows, kept[part]).equals(kept[part])):
                raise ValueError(f"{part.day} is not the same when it is read back")
    flush(path.parent)


def _in_shape(rows: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """With the columns that only the other has, which are null."""
    return pl.concat([other.clear(), rows], how="diagonal")


_TAKEN_OUT = ".merged.tmp"
"""What the name of a file that is about to be deleted ends with, after a dot before it: readers ignore it."""


def _remove(file: RecordFile, stamp: Stamp) -> None:
    """Delete a merged file, unless the day was read again meanwhile: then it stays and wins.

    It is renamed before its stamp is compared, so that no other file can come in its place in between.
    """
    taken = file.path.with_name(f".{file.path.name}{_TAKEN_OUT}")
    try:
        if stamp_of(file.path) == stamp:
            file.path.rename(taken)
            _remove_taken(taken)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UnwritableError(file.path, error) from error


def _taken_out(home: Home) -> list[Path]:
    """The files that were taken out to be deleted, and are there still after a crash."""
    patterns = {"exchange_rates": "", "outcomes": "*/*/"}
    found = (
        path
        for folder in MERGED_FOLDERS
        for path in (home.root / folder).glob(f"{patterns.get(folder, '*/')}.*{_TAKEN_OUT}")
    )
    return sorted(path for path in found if month_and_part(_place_of(path)) is not None)


def _place_of(taken: Path) -> Path:
    return taken.with_name(taken.name.removeprefix(".").removesuffix(_TAKEN_OUT))


def _remove_taken(taken: Path) -> None:
    """Delete a file that was taken out where its month has it; otherwise put it back, over none that is there
    by now. Raises UnwritableError."""
    path = _place_of(taken)
    if (place := month_and_part(path)) is None:
        return
    month, part = place
    try:
        merged = (merged_parts(month) or {}).get(part)
        if merged is None or merged.stamp != stamp_of(taken):
            with suppress(FileExistsError):  # the day was read once more: that file wins
                path.hardlink_to(taken)
                flush(path.parent)
        taken.unlink()
        if part.attempt:
            with suppress(OSError):  # the day has other attempts
                path.parent.rmdir()
    except OSError as error:
        raise UnwritableError(path, error) from error


def _reason(error: Exception) -> str:
    if isinstance(error, RecordError):
        return error.damage.reason
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _raise_exhaustion(error: Exception) -> None:
    """Go on for what is wrong with a file, and for nothing else."""
    if is_exhaustion(error) or (isinstance(error, OSError) and disk_error(error) is not None):
        raise error
