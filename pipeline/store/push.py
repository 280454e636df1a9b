"""Sends to the store what it lacks: captures, files of the record, then the published file.

Objects are sent first, and then named by a push (see ledger). What is there already is not sent again, so an
interrupted push goes on where it was. A file that another machine changed meanwhile is a conflict: it is
named, nothing that belongs together with it is sent, and the rest is.
"""

import gzip
import platform
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from pathlib import PurePosixPath

from pipeline.capture.index import INDEX_NAME, PagesError, parse_index, read_body
from pipeline.contracts.progress import Progress, Step, no_progress
from pipeline.contracts.request import Entry
from pipeline.home.disk import size_text
from pipeline.home.paths import Home
from pipeline.parsing.printable import printable
from pipeline.record.months import merged_parts, month_and_part
from pipeline.store import home_files, ledger
from pipeline.store.address import StoreError
from pipeline.store.bucket import Bucket
from pipeline.store.home_files import LocalFile, capture_key, read_file, record_key, sha256_of
from pipeline.store.index import Index, index_of
from pipeline.store.ledger import Kept, Unit
from pipeline.store.left import Left
from pipeline.store.publication import send_published
from pipeline.store.transfer import SAVED_EVERY, WORKERS, TransferReport, only_transfer

BATCH_FILES = 2_000
"""A push names at most about so many files: a first push of a large home is many of them."""

COMMIT_TRIES = 20
DAMAGED_HERE = "it is not sent: `gpufare doctor` says more"


@dataclass(slots=True)
class PushReport(TransferReport):
    """What a push did. ``conflicts`` and ``problems`` are what was not sent."""

    sent_objects: int = 0
    sent_bytes: int = 0
    unfinished_captures: int = 0

    def line(self) -> str:
        """What was sent, in one line."""
        new = f"{self.captures} captures and {self.files} files of the record"
        sent = f"{self.sent_objects} objects, {size_text(self.sent_bytes)}, {self.requests} requests"
        unfinished = (
            f"; left out: {self.unfinished_captures} captures that were interrupted or are not finished"
            if self.unfinished_captures
            else ""
        )
        return f"stored at {self.address}: {new} are new ({sent}){unfinished}{self.note}"


class _Lost(Exception):
    """An object of that name has other content."""


