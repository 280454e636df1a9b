"""What a home knows of its store: a database in the home, made again from the store when it is lost.

The tables are a cache of the pushes (``files``, ``captures``), of objects that are there though no push names
them yet (``objects``), of the hashes of local files (``local``), and of the state of each file that this home
and the store last had in common (``base``).
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pipeline.home.paths import Home
from pipeline.store.address import StoreError
from pipeline.store.home_files import LocalFile, read_file, sha256_of

_LAYOUT = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, sha256 TEXT, bytes INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS captures (path TEXT PRIMARY KEY, sha256 TEXT, bytes INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (key TEXT PRIMARY KEY, bytes INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS base (path TEXT PRIMARY KEY, sha256 TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS local (path TEXT PRIMARY KEY, state TEXT, sha256 TEXT, bytes INTEGER)
WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS days (path TEXT PRIMARY KEY, state TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS bodies (key TEXT PRIMARY KEY, path TEXT, sha256 TEXT) WITHOUT ROWID;
"""


class Index:
    """The database, used by one thread."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    def get(self, name: str) -> str | None:
        """A fact about the store or the last push."""
        row = self._connection.execute("SELECT value FROM about WHERE name = ?", [name]).fetchone()
        return None if row is None else str(row[0])

    def set(self, name: str, value: str) -> None:
        """Keep such a fact."""
        self._connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", [name, value])

    def one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        """The first row of a query."""
        row: tuple[Any, ...] | None = self._connection.execute(query, values).fetchone()
        return row

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return self._connection.execute(query, values).fetchall()

    def base(self, path: str) -> str | None:
        """The hash that a file had when home and store last agreed on it; None where they never did."""
        row = self.one("SELECT sha256 FROM base WHERE path = ?", path)
        return None if row is None else str(row[0])

    def hash_of(self, home: Home, file: LocalFile) -> tuple[str, int]:
        """SHA-256 and size of a file of the record; it is read only where its state is not a known one.

        Raises StoreError, OSError for one that cannot be read.
        """
        known = self.one(
            "SELECT sha256, bytes FROM local WHERE path = ? AND state = ?", file.path, file.state
        )
        if known:
            return str(known[0]), int(known[1])
        content = read_file(home.root, file.path)
        self.put("local", [(file.path, file.state, sha256_of(content), len(content))])
        return sha256_of(content), len(content)

    def put(self, table: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Add rows to a table, or replace those with the same key."""
        for row in rows:
            places = ", ".join("?" * len(row))
            self._connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", row)  # noqa: S608

    def delete(self, table: str, paths: Iterable[str]) -> None:
        """Remove rows by their path."""
        for path in paths:
            self._connection.execute(f"DELETE FROM {table} WHERE path = ?", [path])  # noqa: S608

    def save(self) -> None:
        """Keep what was changed until now."""
        self._connection.commit()

    @property
    def number(self) -> int:
        """The newest push that is known; 0 before the first."""
        return int(self.get("number") or 0)


@contextmanager
def index_of(home: Home, address: str) -> Iterator[Index]:
    """The index of a home for one store. One that is damaged is made anew. Raises StoreError, OSError."""
    home.store.mkdir(parents=True, exist_ok=True)
    path = index_path(home, address)
    try:
        connection = _opened(path)
    except sqlite3.DatabaseError:
        for each in home.store.glob(f"{path.name}*"):
            each.unlink()
        connection = _opened(path)
    try:
        yield Index(connection, path)
        connection.commit()
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {error}; delete this file: it is made again from the store") from error
    finally:
        with suppress(sqlite3.Error):
            connection.close()


def index_path(home: Home, address: str) -> Path:
    """The file of a home's index for one store."""
    return home.store / f"{hashlib.sha256(address.encode()).hexdigest()[:16]}.sqlite"


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30)
    try:
        connection.execute("PRAGMA journal_mode = TRUNCATE")  # works on network disks, too
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(_LAYOUT)
    except sqlite3.Error:
        connection.close()
        raise
    return connection
