"""The CSV and YAML files of the catalogue, checked when they are loaded."""

from typing import TypeVar

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

from pipeline.catalog.source_config import CatalogError
from pipeline.home import paths
from pipeline.home.csv_rows import CsvError, read_csv

Row = TypeVar("Row", bound=BaseModel)
Content = TypeVar("Content")


def catalog_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of catalog/<name>, their values as text by column, '' where empty.

    Raises CatalogError naming the file and the line.
    """
    return [values for _, values in _numbered(name)]


def catalog_table(name: str, kind: type[Row]) -> list[Row]:
    """Return the rows of catalog/<name>, checked. Raises CatalogError naming file, line and column."""
    rows = []
    for line, values in _numbered(name):
        try:
            rows.append(kind.model_validate(values))
        except ValidationError as error:
            raise CatalogError(f"catalog/{name}, line {line}: {first_problem(error)}") from error
    return rows


def catalog_yaml(name: str, kind: type[Content]) -> Content:
    """Return what is in catalog/<name>, checked. Raises CatalogError naming file, entry and value."""
    try:
        content = yaml.safe_load((paths.CATALOG_DIR / name).read_text(encoding="utf-8"))
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        raise CatalogError(f"catalog/{name}: {first_problem(error)}") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CatalogError(f"catalog/{name}: {error}: reinstall gpufare or restore the file") from error


def _numbered(name: str) -> list[tuple[int, dict[str, str]]]:
    try:
        rows = read_csv(paths.CATALOG_DIR / name).rows
    except CsvError as error:
        raise CatalogError(f"{error}: reinstall gpufare or restore the file") from error
    if wrong := next((row for row in rows if row.problem), None):
        raise CatalogError(f"catalog/{name}, line {wrong.line}: {wrong.problem}")
    return [(row.line, row.values) for row in rows]


def first_problem(error: ValidationError) -> str:
    """Say what was wrong with a row first: the column, and why in plain words."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "string_pattern_mismatch":
        return (
            f"{where}: {first['input']!a:.100} is not a name: up to 80 lower-case letters, "
            "digits, dots, dashes and underscores, a letter or digit first"
        )
    return f"{where}: {first['msg']}" if where else first["msg"].removeprefix("Value error, ")
