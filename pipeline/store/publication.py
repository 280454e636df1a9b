"""A publication in a bucket, and the pointer to the newest one.

    published/database-2026-11-22-<hash>/gpufare.duckdb      immutable, like everything below published/
    published/page-2026-11-22-<hash>/index.html
    published/parquet-2026-11-22-<hash>/datapackage.json     and the files that it names
    newest.json                                              names these files; replaced last

A refresh sends the database; ``gpufare store publish`` can add the page and the Parquet files. The pointer is
replaced only if no other process has replaced it in the meantime, and never by an older publication.
"""

import hashlib
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from pipeline.contracts.progress import Progress, Step, no_progress
from pipeline.home.paths import Home, command_to_install
from pipeline.store.address import STORE_VARIABLE, StoreError
from pipeline.warehouse.query import ask, reader

if TYPE_CHECKING:
    from pipeline.store.bucket import Bucket, Version

POINTER = "newest.json"
NAME = r"^published/[a-z]+-\d{4}-\d\d-\d\d-[0-9a-f]{16}/[a-z]+\.(duckdb|html|json)$"
MAX_POINTER_BYTES = 64 * 1024
POINTER_TRIES = 20
FILES_AT_ONCE = 8

Writer = Callable[[Home, Path], Path]
"""Writes a part into a folder, from a home with just the published file; returns the file to open first."""


class StoredFile(BaseModel, frozen=True):
    """A file in the bucket. ``name`` is relative to the pointer."""

    name: str = Field(pattern=NAME)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)


class Publication(BaseModel, frozen=True):
    """The content of the pointer. ``others`` are parts made from the database: a page, or the descriptor of
    an export."""

    as_of_day: date
    as_of_time: AwareDatetime
    database: StoredFile
    others: dict[str, StoredFile] = {}

    def stays_before(self, other: "Publication") -> bool:
        """True if the databases differ and this one is not older; a tie leaves the first one in place."""
        mine, theirs = (self.as_of_day, self.as_of_time), (other.as_of_day, other.as_of_time)
        return self.database != other.database and mine >= theirs

    def line(self) -> str:
        """Return a line for people, with the publication's parts, day and time."""
        parts = ", ".join(("database", *self.others))
        return f"{parts} as of {self.as_of_day}, built {self.as_of_time:%Y-%m-%d %H:%M} UTC"


def bucket_at(address: str) -> "Bucket":
    """Return the bucket at a checked address. Raises StoreError."""
    try:
        from pipeline.store.bucket import Bucket
    except ModuleNotFoundError as error:
        remedy = f"which is not installed: {command_to_install('store')}"
        raise StoreError(f"{STORE_VARIABLE} needs obstore, {remedy}") from error
    return Bucket(address)


def newest(bucket: "Bucket") -> Publication | None:
    """Return the newest publication; None if the bucket contains no publication. Raises StoreError."""
    return _pointer(bucket)[0]


def publish(
    home: Home, bucket: "Bucket", writers: Mapping[str, Writer], progress: Progress = no_progress
) -> str:
    """Send the home's published file, set the pointer to it, and return a line that tells people the result.

    ``writers`` make further parts, by name (lower-case letters). Parts made from the same database that are
    already in the bucket are kept. Raises NotPublishedError, DamagedError, StoreError and OSError.
    """
    with TemporaryDirectory(prefix="gpufare-store-") as scratch:
        snapshot = Home(Path(scratch, "database"))
        ours = _copied(home, snapshot)
        made: dict[str, StoredFile] = {}
        for _ in range(POINTER_TRIES):
            pointed, version = _pointer(bucket)
            if pointed and pointed.stays_before(ours):
                return f"{bucket.address} has a newer publication, which stays: {pointed.line()}"
            progress(Step(f"sending the database to {bucket.address}"))
            _send(bucket, ours.database, snapshot.published.parent)
            others = _other_parts(bucket, pointed, ours) | made
            for part in sorted(writers.keys() - others.keys()):
                progress(Step(f"sending the {part} to {bucket.address}"))
                first = writers[part](snapshot, Path(scratch, part))
                others[part] = made[part] = _described(f"{part}-{ours.as_of_day}", first)
                _send(bucket, made[part], first.parent)
            ours = ours.model_copy(update={"others": others})
            if pointed == ours:
                return f"{bucket.address} has what is published here: {ours.line()}"
            if bucket.replace(POINTER, f"{ours.model_dump_json(indent=1)}\n".encode(), version):
                return f"stored at {bucket.address}: {ours.line()}"
    raise StoreError(f"{bucket.url(POINTER)}: other machines replace it all the time; try again later")


def _copied(home: Home, snapshot: Home) -> Publication:
    """Copy the published file, so that a publication in the meantime does not change it; return the copy as a
    publication without further parts."""
    snapshot.published.parent.mkdir(parents=True)
    with reader(home.published):  # raises if the file is missing or damaged
        shutil.copyfile(home.published, snapshot.published)
    with reader(snapshot.published) as connection:
        ((day, time),) = ask(connection, "SELECT as_of_day, as_of_time FROM main.publication").rows
    stored = _described(f"database-{day}", snapshot.published)
    return Publication(as_of_day=day, as_of_time=time, database=stored)


def _pointer(bucket: "Bucket") -> "tuple[Publication | None, Version | None]":
    found = bucket.read(POINTER, MAX_POINTER_BYTES)
    if found is None:
        return None, None
    content, version = found
    try:
        return Publication.model_validate_json(content), version
    except ValidationError as error:
        remedy = "delete it, and run `gpufare store publish` on the machine that publishes"
        raise StoreError(f"{bucket.url(POINTER)} is damaged: {remedy}") from error


def _other_parts(bucket: "Bucket", pointed: Publication | None, ours: Publication) -> dict[str, StoredFile]:
    """Return the other parts in the bucket that were made from our database and have not expired."""
    if pointed is None or pointed.database != ours.database:
        return {}
    return {part: file for part, file in pointed.others.items() if bucket.size_bytes(file.name) == file.bytes}


def _described(title: str, first: Path) -> StoredFile:
    """Return a file with the name that it gets in the bucket. Its folder's name consists of a title and a
    hash of all files in that folder and below."""
    hashes = {path.relative_to(first.parent).as_posix(): _sha256(path) for path in _files(first.parent)}
    listed = "".join(f"{sha256} {name}\n" for name, sha256 in hashes.items())
    folder = f"{title}-{hashlib.sha256(listed.encode()).hexdigest()[:16]}"
    size_bytes = first.stat().st_size
    return StoredFile(name=f"published/{folder}/{first.name}", sha256=hashes[first.name], bytes=size_bytes)


def _send(bucket: "Bucket", first: StoredFile, folder: Path) -> None:
    """Send all files in the folder of a stored file."""
    files = _files(folder)
    keys = [str(PurePosixPath(first.name).parent / path.relative_to(folder).as_posix()) for path in files]
    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        list(pool.map(bucket.put, keys, files))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
