"""Opens the published file read-only and runs queries on it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import duckdb

from pipeline.contracts.errors import GpufareError
from pipeline.warehouse.connection import connect, quoted

OLD_PUBLICATION_DAYS = 2
"""Commands print a note when the published day is at least so many days ago."""


class NotPublishedError(GpufareError):
    """There is no published file yet: says the path and what to run."""


class DamagedError(GpufareError):
    """The published file is not a database that can be read: says where it is and what to run."""


class QueryError(GpufareError):
    """The query cannot be run on the published file; the message is DuckDB's."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a query: column names, DuckDB type names, rows."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def dicts(self) -> Iterator[dict[str, Any]]:
        """The rows as dictionaries."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def first(self, count: int) -> "Result":
        """The first rows."""
        return Result(self.columns, self.types, self.rows[:count])

    def only(self, columns: Sequence[tuple[str, str]]) -> "Result":
        """Some columns, each as (name, heading)."""
        places = [self.columns.index(name) for name, _ in columns]
        return Result(
            tuple(heading for _, heading in columns),
            tuple(self.types[place] for place in places),
            [tuple(row[place] for place in places) for row in self.rows],
        )


@contextmanager
def reader(published: Path, *, writes_files: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to the published file as it is now: read-only, without network, and without access to
    other files unless the caller writes some.

    It is attached to an in-memory database, so that a process that opens it again later gets the newer file.
    Raises NotPublishedError and DamagedError.
    """
    if not published.exists():
        raise NotPublishedError(f"nothing is published at {published} yet: run `gpufare refresh` first")
    with connect() as connection:
        try:
            connection.execute(f"ATTACH '{quoted(published)}' AS gpufare (READ_ONLY)")
            connection.execute("USE gpufare")
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise DamagedError(
                f"{published} cannot be read: `gpufare refresh` writes a new one ({reason})"
            ) from error
        if not writes_files:
            connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


def age_note(connection: duckdb.DuckDBPyConnection, today: date) -> str | None:
    """A line for people where the published day is before yesterday, or after today (a clock was wrong when
    it was published), else None. Raises QueryError."""
    (day,) = ask(connection, "SELECT as_of_day FROM main.publication").rows[0]
    age_days = (today - day).days
    if age_days < 0:
        return f"note: published as of {day}, which is after today ({today} UTC); run `gpufare refresh`"
    if age_days < OLD_PUBLICATION_DAYS:
        return None
    return f"note: published as of {day}, {age_days} days ago; run `gpufare refresh` for newer prices"


def ask(connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()) -> Result:
    """Run one query. Raises QueryError."""
    try:
        answer = connection.execute(query, list(parameters))
        if answer is None:  # nothing but blanks and comments
            raise QueryError("the query is empty")
        described = answer.description or []
        rows = answer.fetchall() if described else []
    except duckdb.Error as error:
        raise QueryError(str(error)) from error
    return Result(tuple(c[0] for c in described), tuple(str(c[1]) for c in described), rows)
