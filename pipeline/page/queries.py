"""The queries of the report, one file each in sql/page, and their values for JSON."""

import math
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import duckdb

from pipeline.home import paths
from pipeline.warehouse.query import Result, ask


def query(connection: duckdb.DuckDBPyConnection, name: str) -> Result:
    """Return the result of the query in sql/page/``name``.sql. Raises QueryError."""
    return ask(connection, (paths.SQL_DIR / "page" / f"{name}.sql").read_text(encoding="utf-8"))


def rows(connection: duckdb.DuckDBPyConnection, name: str) -> Iterator[dict[str, Any]]:
    """Return the rows of one of the report's queries, as dictionaries. Raises QueryError."""
    return query(connection, name).dicts()


def exact(value: Any) -> Any:
    """Return a value for JSON: decimals as numbers, days as strings, and whole numbers as integers."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return whole(value)
    if isinstance(value, date):
        return value.isoformat()
    return value


def plain(value: Any) -> Any:
    """Return the same as ``exact``, but round fractions to six digits, which is more than are shown."""
    found = exact(value)
    return whole(float(f"{found:.6g}")) if isinstance(found, float) else found


def table(
    connection: duckdb.DuckDBPyConnection, name: str, as_json: Callable[[Any], Any] = plain
) -> dict[str, list[Any]]:
    """Return the columns of one of the report's queries, for JSON. Raises QueryError."""
    found = query(connection, name)
    return {column: [as_json(row[place]) for row in found.rows] for place, column in enumerate(found.columns)}


def whole(number: float) -> float | int:
    """Return a number without a fraction as an integer, which is shorter."""
    return int(number) if number.is_integer() else number


def tenths_of_percent(probability: float) -> int:
    """Return a probability in tenths of a percent, rounded down to whole percent; 995 means over 99% but not
    certain, and 5 means above zero but under 1%."""
    if 0.99 < probability < 1:
        return 995
    return 5 if 0 < probability < 0.01 else 10 * math.floor(round(100 * probability, 6))
