"""The archive of raw answers: written once, never changed, read only with its hashes checked.

    <home>/archive/<source>/<YYYY-MM-DD>/<capture id>/0001.json.gz ... index.json

A capture id is the UTC time at which the capture began. Every answer is on disk, with its line in
``journal.jsonl``, before the next is asked; ``index.json`` is written last and takes the journal's place. A
capture without ``index.json`` was interrupted: it can be read, but it is never taken for a whole one.
"""

import gzip
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from pipeline.capture.index import INDEX_NAME, Entry, PagesError, parse_index, read_answer, sha256_of
from pipeline.capture.outcome import CaptureStatus
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import Answer

JOURNAL_NAME = "journal.jsonl"

_ENDINGS = {
    "application/json": "json",
    "text/html": "html",
    "text/csv": "csv",
    "application/xml": "xml",
    "text/xml": "xml",
    "text/plain": "txt",
}


class ArchiveError(GpufareError):
    """A capture is damaged or not there: says which file and what is wrong with it."""


@dataclass(frozen=True, slots=True, order=True)
class Capture:
    """One visit to a source. ``complete`` is False when it was interrupted; ``status`` is then None.
    ``replayed_from`` is None for live answers."""

    source: str
    day: date
    capture_id: str
    path: Path
    complete: bool = True
    status: CaptureStatus | None = None
    replayed_from: str | None = None


class CaptureWriter:
    """Writes one capture. Made by Archive.start; used by one thread."""

    def __init__(self, capture: Capture, about: Mapping[str, Any]) -> None:
        self._capture = capture
        self._about = about
        self._entries: list[Entry] = []

    @property
    def path(self) -> Path:
        """The capture's folder."""
        return self._capture.path

    def add(self, entry: Entry, body: bytes | None) -> Entry:
        """Keep one answer; on return it is on disk. Gives the entry with file, hash and size filled in."""
        if body:
            name = f"{len(self._entries) + 1:04d}.{_ending(entry.headers)}.gz"
            _write_once(self.path / name, gzip.compress(body, compresslevel=6, mtime=0))
            entry = entry.model_copy(update={"file": name, "sha256": sha256_of(body), "bytes": len(body)})
        self._entries.append(entry)
        with (self.path / JOURNAL_NAME).open("a", encoding="utf-8") as journal:
            journal.write(entry.model_dump_json() + "\n")
            journal.flush()
            os.fsync(journal.fileno())
        return entry

    def finish(self, status: CaptureStatus) -> Capture:
        """Close the capture: from now on it is whole and stays as it is."""
        about = {**self._about, "status": status, "finished_at": datetime.now(UTC).isoformat()}
        answers = [entry.model_dump(mode="json") for entry in self._entries]
        content = json.dumps({**about, "answers": answers}, indent=1, ensure_ascii=False)
        _write_once(self.path / INDEX_NAME, content.encode())
        (self.path / JOURNAL_NAME).unlink(missing_ok=True)
        return replace(self._capture, complete=True, status=status)


class Archive:
    """The captures under one folder, ``paths.home().archive``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def start(self, source: str, day: date, *, replayed_from: str | None = None) -> CaptureWriter:
        """Begin a capture in a folder of its own. ``replayed_from``: where a replay's answers came from."""
        moment = datetime.now(UTC)
        while True:
            capture_id = moment.strftime("%Y%m%dT%H%M%S.%fZ")
            path = self.root / source / day.isoformat() / capture_id
            try:
                path.mkdir(parents=True)
                _sync_folder(path.parent)
                break
            except FileExistsError:
                moment += timedelta(microseconds=1)
        about = {
            "source": source,
            "day": day.isoformat(),
            "capture_id": capture_id,
            "replayed_from": replayed_from,
        }
        return CaptureWriter(Capture(source, day, capture_id, path, False, None, replayed_from), about)

    def sources(self) -> list[str]:
        """The sources that have captures, by name."""
        return (
            sorted(path.name for path in self.root.iterdir() if path.is_dir()) if self.root.is_dir() else []
        )

    def days(self, source: str) -> list[date]:
        """The days on which the source has captures, oldest first."""
        folder = self.root / source
        if not folder.is_dir():
            return []
        return sorted(date.fromisoformat(path.name) for path in folder.iterdir() if _is_day(path))

    def captures(self, source: str, day: date | None = None) -> list[Capture]:
        """The source's captures (of one day), oldest first, interrupted ones included."""
        days = self.days(source) if day is None else [day]
        folders = [self.root / source / each.isoformat() for each in days]
        return [
            self._capture(source, date.fromisoformat(folder.name), path)
            for folder in folders
            if folder.is_dir()
            for path in sorted(folder.iterdir())
            if path.is_dir()
        ]

    def latest_capture(self, source: str, day: date | None = None) -> Capture | None:
        """The newest capture of the newest day (or of ``day``) that has answers, None when there is none.

        Of one day's captures, one whose every request was answered goes before a partial one: a failed
        attempt in the evening does not hide the morning's answers.
        """
        for each in reversed(self.days(source)) if day is None else [day]:
            whole = [capture for capture in reversed(self.captures(source, each)) if capture.complete]
            for status in ("captured", "partial"):
                for capture in whole:
                    if capture.status == status:
                        return capture
        return None

    def entries(self, capture: Capture) -> list[Entry]:
        """Every request of the capture with its outcome, those without a body too. Raises ArchiveError."""
        try:
            if (capture.path / INDEX_NAME).exists():
                return parse_index(capture.path / INDEX_NAME)[1]
            return _read_journal(capture.path / JOURNAL_NAME)
        except (PagesError, ValueError, OSError) as error:
            raise ArchiveError(str(error)) from error

    def answers(self, capture: Capture) -> list[Answer]:
        """The answers that a reader may read (status 200, nothing wrong), in the order they were asked.

        Every body's hash is checked. Raises ArchiveError when a file is missing, damaged or changed.
        """
        began = datetime.strptime(capture.capture_id, "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=UTC)
        try:
            return [
                read_answer(capture.path, entry, began) for entry in self.entries(capture) if entry.usable
            ]
        except PagesError as error:
            raise ArchiveError(str(error)) from error

    def _capture(self, source: str, day: date, path: Path) -> Capture:
        """A damaged index makes an incomplete capture: reading it says what is damaged."""
        try:
            about, _ = parse_index(path / INDEX_NAME)
        except PagesError:
            return Capture(source, day, path.name, path, complete=False)
        return Capture(source, day, path.name, path, True, about.get("status"), about.get("replayed_from"))


def _read_journal(path: Path) -> list[Entry]:
    """The entries of an interrupted capture; a last line that was cut while it was written is left out."""
    if not path.exists():
        return []
    whole_lines = path.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()
    return [Entry.model_validate_json(line) for line in whole_lines]


def _is_day(path: Path) -> bool:
    try:
        date.fromisoformat(path.name)
    except ValueError:
        return False
    return path.is_dir()


def _ending(headers: Mapping[str, str]) -> str:
    return _ENDINGS.get(headers.get("content-type", "").split(";")[0].strip().lower(), "bin")


def _write_once(path: Path, content: bytes) -> None:
    """Write under another name, flush to the disk, then take the final name, which must be free."""
    if path.exists():
        raise ArchiveError(f"{path} is there already; the archive is never overwritten")
    temporary = path.with_name(f".{path.name}.writing")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.chmod(0o444)
    temporary.rename(path)
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    """Bring a folder's list of names to the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
