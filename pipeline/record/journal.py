"""Outcomes, exchange rates and incidents: the entries of one SQLite file, ``record/journal.sqlite``.

Any process may write at any time: SQLite serializes the writes. The file also marks the home as
having this layout.
"""

import hashlib
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import date
from errno import EBUSY, EIO, ENOSPC, EROFS
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.contracts.errors import GpufareError
from pipeline.home.disk import UnwritableError, flush, replacing, stamp_of
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.record.damage import Damage, RecordError, readable, reason_of
from pipeline.record.months import JOURNAL, TABLES, SourceDay, months

LAYOUT = 2
"""The home layout that this version reads and writes, stored as the journal's user_version."""

BUSY_SECONDS = 60.0
"""Time limit for waiting for writes by other processes; each write takes milliseconds."""

LEAST_ENTRY_BYTES = 32
"""Lower bound on the size of an entry in the file."""

_SCHEMA = """
CREATE TABLE entries (
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    day TEXT NOT NULL,
    name TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (kind, source, day, name)
) STRICT
"""


class HomeLayoutError(GpufareError):
    """The home belongs to another version; the message says where the home is and what to set."""


class Entry(NamedTuple):
    """A journal entry: ``kind`` is outcome, exchange_rates or incident, and ``content`` is JSON.

    ``name`` tells a day's entries apart: an outcome's attempt or an incident's hash; it is empty for rates.
    """

    kind: str
    source: str
    day: date
    name: str
    content: str


_MENDING = Entry("mending", "", date.min, "", "{}")
"""Marks a file that lacks entries from the damaged file that it replaced."""