@dataclass(slots=True)
class _Pusher:
    home: Home
    bucket: Bucket
    index: Index
    report: PushReport
    replace: bool
    now: datetime
    progress: Progress
    _days: list[tuple[str, str]] = field(default_factory=list)

    def run(self) -> None:
        """Send all that is new."""
        fresh = self.index.get("listed") is None
        ledger.catch_up(self.bucket, self.index)
        if fresh:
            self._learn_objects()
        for batch in _batches(self._capture_units()):
            self._send_captures(batch)
        self._forget_seen_days()
        for batch in _batches(self._record_units()):
            self._send_record(batch)
        self.report.problems += [
            Left(name, "a link, which is not followed: nothing of it is sent", "make it a folder of its own")
            for name in ("archive", *home_files.RECORD_FOLDERS)
            if (self.home.root / name).is_symlink()
        ]

    def _learn_objects(self) -> None:
        """What is there already, when nothing is known: an interrupted push, or an index that was lost."""
        self.progress(Step(f"listing {self.bucket.address}"))
        for folder in ("record", "archive", "published"):
            found = self.bucket.names(folder)
            # The name of an index says nothing about its content.
            self.index.put("objects", (each for each in found if not each[0].endswith(f"/{INDEX_NAME}")))
        self.index.set("listed", "yes")
        self.index.save()

    # Captures

    def _capture_units(self) -> Iterator[Unit]:
        known = dict(self.index.rows("SELECT path, state FROM days"))
        for day, state in home_files.day_folders(self.home):
            if known.get(day) == state:
                continue
            whole = True
            for capture, finished in home_files.captures_in(self.home, day):
                if not finished:
                    self.report.unfinished_captures += 1
                    whole = False
                elif unit := self._capture_unit(capture):
                    yield unit
            if whole:
                self._days.append((day, state))

    def _forget_seen_days(self) -> None:
        """Days all of whose captures are sent are not looked into again until one is added."""
        seen = {path for (path,) in self.index.rows("SELECT path FROM captures")}
        self.index.put(
            "days",
            (
                (day, state)
                for day, state in self._days
                if all(path in seen for path, _ in home_files.captures_in(self.home, day))
            ),
        )
        self.index.save()

    def _capture_unit(self, capture: str) -> Unit | None:
        known = self.index.one("SELECT sha256 FROM captures WHERE path = ?", capture)
        content = read_file(self.home.archive, f"{capture}/{INDEX_NAME}")
        digest = sha256_of(content)
        if known is None:
            return Unit(capture, captures=(Kept(path=capture, sha256=digest, bytes=len(content)),))
        if known[0] != digest:
            self._other_content(f"archive/{capture}/{INDEX_NAME}")
        return None

    def _send_captures(self, units: Sequence[Unit]) -> None:
        self.progress(Step(f"sending {len(units)} captures to {self.bucket.address}"))
        bodies: dict[str, tuple[str, Entry]] = {}
        whole = []
        for unit in units:
            try:
                entries = parse_index(self.home.archive / unit.name / INDEX_NAME)[1]
                source = unit.name.split("/")[0]
                found = {
                    home_files.body_key(source, each): (unit.name, each) for each in entries if each.file
                }
            except (PagesError, StoreError) as problem:
                self.report.problems.append(Left(f"archive/{unit.name}", str(problem), DAMAGED_HERE))
                continue
            bodies |= found
            whole.append((unit, set(found)))
        failed = self._send({key: self._body_reader(*place) for key, place in bodies.items()})
        good = [unit for unit, needed in whole if not needed & failed]
        indexes = {capture_key(unit.name): self._index_reader(unit) for unit in good}
        failed = self._send(indexes)
        self._commit([unit for unit in good if capture_key(unit.name) not in failed])

    def _body_reader(self, capture: str, entry: Entry) -> "_Reader":
        folder = self.home.archive / capture

        def read() -> bytes:
            read_body(folder, entry)  # damage is not sent on
            return read_file(folder, str(entry.file))

        return _Reader(f"archive/{capture}/{entry.file}", read)

    def _index_reader(self, unit: Unit) -> "_Reader":
        path = f"{unit.name}/{INDEX_NAME}"
        return _Reader(f"archive/{path}", lambda: read_file(self.home.archive, path))

    # The record

    def _record_units(self) -> Iterator[Unit]:
        """The units that differ from the store, without those in conflict."""
        local = list(self._hashed(home_files.record_files(self.home)))
        stored = dict(self.index.rows("SELECT path, sha256 FROM files"))
        retired = self._merged(stored, {file.path for file in local})
        changed = [file for file in local if stored.get(file.path) != file.sha256]
        self._agree(file for file in local if stored.get(file.path) == file.sha256)
        by_unit: list[tuple[str, Kept | None, str]] = [
            (home_files.unit_name(file.path), file, "") for file in changed
        ]
        by_unit += [(home_files.unit_name(month), None, day) for day, month in retired.items()]
        for name, members in groupby(sorted(by_unit, key=lambda each: each[0]), lambda each: each[0]):
            parts = list(members)
            files = tuple(file for _, file, _ in parts if file)
            unit = Unit(name, files, tuple(day for _, file, day in parts if not file))
            if not self._in_conflict(unit):
                yield unit

    def _hashed(self, files: Iterable[LocalFile]) -> Iterator[Kept]:
        for file in files:
            try:
                sha256, size = self.index.hash_of(self.home, file)
            except (OSError, StoreError) as problem:
                self.report.problems.append(Left(file.path, printable(str(problem)), DAMAGED_HERE))
            else:
                yield Kept(path=file.path, sha256=sha256, bytes=size)

    def _merged(self, stored: dict[str, str], local: set[str]) -> dict[str, str]:
        """Files in the store that this home merged into a month's file, with that file."""
        found = {}
        for path in stored.keys() - local:
            month = home_files.merged_into(path)
            if month in local and self._is_in(path, str(month)):
                found[path] = str(month)
        return found

    def _is_in(self, path: str, month: str) -> bool:
        """Whether a month's file has the state of a file that the store has, and not an earlier one."""
        place = month_and_part(PurePosixPath(path))
        merged = (merged_parts(self.home.root / month) or {}).get(place[1]) if place else None
        if merged is None:
            return False
        sha256, size = self.index.rows("SELECT sha256, bytes FROM files WHERE path = ?", path)[0]
        known = self.index.one("SELECT state FROM local WHERE path = ? AND sha256 = ?", path, sha256)
        if known is None:  # the index was lost: the size is what is left to compare
            return merged.stamp.bytes == int(size)
        return str(known[0]).startswith(f"{merged.stamp.bytes} {merged.stamp.mtime_ns} ")

    def _in_conflict(self, unit: Unit) -> bool:
        """Whether another machine changed a file of the unit since this one last saw it in the store."""
        if self.replace:
            return False
        for file in unit.files:
            stored = self.index.one("SELECT sha256 FROM files WHERE path = ?", file.path)
            if stored and stored[0] not in (file.sha256, self.index.base(file.path)):
                self._conflict(unit, file.path)
                return True
        for path in unit.retired:
            stored = self.index.one("SELECT sha256 FROM files WHERE path = ?", path)
            if stored and not self._is_in(path, str(home_files.merged_into(path))):
                self._conflict(unit, path)
                return True
        return False

    def _conflict(self, unit: Unit, path: str) -> None:
        who, when = self.index.get("pushed_by"), (self.index.get("pushed_at") or "")[:16]
        remedy = (
            "`gpufare store push --replace` keeps this home's; for the store's, move this one away and run "
            "`gpufare store pull`"
        )
        reason = (
            f"the store has another content, which this home has not seen (newest push: {who}, {when}): "
            f"nothing of {unit.name} is sent"
        )
        self.report.conflicts.append(Left(path, reason, remedy))

    def _send_record(self, units: Sequence[Unit]) -> None:
        self.progress(Step(f"sending {sum(len(unit.files) for unit in units)} files of the record"))
        readers = {
            record_key(file.path, file.sha256): self._file_reader(file)
            for unit in units
            for file in unit.files
        }
        failed = self._send(readers)
        good = [
            unit
            for unit in units
            if not any(record_key(file.path, file.sha256) in failed for file in unit.files)
        ]
        self._commit(good)

    def _file_reader(self, file: Kept) -> "_Reader":
        def read() -> bytes:
            content = read_file(self.home.root, file.path)
            if sha256_of(content) != file.sha256:
                raise StoreError(f"{file.path} changed while it was sent; the next push sends it")
            return content

        return _Reader(file.path, read, file.bytes)

    # What both do

    def _send(self, readers: "dict[str, _Reader]") -> set[str]:
        """Send the objects that are not there; the names of those that could not be read here, or exist with
        other content. Raises StoreError when the store cannot be reached."""
        failed: set[str] = set()
        todo = [key for key, reader in readers.items() if not self._is_there(key, reader)]
        with ThreadPoolExecutor(WORKERS) as pool:
            jobs = [(key, pool.submit(self._send_one, key, readers[key])) for key in todo]
            try:
                for number, (key, job) in enumerate(jobs, 1):
                    try:
                        size, new = job.result()
                    except _Lost:
                        failed.add(key)
                        self._other_content(readers[key].place)
                    except (PagesError, OSError, _Unreadable) as problem:
                        failed.add(key)
                        reason = printable(str(problem))
                        self.report.problems.append(Left(readers[key].place, reason, DAMAGED_HERE))
                    else:
                        self.report.sent_objects += new
                        self.index.put("objects", [(key, size)])
                        if number % SAVED_EVERY == 0:
                            self.index.save()
            finally:
                self.index.save()
                for _, job in jobs:
                    job.cancel()
        return failed

    def _is_there(self, key: str, reader: "_Reader") -> bool:
        row = self.index.one("SELECT bytes FROM objects WHERE key = ?", key)
        return row is not None and reader.size_bytes in (None, row[0])

    def _send_one(self, key: str, reader: "_Reader") -> tuple[int, bool]:
        """Size, and whether it was new. An object that is there must have the same content."""
        try:
            content = reader.read()
        except StoreError as problem:
            raise _Unreadable(str(problem)) from problem
        if self.bucket.create(key, content):
            return len(content), True
        found = self.bucket.read(key, home_files.MAX_FILE_BYTES)
        if found is None or not _same(found[0], content):
            raise _Lost(key)
        return len(found[0]), False

    def _other_content(self, path: str) -> None:
        reason = "the store has other content of this name, never overwritten: one of them is damaged"
        self.report.problems.append(Left(path, reason, "`gpufare doctor --all` checks this home's"))

    def _commit(self, units: Sequence[Unit]) -> None:
        left = list(units)
        for _ in range(COMMIT_TRIES):
            if not left:
                return
            if ledger.commit(self.bucket, self.index, left, self.now, platform.node() or "unknown"):
                self.report.number = self.index.number
                self.report.captures += sum(len(unit.captures) for unit in left)
                self.report.files += sum(len(unit.files) for unit in left)
                self._agree(file for unit in left for file in unit.files)
                return
            ledger.catch_up(self.bucket, self.index)
            left = [unit for unit in left if not self._in_conflict(unit)]
        raise StoreError(f"{self.bucket.address}: other machines push all the time; try again later")

    def _agree(self, files: Iterable[Kept]) -> None:
        """Remember that this home has what the store has."""
        self.index.put("base", ((file.path, file.sha256) for file in files))
        self.index.save()


