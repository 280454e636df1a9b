"""Fetches a home from its store: every file is checked against its hash, and appears whole or not at all.

What is here already is not fetched again, so an interrupted pull goes on where it was, and a later one
fetches what is new. A file that differs here and was never in the store is a conflict: it is named and stays.
An object that is damaged or missing is named, and the rest is fetched.
"""

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path

from pipeline.capture.index import INDEX_NAME, PagesError, parse_index, read_body
from pipeline.contracts.progress import Progress, Step, no_progress
from pipeline.contracts.request import Entry
from pipeline.home.disk import flush, free_bytes, replacing, size_text
from pipeline.home.paths import Home
from pipeline.parsing.printable import printable
from pipeline.store import home_files, ledger
from pipeline.store.address import StoreError
from pipeline.store.bucket import Bucket, TooLargeError
from pipeline.store.home_files import capture_key, local_file, record_key, sha256_of
from pipeline.store.index import Index, index_of
from pipeline.store.ledger import Kept
from pipeline.store.left import Left
from pipeline.store.publication import fetch_published
from pipeline.store.transfer import SAVED_EVERY, WORKERS, TransferReport, only_transfer

BATCH_CAPTURES = 500
LEAST_FREE_BYTES = 256 * 1024**2


@dataclass(slots=True)
class PullReport(TransferReport):
    """What a pull did. ``conflicts`` and ``problems`` are what was not fetched."""

    removed: int = 0
    received_bytes: int = 0

    def line(self) -> str:
        """What was fetched, in one line."""
        removed = f", {self.removed} that were merged removed" if self.removed else ""
        traffic = f"{size_text(self.received_bytes)}, {self.requests} requests"
        return (
            f"fetched from {self.address}: {self.captures} captures and {self.files} files of the "
            f"record{removed} ({traffic}){self.note}"
        )


@dataclass(frozen=True, slots=True)
class _Capture:
    """A capture being fetched: its index, and its bodies by the object that each is."""

    kept: Kept
    content: bytes
    bodies: Mapping[str, list[Entry]]


