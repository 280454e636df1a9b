"""The published tables as other tools see them: columns, types, units, keys and allowed values."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

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

UNITS = (
    (r"usd_per_gpu_hour$", "USD/(GPU h)"),
    (r"usd_per_gb_month$", "USD/(GB month)"),
    (r"usd_per_bf16_tflop_hour$", "USD/(TFLOP/s h)"),
    (r"usd_per_gb_hour$", "USD/(GB h)"),
    (r"usd_per_(hour|hour_saved)$", "USD/h"),
    (r"usd_per_month$", "USD/month"),
    (r"usd_per_unit$", "USD/unit"),
    (r"usd_per_gb$", "USD/GB"),
    (r"usd_per_million_tokens$", "USD/1e6 tokens"),
    (r"tokens_per_usd$", "tokens/USD"),
    (r"tokens_per_second_per_gpu(_|$)", "tokens/(s GPU)"),
    (r"tokens_per_second(_|$)", "tokens/s"),
    (r"tokens_per_example$", "tokens"),
    (r"bytes_per_token$", "B/token"),
    (r"hours_per_month$", "h/month"),
    (r"gbps$", "Gbit/s"),
    (r"gb_(per_second|s)$", "GB/s"),
    (r"tflops$", "TFLOP/s"),
    (r"tdp_w$", "W"),
    (r"(^|_)usd(_low|_high)?$", "USD"),
    (r"(^|_)gib(_low|_high|_with|_without)?$", "GiB"),
    (r"_gb$", "GB"),
    (r"(^|_)bytes$", "B"),
    (r"_seconds$", "s"),
    (r"_minutes$", "min"),
    (r"(^|_)hours(_low|_high)?$|hours_between_", "h"),
    (r"_days$", "d"),
)
"""The unit that a column's name ends in, the longest ending first."""


def schema_path(table: str) -> str:
    """Where in an export the one description of all days of a table is."""
    return f"schemas/{table}.json"


@dataclass(frozen=True, slots=True)
class Column:
    """A published column. ``kind`` is DuckDB's type; ``constraints`` are those of a Table Schema."""

    name: str
    kind: str
    description: str
    constraints: dict[str, Any]

    def field(self) -> dict[str, Any]:
        """The column as a field of a Table Schema."""
        unit = unit_of(self.name) if self.kind not in ("VARCHAR", "BOOLEAN", "DATE") else None
        return {
            "name": self.name,
            "type": field_type(self.kind),
            "description": self.description,
            **({"unit": unit} if unit else {}),
            **({"constraints": self.constraints} if self.constraints else {}),
        }


@dataclass(frozen=True, slots=True)
class Table:
    """A published table. ``references`` are of (column, table, its key): each value of the column that is not
    null is a key of that table."""

    name: str
    description: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    references: tuple[tuple[str, str, str], ...]

    @property
    def has_day(self) -> bool:
        """Whether its rows are of days."""
        return any(column.name == "day" for column in self.columns)

    def only(self, names: Sequence[str]) -> "Table":
        """The table with some of its columns, in their order here."""
        return Table(
            self.name,
            self.description,
            tuple(column for column in self.columns if column.name in names),
            self.primary_key if set(self.primary_key) <= set(names) else (),
            tuple(reference for reference in self.references if reference[0] in names),
        )

    def without(self, names: Collection[str]) -> "Table":
        """The table without some of its columns, whether it has them or not."""
        return self.only([column.name for column in self.columns if column.name not in names])

    def schema(self, resources: frozenset[str]) -> dict[str, Any]:
        """Its Table Schema. Foreign keys are those into tables that are ``resources`` of the package."""
        schema: dict[str, Any] = {"fields": [column.field() for column in self.columns]}
        if self.primary_key:
            schema["primaryKey"] = list(self.primary_key)
        keys = [
            {"fields": [column], "reference": {"resource": resource_name(table), "fields": [key]}}
            for column, table, key in self.references
            if table in resources
        ]
        return schema | ({"foreignKeys": keys} if keys else {})


def resource_name(table: str) -> str:
    """A table's name in a data package, where only small letters, digits and hyphens are safe."""
    return table.replace("_", "-")


def field_type(kind: str) -> str:
    """The type of a Table Schema for a type of DuckDB. Raises KeyError for a type that is not published."""
    if kind.endswith("[]"):
        return "array"
    if kind.startswith("DECIMAL"):
        return "number"
    return "integer" if "INT" in kind else FIELD_TYPES[kind]


def unit_of(column: str) -> str | None:
    """The unit that a column's name says; None for numbers without one."""
    return next((unit for ending, unit in UNITS if re.search(ending, column)), None)


def published_names(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The name of every published table, in order, with what it is."""
    query = """SELECT table_name, comment FROM duckdb_tables()
                WHERE database_name = 'gpufare' AND schema_name = 'main' ORDER BY 1"""
    return dict(ask(connection, query).rows)


def described(connection: duckdb.DuckDBPyConnection, names: Collection[str]) -> list[Table]:
    """These published tables, by name. What their keys and required columns are, their rows must bear out."""
    keys = _primary_keys(connection)
    tables = []
    for name, comment in published_names(connection).items():
        if name in names:
            columns = _columns(connection, name, keys.get(name, ()))
            references = _references(connection, name, columns, keys)
            tables.append(Table(name, comment, columns, keys.get(name, ()), references))
    return tables


def _primary_keys(connection: duckdb.DuckDBPyConnection) -> dict[str, tuple[str, ...]]:
    query = """SELECT table_name, constraint_column_names FROM duckdb_constraints()
                WHERE database_name = 'gpufare' AND constraint_type = 'PRIMARY KEY'"""
    return {table: tuple(columns) for table, columns in ask(connection, query).rows}


def _columns(connection: duckdb.DuckDBPyConnection, table: str, key: tuple[str, ...]) -> tuple[Column, ...]:
    query = """SELECT column_name, data_type, comment, is_nullable FROM duckdb_columns()
                WHERE database_name = 'gpufare' AND schema_name = 'main' AND table_name = ?
                ORDER BY column_index"""
    rows = ask(connection, query, [table]).rows
    checked = _checked_values(connection, table)
    blank = _blank_columns(connection, table, [name for name, kind, _, _ in rows if kind == "VARCHAR"])
    columns = []
    for name, kind, comment, nullable in rows:
        required = {"required": True} if not nullable and name not in blank else {}
        unique = {"unique": True} if key == (name,) else {}
        columns.append(Column(name, kind, comment, required | unique | checked.get(name, {})))
    return tuple(columns)


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


def _references(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: tuple[Column, ...],
    keys: dict[str, tuple[str, ...]],
) -> tuple[tuple[str, str, str], ...]:
    """Where a column's comment calls it a key into a table, and every value of it is one."""
    said = []
    for column in columns:
        into = re.match(r"Key into (\w+)", column.description)
        key = keys.get(into[1], ()) if into else ()
        if into and len(key) == 1 and _holds(connection, (table, column.name), (into[1], key[0])):
            said.append((column.name, into[1], key[0]))
    return tuple(said)


def _holds(connection: duckdb.DuckDBPyConnection, reference: tuple[str, str], key: tuple[str, str]) -> bool:
    (table, column), (into, key_column) = reference, key
    query = f"""SELECT count(*) = 0 FROM main."{table}" WHERE "{column}" IS NOT NULL
                    AND "{column}" NOT IN (SELECT "{key_column}" FROM main."{into}")"""  # noqa: S608
    return bool(ask(connection, query).rows[0][0])
