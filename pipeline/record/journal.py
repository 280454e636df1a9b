"""Outcomes, exchange rates and incidents: the entries of one SQLite file, ``record/journal.sqlite``.

Any process may write at any time: SQLite lets one after the other. An entry that is written again gets a new
number, so what is new since a build is what has a higher number than the last entry that it loaded. The file
also marks the home as one of this layout.
"""

import hashlib
import os
import sqlite3
import uuid
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
from pipeline.record.months import JOURNAL, TABLES, months

LAYOUT = 1
"""The layout of a home that this version reads and writes, kept as the file's user_version."""

BUSY_SECONDS = 60.0
"""How long a write waits for those of other processes; each takes milliseconds."""

_UNMARKED = ("offers", "outcomes")
"""Folders of a home that was filled before homes were marked."""

_SCHEMA = """
CREATE TABLE entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    day TEXT NOT NULL,
    name TEXT NOT NULL,
    content TEXT NOT NULL,
    UNIQUE (kind, source, day, name)
) STRICT;
CREATE TABLE identity (id TEXT NOT NULL, mended INTEGER NOT NULL) STRICT;
"""


class HomeLayoutError(GpufareError):
    """The home is of another version: says where it is and what to set."""


class Entry(NamedTuple):
    """An entry: ``kind`` is outcome, exchange_rates or incident, ``content`` is JSON.

    ``name`` tells a day's entries apart: an outcome's attempt, an incident's hash; empty for rates.
    """

    number: int
    kind: str
    source: str
    day: date
    name: str
    content: str


