"""The published tables as other tools see them: columns, types, units, keys and allowed values."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import duckdb

from pipeline.catalog.schema import column_rows
from pipeline.warehouse.query import ask

BY_DAY = ("cheapest_gpu_per_workload", "offers", "ranking_history", "rejects")
"""Tables that grow by more than a few rows a day: a file per day, ``<table>/<day>.csv``."""

FIELD_TYPES = {
    "BOOLEAN": "boolean",
    "DATE": "date",
    "DOUBLE": "number",
    "FLOAT": "number",
    "TIMESTAMP WITH TIME ZONE": "datetime",
    "VARCHAR": "string",
}


@dataclass(frozen=True, slots=True)
class Table:
    """A published table, or some columns of it: DuckDB's types by column, and its Table Schema."""

    name: str
    types: dict[str, str]
    schema: dict[str, Any]


def resource_name(table: str) -> str:
    """Return a table's name in a data package, where only small letters, digits and hyphens are safe."""
    return table.replace("_", "-")


def field_type(kind: str) -> str:
    """The type of a Table Schema for a type of DuckDB. Raises KeyError for a type that is not published."""
    if kind.endswith("[]"):
        return "array"
    if kind.startswith("DECIMAL"):
        return "number"
    return "integer" if "INT" in kind else FIELD_TYPES[kind]


def published_names(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return the name of every published table, in order, with what it is."""
    query = """SELECT table_name, comment FROM duckdb_tables()
                WHERE database_name = 'gpufare' AND schema_name = 'main' ORDER BY 1"""
    return dict(ask(connection, query).rows)


def described(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    resources: Collection[str],
    *,
    only: Collection[str] = (),
    left_out: Collection[str] = (),
) -> Table:
    """Describe a published table: all columns or ``only`` some, but for those ``left_out``.

    Foreign keys are those into tables that are ``resources`` of the package. What its keys and required
    columns are, its rows must bear out.
    """
    query = """SELECT column_name, data_type, comment, is_nullable FROM duckdb_columns()
                WHERE database_name = 'gpufare' AND schema_name = 'main' AND table_name = ?
                ORDER BY column_index"""
    columns = [
        column
        for column in ask(connection, query, [table]).rows
        if column[0] not in left_out and (not only or column[0] in only)
    ]
    types = {name: kind for name, kind, _, _ in columns}
    keys = _primary_keys(connection)
    key = keys.get(table, [])
    blank = _blank_columns(connection, table, [name for name, kind in types.items() if kind == "VARCHAR"])
    checked = _checked_values(connection, table)
    fields = []
    for name, kind, comment, nullable in columns:
        required = {"required": True} if not nullable and name not in blank else {}
        unique = {"unique": True} if key == [name] else {}
        fields.append(_field(name, kind, comment, required | unique | checked.get(name, {})))
    schema: dict[str, Any] = {"fields": fields}
    if key and set(key) <= types.keys():
        schema["primaryKey"] = key
    keys_into = {into: keys[into] for into in resources if len(keys.get(into, ())) == 1}
    foreign = [_foreign_key(connection, table, name, comment, keys_into) for name, _, comment, _ in columns]
    if any(foreign):
        schema["foreignKeys"] = [each for each in foreign if each]
    return Table(table, types, schema)


def _field(name: str, kind: str, description: str, constraints: dict[str, Any]) -> dict[str, Any]:
    """Return a column as a field of a Table Schema."""
    unit = column_rows().get(name, {}).get("unit")
    return {
        "name": name,
        "type": field_type(kind),
        "description": description,
        **({"unit": unit} if unit else {}),
        **({"constraints": constraints} if constraints else {}),
    }


def _primary_keys(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    query = """SELECT table_name, constraint_column_names FROM duckdb_constraints()
                WHERE database_name = 'gpufare' AND constraint_type = 'PRIMARY KEY'"""
    return dict(ask(connection, query).rows)


def _blank_columns(connection: duckdb.DuckDBPyConnection, table: str, names: list[str]) -> set[str]:
    """Columns with a blank text in them, which other tools read as no value."""
    if not names:
        return set()
    found = ", ".join(f"coalesce(bool_or(\"{name}\" = ''), FALSE)" for name in names)
    (row,) = ask(connection, f'SELECT {found} FROM main."{table}"').rows  # noqa: S608 - our own names
    return {name for name, blank in zip(names, row, strict=True) if blank}


def _checked_values(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, dict[str, Any]]:
    """The constraints of a Table Schema that the table's CHECKs on one column say."""
    query = """SELECT constraint_column_names[1], constraint_text FROM duckdb_constraints()
                WHERE database_name = 'gpufare' AND table_name = ? AND constraint_type = 'CHECK'
                    AND len(constraint_column_names) = 1"""
    found: dict[str, dict[str, Any]] = {}
    for column, text in ask(connection, query, [table]).rows:
        found.setdefault(column, {}).update(_constraint(text))
    return found


def _constraint(check: str) -> dict[str, Any]:
    condition = re.sub(r'^CHECK\(\("?\w+"?|\)\)$', "", check)
    if condition.startswith(" IN ("):
        return {"enum": [value.replace("''", "'") for value in re.findall(r"'((?:[^']|'')*)'", condition)]}
    if bounds := re.fullmatch(r" BETWEEN (\d+) AND (\d+)", condition):
        return {"minimum": int(bounds[1]), "maximum": int(bounds[2])}
    if bound := re.fullmatch(r" > (\d+)", condition):
        return {"exclusiveMinimum": int(bound[1])}
    return {}


def _foreign_key(
    connection: duckdb.DuckDBPyConnection, table: str, column: str, comment: str, keys: dict[str, list[str]]
) -> dict[str, Any] | None:
    """Return the foreign key of a column whose comment calls it a key into a table with one of ``keys``, and
    whose every value is one."""
    named = re.match(r"Key into (\w+)", comment)
    if not named or named[1] not in keys:
        return None
    into, (key,) = named[1], keys[named[1]]
    query = f"""SELECT count(*) = 0 FROM main."{table}" WHERE "{column}" IS NOT NULL
                    AND "{column}" NOT IN (SELECT "{key}" FROM main."{into}")"""  # noqa: S608 - our own names
    ((holds,),) = ask(connection, query).rows
    return (
        {"fields": [column], "reference": {"resource": resource_name(into), "fields": [key]}}
        if holds
        else None
    )
