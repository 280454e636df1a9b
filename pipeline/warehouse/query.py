"""Opens the published file read-only and runs queries on it."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.warehouse.connection import connect, quoted
from pipeline.warehouse.engine import duckdb

SLOW_OPTIMIZERS = "projection_pullup,statistics_propagation,common_subexpressions,common_subplan"
"""DuckDB's optimizers that take longer on the macros for jobs than they save: a tenth of an answer's time."""

OLD_PUBLICATION_DAYS = 2
"""Commands print a note if the published day is at least this many days old."""


class NotPublishedError(GpufareError):
    """Nothing is published yet; the message names the path and the command to run."""


class DamagedError(GpufareError):
    """The published file cannot be read as a database; the message names its path and the command to run."""


class QueryError(GpufareError):
    """A query cannot be run on the published file; the message is DuckDB's."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a query: column names, DuckDB type names, and rows."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def dicts(self) -> Iterator[dict[str, Any]]:
        """Return the rows as dictionaries."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def first(self, count: int) -> "Result":
        """Return a result with only the first ``count`` rows."""
        return Result(self.columns, self.types, self.rows[:count])


@dataclass(slots=True)
class Stream:
    """The result of a query as it arrives: column names, DuckDB type names, and rows that can be read once.

    Reading a row raises QueryError if the query fails midway.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]


@contextmanager
def reader(
    published: Path, *, writes_files: bool = False, few_rows: bool = False, spills: bool = True
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect to the current published file: read-only, without access to a network and, unless the caller
    writes files, without access to other files. ``few_rows``: queries are planned briefly and run on one
    thread, because each of them reads few rows. Unless the connection ``spills`` to the folder for temporary
    files, a query beyond the memory limit fails.

    The file is attached to an in-memory database, so that a process that opens the file again gets the newest
    one. Raises NotPublishedError and DamagedError.
    """
    if not published.exists():
        remedy = "run `gpufare refresh` first, or `gpufare demo` for sample prices"
        raise NotPublishedError(f"nothing is published at {published} yet: {remedy}")
    with connect() as connection:
        try:
            connection.execute(f"ATTACH '{quoted(published)}' AS gpufare (READ_ONLY)")
            connection.execute("USE gpufare")
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise DamagedError(
                f"{published} cannot be read: `gpufare refresh` writes a new one ({reason})"
            ) from error
        if few_rows:
            connection.execute("SET threads = 1")
            with suppress(duckdb.ParserException):  # another DuckDB may lack one of them
                connection.execute(f"SET disabled_optimizers = '{SLOW_OPTIMIZERS}'")
        if not spills:
            connection.execute("SET temp_directory = ''")
        if not writes_files:
            connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


def age_note(connection: duckdb.DuckDBPyConnection, home: Home, today: date) -> str | None:
    """Return a note if the day published in ``home`` is before yesterday, or after today (the clock was or is
    wrong); otherwise None. Raises QueryError."""
    (day,) = ask(connection, "SELECT as_of_day FROM main.publication").rows[0]
    age_days = (today - day).days
    if 0 <= age_days < OLD_PUBLICATION_DAYS:
        return None
    when = f"{age_days} days ago" if age_days > 0 else f"which is after today ({today} UTC)"
    if home.is_demo:
        return f"note: sample prices of {day}, {when}; for today's: unset {HOME_VARIABLE}; gpufare refresh"
    return f"note: published as of {day}, {when}; run `gpufare refresh` for newer prices"


def ask(connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()) -> Result:
    """Run one query. Raises QueryError."""
    try:
        answer = connection.execute(query, list(parameters))
        if answer is None:  # the query contains only whitespace and comments
            raise QueryError("the query is empty")
        described = answer.description or []
        rows = answer.fetchall() if described else []
    except duckdb.Error as error:
        raise QueryError(_without_class(error)) from error
    return Result(tuple(c[0] for c in described), tuple(str(c[1]) for c in described), rows)


def is_one_reading(connection: duckdb.DuckDBPyConnection, query: str) -> bool:
    """True if a query is one statement, and it reads. Raises QueryError if it cannot be parsed."""
    try:
        kinds = [statement.type for statement in connection.extract_statements(query)]
    except duckdb.Error as error:
        raise QueryError(readable(error)) from error
    return kinds == [duckdb.StatementType.SELECT]


def one_query(connection: duckdb.DuckDBPyConnection, query: str) -> Result:
    """Run one query that reads, such as SELECT, FROM or DESCRIBE. Raises QueryError for anything else, and
    for two columns of one name."""
    if not is_one_reading(connection, query):
        raise QueryError("give one query that reads, such as SELECT or FROM")
    found = ask(connection, query)
    if twice := sorted({name for name in found.columns if found.columns.count(name) > 1}):
        raise QueryError(f"two columns are called {twice[0]}: name them with AS")
    return found


FETCHED_ROWS = 1_000
"""The number of rows that a stream fetches at a time."""


def stream(connection: duckdb.DuckDBPyConnection, query: str) -> Stream:
    """Run one or more queries and stream the rows of the last one, without holding a long result in memory.
    Raises QueryError."""
    try:
        answer = connection.execute(query)
    except duckdb.Error as error:
        raise QueryError(readable(error)) from error
    if answer is None:  # the query contains only whitespace and comments
        raise QueryError("the query is empty")
    described = answer.description or []
    rows = _fetched(answer) if described else iter(())
    return Stream(tuple(c[0] for c in described), tuple(str(c[1]) for c in described), rows)


def _fetched(answer: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    try:
        while rows := answer.fetchmany(FETCHED_ROWS):
            yield from rows
    except duckdb.Error as error:
        raise QueryError(readable(error)) from error


def readable(error: duckdb.Error) -> str:
    """Return DuckDB's message as one line, without candidate functions, then the place in the query."""
    message, line, place = _without_class(error).partition("\nLINE ")
    message = " ".join(message.partition("\n\tCandidate functions")[0].split())
    return f"{message}{line}{place}"


def _without_class(error: duckdb.Error) -> str:
    """Return DuckDB's message without its leading error class."""
    return re.sub(r"^(?:Invalid Input|Catalog|Binder|Parser) Error: ", "", str(error))
