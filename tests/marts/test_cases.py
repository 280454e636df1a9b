"""Worked examples: CSV rows in, rows calculated by hand out. The README of each case shows the arithmetic.

``expected_<name>.csv`` has the rows of the table of that name, or of the query in ``<name>.sql`` of the case.
"""

import csv
from decimal import ROUND_HALF_UP, Decimal
from math import isfinite
from pathlib import Path
from typing import Any

import pytest

from tests.marts.database import CASES, case

FOLDERS = sorted(path for path in CASES.iterdir() if path.is_dir() and path.name != "_base")


def _as_typed(actual: Any, places: int) -> str:
    """The value with as many decimals as the person typed in that column."""
    if actual is None:
        return ""
    if isinstance(actual, bool):
        return str(actual).lower()
    if isinstance(actual, int | float | Decimal) and isfinite(actual):
        number = Decimal(repr(actual) if isinstance(actual, float) else actual)
        return str(number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP))
    return str(actual)


def _queried(expected: Path) -> str:
    """The query whose rows a file expects."""
    name = expected.stem.removeprefix("expected_")
    query = expected.with_name(f"{name}.sql")
    return query.read_text(encoding="utf-8") if query.exists() else f"FROM main.{name}"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_rows_are_the_ones_worked_out_by_hand(folder: Path) -> None:
    assert (folder / "README.md").exists(), "a case shows its arithmetic"
    queries = {path: _queried(path) for path in sorted(folder.glob("expected_*.csv"))}
    assert queries, f"{folder.name} expects nothing"
    with case(folder, queries.values()) as connection:
        for path, query in queries.items():
            with path.open(newline="", encoding="utf-8") as file:
                columns, *expected = csv.reader(file)
            names = ", ".join(f'"{column}"' for column in columns)
            rows = connection.execute(f"SELECT {names} FROM ({query})").fetchall()
            decimals = [[len(text.partition(".")[2]) for text in row] for row in expected]
            places = [*map(max, zip([0] * len(columns), *decimals, strict=True))]
            actual = [[_as_typed(*cell) for cell in zip(row, places, strict=True)] for row in rows]
            assert sorted(actual) == sorted(expected), path.stem