@dataclass(frozen=True, slots=True)
class _Reader:
    """A file of the home: its place, a function that reads it, and its size where its object has the same."""

    place: str
    read: Callable[[], bytes]
    size_bytes: int | None = None


class _Unreadable(Exception):
    """A file of the home cannot be read as it should be."""


def push(
    home: Home, bucket: Bucket, now: datetime, *, replace: bool = False, progress: Progress = no_progress
) -> PushReport:
    """Send what the store lacks of a home, and point to its published file.

    With ``replace``, this home's files win where both were changed; the others stay in the store under their
    own names. Raises StoreError when the store cannot be used, or another push of this home is under way.
    """
    report = PushReport(bucket.address)
    try:
        with only_transfer(home), index_of(home, bucket.address) as index:
            pusher = _Pusher(home, bucket, index, report, replace, now, progress)
            pusher.run()
            report.publication, report.publication_note = send_published(
                home, bucket, index, replace=replace, progress=progress
            )
            report.number = index.number
            if report.complete:
                index.set("complete_at", now.isoformat())
    finally:
        report.requests = bucket.traffic.requests
        report.sent_bytes = bucket.traffic.sent_bytes
    return report


def _same(stored: bytes, content: bytes) -> bool:
    """Whether two objects have the same content; packed ones may be packed differently."""
    if stored == content:
        return True
    with suppress(OSError, EOFError, zlib.error):
        return gzip.decompress(stored) == gzip.decompress(content)
    return False


def _batches(units: Iterable[Unit]) -> Iterator[list[Unit]]:
    batch: list[Unit] = []
    count = 0
    for unit in units:
        batch.append(unit)
        count += len(unit.files) + len(unit.captures) + len(unit.retired)
        if count >= BATCH_FILES:
            yield batch
            batch, count = [], 0
    if batch:
        yield batch
