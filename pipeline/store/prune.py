"""Deletes published files that the pointer has not named for some days.

    published/retired.json     since when each file is known not to be the newest

A reader that asked for the newest file may read it for long, piece by piece. So a file is not deleted until
it has been in this list for the days of grace: who began before it was replaced has had at least so long.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from pipeline.store.address import StoreError
from pipeline.store.bucket import Bucket
from pipeline.store.publication import NAME, newest

RETIRED = "published/retired.json"
MAX_RETIRED_BYTES = 16 * 1024**2

KEPT_FILES = 7
GRACE = timedelta(days=7)


class Retired(BaseModel):
    """By name of a file, when a prune first saw that the pointer does not name it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    since: dict[str, AwareDatetime] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pruned:
    """The files that were deleted, with their bytes; those that are kept; those whose grace is not over."""

    deleted: tuple[str, ...]
    deleted_bytes: int
    kept: tuple[str, ...]
    waiting: tuple[str, ...]


def prune(bucket: Bucket, now: datetime, *, keep: int = KEPT_FILES, grace: timedelta = GRACE) -> Pruned:
    """Delete published files but the one that the pointer names, the ``keep`` newest in all, and those that
    it named within ``grace``. Raises StoreError, also when there is no pointer or a damaged one."""
    pointed = newest(bucket)
    if pointed is None:
        raise StoreError(f"nothing is published at {bucket.address}: nothing is deleted")
    sizes = {name: size for name, size in bucket.names("published") if re.fullmatch(NAME, name)}
    others = sizes.keys() - {pointed.name}
    since = _note(bucket, others, now)
    newest_first = sorted(others, key=lambda name: (since[name], name), reverse=True)
    kept, rest = newest_first[: max(keep - 1, 0)], newest_first[max(keep - 1, 0) :]
    due = [name for name in rest if since[name] + grace <= now]
    for name in due:
        if newest(bucket) != pointed:
            raise StoreError(f"{bucket.address}: somebody publishes; prune again when that is over")
        bucket.delete(name)
    return Pruned(
        deleted=tuple(due),
        deleted_bytes=sum(sizes[name] for name in due),
        kept=(pointed.name, *kept),
        waiting=tuple(name for name in rest if name not in due),
    )


def _note(bucket: Bucket, others: set[str], now: datetime) -> dict[str, datetime]:
    """Since when each of the files is retired: now, for those that the list lacks. A damaged list begins
    anew, which keeps files for longer."""
    found = bucket.read(RETIRED, MAX_RETIRED_BYTES)
    known, version = {}, None
    if found:
        content, version = found
        try:
            known = Retired.model_validate_json(content).since
        except ValidationError:
            known = {}
    since = {name: known.get(name, now) for name in others}
    if since != known:
        written = Retired(since=since).model_dump_json(indent=1).encode()
        if not bucket.replace(RETIRED, written, version):
            raise StoreError(f"{bucket.url(RETIRED)}: somebody else prunes; nothing is deleted")
    return since