class Journal:
    """Reads and writes the entries of a home. Raises HomeLayoutError, and RecordError for a damaged file."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @property
    def path(self) -> Path:
        """The file."""
        return self._home.record / JOURNAL

    def begin(self) -> None:
        """Make the file where the home has none yet. Raises UnwritableError."""
        if not self.path.exists():
            with self._writing():
                pass

    def replace(self, entries: Iterable[Entry]) -> None:
        """Put a file with these entries, under their numbers, in the place of a damaged one, in one step.

        Until ``finish_mending``, ``damage`` says that it lacks entries. Raises UnwritableError.
        """
        with replacing(self.path) as temporary:
            connection = sqlite3.connect(temporary, isolation_level=None)
            try:
                _create(connection, mended=False)
                connection.execute("BEGIN")
                connection.executemany(
                    "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)",
                    [(*entry[:3], f"{entry.day}", *entry[4:]) for entry in entries],
                )
                connection.execute("COMMIT")
            except sqlite3.OperationalError as error:
                raise _os_error(error) from error
            finally:
                connection.close()
        flush(self.path.parent)

    def finish_mending(self) -> None:
        """Note that what the file lacked has been read again. Raises UnwritableError."""
        with self._writing() as connection:
            connection.execute("UPDATE identity SET mended = 1")

    def write(self, kind: str, source: str, day: date, name: str, content: str) -> None:
        """Keep an entry in place of an earlier one of that name. Raises UnwritableError."""
        self.write_all([Entry(0, kind, source, day, name, content)])

    def write_all(self, entries: Iterable[Entry]) -> None:
        """Keep entries, all or none, under new numbers. Raises UnwritableError."""
        with self._writing() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO entries (kind, source, day, name, content) VALUES (?, ?, ?, ?, ?)",
                [(*entry[1:3], f"{entry.day}", *entry[4:]) for entry in entries],
            )

    def remove(self, source: str) -> None:
        """Remove a source's entries. The journal gets another identity: builds load all of it again."""
        with self._writing() as connection:
            connection.execute("DELETE FROM entries WHERE source = ?", [source])
            connection.execute("UPDATE identity SET id = ?", [uuid.uuid4().hex])

    def entries(
        self, kind: str, source: str | None = None, day: date | None = None, *, after: int = 0
    ) -> list[Entry]:
        """Return the entries of a kind (of one source, of one day) in the order of their days and names;
        with ``after`` only those with a higher number."""
        query = "SELECT number, kind, source, day, name, content FROM entries WHERE kind = ? AND number > ?"
        values: list[object] = [kind, after]
        for column, value in (("source", source), ("day", day)):
            if value is not None:
                query += f" AND {column} = ?"
                values.append(f"{value}")
        rows = self._read(f"{query} ORDER BY source, day, name", values)
        with readable(self.path, "journal", ""):
            return [
                Entry(number, kind, of, date.fromisoformat(at), name, content)
                for number, kind, of, at, name, content in rows
            ]

    def days(self, kind: str, source: str | None = None) -> list[date]:
        """Return the days with entries of a kind (of one source), oldest first."""
        query, values = "SELECT DISTINCT day FROM entries WHERE kind = ?", [kind]
        if source is not None:
            query, values = f"{query} AND source = ?", [kind, source]
        rows = self._read(f"{query} ORDER BY day", values)
        with readable(self.path, "journal", ""):
            return [date.fromisoformat(day) for (day,) in rows]

    def sources(self) -> set[str]:
        """Return the sources that have outcomes."""
        return {
            source for (source,) in self._read("SELECT DISTINCT source FROM entries WHERE kind = 'outcome'")
        }

    def last(self) -> int:
        """Return the highest number of an entry; 0 when there is none."""
        return int((self._read("SELECT coalesce(max(number), 0) FROM entries") or [(0,)])[0][0])

    def last_through(self, day: date) -> int:
        """Return the number up to which all outcomes and exchange rates are of days up to ``day``."""
        query = """
            SELECT coalesce(min(number) FILTER (WHERE day > ?) - 1, max(number), 0)
            FROM entries
            WHERE kind <> 'incident'"""
        return int((self._read(query, [f"{day}"]) or [(0,)])[0][0])

    def fingerprint(self, number: int) -> str:
        """Return a hash of the entry with a number; '' when there is none."""
        rows = self._read("SELECT kind, source, day, name, content FROM entries WHERE number = ?", [number])
        return hashlib.sha256("\0".join(rows[0]).encode()).hexdigest()[:16] if rows else ""

    def identity(self) -> str | None:
        """Return what tells this file from one made in its place; None when there is no file."""
        return next((str(each) for (each,) in self._read("SELECT id FROM identity")), None)

    def damage(self) -> Damage | None:
        """Return what is wrong with the file; None when nothing is, or there is none."""
        try:
            ((found,),) = self._read("PRAGMA integrity_check(1)") or [("ok",)]
            if found == "ok" and self._read("SELECT 1 FROM entries WHERE NOT json_valid(content) LIMIT 1"):
                found = "an entry is not JSON"
            if found == "ok" and self.is_being_mended():
                found = "its mending was interrupted"
        except RecordError as error:
            return error.damage
        return None if found == "ok" else self._damage(str(found))

    def is_being_mended(self) -> bool:
        """Return True between ``replace`` and ``finish_mending``."""
        return bool(self._read("SELECT 1 FROM identity WHERE NOT mended"))

    def _damage(self, reason: str) -> Damage:
        return Damage(self.path, "journal", "", reason, stamp_of(self.path))

    def _read(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return rows; none when there is no file."""
        if not self.path.exists():
            self._require_nothing_recorded("it is gone")
            return []
        with self._connected() as connection:
            if not self._has_layout(connection):
                self._require_nothing_recorded("it is empty")
                return []
            return connection.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            if not self.path.exists():
                self._require_nothing_recorded("it is gone")
                self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._connected() as connection:
                if not self._has_layout(connection):
                    self._require_nothing_recorded("it is empty")
                    _create(connection)
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
        except OSError as error:
            raise UnwritableError(self.path, error) from error

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        connection = None
        if self.path.is_dir():
            raise RecordError(self._damage("a folder is where a file belongs"))
        try:
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
            yield connection
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and _code(error) in _OF_THE_DISK:
                raise UnwritableError(self.path, _os_error(error)) from error
            raise RecordError(self._damage(reason_of(error))) from error
        except UnicodeError as error:
            raise RecordError(self._damage(reason_of(error))) from error
        finally:
            if connection is not None:
                connection.close()

    def _has_layout(self, connection: sqlite3.Connection) -> bool:
        """Return False for a file without tables. Raises HomeLayoutError for another version's."""
        ((layout,),) = connection.execute("PRAGMA user_version")
        if layout not in (0, LAYOUT):
            raise HomeLayoutError(_refusal(self._home))
        return bool(layout)

    def _require_nothing_recorded(self, problem: str) -> None:
        """Raise RecordError where the home has months, whose journal cannot have been empty, or where a file
        is in the place of the record."""
        if any((self._home.root / name).is_dir() for name in _UNMARKED):
            raise HomeLayoutError(_refusal(self._home))
        if self._home.record.exists() and not self._home.record.is_dir():
            problem = f"{self._home.record} is a file: move it away"
        elif not any(months(self._home, table) for table in TABLES):
            return
        raise RecordError(self._damage(problem))


def _create(connection: sqlite3.Connection, *, mended: bool = True) -> None:
    """Fill a new file, unless another process did so meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone() == (0,):
        for statement in _SCHEMA.split(";")[:-1]:
            connection.execute(statement)
        connection.execute("INSERT INTO identity VALUES (?, ?)", [uuid.uuid4().hex, mended])
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
    connection.execute("COMMIT")


def _refusal(home: Home) -> str:
    return (
        f"{home.root} was filled by another version of gpufare and cannot be read: set {HOME_VARIABLE} to "
        "another folder, or move it away"
    )


def read_each(path: Path) -> list[Entry]:
    """Return the entries that can still be read of a damaged file, one by one; none when nothing can."""
    found = []
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            for number in range(1, min(_last_number(connection), path.stat().st_size) + 1):
                with suppress(sqlite3.DatabaseError, ValueError):
                    row = connection.execute(
                        "SELECT kind, source, day, name, content FROM entries WHERE number = ?", [number]
                    ).fetchone()
                    if row is not None:
                        kind, source, day, name, content = row
                        found.append(Entry(number, kind, source, date.fromisoformat(day), name, content))
    except sqlite3.DatabaseError:
        return found
    return found


def _last_number(connection: sqlite3.Connection) -> int:
    """Return the highest number of an entry, as far as it can be told."""
    found = [0]
    for query in ("SELECT seq FROM sqlite_sequence", "SELECT max(number) FROM entries"):
        with suppress(sqlite3.DatabaseError, TypeError, ValueError):
            found.append(int(connection.execute(query).fetchone()[0]))
    return max(found)


_OF_THE_DISK = {
    sqlite3.SQLITE_BUSY: EBUSY,
    sqlite3.SQLITE_LOCKED: EBUSY,
    sqlite3.SQLITE_FULL: ENOSPC,
    sqlite3.SQLITE_READONLY: EROFS,
    sqlite3.SQLITE_CANTOPEN: EIO,
    sqlite3.SQLITE_IOERR: EIO,
}
"""Errors that say nothing about the file's content, as the system would name them."""


def _code(error: sqlite3.Error) -> int:
    """Return the basic code of an error: extended ones have it in their lowest byte."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _os_error(error: sqlite3.OperationalError) -> OSError:
    code = _OF_THE_DISK.get(_code(error), EIO)
    return OSError(code, str(error) if code == EIO else os.strerror(code))