@dataclass(slots=True)
class _Puller:
    home: Home
    bucket: Bucket
    index: Index
    report: PullReport
    progress: Progress

    def run(self, with_archive: bool) -> None:
        """Fetch the record, and the archive."""
        ledger.catch_up(self.bucket, self.index)
        files = list(self._wanted_files())
        captures = list(self._wanted_captures()) if with_archive else []
        self._check_space(sum(file.bytes for file in files))
        for batch in _in_batches(captures, BATCH_CAPTURES):
            self.progress(Step(f"fetching {len(batch)} captures of {len(captures)}"))
            self._fetch_captures(batch)
        self.progress(Step(f"fetching {len(files)} files of the record"))
        self._fetch_files(files)
        self._remove_merged()

    def _check_space(self, needed_bytes: int) -> None:
        free = free_bytes(self.home.root)
        if free is not None and free < needed_bytes + LEAST_FREE_BYTES:
            raise StoreError(
                f"{self.home.root}: {size_text(needed_bytes)} are to be fetched and {size_text(free)} are "
                "free: free some space or pull into a folder on another disk"
            )

    # The record

    def _wanted_files(self) -> Iterator[Kept]:
        """Files that are not here, or are here as they were in the store before."""
        for path, sha256, size in self.index.rows("SELECT path, sha256, bytes FROM files"):
            try:
                here = self._local_sha256(path)
            except (OSError, StoreError) as problem:
                remedy = "move it away and pull again"
                self.report.problems.append(Left(path, printable(str(problem)), remedy))
                continue
            if here == sha256:
                self.index.put("base", [(path, sha256)])
            elif here is None or here == self.index.base(path):
                yield Kept(path=path, sha256=sha256, bytes=size)
            else:
                remedy = (
                    "`gpufare store push --replace` keeps it; for the store's, move it away and pull again"
                )
                self.report.conflicts.append(
                    Left(path, "differs here from the store and was never in it: it stays", remedy)
                )
        self.index.save()

    def _local_sha256(self, path: str) -> str | None:
        found = local_file(self.home, path)
        if found is None:
            return "" if (self.home.root / path).is_symlink() else None
        return self.index.hash_of(self.home, found)[0]

    def _fetch_files(self, files: Sequence[Kept]) -> None:
        with ThreadPoolExecutor(WORKERS) as pool:
            fetched = zip(files, pool.map(self._fetch_file, files), strict=True)
            for number, (file, problem) in enumerate(fetched, 1):
                if problem:
                    self.report.problems.append(problem)
                    continue
                self.report.files += 1
                self.index.put("base", [(file.path, file.sha256)])
                self.index.put("objects", [(record_key(file.path, file.sha256), file.bytes)])
                if number % SAVED_EVERY == 0:
                    self.index.save()

    def _fetch_file(self, file: Kept) -> Left | None:
        """Fetch one file; why it could not be, or None."""
        key = record_key(file.path, file.sha256)
        content, problem = self._checked(key, file.bytes, lambda read: sha256_of(read) == file.sha256)
        if problem:
            return problem
        with replacing(self.home.root / file.path) as temporary:
            temporary.write_bytes(content)
        return None

    def _remove_merged(self) -> None:
        """Files of days and attempts that the store has no more, since their month's file has them, and that
        nobody changed here."""
        gone = self.index.rows("SELECT path, sha256 FROM base WHERE path NOT IN (SELECT path FROM files)")
        for path, sha256 in gone:
            month = home_files.merged_into(path)
            if month and local_file(self.home, month) and self._local_sha256(path) == sha256:
                (self.home.root / path).unlink()
                with suppress(OSError):  # not empty
                    (self.home.root / path).parent.rmdir()
                self.report.removed += 1
                self.index.delete("base", [path])

    # The archive

    def _wanted_captures(self) -> Iterator[Kept]:
        for path, sha256, size in self.index.rows("SELECT path, sha256, bytes FROM captures"):
            if not (self.home.archive / path / INDEX_NAME).exists():
                yield Kept(path=path, sha256=sha256, bytes=size)

    def _fetch_captures(self, batch: Sequence[Kept]) -> None:
        with ThreadPoolExecutor(WORKERS) as pool:
            captures = [found for found in pool.map(self._fetch_index, batch) if found]
            self._check_space(sum(entry.bytes for each in captures for (entry, *_) in each.bodies.values()))
            bodies: dict[str, tuple[str, Entry]] = {}
            for capture in captures:
                for key, (entry, *_) in capture.bodies.items():
                    bodies.setdefault(key, (capture.kept.path, entry))
            todo = [(key, *place) for key, place in bodies.items() if self._here(key) is None]
            for (key, path, entry), problem in zip(
                todo, pool.map(lambda job: self._fetch_body(*job), todo), strict=True
            ):
                if problem:
                    self.report.problems.append(problem)
                else:
                    self._keep_body(key, f"{path}/{entry.file}", entry)
        for capture in captures:
            self._finish(capture)
        self.index.save()

    def _fetch_index(self, kept: Kept) -> _Capture | None:
        key = capture_key(kept.path)
        content, problem = self._checked(key, kept.bytes, lambda read: sha256_of(read) == kept.sha256)
        if problem:
            self.report.problems.append(problem)
            return None
        folder = self.home.archive / kept.path
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with _writing(folder / INDEX_NAME) as temporary:
                temporary.write_bytes(content)
                entries = [entry for entry in parse_index(temporary)[1] if entry.file]
            bodies: dict[str, list[Entry]] = {}
            for entry in entries:
                if not home_files.is_body_name(str(entry.file)):
                    raise StoreError(f"{self.bucket.url(key)} names the file {printable(str(entry.file))!r}")
                bodies.setdefault(home_files.body_key(kept.path.split("/")[0], entry), []).append(entry)
        except (PagesError, StoreError) as error:
            remedy = "the capture is not fetched: restore it from a copy of the store"
            self.report.problems.append(Left(f"archive/{kept.path}", printable(str(error)), remedy))
            return None
        return _Capture(kept, content, bodies)

    def _fetch_body(self, key: str, path: str, entry: Entry) -> Left | None:
        most_bytes = entry.bytes + entry.bytes // 100 + 1_000
        content, problem = self._checked(key, most_bytes, lambda read: _unpacked_right(read, key, entry))
        if problem:
            return problem
        self._write(self.home.archive / path / str(entry.file), content)
        return None

    def _finish(self, capture: _Capture) -> None:
        """Give the bodies their names in this capture, then write its index: it is whole from then on."""
        folder = self.home.archive / capture.kept.path
        for key, entries in capture.bodies.items():
            here = self._here(key)
            if here is None:
                return  # the reason is in the report
            for entry in entries:
                self._link(self.home.archive / here, folder / str(entry.file))
        self._write(folder / INDEX_NAME, capture.content)
        flush(folder)
        self.report.captures += 1

    def _here(self, key: str) -> str | None:
        """Where this home has a body whose hash is right: its path in the archive."""
        row = self.index.one("SELECT path, sha256 FROM bodies WHERE key = ?", key)
        if row is None:
            return None
        place = self.home.archive / row[0]
        with suppress(PagesError):
            read_body(place.parent, Entry(url="", file=place.name, sha256=row[1]))
            return str(row[0])
        return None

    def _keep_body(self, key: str, path: str, entry: Entry) -> None:
        self.index.put("bodies", [(key, path, entry.sha256)])
        self.index.put("objects", [(key, entry.bytes)])

    def _link(self, source: Path, target: Path) -> None:
        if source == target or (target.exists() and source.samefile(target)):
            return
        with _writing(target) as temporary:
            try:
                os.link(source, temporary)
            except OSError:
                temporary.write_bytes(source.read_bytes())
                temporary.chmod(0o444)
            temporary.replace(target)

    def _write(self, path: Path, content: bytes) -> None:
        with _writing(path) as temporary:
            temporary.write_bytes(content)
            flush(temporary)
            temporary.chmod(0o444)
            temporary.replace(path)

    # What both do

    def _checked(
        self, key: str, most_bytes: int, right: Callable[[bytes], bool]
    ) -> tuple[bytes, Left | None]:
        """An object whose content is right; else why not. Raises StoreError when there is no answer."""
        url, remedy = self.bucket.url(key), "restore this object from a copy of the store"
        try:
            found = self.bucket.read(key, min(most_bytes, home_files.MAX_FILE_BYTES))
        except TooLargeError as error:
            return b"", Left(url, f"damaged: {error}", remedy)
        if found is None:
            return b"", Left(url, "missing, though a push names it", remedy)
        if not right(found[0]):
            return b"", Left(url, "damaged: it does not have the hash that it should have", remedy)
        return found[0], None


