"""Which files make up the record, by folder, source and day; what does not belong there; what is damaged.

Day files of months that are over are merged into one file a month (see compaction). A day's own file wins
over its month's.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pipeline.contracts.paths import Home
from pipeline.offers.months import Stamp, days_of_month, is_month, merged_days, stamp_of

SOURCE_FOLDERS = {"offers": ".parquet", "rejects": ".parquet", "outcomes": ".json"}
"""Folders with a folder per source, and the ending of their files."""

DAY_FOLDERS = {"exchange_rates": ".json", "rankings": ".parquet"}
"""Folders with a file per day."""

EVERYTHING = "*"
"""Stands for the content of a folder that cannot be listed."""

_ATTEMPT = re.compile(r"\d{8}T\d{6}\.\d{6}Z")


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A day of the record, and the file that has it. ``attempt`` is '' but for outcomes of one attempt of
    several.

    A month's file has many days: ``month`` is then its name (YYYY-MM), and ``merged`` the stamp of the day's
    own file when it was merged, None when the month's file is damaged so that its days are not known: then it
    is listed for every day of the month.
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
    found = [each for each in _listed(home, folder, source, day) if isinstance(each, RecordFile)]
    return sorted(
        (file for file in found if day in (None, file.day)),
        key=lambda file: (file.source or "", file.day, file.attempt),
    )


def record_file(home: Home, folder: str, source: str, day: date) -> RecordFile:
    """The file with a source's offers or rejects of a day. Raises FileNotFoundError."""
    parent = home.root / folder / source
    path = parent / f"{day}{SOURCE_FOLDERS[folder]}"
    if path.exists():
        return RecordFile(path, folder, day, source)
    month = path.with_stem(f"{day:%Y-%m}")
    for file in _days_in(month, folder, source) if month.exists() else ():
        if file.day == day:
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
) -> Iterator[RecordFile | Path]:
    """The files of a folder, and as paths what does not belong in it. With a day, not all of other days."""
    top = home.root / folder
    if folder in DAY_FOLDERS:
        yield from _days(top, folder, DAY_FOLDERS[folder], None)
        return
    for entry in _entries(top) if source is None else [top / source]:
        if not entry.is_dir():
            if entry.exists():
                yield entry
        elif folder == "outcomes":
            yield from _outcomes(entry, day)
        else:
            yield from _days(entry, folder, SOURCE_FOLDERS[folder], entry.name)


def _days(parent: Path, folder: str, ending: str, source: str | None) -> Iterator[RecordFile | Path]:
    own, months = set(), []
    for path in _entries(parent):
        name = path.name.removesuffix(ending) if path.name.endswith(ending) else ""
        if source is not None and is_month(name):
            months.append(path)
        elif (day := _day(name)) is not None:
            own.add(day)
            yield RecordFile(path, folder, day, source)
        else:
            yield path
    for path in months:
        yield from (file for file in _days_in(path, folder, source) if file.day not in own)


def _days_in(path: Path, folder: str, source: str | None) -> Iterator[RecordFile]:
    """The days that a month's file has; all of the month when nobody can tell."""
    month = path.stem
    merged = merged_days(path)
    for day in days_of_month(month) if merged is None else merged:
        stamp = merged[day].stamp if merged else None
        yield RecordFile(path, folder, day, source, month=month, merged=stamp)


def _outcomes(parent: Path, only: date | None) -> Iterator[RecordFile | Path]:
    """Earlier versions kept one file per day in place of a folder."""
    for path in _entries(parent):
        day = _day(path.name.removesuffix(".json"))
        if day is None:
            yield path
        elif path.name.endswith(".json"):
            yield RecordFile(path, "outcomes", day, parent.name)
        elif only not in (None, day):
            continue
        elif path.is_dir():
            for file in _entries(path):
                known = file.suffix == ".json" and _ATTEMPT.fullmatch(file.stem)
                yield RecordFile(file, "outcomes", day, parent.name, file.stem) if known else file
        else:
            yield path


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


def _day(text: str) -> date | None:
    """The day that a name says, in the one form in which they are written."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.isoformat() == text else None
