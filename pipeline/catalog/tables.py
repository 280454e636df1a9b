"""Reads and checks the catalogue's CSV files."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from pipeline.catalog.source_config import CatalogError
from pipeline.home import paths
from pipeline.home.csv_rows import CsvError, CsvRow, read_csv

Row = TypeVar("Row")


def catalog_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of catalog/<name>; each maps columns to their values as text, '' if empty.

    Raises CatalogError naming the file and the line.
    """
    return [row.values for row in _sound_rows(name)]


def catalog_table(name: str, kind: type[Row]) -> list[Row]:
    """Return the checked rows of catalog/<name>. Raises CatalogError naming the file, line and column."""
    found = []
    for row, each, problem in checked(_sound_rows(name), kind):
        if each is None:
            raise CatalogError(f"catalog/{name}, line {row.line}: {problem}")
        found.append(each)
    return found


def _sound_rows(name: str) -> list[CsvRow]:
    try:
        rows = read_csv(paths.CATALOG_DIR / name).rows
    except CsvError as error:
        raise CatalogError(f"{error}: reinstall gpufare or restore the file") from error
    if wrong := next((row for row in rows if row.problem), None):
        raise CatalogError(f"catalog/{name}, line {wrong.line}: {wrong.problem}")
    return rows


def checked(rows: Iterable[CsvRow], kind: type[Row]) -> Iterator[tuple[CsvRow, Row | None, str]]:
    """Yield each row with the pydantic model or dataclass made from it, or with None and the row's problem.

    An empty value stands for the column's default.
    """
    read = TypeAdapter(kind).validate_python
    for row in rows:
        found, problem = None, row.problem
        if not problem:
            try:
                found = read({column: value for column, value in row.values.items() if value.strip()})
            except ValidationError as error:
                problem = first_problem(error)
        yield row, found, problem


def first_problem(error: ValidationError) -> str:
    """Return the first problem of a row: the column, and the reason in plain words."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "string_pattern_mismatch":
        return (
            f"{where}: {first['input']!a:.100} is not a name: up to 80 lower-case letters, "
            "digits, dots, dashes and underscores, a letter or digit first"
        )
    return f"{where}: {first['msg']}" if where else first["msg"].removeprefix("Value error, ")
