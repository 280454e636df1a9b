"""The lock that whoever builds and publishes holds: one writer at a time.

A file of the home, unless GPUFARE_LOCK names a PostgreSQL database: then several machines may write one
home, and the lock is an advisory one of that database, freed with its connection. A database serves one home.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit

from filelock import FileLock

from pipeline.contracts.errors import GpufareError
from pipeline.contracts.paths import Home

LOCK_VARIABLE = "GPUFARE_LOCK"

_KEY = int.from_bytes(b"gpufare")
"""The advisory lock's number, of at most 63 bits."""

_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg2")
"""The last is Dagster's way to write it."""

_CONNECTION: Mapping[str, Any] = {
    "connect_timeout": 10,
    "application_name": "gpufare publishing",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""A server that is gone is noticed within a minute."""


class LockError(GpufareError):
    """The publishing lock cannot be had, or was lost: says why and what to do."""


class Held(Protocol):
    """A lock that is held."""

    def confirm(self) -> None:
        """Raises LockError when it is not held any more."""


class _HeldFile:
    def confirm(self) -> None:
        """A file lock lasts as long as its process."""


def several_machines(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether other machines may write this home, too: process ids then say nothing of who is at work."""
    return bool(environment.get(LOCK_VARIABLE))


@contextmanager
def publishing_lock(home: Home, environment: Mapping[str, str] = os.environ) -> Iterator[Held]:
    """Wait for the lock and hold it. Raises LockError when its database cannot be used."""
    address = environment.get(LOCK_VARIABLE)
    if not address:
        with FileLock(home.lock):
            yield _HeldFile()
        return
    with _advisory_lock(address) as held:
        yield held


def lock_holder(environment: Mapping[str, str] = os.environ) -> str | None:
    """Who holds the lock of PostgreSQL, in words; None while nobody does. Raises LockError."""
    connection = _connected(environment[LOCK_VARIABLE])
    try:
        rows = _asked(connection, _HOLDER, _KEY)
    finally:
        connection.close()
    return next((f"{where}, connected since {since} UTC" for _, where, since in rows), None)


class _HeldInDatabase:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def confirm(self) -> None:
        """Ask the same session: where it is gone, or another answers in its place, the lock is, too."""
        if not any(ours for ours, _, _ in _asked(self._connection, _HOLDER, _KEY)):
            raise LockError(_lost("PostgreSQL says that this session does not hold it"))


@contextmanager
def _advisory_lock(address: str) -> Iterator[Held]:
    connection = _connected(address)
    try:
        _asked(connection, "SELECT pg_advisory_lock(%s)", _KEY)
        yield _HeldInDatabase(connection)
    finally:
        connection.close()


def _connected(address: str) -> Any:
    """A session that no timeout of the server ends while it waits or builds."""
    parts = urlsplit(address)
    if parts.scheme not in _SCHEMES:
        raise LockError(f"{LOCK_VARIABLE} must be postgresql://USER@HOST/DATABASE, not {parts.scheme}:")
    try:
        import psycopg2
    except ImportError as error:
        raise LockError(
            f"{LOCK_VARIABLE} names a PostgreSQL database, and its driver is missing: "
            "pip install 'gpufare[machines]'"
        ) from error
    try:
        connection = psycopg2.connect(address.replace("+psycopg2", "", 1), **_CONNECTION)
    except psycopg2.Error as error:
        # The message of a refused connection names host and user, never the password; one of a malformed
        # address quotes it.
        reason = _line(error) if isinstance(error, psycopg2.OperationalError) else "it is malformed"
        raise LockError(
            "the publishing lock cannot be had, PostgreSQL at "
            f"{parts.hostname or 'a local socket'}: {reason}; start it, or correct {LOCK_VARIABLE}"
        ) from error
    connection.autocommit = True
    _asked(connection, _NO_TIMEOUTS)
    return connection


def _asked(connection: Any, query: str, *parameters: int) -> list[tuple[Any, ...]]:
    """Raises LockError."""
    import psycopg2

    try:
        with connection.cursor() as cursor:
            cursor.execute(query, parameters)
            return list(cursor.fetchall())
    except psycopg2.Error as error:
        raise LockError(_lost(_line(error))) from error


def _lost(reason: str) -> str:
    return (
        f"the publishing lock was lost, so nothing was published ({reason}); "
        "publish again once PostgreSQL answers"
    )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


_NO_TIMEOUTS = """
SELECT set_config(name, '0', false)
FROM pg_settings
WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_session_timeout')
"""

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