class Journal:
    """Reads and writes the entries of a home. Raises HomeLayoutError, and RecordError for a damaged file."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @property
    def path(self) -> Path:
        """The path of the journal's file."""
        return self._home.record / JOURNAL

    def begin(self) -> None:
        """Create the file if it does not exist yet. Raises UnwritableError."""
        if not self.path.exists():
            self.write_all([])

    def replace(self, entries: Iterable[Entry]) -> None:
        """Replace a damaged file, in one step, with a file that contains these entries.

        Until ``finish_mending`` is called, ``damage`` reports missing entries. Raises UnwritableError.
        """
        with replacing(self.path) as temporary, self._connected(temporary) as connection:
            _create(connection)
            connection.execute("BEGIN")
            _insert(connection, [*entries, _MENDING])
            connection.execute("COMMIT")
        flush(self.path.parent)

    def finish_mending(self) -> None:
        """Record that the missing entries have been read again. Raises UnwritableError."""
        with self._writing() as connection:
            connection.execute("DELETE FROM entries WHERE kind = ?", [_MENDING.kind])

    def write(self, kind: str, source: str, day: date, name: str, content: str) -> None:
        """Store an entry, replacing any earlier entry with that name. Raises UnwritableError."""
        self.write_all([Entry(kind, source, day, name, content)])

    def write_all(self, entries: Iterable[Entry]) -> None:
        """Store the entries, either all or none of them. Raises UnwritableError."""
        with self._writing() as connection:
            _insert(connection, entries)

    def remove(self, source: str) -> None:
        """Remove a source's entries. Raises UnwritableError."""
        with self._writing() as connection:
            connection.execute("DELETE FROM entries WHERE source = ?", [source])

    def entries(self, kind: str, source: str | None = None, day: date | None = None) -> list[Entry]:
        """Return the entries of a kind (optionally for one source or day), sorted by source, day and name."""
        query, values = "SELECT * FROM entries WHERE kind = ?", [kind]
        for column, value in (("source", source), ("day", day)):
            if value is not None:
                query += f" AND {column} = ?"
                values.append(f"{value}")
        rows = self._read(f"{query} ORDER BY source, day, name", values)
        with readable(self.path, "journal", ""):
            return [_entry(row) for row in rows]

    def days(self, kind: str, source: str | None = None) -> list[date]:
        """Return the days with entries of a kind (optionally for one source), oldest first."""
        query = (
            "SELECT DISTINCT day FROM entries WHERE kind = ? AND source = coalesce(?, source) ORDER BY day"
        )
        rows = self._read(query, [kind, source])
        with readable(self.path, "journal", ""):
            return [date.fromisoformat(day) for (day,) in rows]

    def sources(self) -> set[str]:
        """Return the sources that have outcomes."""
        rows = self._read("SELECT DISTINCT source FROM entries WHERE kind = 'outcome'")
        return {source for (source,) in rows}

    def digests(self, kind: str, until: date) -> dict[SourceDay, str]:
        """Return a hash of the entries of a kind for each source and day up to ``until``."""
        hashes: dict[SourceDay, Any] = defaultdict(hashlib.sha256)
        for entry in self.entries(kind):
            if entry.day <= until:
                hashes[SourceDay(entry.source, entry.day)].update(f"{entry.name}\0{entry.content}\0".encode())
        return {each: found.hexdigest()[:16] for each, found in hashes.items()}

    def damage(self) -> Damage | None:
        """Return the damage to the journal; None if the journal is sound or missing."""
        try:
            ((found,),) = self._read("PRAGMA integrity_check(1)") or [("ok",)]
            if found == "ok" and self._read("SELECT 1 FROM entries WHERE NOT json_valid(content) LIMIT 1"):
                found = "an entry is not JSON"
            if found == "ok" and self.entries(_MENDING.kind):
                found = "its mending was interrupted"
        except RecordError as error:
            return error.damage
        return None if found == "ok" else self._damage(str(found))

    def _damage(self, reason: str) -> Damage:
        return Damage(self.path, "journal", "", reason, stamp_of(self.path))

    def _read(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query; an empty list if there is no file."""
        if self.path.exists():
            with self._connected(self.path) as connection:
                if self._has_layout(connection):
                    return connection.execute(query, values).fetchall()
        self._require_nothing_recorded()
        return []

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            if not self.path.exists():
                self._require_nothing_recorded()
                self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._connected(self.path) as connection:
                if not self._has_layout(connection):
                    self._require_nothing_recorded()
                    _create(connection)
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
        except OSError as error:
            raise UnwritableError(self.path, error) from error

    @contextmanager
    def _connected(self, path: Path) -> Iterator[sqlite3.Connection]:
        if path.is_dir():
            raise RecordError(self._damage("a folder is where a file belongs"))
        try:
            with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
                yield connection
        except (sqlite3.DatabaseError, UnicodeError) as error:
            if (cause := _disk_error(error)) is not None:
                raise UnwritableError(self.path, cause) from error
            raise RecordError(self._damage(reason_of(error))) from error

    def _has_layout(self, connection: sqlite3.Connection) -> bool:
        """Return False for a file without tables. Raises HomeLayoutError if another version wrote it."""
        ((layout,),) = connection.execute("PRAGMA user_version")
        if layout not in (0, LAYOUT):
            raise HomeLayoutError(
                f"{self._home.root} was filled by another version of gpufare and cannot be read: set "
                f"{HOME_VARIABLE} to another folder, or move it away"
            )
        return bool(layout)

    def _require_nothing_recorded(self) -> None:
        """Raise RecordError if the home has recorded months, since their journal cannot have been empty, or
        if there is a file where the record folder should be."""
        problem = "it is empty" if self.path.exists() else "it is gone"
        if self._home.record.exists() and not self._home.record.is_dir():
            problem = f"{self._home.record} is a file: move it away"
        elif not any(months(self._home, table) for table in TABLES):
            return
        raise RecordError(self._damage(problem))


def _create(connection: sqlite3.Connection) -> None:
    """Create the table in a new file, unless another process has done so meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone() == (0,):
        connection.execute(_SCHEMA)
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
    connection.execute("COMMIT")


def _insert(connection: sqlite3.Connection, entries: Iterable[Entry]) -> None:
    """Insert entries; existing entries get the new content and keep the rowid that read_each relies on."""
    connection.executemany(
        "INSERT INTO entries VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET content = excluded.content",
        [(entry.kind, entry.source, f"{entry.day}", entry.name, entry.content) for entry in entries],
    )


def _entry(row: tuple[str, ...]) -> Entry:
    kind, source, day, name, content = row
    return Entry(kind, source, date.fromisoformat(day), name, content)


def read_each(path: Path) -> list[Entry]:
    """Return the entries of a damaged file that can still be read, one by one."""
    found: list[Entry] = []
    with (
        suppress(sqlite3.DatabaseError),
        closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection,
    ):
        last = most = path.stat().st_size // LEAST_ENTRY_BYTES
        with suppress(sqlite3.DatabaseError):
            ((last,),) = connection.execute("SELECT coalesce(max(rowid), 0) FROM entries")
        for number in range(1, min(last, most) + 1):
            with suppress(sqlite3.DatabaseError, ValueError):
                rows = connection.execute("SELECT * FROM entries WHERE rowid = ?", [number]).fetchall()
                found += map(_entry, rows)
    return found


_DISK_ERRORS = {
    sqlite3.SQLITE_BUSY: EBUSY,
    sqlite3.SQLITE_LOCKED: EBUSY,
    sqlite3.SQLITE_FULL: ENOSPC,
    sqlite3.SQLITE_READONLY: EROFS,
    sqlite3.SQLITE_CANTOPEN: EIO,
    sqlite3.SQLITE_IOERR: EIO,
}
"""SQLite errors that say nothing about the file's content, each with the matching system error code."""


def _disk_error(error: Exception) -> OSError | None:
    """Return the disk error behind an SQLite error, if any. The lowest byte of an extended error code is the
    primary code."""
    code = _DISK_ERRORS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    return None if code is None else OSError(code, str(error) if code == EIO else os.strerror(code))