def pull(
    home: Home,
    bucket: Bucket,
    now: datetime,
    *,
    with_archive: bool = True,
    with_record: bool = True,
    progress: Progress = no_progress,
) -> PullReport:
    """Fetch a home's record, archive and newest published file; without the record, the published file alone.

    Raises StoreError when the store cannot be used or the disk has no room, OSError.
    """
    report = PullReport(bucket.address)
    try:
        with only_transfer(home):
            if with_record:
                with index_of(home, bucket.address) as index:
                    _Puller(home, bucket, index, report, progress).run(with_archive)
                    report.number = index.number
                    index.set("pulled_at", now.isoformat())
            report.publication, report.publication_note = fetch_published(home, bucket, progress)
    finally:
        report.requests = bucket.traffic.requests
        report.received_bytes = bucket.traffic.received_bytes
    return report


def _unpacked_right(content: bytes, key: str, entry: Entry) -> bool:
    """Whether a body has the size and the hash of its index; it is unpacked no further than that size."""
    if key.endswith(".gz"):
        unpacking = zlib.decompressobj(wbits=31)
        try:
            body = unpacking.decompress(content, entry.bytes + 1)
        except zlib.error:
            return False
        if not unpacking.eof or unpacking.unused_data:
            return False
    else:
        body = content
    return len(body) == entry.bytes and sha256_of(body) == entry.sha256


@contextmanager
def _writing(path: Path) -> Iterator[Path]:
    """A temporary name beside a path, removed afterwards unless it was renamed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.writing")
    temporary.unlink(missing_ok=True)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _in_batches(captures: Iterable[Kept], size: int) -> Iterator[list[Kept]]:
    left = iter(captures)
    while batch := list(islice(left, size)):
        yield batch
