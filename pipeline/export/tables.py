"""The published tables as other tools see them: columns, types, units, keys and allowed values."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import duckdb

from pipeline.catalog.schema import Column, read_table
from pipeline.warehouse.query import ask

BY_DAY = ("cheapest_gpu_per_workload", "offers", "ranking_history", "rejects")
"""Tables that grow by many rows a day and are exported to one file per day, such as ``<table>/<day>.csv``."""

FIELD_TYPES = {
    "BOOLEAN": "boolean",
    "DATE": "date",
    "DOUBLE": "number",
    "TIMESTAMP WITH TIME ZONE": "datetime",
    "VARCHAR": "string",
}


@dataclass(frozen=True, slots=True)
class Table:
    """A published table or some of its columns, with each column's DuckDB type and the Table Schema."""

    name: str
    comment: str
    types: dict[str, str]
    schema: dict[str, Any]


def resource_name(table: str) -> str:
    """Return a table's name in a data package, where only lower-case letters, digits and hyphens are safe."""
    return table.replace("_", "-")


def field_type(kind: str) -> str:
    """Return the Table Schema type of a DuckDB type. Raises KeyError for a type without an equivalent."""
    if kind.endswith("[]"):
        return "array"
    if kind.startswith("DECIMAL"):
        return "number"
    return "integer" if "INT" in kind else FIELD_TYPES[kind]


def described(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    resources: Collection[str],
    *,
    only: Collection[str] = (),
    omitted: Collection[str] = (),
) -> Table:
    """Describe a published table: all of its columns or ``only`` some, except those ``omitted``.

    Foreign keys refer only to tables that are ``resources`` of the package. A column is marked as required,
    and a foreign key is given, only if the table's rows satisfy that constraint.
    """
    declared = read_table(table)
    columns = [
        column
        for column in declared.described()
        if column.name not in omitted and (not only or column.name in only)
    ]
    types = {column.name: column.type for column in columns}
    blank = _blank_columns(connection, table, [name for name, kind in types.items() if kind == "VARCHAR"])
    bounds = _bounds(declared.checks)
    fields = []
    for column in columns:
        constraints = {
            **({} if column.nullable or column.name in blank else {"required": True}),
            **({"unique": True} if declared.key == (column.name,) else {}),
            **({"enum": list(column.values)} if column.name in declared.checks else {}),
            **bounds.get(column.name, {}),
        }
        fields.append(_field(column, constraints))
    schema: dict[str, Any] = {"fields": fields}
    if declared.key and set(declared.key) <= types.keys():
        schema["primaryKey"] = list(declared.key)
    named = [column for column in columns if column.key_into in resources]
    if keys := [key for column in named if (key := _foreign_key(connection, table, column))]:
        schema["foreignKeys"] = keys
    return Table(table, declared.comment, types, schema)


def _field(column: Column, constraints: dict[str, Any]) -> dict[str, Any]:
    """Return a column as a field of a Table Schema."""
    return {
        "name": column.name,
        "type": field_type(column.type),
        "description": column.meaning,
        **({"unit": column.unit} if column.unit else {}),
        **({"constraints": constraints} if constraints else {}),
    }


def _bounds(checks: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return the bounds that a table's checks set for its columns, as constraints of a Table Schema."""
    found = {}
    for check in checks:
        if above := re.fullmatch(r"(\w+) > (\d+)", check):
            found[above[1]] = {"exclusiveMinimum": int(above[2])}
        elif between := re.fullmatch(r"(\w+) BETWEEN (\d+) AND (\d+)", check):
            found[between[1]] = {"minimum": int(between[2]), "maximum": int(between[3])}
    return found


def _blank_columns(connection: duckdb.DuckDBPyConnection, table: str, names: list[str]) -> set[str]:
    """Return the columns that contain empty text, which other tools read as a missing value."""
    if not names:
        return set()
    found = ", ".join(f"coalesce(bool_or(\"{name}\" = ''), FALSE)" for name in names)
    (row,) = ask(connection, f'SELECT {found} FROM main."{table}"').rows  # noqa: S608 - our own names
    return {name for name, blank in zip(names, row, strict=True) if blank}


def _foreign_key(connection: duckdb.DuckDBPyConnection, table: str, column: Column) -> dict[str, Any] | None:
    """Return a column's foreign key; None unless it refers to a single column that contains all values."""
    into, name = column.key_into, column.name
    if len(read_table(into).key) != 1:
        return None
    (key,) = read_table(into).key
    query = f"""SELECT count(*) = 0 FROM main."{table}" WHERE "{name}" IS NOT NULL
                    AND "{name}" NOT IN (SELECT "{key}" FROM main."{into}")"""  # noqa: S608 - our own names
    ((holds,),) = ask(connection, query).rows
    reference = {"resource": resource_name(into), "fields": [key]}
    return {"fields": [name], "reference": reference} if holds else None
