"""Worked examples: CSV rows in, rows calculated by hand out. The README of each case shows the arithmetic.

``expected_<name>.csv`` has the rows of the table of that name, or of the query in ``<name>.sql`` of the case.
"""

import csv
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.marts.database import from_folder

CASES = Path(__file__).parent / "cases"


def _cases() -> list[Any]:
    folders = sorted(path for path in CASES.iterdir() if path.is_dir() and path.name != "_base")
    return [pytest.param(folder, id=folder.name) for folder in folders]


def _as_typed(actual: Any, places: int) -> str:
    """The value with as many decimals as the person typed in that column."""
    if actual is None:
        return ""
    if isinstance(actual, bool):
        return str(actual).lower()
    if isinstance(actual, int | float | Decimal):
        return str(
            Decimal(repr(actual) if isinstance(actual, float) else actual).quantize(
                Decimal(1).scaleb(-places), ROUND_HALF_UP
            )
        )
    return str(actual)


def _queried(expected: Path) -> str:
    """The query whose rows a file expects."""
    name = expected.stem.removeprefix("expected_")
    query = expected.with_name(f"{name}.sql")
    return query.read_text(encoding="utf-8") if query.exists() else f"FROM main.{name}"


@pytest.mark.parametrize("folder", _cases())
def test_rows_are_the_ones_worked_out_by_hand(folder: Path, tmp_path: Path) -> None:
    expected_files = {_queried(path): path for path in sorted(folder.glob("expected_*.csv"))}
    assert expected_files, f"{folder.name} expects nothing"
    connection = from_folder(folder, tmp_path, expected_files)
    for query, path in expected_files.items():
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            expected = [list(row.values()) for row in reader]
            columns = list(reader.fieldnames or [])
        names = ", ".join(columns)
        rows = connection.execute(f"SELECT {names} FROM ({query}) ORDER BY {names}").fetchall()
        assert len(rows) == len(expected), f"{path.stem}: {rows}"
        places = [
            max(len(text.partition(".")[2]) for text in column) for column in zip(*expected, strict=True)
        ]
        actual = [[_as_typed(value, typed) for value, typed in zip(row, places, strict=True)] for row in rows]
        assert sorted(actual) == sorted(expected), path.stem


def test_every_case_has_a_readme() -> None:
    assert all((folder.values[0] / "README.md").exists() for folder in _cases())
