"""The archive of raw answers: written once, never changed; the hash of every body is checked when it is read.

    <home>/archive/<source>/<YYYY-MM-DD>/<capture id>/0001.json.gz ... index.json

A capture id is the UTC time at which the capture began. Every answer is on disk, with its line in
``journal.jsonl``, before the next request is sent; ``index.json`` is written last and replaces the journal. A
body that equals one of the newest day with answers is a hard link to its file: it is stored once, and every
folder is complete when it is copied.

A capture without requests (a missing key, a disabled source) has only an ``index.json``. One without an
``index.json`` was interrupted: it can be read, but never counts as complete.
"""

import gzip
import json
import os
import time
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

from pipeline.capture.index import INDEX_NAME, PagesError, parse_index, read_answer, read_body, sha256_of
from pipeline.contracts.capture import Capture, CaptureStatus, capture_status, first_error
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import Answer
from pipeline.contracts.request import Entry
from pipeline.home.disk import flush, naming

JOURNAL_NAME = "journal.jsonl"

_ENDINGS = {
    "application/json": "json",
    "text/html": "html",
    "text/csv": "csv",
    "application/xml": "xml",
    "text/xml": "xml",
    "text/plain": "txt",
}

ID_FORMAT = "%Y%m%dT%H%M%S.%fZ"
"""Format of a capture id."""


class CaptureWriter:
    """Writes one capture. Made by Archive.start; used by one thread. ``stored`` maps the hash of each body of
    an earlier capture to its folder and entry."""

    def __init__(
        self, folder: Path, header: Mapping[str, Any], stored: Mapping[str, tuple[Path, Entry]]
    ) -> None:
        self.folder = folder
        self._header = header
        self._started = time.monotonic()
        self._entries: list[Entry] = []
        self._stored = dict(stored)

    def add(self, entry: Entry, body: bytes | None) -> Entry:
        """Store one entry and return it with file, hash and size filled in. On return it is on disk."""
        if body:
            content_type = entry.headers.get("content-type", "").partition(";")[0].strip().lower()
            name = f"{len(self._entries) + 1:04d}.{_ENDINGS.get(content_type, 'bin')}.gz"
            sha256 = sha256_of(body)
            if not self._linked(sha256, self.folder / name):
                _write_once(self.folder / name, gzip.compress(body, compresslevel=6, mtime=0))
            entry = entry.model_copy(update={"file": name, "sha256": sha256, "bytes": len(body)})
            self._stored[sha256] = self.folder, entry
        self._entries.append(entry)
        journal_path = self.folder / JOURNAL_NAME
        with naming(journal_path), journal_path.open("a", encoding="utf-8") as journal:
            journal.write(entry.model_dump_json() + "\n")
            journal.flush()
            os.fsync(journal.fileno())
        return entry

    def _linked(self, sha256: str, path: Path) -> bool:
        """Store a body of an earlier capture as a hard link to its file, which uses no space.

        The earlier file's hash is checked first, so that damage does not spread. Returns False if there is no
        such file or the file system has no hard links: the body is then written.
        """
        if sha256 not in self._stored:
            return False
        folder, entry = self._stored[sha256]
        try:
            read_body(folder, entry)
            os.link(folder / str(entry.file), path)
        except FileExistsError as error:
            raise GpufareError(f"{path} already exists; the archive is never overwritten") from error
        except (PagesError, OSError):
            return False
        flush(path.parent)
        return True

    def finish(self, status: CaptureStatus | None = None, error: str | None = None) -> Capture:
        """Finish the capture, which is then final, and return it as read from the archive.

        If no status is given, it follows from the entries. An error of the source itself is appended to that
        of the requests; the status is then at most partial.
        """
        status = status or capture_status(self._entries)
        header = {
            **self._header,
            "status": "partial" if error and status == "captured" else status,
            "error": "; ".join(filter(None, (first_error(self._entries), error))) or None,
            "duration_seconds": round(time.monotonic() - self._started, 3),
        }
        answers = [entry.model_dump(mode="json") for entry in self._entries]
        content = json.dumps({**header, "answers": answers}, indent=1, ensure_ascii=False)
        _write_once(self.folder / INDEX_NAME, content.encode())
        (self.folder / JOURNAL_NAME).unlink(missing_ok=True)
        return _read_capture(self.folder)


