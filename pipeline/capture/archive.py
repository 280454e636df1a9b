"""The archive of raw answers: written once, never changed; each body's hash is checked when the body is read.

    <home>/archive/<source>/<YYYY-MM-DD>/<capture id>/0001.json.gz ... index.json

A capture id is the UTC time at which the capture began. Every answer is on disk, with its line in
``journal.jsonl``, before the next request is sent; ``index.json`` is written last and replaces the journal. A
body identical to an earlier one from the newest day with answers is stored as a hard link to the earlier
file: it takes up space once, and a copied folder is still complete.

The folder of a capture without requests (no key, or a disabled source) contains only an ``index.json``. A
capture without an ``index.json`` was interrupted: it can be read, but never counts as complete.
"""

import gzip
import json
import os
import time
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
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
    """Writes one capture. A writer is created by Archive.start and used by a single thread. ``stored`` maps
    the hash of each body from an earlier capture to that body's folder and entry."""

    def __init__(
        self, folder: Path, header: Mapping[str, Any], stored: Mapping[str, tuple[Path, Entry]]
    ) -> None:
        self.folder = folder
        self._header = header
        self._started = time.monotonic()
        self._entries: list[Entry] = []
        self._stored = dict(stored)

    def add(self, entry: Entry, body: bytes | None) -> Entry:
        """Store one entry safely on disk, then return it with its file, hash and size filled in."""
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
        """Store a body from an earlier capture as a hard link to the earlier file, to save space.

        The earlier file's hash is checked first, so that damage does not spread. Returns False if there is no
        intact earlier file or hard links are not supported; the caller then writes the body.
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
        """Finish the capture, which is then final, and return it as read back from the archive.

        If no status is given, the entries determine it. ``error``, an error in the source's own code, is
        appended to the first request error; the status is then partial at best.
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
        """Begin a capture in a new folder. ``replayed_from`` says where a replay's answers came from."""
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
        """Return the folder and entry of each body from the newest day with answers, keyed by hash."""
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
            pass  # If a folder cannot be listed, the capture just takes up more space.
        return {}

    def folder(self, capture: Capture) -> Path:
        """Return the folder of an archived capture."""
        if capture.capture_id is None:
            raise GpufareError(f"a capture of {capture.source} on {capture.day} was not archived")
        return self.root / capture.source / capture.day.isoformat() / capture.capture_id

    def sources(self) -> list[str]:
        """Return the names of the sources that have captures, sorted."""
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
        """Return the folders of the source's captures on a day, oldest first."""
        folder = self.root / source / day.isoformat()
        if not folder.is_dir():
            return []
        return sorted(path for path in folder.iterdir() if _is_folder(path, began_at))

    def captures(
        self, source: str, day: date | None = None, *, without: Container[str] = ()
    ) -> list[Capture]:
        """Return the source's captures (on one day, if given), oldest first. Interrupted and damaged captures
        are included; captures whose id is in ``without`` are not."""
        days = self.days(source) if day is None else [day]
        return [
            _read_capture(path)
            for each in days
            for path in self.capture_folders(source, each)
            if path.name not in without
        ]

    def answers(self, capture: Capture) -> list[Answer]:
        """Return the answers that readers may use (status 200, no error), in the order of their requests.

        Checks the hash of every body. Raises PagesError when a file is missing, damaged or changed.
        """
        usable = [entry for entry in capture.entries if entry.usable]
        if not usable:
            return []
        folder = self.folder(capture)
        beginning = datetime.combine(capture.day, datetime.min.time(), UTC)
        return [read_answer(folder, entry, beginning) for entry in usable]

    def answers_beside(self, source: str, day: date, sha256: str) -> list[Answer]:
        """Return all answers of the day's best intact capture that contains a body, given by its hash: the
        newest of those with the most answers. Returns [] if the archive lacks it, or cannot be read."""
        with suppress(OSError):
            found = self.captures(source, day)
            for capture in sorted(found, key=_number_of_answers, reverse=True):
                if any(entry.sha256 == sha256 for entry in capture.entries):
                    with suppress(GpufareError):
                        return self.answers(capture)
        return []


def _number_of_answers(capture: Capture) -> tuple[int, str]:
    return sum(entry.usable for entry in capture.entries), capture.capture_id or ""


def _read_capture(folder: Path) -> Capture:
    """Read a capture from its folder. A capture with a damaged index counts as failed, with the damage as its
    error; a capture without an index was interrupted."""
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
    """Return when a capture began (UTC). Raises ValueError for a string that is not a capture id."""
    return datetime.strptime(capture_id, ID_FORMAT).replace(tzinfo=UTC)


def _read_journal(path: Path) -> tuple[Entry, ...]:
    """Return the entries of an interrupted capture. A truncated last line is skipped."""
    if not path.exists():
        return ()
    whole_lines = path.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()
    return tuple(map(Entry.model_validate_json, whole_lines))


def _is_folder(path: Path, read_name: Callable[[str], object]) -> bool:
    """True if the path is a folder whose name ``read_name`` accepts."""
    try:
        read_name(path.name)
    except ValueError:
        return False
    return path.is_dir()


def _write_once(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, flush it, then rename it to its final name, which must be free."""
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
