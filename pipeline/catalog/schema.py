"""The published tables as sql/schema declares them: ``columns.csv`` describes each column once, and
``<table>.yaml`` lists a table's columns by name. warehouse/ddl.py makes the SQL that creates the tables."""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, model_validator

from pipeline.catalog.source_config import CatalogError, read_yaml
from pipeline.home import paths
from pipeline.home.csv_rows import read_csv

OPTIONAL = "?"
"""Follows the name of a nullable column in a table's list of columns."""

KEY_OF = "key of "
"""Prefix of a column's allowed values if the column is a key into another table."""


PURPOSES = {
    "answers": "What a job costs, and on which GPU",
    "prices": "Prices, today and over time",
    "jobs": "What a job can name: workloads, models, GPUs, places",
    "model": "Memory and speed: plans, and the measurements behind them",
    "sources": "Where prices come from, and what went wrong",
    "claims": "What guides claim, checked",
    "file": "About the file itself",
}
"""The purposes of tables, each with its heading, in the order in which the documentation lists them."""


class Column(NamedTuple):
    """A column: its type in DuckDB, the unit of its numbers ('' for none), its meaning, its allowed values
    (empty if any value is allowed), and the table that it is a key into ('' for none)."""

    name: str
    type: str
    unit: str
    meaning: str
    values: tuple[str, ...]
    key_into: str
    nullable: bool


class Table(BaseModel):
    """A table in sql/schema. ``purpose`` is a key of PURPOSES. ``columns`` lists column names in order.
    ``types`` overrides columns.csv; an entry in ``meanings`` or ``allowed`` overrides a column's meaning and
    values. ``checks`` are SQL conditions, or columns with checked values; ``defaults`` and ``generated`` map
    columns to expressions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    purpose: str
    comment: str
    columns: str
    key: tuple[str, ...] = ()
    types: Mapping[str, str] = {}
    meanings: Mapping[str, str] = {}
    allowed: Mapping[str, str] = {}
    checks: tuple[str, ...] = ()
    defaults: Mapping[str, str] = {}
    generated: Mapping[str, str] = {}

    @model_validator(mode="after")
    def _check_names(self) -> "Table":
        if self.purpose not in PURPOSES:
            raise ValueError(f"purpose: {self.purpose!r} is not one of {', '.join(PURPOSES)}")
        own = [name.removesuffix(OPTIONAL) for name in self.columns.split()]
        if unknown := [name for name in own if name not in column_rows()]:
            raise ValueError(f"not in columns.csv: {', '.join(unknown)}")
        named = {*self.key, *self.types, *self.meanings, *self.allowed, *self.defaults, *self.generated}
        if stray := sorted(named - set(own)):
            raise ValueError(f"not among the table's columns: {', '.join(stray)}")
        if bare := [column.name for column in self.described() if not column.meaning]:
            raise ValueError(f"without a meaning: {', '.join(bare)}")
        return self

    def described(self) -> list[Column]:
        """Return the columns in order; the meaning of each column also lists its allowed values."""
        return [self._column(name) for name in self.columns.split()]

    def _column(self, listed: str) -> Column:
        name = listed.removesuffix(OPTIONAL)
        row = column_rows()[name]
        replaced = name in self.meanings or name in self.allowed
        meaning, allowed = self.meanings.get(name, ""), self.allowed.get(name, "")
        if not replaced:
            meaning, allowed = row["meaning"], row["allowed"]
        key_into = allowed.removeprefix(KEY_OF) if allowed.startswith(KEY_OF) else ""
        values = allowed.split("|") if allowed and not key_into else []
        key = [f"Key into {key_into}."] if key_into else []
        one_of = [f"One of {', '.join(values)}."] if values else []
        return Column(
            name,
            self.types.get(name, row["type"]),
            row["unit"],
            " ".join(filter(None, [*key, meaning, *one_of])),
            tuple(value.partition(" (")[0] for value in values),
            key_into,
            listed.endswith(OPTIONAL),
        )


@cache
def column_rows() -> Mapping[str, Mapping[str, str]]:
    """Return the rows of sql/schema/columns.csv, keyed by column name. Raises CatalogError or CsvError."""
    path = paths.SQL_DIR / "schema" / "columns.csv"
    rows = {}
    for row in read_csv(path).rows:
        name = row.values["column"]
        if problem := row.problem or ("the column is described twice" if name in rows else ""):
            raise CatalogError(f"{path}, line {row.line}: {problem}")
        rows[name] = row.values
    return rows


@cache
def table_names() -> list[str]:
    """Return the names of the published tables, sorted."""
    return sorted(path.stem for path in (paths.SQL_DIR / "schema").glob("*.yaml"))


@cache
def read_table(name: str) -> Table:
    """Return the table in sql/schema/``name``.yaml. Raises CatalogError naming the file and the field."""
    return read_yaml(paths.SQL_DIR / "schema" / f"{name}.yaml", Table, name=name)
