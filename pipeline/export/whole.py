"""Exports the published tables as CSV or Parquet, some split by day, and a small set for spreadsheets."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import duckdb

from pipeline.catalog.schema import table_names
from pipeline.export.cells import BYTE_ORDER_MARK, DATETIME, csv_cell
from pipeline.export.folder import ExportError, replaced
from pipeline.export.package import resource, write_descriptor
from pipeline.export.tables import BY_DAY, Table, described
from pipeline.home.disk import naming
from pipeline.warehouse.connection import path_for_duckdb, quoted
from pipeline.warehouse.query import ask

Form = Literal["csv", "parquet"]

TITLE = "Cloud-GPU prices and the cheapest GPU per training workload"

ROWS_OF_PAGES = {"rejects": ("raw",)}
"""For each table, the columns that quote the sources' pages verbatim; a republished export omits them."""

LATEST = "latest"
"""The small set's folder, and its name for ``--tables``."""


@dataclass(frozen=True, slots=True)
class Small:
    """A table of the small set, with its rows and columns (by default, all of them)."""

    table: str
    description: str
    rows: str = "TRUE"
    columns: tuple[str, ...] = ()


SMALL = {
    "cheapest": Small(
        "cheapest_gpu_per_workload",
        "The three cheapest ways to run each workload, of each price kind.",
        "objective = 'cost' AND rank <= 3",
        (
            *("day", "workload", "price_kind", "rank", "model", "method", "tokens", "gpu", "gpu_id"),
            *("gpu_count", "provider", "source", "region", "country", "total_usd", "total_usd_low"),
            *("total_usd_high", "hours", "tokens_per_second", "usd_per_gpu_hour", "fit_probability"),
            "price_day",
        ),
    ),
    "prices": Small(
        "price_list",
        "The five lowest prices per hour of each GPU and price kind among the ranked offers.",
        "TRUE QUALIFY 5 >= "
        "row_number() OVER (PARTITION BY gpu_id, price_kind ORDER BY usd_per_gpu_hour, source, rowid) "
        "ORDER BY rowid",
    ),
    "gpus": Small("gpu_compare", "Each GPU with a price: facts and cheapest prices.", "providers > 0"),
    "market": Small(
        "market_index",
        "What each GPU costs on the newest day, over all providers.",
        "day = (SELECT max(day) FROM main.market_index)",
    ),
    "sources": Small("source_health", "Each source: whether it answered, and the age of its prices."),
    "publication": Small("publication", "The published day, and the number of offers."),
}


def export(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    form: Form,
    tables: Sequence[str] = (),
    since: date | None = None,
    *,
    republishable: bool = False,
) -> list[str]:
    """Write tables and ``datapackage.json``. Return a line for each daily table without rows.

    ``tables`` may include LATEST, the small set; the default is all tables and LATEST. ``since`` omits
    earlier rows of tables with a ``day`` column. ``republishable`` omits the columns in ROWS_OF_PAGES. Raises
    ExportError for unpublished tables and for a folder with other files, and QueryError.
    """
    wanted = _chosen(tables)
    with replaced(folder) as new:
        keyed = wanted - set(BY_DAY)
        writer = Writer(connection, new, form, since)
        resources = []
        for name in [name for name in table_names() if name in wanted]:
            omitted = ROWS_OF_PAGES.get(name, ()) if republishable else ()
            table = described(connection, name, keyed, omitted=omitted)
            resources += writer.days(table) if name in BY_DAY else [writer.whole(table)]
        for name, small in SMALL.items() if LATEST in wanted else ():
            table = described(connection, small.table, keyed, only=small.columns)
            path = f"{LATEST}/{name}.csv"
            resources.append(writer.part(table, small.rows, path, small.description, table.schema))
        write_descriptor(new, TITLE, resources, sources_of(connection))
        when = f" since {since}" if since else ""
        return [f"{name}: no rows{when}" for name in BY_DAY if name in wanted and not (new / name).exists()]


def sources_of(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the sources of the published offers and of the exchange rates."""
    query = """SELECT source FROM main.offers UNION SELECT source FROM main.sources
                WHERE kind = 'exchange_rates' ORDER BY 1"""
    return {name for (name,) in ask(connection, query).rows}


def _chosen(asked: Sequence[str]) -> frozenset[str]:
    """Return the requested tables, by default all tables and LATEST. Raises ExportError for other names."""
    names = [*table_names(), LATEST]
    for name in asked:
        if name not in names:
            near = get_close_matches(name, names, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else '`gpufare sql "SHOW TABLES"` lists all'
            raise ExportError(f"no table {name!r} is published; {hint}")
    return frozenset(asked or names)


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes tables into the folder of an export. ``form`` is that of files without another suffix."""

    connection: duckdb.DuckDBPyConnection
    folder: Path
    form: Form
    since: date | None

    def whole(self, table: Table) -> dict[str, Any]:
        """Write a table to one file, and return the resource."""
        rows = f"day >= DATE '{self.since}'" if self.since and "day" in table.types else "TRUE"
        return self.part(table, rows, f"{table.name}.{self.form}", table.comment, table.schema)

    def days(self, table: Table) -> list[dict[str, Any]]:
        """Write a table to one file per day, with one schema for all files, and return the resources (none
        for a table without rows)."""
        query = f'SELECT DISTINCT day FROM main."{table.name}" WHERE day >= ? ORDER BY 1'  # noqa: S608
        days = [day for (day,) in ask(self.connection, query, [self.since or date.min]).rows]
        schema = f"schemas/{table.name}.json"
        if days:
            (self.folder / "schemas").mkdir(exist_ok=True)
            text = json.dumps(table.schema, indent=1) + "\n"
            (self.folder / schema).write_text(text, encoding="utf-8")
        files = {day: f"{table.name}/{day}.{self.form}" for day in days}
        return [
            self.part(table, f"day = DATE '{day}'", file, table.comment, schema)
            for day, file in files.items()
        ]

    def part(
        self, table: Table, rows: str, path: str, description: str, schema: dict[str, Any] | str | None
    ) -> dict[str, Any]:
        """Write some rows of a table to a file in the format its suffix names; return the resource."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        csv = file.suffix == ".csv"
        columns = _csv_columns(table.types) if csv else [f'"{column}"' for column in table.types]
        query = f'SELECT {", ".join(columns)} FROM main."{table.name}" WHERE {rows}'  # noqa: S608 - our own names
        with naming(file):
            if csv:
                self.connection.sql(query).write_csv(path_for_duckdb(file), timestamp_format=DATETIME)
            elif file.suffix == ".json":
                options = f"FORMAT json, ARRAY true, TIMESTAMPFORMAT '{DATETIME}'"
                self.connection.execute(f"COPY ({query}) TO '{quoted(file)}' ({options})")
            else:
                self.connection.sql(query).write_parquet(path_for_duckdb(file), compression="zstd")
        return resource(file, self.folder, description, schema)


def _csv_columns(types: dict[str, str]) -> list[str]:
    """Return the SQL that writes columns to CSV under their names, the first of which starts the file."""
    marks = [BYTE_ORDER_MARK, *[""] * (len(types) - 1)]
    named = zip(types.items(), marks, strict=True)
    return [f'{csv_cell(column, kind)} AS "{mark}{column}"' for (column, kind), mark in named]
