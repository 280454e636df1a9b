"""The numbered pushes: what the record in the store consists of.

    pushes/00000001.json     the files that this push added, replaced or retired, with their hashes

A push is put only if its number is free, after everything that it names is there. So two machines cannot make
the same one, the record changes in one step from one push to the next, and an interrupted push leaves nothing
but objects that no push names, which the next one finds. Each push has its own hash and that of the push
before it: a damaged, missing or exchanged one is named.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.parsing.printable import printable
from pipeline.store.address import StoreError
from pipeline.store.bucket import Bucket
from pipeline.store.home_files import is_capture, is_record_path
from pipeline.store.index import Index

FOLDER = "pushes"
FORMAT = 1
MAX_PUSH_BYTES = 64 * 1024**2

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Kept(BaseModel):
    """A file in the store: its place in the home, its SHA-256 and its size. A capture stands for its index,
    which has the hashes of its bodies."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    path: str
    sha256: str
    bytes: int


class Push(BaseModel):
    """One push, as it is stored. ``machine`` is for people: who to ask about a conflict."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: int = FORMAT
    number: int
    at: datetime
    machine: str
    previous_sha256: str | None
    captures: tuple[Kept, ...] = ()
    files: tuple[Kept, ...] = ()
    retired: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """What is pushed together or not at all: all that a source's day has in the record, or one file.

    ``files`` are those that differ from the store; ``retired`` are paths of the store whose content is now
    in one of them.
    """

    name: str
    files: tuple[Kept, ...] = ()
    retired: tuple[str, ...] = ()
    captures: tuple[Kept, ...] = field(default=())

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths that the unit changes."""
        return (*(file.path for file in self.files), *self.retired)


def push_name(number: int) -> str:
    """The object of a push."""
    return f"{FOLDER}/{number:08d}.json"


def catch_up(bucket: Bucket, index: Index) -> list[Push]:
    """Read the pushes that the index lacks, and return them. Raises StoreError when the store is not the one
    that the index is of, or a push is missing or damaged."""
    known = index.number
    listed = [name for name, _ in bucket.names(FOLDER, push_name(known - 1) if known else None)]
    if known and push_name(known) not in listed:
        raise StoreError(
            f"{bucket.address} lacks push {known}, which was there: it was emptied, or is another store; "
            f"restore it, or delete {index.path} to begin anew with what is there"
        )
    pushes = []
    for expected, name in enumerate((name for name in listed if name > push_name(known)), known + 1):
        if name != push_name(expected):
            raise StoreError(
                f"{bucket.url(push_name(expected))} is missing: restore it; no later push counts"
            )
        pushes.append(_read(bucket, index, expected))
    return pushes


def commit(bucket: Bucket, index: Index, units: Sequence[Unit], at: datetime, machine: str) -> bool:
    """Make the next push of these units; False when another machine made one of that number meanwhile."""
    push = Push(
        number=index.number + 1,
        at=at,
        machine=machine,
        previous_sha256=index.get("push_sha256"),
        captures=tuple(kept for unit in units for kept in unit.captures),
        files=tuple(kept for unit in units for kept in unit.files),
        retired=tuple(path for unit in units for path in unit.retired),
    )
    content = _written(push)
    if not bucket.create(push_name(push.number), content):
        there = bucket.read(push_name(push.number), MAX_PUSH_BYTES)
        if there is None or there[0] != content:
            return False  # the same content is our own, of which the answer got lost
    _apply(index, push, content)
    return True


def _written(push: Push) -> bytes:
    line = push.model_dump_json()
    return f"{line}\n{hashlib.sha256(line.encode()).hexdigest()}\n".encode()


def _read(bucket: Bucket, index: Index, number: int) -> Push:
    url = bucket.url(push_name(number))
    found = bucket.read(push_name(number), MAX_PUSH_BYTES)
    if found is None:
        raise StoreError(f"{url} is missing: restore it; no later push counts")
    push = _parsed(found[0], url)
    if push.number != number or push.previous_sha256 != index.get("push_sha256"):
        raise StoreError(f"{url} does not follow the push before it: it was exchanged; restore it")
    _apply(index, push, found[0])
    return push


def _parsed(content: bytes, url: str) -> Push:
    line, _, digest = content.rstrip(b"\n").rpartition(b"\n")
    if hashlib.sha256(line).hexdigest().encode() != digest:
        raise StoreError(f"{url} is damaged: it has not the hash that its last line says; restore it")
    try:
        about: Any = json.loads(line)
        if about.get("format") != FORMAT:
            raise StoreError(f"{url} is of a newer gpufare: update this one")
        push = Push.model_validate(about)
    except (ValueError, AttributeError, ValidationError) as error:
        raise StoreError(f"{url} is no push: {printable(str(error))[:200]}") from error
    named = [kept.path for kept in (*push.captures, *push.files)]
    bad = [path for path in (*(kept.path for kept in push.files), *push.retired) if not is_record_path(path)]
    bad += [kept.path for kept in push.captures if not is_capture(kept.path)]
    bad += [kept.path for kept in (*push.captures, *push.files) if not _SHA256.fullmatch(kept.sha256)]
    if bad or len(set(named)) < len(named):
        raise StoreError(f"{url} names {printable((bad or named)[0])!r}, which gpufare does not write")
    return push


def _apply(index: Index, push: Push, content: bytes) -> None:
    for table, kept in (("files", push.files), ("captures", push.captures)):
        index.put(table, ((each.path, each.sha256, each.bytes) for each in kept))
    index.delete("files", push.retired)
    index.set("number", str(push.number))
    index.set("push_sha256", hashlib.sha256(content).hexdigest())
    index.set("pushed_at", push.at.isoformat())
    index.set("pushed_by", push.machine)
    index.save()
