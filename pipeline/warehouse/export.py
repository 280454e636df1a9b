"""Writes every published table for other tools: CSV or Parquet files and a data package descriptor."""

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, Literal

import duckdb

from pipeline.contracts.errors import GpufareError
from pipeline.offers.printable import printable
from pipeline.warehouse.query import ask

PACKAGE = "gpufare"
DESCRIPTOR = "datapackage.json"

_UNFINISHED = ".unfinished-"
"""The beginning of the name of a folder, in that of an export, with what is not whole yet."""

FORMULA_START = r"^(?:\s*[=+\-@＝＋－＠]|[\t\r\n])"
"""A spreadsheet would run a cell that starts with one of these, also in wide letters or after spaces; CSV
gets an apostrophe in front."""

DATETIME = "%Y-%m-%dT%H:%M:%S.%fZ"
"""The datetime format of a data package; the connection's time zone is UTC."""

FIELD_TYPES = {
    "BOOLEAN": "boolean",
    "DATE": "date",
    "DOUBLE": "number",
    "FLOAT": "number",
    "TIMESTAMP WITH TIME ZONE": "datetime",
    "VARCHAR": "string",
}


class ExportError(GpufareError):
    """The folder has files in it that no export wrote: says which, and what to do."""


def export(
    connection: duckdb.DuckDBPyConnection, folder: Path, form: Literal["csv", "parquet"]
) -> list[Path]:
    """Write each table and ``datapackage.json`` (Frictionless Data Package). Returns the files written.

    A former export is replaced once the new one is whole. Raises ExportError for a folder with other files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    former = _former_files(folder)
    with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=folder) as unfinished:
        written = _write_all(connection, Path(unfinished), form)
        files = [file.replace(folder / file.name) for file in written]
    for left in former - {file.name for file in files}:
        (folder / left).unlink(missing_ok=True)
    return files


def _former_files(folder: Path) -> set[str]:
    """The files of a former export in the folder, none in an empty one; what an interrupted export left is
    removed. Raises ExportError where anything else is in it."""
    found = set()
    for path in folder.iterdir():
        if path.name.startswith(_UNFINISHED):
            shutil.rmtree(path, ignore_errors=True)
        else:
            found.add(path.name)
    ours = _exported(folder / DESCRIPTOR)
    if others := sorted(found - ours):
        named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        raise ExportError(
            f"{printable(f'{folder} has {named} in it')}, which no export wrote: give a new folder, or an "
            "empty one"
        )
    return found & ours


def _exported(descriptor: Path) -> set[str]:
    """The names of the files that an export wrote, by its descriptor."""
    try:
        package = json.loads(descriptor.read_text(encoding="utf-8"))
        if package["name"] != PACKAGE:
            return set()
        return {DESCRIPTOR, *(str(resource["path"]) for resource in package["resources"])}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _write_all(connection: duckdb.DuckDBPyConnection, folder: Path, form: str) -> list[Path]:
    files, resources = [], []
    for table, comment in _tables(connection):
        columns = _columns(connection, table)
        file = folder / f"{table}.{form}"
        _write(connection, table, columns, file, form)
        files.append(file)
        resources.append(_resource(table, comment, columns, file, form))
    descriptor = folder / DESCRIPTOR
    package = {
        "name": PACKAGE,
        "title": "Cloud-GPU prices and the cheapest GPU per training workload",
        "resources": resources,
    }
    descriptor.write_text(json.dumps(package, indent=1) + "\n", encoding="utf-8")
    return [*files, descriptor]


def _tables(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    query = """SELECT table_name, comment FROM duckdb_tables()
                WHERE database_name = 'gpufare' AND schema_name = 'main' ORDER BY 1"""
    return [(name, comment) for name, comment in ask(connection, query).rows]


def _columns(connection: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str, str]]:
    query = """SELECT column_name, data_type, comment FROM duckdb_columns()
                WHERE database_name = 'gpufare' AND schema_name = 'main' AND table_name = ?
                ORDER BY column_index"""
    return [(name, kind, comment) for name, kind, comment in ask(connection, query, [table]).rows]


def _write(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: list[tuple[str, str, str]],
    file: Path,
    form: str,
) -> None:
    names = [_safe_cell(name, kind) if form == "csv" else f'"{name}"' for name, kind, _ in columns]
    frame = connection.sql(f'SELECT {", ".join(names)} FROM main."{table}"')  # noqa: S608 - our own names
    if form == "csv":
        frame.write_csv(str(file), timestamp_format=DATETIME)
    else:
        frame.write_parquet(str(file))


def _safe_cell(name: str, kind: str) -> str:
    if kind != "VARCHAR":
        return f'"{name}"'
    quote = f"""CASE WHEN regexp_matches("{name}", '{FORMULA_START}') THEN '''' ELSE '' END"""
    return f'{quote} || "{name}" AS "{name}"'


def safe_text(value: Any) -> Any:
    """A value for CSV, prefixed with an apostrophe where a spreadsheet would run it."""
    return f"'{value}" if isinstance(value, str) and re.match(FORMULA_START, value) else value


def _resource(
    table: str, comment: str, columns: list[tuple[str, str, str]], file: Path, form: str
) -> dict[str, Any]:
    fields = [
        {"name": name, "type": _field_type(kind), "description": described}
        for name, kind, described in columns
    ]
    return {
        "name": table.replace("_", "-"),
        "path": file.name,
        "format": form,
        "description": comment,
        "schema": {"fields": fields},
    }


def _field_type(kind: str) -> str:
    if kind.startswith("DECIMAL"):
        return "number"
    if "INT" in kind:
        return "integer"
    return FIELD_TYPES.get(kind, "any")
