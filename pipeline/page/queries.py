"""The queries of the report, one file each in sql/page, and the formats of their numbers."""

import math
from collections.abc import Callable, Iterator
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

import duckdb

from pipeline.home import paths
from pipeline.warehouse.query import Result, ask

DIGITS = 3
"""Significant digits of estimates that are not amounts of money: hours, speeds and memory."""

BAND_DIGITS = 2
"""Significant digits of a band's ends, the 10th and 90th percentiles, which are never finer than a cent."""

WHOLE_DOLLARS = 1000
"""US dollar amounts of at least this value are shown without cents."""


def query_text(name: str) -> str:
    """Return the text of sql/page/``name``.sql."""
    return (paths.SQL_DIR / "page" / f"{name}.sql").read_text(encoding="utf-8")


def query(connection: duckdb.DuckDBPyConnection, name: str) -> Result:
    """Return the result of one of the report's queries. Raises QueryError."""
    return ask(connection, query_text(name))


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


def digits(number: float | Decimal) -> float | int:
    """Return a number rounded to DIGITS significant digits."""
    return whole(float(f"{float(number):.{DIGITS}g}"))


def outward(low: Decimal, high: Decimal) -> tuple[float | int, float | int]:
    """Return a band rounded to BAND_DIGITS significant digits, or to the cent: the low end down and the high
    end up, so that the total, which has more digits, stays inside the band."""
    return _to_digits(low, ROUND_FLOOR), _to_digits(high, ROUND_CEILING)


def _to_digits(amount: Decimal, rounding: str) -> float | int:
    step = max(Decimal(1).scaleb(amount.adjusted() - BAND_DIGITS + 1), Decimal("0.01"))
    return whole(float((amount / step).to_integral_value(rounding) * step))


def cents(amount: Decimal) -> int:
    """Return US dollars as cents, rounded as shown: to the cent, or to the dollar from WHOLE_DOLLARS on."""
    step = Decimal("0.01") if amount < WHOLE_DOLLARS else Decimal(1)
    return int(amount.quantize(step, ROUND_HALF_UP) * 100)


def dollars_per_hour(price: Decimal) -> float:
    """Return a price in US dollars, rounded as shown: to the cent, or below a dollar to a tenth of a cent."""
    step = Decimal("0.001") if price < 1 else Decimal("0.01")
    return float(price.quantize(step, ROUND_HALF_UP))


def tenths_of_percent(probability: float) -> int:
    """Return a probability in tenths of a percent, rounded down to whole percent; 995 means over 99% but not
    certain, and 5 means above zero but under 1%."""
    if 0.99 < probability < 1:
        return 995
    return 5 if 0 < probability < 0.01 else 10 * math.floor(round(100 * probability, 6))
