"""Everything that the page shows, for JSON, and the arrays of its plans."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from datetime import date, timedelta
from itertools import groupby
from typing import Any

import duckdb

from pipeline.contracts.amounts import LENGTH, UNITS
from pipeline.export.cells import FORMULA_START
from pipeline.page.plans import coded, plans_and_rentals
from pipeline.page.queries import exact, plain, query, rows, table
from pipeline.questions.words import CAUTIONS, PICKS
from pipeline.warehouse.query import ask

HISTORY_DAYS = 366

TABLES = ("gpus", "errors", "error_summary", "sources", "rejects", "left_out", "claims")
"""Queries whose columns the page shows, rounded."""

EXACT_TABLES = ("models", "parameters", "settings", "scenarios", "unplaced")
"""Queries whose columns the page computes with."""


def facts(connection: duckdb.DuckDBPyConnection) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the facts that the page shows, and the arrays of its plans. Raises QueryError if the file is of
    an earlier version."""
    plans, arrays = plans_and_rentals(connection)
    return {
        "published": {name: plain(value) for name, value in next(rows(connection, "published")).items()},
        **{name: table(connection, name) for name in TABLES},
        **{name: table(connection, name, exact) for name in EXACT_TABLES},
        **next(rows(connection, "pick_rule")),
        "names": _names(connection),
        "units": {unit: asdict(known) for unit, known in UNITS.items()},
        "length_unit": asdict(LENGTH),
        "formula_start": FORMULA_START,
        "picks": PICKS,
        "cautions": {code: _template(text) for code, text in CAUTIONS.items()},
        "prices": coded(list(rows(connection, "prices"))),
        "history": _history(connection),
        **plans,
    }, arrays


def _names(connection: duckdb.DuckDBPyConnection) -> dict[str, list[Any]]:
    """Return the names of settings; meanings that are the name itself are null."""
    return coded(
        [
            {**row, "meanings": None if row["meanings"] == [row["name"]] else row["meanings"]}
            for row in rows(connection, "names")
        ]
    )


def _template(text: str) -> str:
    """Return a text whose places have names only: the page fills them with texts."""
    return re.sub(r"\{(\w+)[^}]*\}", r"{\1}", text)


def _history(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return the cheapest price of each day by GPU, price kind and provider, from ``first_day`` on: each
    series gives the day of its first price, and then a price or null for each day."""
    ((newest,),) = ask(connection, "SELECT as_of_day FROM main.publication").rows
    first: date = newest - timedelta(days=HISTORY_DAYS - 1)
    ask(connection, "SET VARIABLE report_first_day = ?::DATE", [first])
    series = [
        _series(key, found) for key, found in groupby(query(connection, "history").rows, lambda row: row[:3])
    ]
    return {"first_day": first.isoformat(), "days": HISTORY_DAYS, "series": series}


def _series(key: tuple[str, str, str], found: Iterator[tuple[Any, ...]]) -> list[Any]:
    prices = {row[3]: round(float(row[4]), 4) for row in found}
    first, last = min(prices), max(prices)
    return [*key, first, [prices.get(day) for day in range(first, last + 1)]]