class Archive:
    """The captures under one folder, ``paths.home().archive``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def start(self, source: str, day: date, *, replayed_from: str | None = None) -> CaptureWriter:
        """Begin a capture in a new folder. ``replayed_from`` is the origin of a replay's answers."""
        stored = self._latest_bodies(source)
        moment = datetime.now(UTC)
        while True:
            capture_id = moment.strftime(ID_FORMAT)
            folder = self.root / source / day.isoformat() / capture_id
            try:
                folder.mkdir(parents=True)
                flush(folder.parent)
                break
            except FileExistsError:
                moment += timedelta(microseconds=1)
        header = {
            "source": source,
            "day": day.isoformat(),
            "capture_id": capture_id,
            "replayed_from": replayed_from,
        }
        return CaptureWriter(folder, header, stored)

    def _latest_bodies(self, source: str) -> dict[str, tuple[Path, Entry]]:
        """Return the folder and the entry of each body of the source's newest day with answers, by hash."""
        try:
            for day in reversed(self.days(source)):
                if bodies := {
                    entry.sha256: (self.folder(capture), entry)
                    for capture in self.captures(source, day)
                    for entry in capture.entries
                    if entry.usable and entry.sha256
                }:
                    return bodies
        except OSError:
            pass  # A folder that cannot be listed costs space, not the capture.
        return {}

    def folder(self, capture: Capture) -> Path:
        """Return the folder of an archived capture."""
        if capture.capture_id is None:
            raise GpufareError(f"a capture of {capture.source} on {capture.day} was not archived")
        return self.root / capture.source / capture.day.isoformat() / capture.capture_id

    def sources(self) -> list[str]:
        """Return the sources that have captures, by name."""
        return (
            sorted(path.name for path in self.root.iterdir() if path.is_dir()) if self.root.is_dir() else []
        )

    def days(self, source: str) -> list[date]:
        """Return the days on which the source has captures, oldest first."""
        folder = self.root / source
        if not folder.is_dir():
            return []
        return sorted(
            date.fromisoformat(path.name) for path in folder.iterdir() if _is_folder(path, date.fromisoformat)
        )

    def capture_folders(self, source: str, day: date) -> list[Path]:
        """Return the folders of the source's captures of a day, oldest first."""
        folder = self.root / source / day.isoformat()
        if not folder.is_dir():
            return []
        return sorted(path for path in folder.iterdir() if _is_folder(path, began_at))

    def captures(
        self, source: str, day: date | None = None, *, without: Container[str] = ()
    ) -> list[Capture]:
        """Return the source's captures (of one day, if given), oldest first, including interrupted and
        damaged ones, except those whose id is in ``without``."""
        days = self.days(source) if day is None else [day]
        return [
            _read_capture(path)
            for each in days
            for path in self.capture_folders(source, each)
            if path.name not in without
        ]

    def answers(self, capture: Capture) -> list[Answer]:
        """Return the answers that a reader may read (status 200, no error), in the order of the requests.

        Checks the hash of every body. Raises PagesError when a file is missing, damaged or changed.
        """
        usable = [entry for entry in capture.entries if entry.usable]
        if not usable:
            return []
        folder = self.folder(capture)
        beginning = datetime.combine(capture.day, datetime.min.time(), UTC)
        return [read_answer(folder, entry, beginning) for entry in usable]


def _read_capture(folder: Path) -> Capture:
    """Return a capture from its folder. One with a damaged index has failed, with the damage as its error;
    one without an index was interrupted."""
    capture = Capture(
        source=folder.parents[1].name,
        day=date.fromisoformat(folder.parent.name),
        capture_id=folder.name,
        status=None,
        error="the capture was interrupted",
    )
    index = folder / INDEX_NAME
    try:
        if not index.exists():
            return replace(capture, entries=_read_journal(folder / JOURNAL_NAME))
        header, entries = parse_index(index)
        if (status := header.get("status")) not in get_args(CaptureStatus):
            raise PagesError(f"{index}: {status!r} is not the status of a capture")
        return replace(
            capture,
            status=status,
            entries=tuple(entries),
            error=header.get("error"),
            duration_seconds=float(header.get("duration_seconds", 0.0)),
            replayed_from=header.get("replayed_from"),
        )
    except (PagesError, ValueError, TypeError, OSError) as damage:
        if index.exists():
            return replace(capture, status="failed", error=str(damage), damaged=True)
        return replace(capture, error=str(damage))


def began_at(capture_id: str) -> datetime:
    """Return when a capture began (UTC). Raises ValueError for a text that is not a capture's id."""
    return datetime.strptime(capture_id, ID_FORMAT).replace(tzinfo=UTC)


def _read_journal(path: Path) -> tuple[Entry, ...]:
    """Return the entries of an interrupted capture. A last line that was cut off is skipped."""
    if not path.exists():
        return ()
    whole_lines = path.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()
    return tuple(map(Entry.model_validate_json, whole_lines))


def _is_folder(path: Path, read_name: Callable[[str], object]) -> bool:
    """True if the path is a folder whose name ``read_name`` can read."""
    try:
        read_name(path.name)
    except ValueError:
        return False
    return path.is_dir()


def _write_once(path: Path, content: bytes) -> None:
    """Write under another name, flush to the disk, then take the final name, which must be free."""
    if path.exists():
        raise GpufareError(f"{path} already exists; the archive is never overwritten")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.writing")
    try:
        with naming(path), temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o444)
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    flush(path.parent)
