"""Sessions of PostgreSQL, for locks that several machines share. Its driver comes with gpufare[machines]."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pipeline.contracts.errors import GpufareError

_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg2")
"""The last is Dagster's way to write it."""

_CONNECTION: Mapping[str, Any] = {
    "connect_timeout": 10,
    "application_name": "gpufare",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""A server that is gone is noticed within a minute."""


class PostgresError(GpufareError):
    """PostgreSQL cannot be used, or a lock of it was lost: says why and what to do."""


def connected(address: str, variable: str, what: str) -> Any:
    """A session that no timeout of the server ends while it waits or holds a lock.

    ``variable`` gave the address; ``what`` says what cannot be done without it. Raises PostgresError.
    """
    parts = urlsplit(address)
    if parts.scheme not in _SCHEMES:
        raise PostgresError(f"{variable} must be postgresql://USER@HOST/DATABASE, not {parts.scheme}:")
    try:
        import psycopg2
    except ImportError as error:
        raise PostgresError(
            f"{variable} names a PostgreSQL database, and its driver is missing: "
            "pip install 'gpufare[machines]'"
        ) from error
    try:
        connection = psycopg2.connect(address.replace("+psycopg2", "", 1), **_CONNECTION)
    except psycopg2.Error as error:
        # The message of a refused connection names host and user, never the password; one of a malformed
        # address quotes it.
        reason = _line(error) if isinstance(error, psycopg2.OperationalError) else "it is malformed"
        raise PostgresError(
            f"{what}, PostgreSQL at {parts.hostname or 'a local socket'}: {reason}; "
            f"start it, or correct {variable}"
        ) from error
    connection.autocommit = True
    asked(connection, _NO_TIMEOUTS, what=what)
    return connection


def asked(connection: Any, query: str, *parameters: int | str, what: str) -> list[tuple[Any, ...]]:
    """The rows of a query. Raises PostgresError, which begins with ``what``."""
    import psycopg2

    try:
        with connection.cursor() as cursor:
            cursor.execute(query, parameters)
            return list(cursor.fetchall()) if cursor.description else []
    except psycopg2.Error as error:
        raise PostgresError(f"{what} ({_line(error)}); try again once PostgreSQL answers") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


_NO_TIMEOUTS = """
SELECT set_config(name, '0', false)
FROM pg_settings
WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_session_timeout')
"""
