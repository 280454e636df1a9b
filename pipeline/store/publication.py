"""The published file in the store, and the pointer to the newest one.

    published/gpufare-2026-11-22-<hash>.duckdb     immutable
    published/newest.json                          its name, SHA-256, size, day and time: replaced last

The pointer is replaced only if nobody replaced it meanwhile, and never by an older publication.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from pipeline.contracts.progress import Progress, Step
from pipeline.home.disk import flush
from pipeline.home.paths import Home
from pipeline.home.publishing_lock import publishing_lock
from pipeline.store.address import StoreError
from pipeline.store.bucket import Bucket, Version
from pipeline.store.home_files import local_file
from pipeline.store.index import Index
from pipeline.warehouse.query import DamagedError, ask, reader

POINTER = "published/newest.json"
NAME = r"^published/gpufare-\d{4}-\d\d-\d\d-[0-9a-f]{16}\.duckdb$"
MAX_POINTER_BYTES = 64 * 1024
POINTER_TRIES = 20
CHUNK_BYTES = 1024**2


class Publication(BaseModel):
    """What the pointer says."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(pattern=NAME)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)
    as_of_day: date
    as_of_time: AwareDatetime

    def wins_over(self, other: "Publication") -> bool:
        """Whether it is another one, of a later day or built later; of two of one moment the first stays."""
        mine, theirs = (self.as_of_day, self.as_of_time), (other.as_of_day, other.as_of_time)
        return self.sha256 != other.sha256 and mine >= theirs


def newest(bucket: Bucket) -> Publication | None:
    """What the pointer says; None when nothing is published in the store. Raises StoreError."""
    return _pointer(bucket)[0]


def send_published(
    home: Home, bucket: Bucket, index: Index, *, replace: bool, progress: Progress
) -> tuple[Publication | None, str]:
    """Send the home's published file and turn the pointer to it; the publication that the store points to
    then, and a note for people. Raises StoreError, OSError."""
    found = local_file(home, str(home.published.relative_to(home.root)))
    if found is None:
        return None, "nothing is published here"
    try:
        pointed, version = _pointer(bucket)
    except StoreError:
        if not replace:
            raise
        pointed, version = None, _version(bucket)
    if pointed and index.get("published_state") == f"{found.state} {pointed.sha256}":
        return pointed, ""
    with _unchanging(home) as (file, state):
        ours = _publication(file)
        if pointed and pointed.wins_over(ours):
            return pointed, _newer(pointed, ours)
        progress(Step(f"sending {ours.name}"))
        known = index.one("SELECT 1 FROM objects WHERE key = ?", ours.name)
        if known is None or bucket.size_bytes(ours.name) is None:  # it may have been pruned
            with file.open("rb") as content:
                bucket.upload(ours.name, content, ours.bytes)
            index.put("objects", [(ours.name, ours.bytes)])
            index.save()
    for _ in range(POINTER_TRIES):
        if pointed and pointed.wins_over(ours):
            return pointed, _newer(pointed, ours)
        if pointed == ours or bucket.replace(POINTER, _written(ours), version):
            index.set("published_state", f"{state} {ours.sha256}")
            return ours, f"published as of {ours.as_of_day}"
        pointed, version = _pointer(bucket)
    raise StoreError(f"{bucket.url(POINTER)}: other machines replace it all the time; try again later")


def fetch_published(home: Home, bucket: Bucket, progress: Progress) -> tuple[Publication | None, str]:
    """Fetch the newest published file into a home, whole and with the right hash or not at all; its
    publication, and a note for people. One that is here already, or newer here, stays.

    Raises StoreError, OSError.
    """
    pointed = newest(bucket)
    if pointed is None:
        return None, "nothing is published in the store"
    home.published.parent.mkdir(parents=True, exist_ok=True)
    if home.published.exists():
        with suppress(DamagedError):
            ours = _publication(home.published)
            if ours.sha256 == pointed.sha256:
                return pointed, "the published file is here already"
            if ours.wins_over(pointed):
                return pointed, "the published file here is newer than that of the store, and stays"
    progress(Step(f"fetching {pointed.name}"))
    temporary = home.published.with_name(f".{home.published.name}.{os.getpid()}.writing")
    try:
        with temporary.open("wb") as file:
            digest = bucket.download(pointed.name, file, pointed.bytes)
        if digest is None:
            raise StoreError(f"{bucket.url(pointed.name)} is missing, though {POINTER} names it: push again")
        if digest != pointed.sha256:
            raise StoreError(
                f"{bucket.url(pointed.name)} is damaged: it has not the hash that {POINTER} says"
            )
        flush(temporary)
        with publishing_lock(home):
            temporary.replace(home.published)
        flush(home.published.parent)
    finally:
        temporary.unlink(missing_ok=True)
    return pointed, f"published as of {pointed.as_of_day}"


def _pointer(bucket: Bucket) -> tuple[Publication | None, Version | None]:
    found = bucket.read(POINTER, MAX_POINTER_BYTES)
    if found is None:
        return None, None
    content, version = found
    try:
        return Publication.model_validate_json(content), version
    except ValidationError as error:
        remedy = "`gpufare store push --replace` from the home that publishes writes a new one"
        raise StoreError(f"{bucket.url(POINTER)} is damaged: {remedy}") from error


def _version(bucket: Bucket) -> Version | None:
    found = bucket.read(POINTER, MAX_POINTER_BYTES)
    return None if found is None else found[1]


def _written(publication: Publication) -> bytes:
    return f"{json.dumps(publication.model_dump(mode='json'), indent=1)}\n".encode()


def _newer(pointed: Publication, ours: Publication) -> str:
    return (
        f"the store has a newer publication (as of {pointed.as_of_day}, {pointed.as_of_time:%Y-%m-%d %H:%M}) "
        f"than this home (as of {ours.as_of_day}, {ours.as_of_time:%Y-%m-%d %H:%M}): the pointer stays"
    )


def _publication(file: Path) -> Publication:
    """What a published file says of itself. Raises DamagedError, OSError."""
    with reader(file) as connection:
        ((day, time),) = ask(connection, "SELECT as_of_day, as_of_time FROM main.publication").rows
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while part := content.read(CHUNK_BYTES):
            digest.update(part)
    sha256 = digest.hexdigest()
    return Publication(
        name=f"published/gpufare-{day}-{sha256[:16]}.duckdb",
        sha256=sha256,
        bytes=file.stat().st_size,
        as_of_day=day,
        as_of_time=time,
    )


@contextmanager
def _unchanging(home: Home) -> Iterator[tuple[Path, str]]:
    """The published file under a second name, so that a publication meanwhile does not exchange it; and its
    state. On a disk without second names, a copy."""
    second = home.published.with_name(f".{home.published.name}.{os.getpid()}.writing")
    second.unlink(missing_ok=True)
    try:
        os.link(home.published, second, follow_symlinks=False)
    except OSError:
        shutil.copy2(home.published, second)
    try:
        about = local_file(home, str(second.relative_to(home.root)))
        if about is None:
            raise StoreError(f"{home.published} is no plain file")
        yield second, about.state
    finally:
        second.unlink(missing_ok=True)
