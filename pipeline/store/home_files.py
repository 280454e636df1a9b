"""What of a home is kept in a store, where each file's object is, and how it is read.

The record, the archive and what the user made are sent; what is made again from them is not. Only plain files
with plain names are: no link is followed, in the home or out of it.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pipeline.capture.index import INDEX_NAME
from pipeline.contracts.capture import Entry
from pipeline.home.paths import Home
from pipeline.record.months import month_and_part
from pipeline.store.address import StoreError

RECORD_FOLDERS = (
    "offers",
    "rejects",
    "exchange_rates",
    "outcomes",
    "rankings",
    "incidents",
    "digests",
)
"""In the order in which they are sent."""

RECORD_FILES = ("models.csv", "gpus.csv", "workloads.csv", "measured_runs.csv", "permissions.json")
"""Files of the user, at the top of the home."""

NOT_SENT = ("cache", "calibration", "damaged", "published", "report", "store", "demo.json",
            "permissions.lock", "measured_runs.lock", "publish.lock")  # fmt: skip
"""What can be made again, locks, the mark of a demo, and what is sent in its own way: the archive and the
published file."""

BY_SOURCE_AND_DAY = ("offers", "rejects", "outcomes")
"""Folders whose files of one source and day belong together."""

MAX_FILE_BYTES = 512 * 1024**2

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_RECORD = re.compile(
    rf"(?:{'|'.join(map(re.escape, RECORD_FILES))}"
    rf"|(?:{'|'.join(RECORD_FOLDERS)})(?:/{_NAME}){{0,2}}/{_NAME}\.(?:parquet|json|csv|txt))"
)
_CAPTURE = re.compile(r"[a-z0-9_]+/\d{4}-\d\d-\d\d/\d{8}T\d{6}\.\d{6}Z")
_BODY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DAY_OR_MONTH = re.compile(r"\d{4}-\d\d(?:-\d\d)?")


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file of the home: its path in it, and what changes when its content does."""

    path: str
    state: str
    size_bytes: int


def is_record_path(path: str) -> bool:
    """Whether a path is one of a file of the record, and nothing else."""
    return _RECORD.fullmatch(path) is not None and ".." not in path


def is_capture(path: str) -> bool:
    """Whether a path is that of a capture: <source>/<day>/<capture id>."""
    return _CAPTURE.fullmatch(path) is not None


def is_body_name(name: str) -> bool:
    """Whether a body's file may have this name in its capture."""
    return _BODY.fullmatch(name) is not None and name != INDEX_NAME


def record_key(path: str, sha256: str) -> str:
    """The object of a state of a record file: record/offers/runpod/2026-11-22.<hash>.parquet."""
    place = PurePosixPath("record", path)
    return str(place.with_name(f"{place.stem}.{sha256[:16]}{place.suffix}"))


def capture_key(capture: str) -> str:
    """The object of a capture's index."""
    return f"archive/{capture}/{INDEX_NAME}"


def body_key(source: str, entry: Entry) -> str:
    """The object of a body, stored once per source however many captures have it. Raises StoreError when the
    index has no hash of it."""
    if entry.sha256 is None or not re.fullmatch(r"[0-9a-f]{64}", entry.sha256):
        raise StoreError(f"{source}: the index has no SHA-256 of {entry.file}")
    return f"archive/{source}/bodies/{entry.sha256}{'.gz' if str(entry.file).endswith('.gz') else ''}"


def unit_name(path: str) -> str:
    """What a file belongs together with: offers, rejects and outcomes of one source and day or month."""
    parts = PurePosixPath(path).parts
    if parts[0] in BY_SOURCE_AND_DAY and len(parts) > 2:
        period = _DAY_OR_MONTH.match(parts[2])
        return f"{parts[1]} {period[0] if period else parts[2]}"
    return path


def merged_into(path: str) -> str | None:
    """The file of the month that the file of a day or an attempt is merged into once the month is over."""
    place = month_and_part(PurePosixPath(path))
    return str(place[0]) if place else None


def record_files(home: Home) -> Iterator[LocalFile]:
    """The files of the record in a home."""
    for folder in RECORD_FOLDERS:
        if not (home.root / folder).is_symlink():
            yield from _files(home.root, folder)
    for name in RECORD_FILES:
        if found := _local(home.root, name):
            yield found


def _files(root: Path, folder: str) -> Iterator[LocalFile]:
    for entry in _entries(root / folder):
        path = f"{folder}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _files(root, path)
        elif is_record_path(path) and (found := _local(root, path)):
            yield found


def day_folders(home: Home) -> Iterator[tuple[str, str]]:
    """Each <source>/<day> of the archive, and what changes when a capture is added."""
    for source in [] if home.archive.is_symlink() else _entries(home.archive):
        if source.is_dir(follow_symlinks=False):
            for day in _entries(home.archive / source.name):
                if day.is_dir(follow_symlinks=False):
                    yield f"{source.name}/{day.name}", str(day.stat(follow_symlinks=False).st_mtime_ns)


def captures_in(home: Home, day: str) -> list[tuple[str, bool]]:
    """The captures of a <source>/<day>, and whether each is finished."""
    found = [(f"{day}/{each.name}", each) for each in _entries(home.archive / day)]
    return [
        (path, (Path(each.path) / INDEX_NAME).is_file())
        for path, each in found
        if is_capture(path) and each.is_dir(follow_symlinks=False)
    ]


def read_file(root: Path, path: str) -> bytes:
    """A file of the home. Raises StoreError for one that is too large or no plain file, OSError."""
    descriptor = os.open(root / path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise StoreError(f"{root / path} is no plain file")
        if about.st_size > MAX_FILE_BYTES:
            raise StoreError(f"{root / path} has {about.st_size} bytes, more than {MAX_FILE_BYTES}")
        return file.read()


def sha256_of(content: bytes) -> str:
    """The SHA-256 of what a file has, in hex."""
    return hashlib.sha256(content).hexdigest()


def local_file(home: Home, path: str) -> LocalFile | None:
    """One file of the home; None where there is none, or no plain file."""
    return _local(home.root, path)


def _local(root: Path, path: str) -> LocalFile | None:
    try:
        about = (root / path).lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(about.st_mode):
        return None
    state = f"{about.st_size} {about.st_mtime_ns} {about.st_ino}"
    return LocalFile(path, state, about.st_size)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
