"""Which files make up the record, by folder, source and day; what does not belong there; what is damaged.

Files of months that are over are merged into one file a month (see compaction). A day's or an attempt's own
file wins over its month's.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pipeline.home.paths import Home
from pipeline.record.months import (
    ATTEMPT,
    Part,
    Stamp,
    day_of,
    days_of_month,
    is_month,
    merged_parts,
    stamp_of,
)

SOURCE_FOLDERS = {"offers": ".parquet", "rejects": ".parquet", "outcomes": ".json"}
"""Folders with a folder per source, and the ending of their files."""

DAY_FOLDERS = {"exchange_rates": ".json", "rankings": ".parquet"}
"""Folders with a file per day."""

_ENDINGS = SOURCE_FOLDERS | DAY_FOLDERS

MERGED_FOLDERS = ("offers", "rejects", "outcomes", "exchange_rates")
"""Folders whose months become one file each. Rankings do not: one that is lost cannot be made again."""

EVERYTHING = "*"
"""Stands for the content of a folder that cannot be listed."""


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A day of the record, and the file that has it. ``attempt`` is '' but for outcomes of one attempt of
    several.

    A month's file has many of these: ``month`` is then its name (YYYY-MM), and ``merged`` the stamp of the
    own file when it was merged, None when the month's file is damaged so that its parts are not known: then
    it is listed for every day of the month.
    """

    path: Path
    folder: str
    day: date
    source: str | None = None
    attempt: str = ""
    month: str = ""
    merged: Stamp | None = None

    def stamp(self) -> Stamp:
        """Changes when what is recorded of the day may have changed, not when it is merged into its month.

        Raises FileNotFoundError.
        """
        return self.merged or stamp_of(self.path)

    @property
    def part(self) -> Part:
        """What it is of a month."""
        return Part(self.day, self.attempt)


@dataclass(frozen=True, slots=True)
class MonthFile:
    """The file of a month: ``name`` is YYYY-MM."""

    path: Path
    folder: str
    source: str | None
    name: str

    def parts(self) -> Iterator[RecordFile]:
        """What it has; every day of the month when nobody can tell. Opens the file."""
        merged = merged_parts(self.path)
        if merged is None:
            for day in days_of_month(self.name):
                yield RecordFile(self.path, self.folder, day, self.source, month=self.name)
        for part, each in (merged or {}).items():
            yield RecordFile(
                self.path, self.folder, part.day, self.source, part.attempt, self.name, each.stamp
            )


@dataclass(frozen=True, slots=True)
class Damage:
    """A file of the record that cannot be read, or is gone, and why."""

    file: RecordFile
    reason: str
    missing: bool = False


def record_files(
    home: Home, folder: str, source: str | None = None, day: date | None = None
) -> list[RecordFile]:
    """The files of a folder of the record (of one source, of one day), by source and day; nothing that is not
    one."""
    own, months = own_and_months(home, folder, source, day)
    found = [*own, *parts_besides(own, months)]
    return sorted(
        (file for file in found if day in (None, file.day)),
        key=lambda file: (file.source or "", file.day, file.attempt),
    )


def own_and_months(
    home: Home, folder: str, source: str | None = None, day: date | None = None
) -> tuple[list[RecordFile], list[MonthFile]]:
    """The days' own files and the months' files of a folder (of one source, and not all of other days), of
    which none is opened."""
    listed = list(_listed(home, folder, source, day))
    months = [each for each in listed if isinstance(each, MonthFile)]
    if day is not None:
        months = [month for month in months if month.name == f"{day:%Y-%m}"]
    return [each for each in listed if isinstance(each, RecordFile)], months


def parts_besides(own: Collection[RecordFile], months: Collection[MonthFile]) -> Iterator[RecordFile]:
    """What months' files have that has no file of its own."""
    taken = {(file.folder, file.source, file.part) for file in own}
    for month in months:
        yield from (file for file in month.parts() if (file.folder, file.source, file.part) not in taken)


def record_file(home: Home, folder: str, source: str | None, day: date, attempt: str = "") -> RecordFile:
    """The file with a source's offers or rejects of a day, the outcome of an attempt, or a day's exchange
    rates. Raises FileNotFoundError."""
    parent = home.root / folder / (source or "")
    ending = _ENDINGS[folder]
    path = parent / f"{day}" / f"{attempt}{ending}" if attempt else parent / f"{day}{ending}"
    if path.exists():
        return RecordFile(path, folder, day, source, attempt)
    month = MonthFile(parent / f"{day:%Y-%m}.parquet", folder, source, f"{day:%Y-%m}")
    for file in month.parts() if month.path.exists() else ():
        if file.part == (day, attempt):
            return file
    raise FileNotFoundError(str(path))


def stray_files(home: Home) -> list[Path]:
    """Files and folders of the record's folders that are not part of it; ``EVERYTHING`` in a folder that
    cannot be listed."""
    return sorted(
        each
        for folder in (*SOURCE_FOLDERS, *DAY_FOLDERS)
        for each in _listed(home, folder)
        if isinstance(each, Path)
    )


def set_aside(home: Home, path: Path) -> Path:
    """Move a damaged file of the home under ``damaged``, over no earlier one; returns its new place.

    Raises OSError when it cannot be moved, FileNotFoundError when it is gone.
    """
    place = home.damaged / path.relative_to(home.root)
    number = 1
    while place.exists() or place.is_symlink():
        number += 1
        place = place.with_name(f"{path.name}.{number}")
    place.parent.mkdir(parents=True, exist_ok=True)
    return path.rename(place)


def _listed(
    home: Home, folder: str, source: str | None = None, day: date | None = None
) -> Iterator[RecordFile | MonthFile | Path]:
    """The files of a folder, and as paths what does not belong in it. With a day, not all of other days."""
    top = home.root / folder
    if folder in DAY_FOLDERS:
        yield from _entries_of(top, folder, None, day)
        return
    for entry in _entries(top) if source is None else [top / source]:
        if entry.is_dir():
            yield from _entries_of(entry, folder, entry.name, day)
        elif entry.exists():
            yield entry


def _entries_of(
    parent: Path, folder: str, source: str | None, only: date | None
) -> Iterator[RecordFile | MonthFile | Path]:
    """What is in a folder of days and months. Earlier versions kept one outcome per day in place of a folder
    of attempts."""
    ending = _ENDINGS[folder]
    for path in _entries(parent):
        name, suffix = path.stem, path.suffix
        if suffix == ".parquet" and folder in MERGED_FOLDERS and is_month(name):
            yield MonthFile(path, folder, source, name)
        elif suffix == ending and (day := day_of(name)) is not None:
            yield RecordFile(path, folder, day, source)
        elif folder == "outcomes" and (day := day_of(path.name)) is not None:
            if only in (None, day):
                yield from _attempts(path, day, source)
        else:
            yield path


def _attempts(parent: Path, day: date, source: str | None) -> Iterator[RecordFile | Path]:
    if not parent.is_dir():
        yield parent
    for file in _entries(parent):
        known = file.suffix == ".json" and ATTEMPT.fullmatch(file.stem)
        yield RecordFile(file, "outcomes", day, source, file.stem) if known else file


def _entries(folder: Path) -> list[Path]:
    """What is in a folder, without files that are being written; nothing when there is no folder."""
    try:
        return [
            path for path in folder.iterdir() if not (path.name.startswith(".") and path.suffix == ".tmp")
        ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        return [folder / EVERYTHING]
