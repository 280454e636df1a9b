"""The lock that whoever builds and publishes holds: one writer at a time.

A file of the home, unless GPUFARE_LOCK names a PostgreSQL database: then several machines may write one
home, and the lock is an advisory one of that database, freed with its connection. A database serves one home.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from filelock import FileLock

from pipeline.home.paths import Home
from pipeline.home.postgres import PostgresError, asked, connected

LOCK_VARIABLE = "GPUFARE_LOCK"

_KEY = int.from_bytes(b"gpufare")
"""The advisory lock's number, of at most 63 bits."""

_NONE = "the publishing lock cannot be had"
_LOST = "the publishing lock was lost, so nothing was published"


class Held(Protocol):
    """A lock that is held."""

    def confirm(self) -> None:
        """Raises PostgresError when it is not held any more."""


class _HeldFile:
    def confirm(self) -> None:
        """A file lock lasts as long as its process."""


class _HeldInDatabase:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def confirm(self) -> None:
        """Ask the same session: where it is gone, or another answers in its place, the lock is, too."""
        if not any(ours for ours, _, _ in asked(self._connection, _HOLDER, _KEY, what=_LOST)):
            raise PostgresError(
                f"{_LOST} (PostgreSQL says that this session does not hold it); publish again"
            )


def several_machines(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether other machines may write this home, too: process ids then say nothing of who is at work."""
    return bool(environment.get(LOCK_VARIABLE))


@contextmanager
def publishing_lock(home: Home, environment: Mapping[str, str] = os.environ) -> Iterator[Held]:
    """Wait for the lock and hold it. Raises PostgresError when its database cannot be used."""
    address = environment.get(LOCK_VARIABLE)
    if not address:
        with FileLock(home.lock):
            yield _HeldFile()
        return
    connection = connected(address, LOCK_VARIABLE, _NONE)
    try:
        asked(connection, "SELECT pg_advisory_lock(%s)", _KEY, what=_NONE)
        yield _HeldInDatabase(connection)
    finally:
        connection.close()


def lock_holder(environment: Mapping[str, str] = os.environ) -> str | None:
    """Who holds the lock of PostgreSQL, in words; None while nobody does. Raises PostgresError."""
    connection = connected(environment[LOCK_VARIABLE], LOCK_VARIABLE, _NONE)
    try:
        rows = asked(connection, _HOLDER, _KEY, what=_NONE)
    finally:
        connection.close()
    return next((f"{where}, connected since {since} UTC" for _, where, since in rows), None)


_HOLDER = """
SELECT
    pid = pg_backend_pid(),
    coalesce(host(client_addr), 'a local process'),
    to_char(backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')
FROM pg_locks
JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND objsubid = 1
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND (classid::bigint << 32) + objid::bigint = %s
"""
