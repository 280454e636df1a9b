"""Loads the catalogue into its tables."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from pipeline.catalog.machine_sizes import machine_size_rows
from pipeline.catalog.own import OwnCatalogue
from pipeline.catalog.schema import read_table
from pipeline.catalog.source_config import CatalogError, SourceConfig, configs
from pipeline.catalog.tables import catalog_rows
from pipeline.catalog.workloads import workloads
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gpus.catalogue import accelerators
from pipeline.home import paths
from pipeline.warehouse.connection import quoted

Rows = Sequence[Mapping[str, Any]]


def load_catalog(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the catalogue tables that exist: main.X from catalog/X.csv, and the tables in ``_ROWS``.

    Raises CatalogError naming the file if a column or a value does not fit its table.
    """
    tables = _tables(connection)
    for path in sorted(paths.CATALOG_DIR.glob("*.csv")):
        if path.stem in tables - _ROWS.keys():
            _load_csv(connection, path)
    for table in _ROWS.keys() & tables:
        _insert(connection, table, _ROWS[table]())


def load_own(connection: duckdb.DuckDBPyConnection, own: OwnCatalogue) -> None:
    """Add the user's own rows to the catalogue tables that exist."""
    for table in own.rows().keys() & _tables(connection):
        _insert(connection, table, own.rows()[table])


def _tables(connection: duckdb.DuckDBPyConnection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}


def _load_csv(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    with path.open(newline="", encoding="utf-8") as file:
        columns = ", ".join(f'"{name}"' for name in next(csv.reader(file)))
    try:
        connection.execute(
            f"COPY main.{path.stem} ({columns}) FROM '{quoted(path)}' (HEADER, NULLSTR '', AUTO_DETECT false)"
        )
    except duckdb.Error as error:
        raise CatalogError(f"catalog/{path.name} does not fit its table: {error}") from error


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Rows) -> None:
    """Insert rows that share the same keys, by name and in one statement; meant for small tables."""
    names = ", ".join(f'"{name}"' for name in rows[0])
    marks = ", ".join("?" for _ in rows[0])
    connection.execute(
        f"INSERT INTO main.{table} ({names}) VALUES {', '.join(f'({marks})' for _ in rows)}",  # noqa: S608
        [value for row in rows for value in row.values()],
    )


def _source_row(config: SourceConfig) -> dict[str, Any]:
    """Return a source's row of the table ``sources``. A column is a field of the config, of its billing or
    attributes, or, prefixed with the part's name, of another part."""
    named = {
        f"{part}_{name}": value
        for part in ("evidence", "terms", "coverage")
        for name, value in getattr(config, part)
    }
    facts = {**dict(config), **dict(config.billing), **dict(config.attributes), **named} | {
        "source": config.name,
        "key_variables": ", ".join(config.key_variables),
        "needs_key": config.needs_key,
        "billing_increment_seconds": config.billing.increment_seconds,
    }
    columns = [column.name for column in read_table("sources").described()]
    return {name: None if facts[name] == "" else facts[name] for name in columns}


def _reject_reasons() -> Rows:
    return [
        {"reason": reason.value, "sentence": reason.sentence, "held": reason.held} for reason in RejectReason
    ]


def _out_of_scope() -> Rows:
    """Return the rows of out_of_scope.csv; those without names get the names of the accelerators that
    gpus.csv does not list, with and without their vendor's."""
    listed = {row["model"] for row in catalog_rows("gpus.csv")}
    others = [each for each in accelerators().values() if each.model not in listed]
    names = dict.fromkeys(
        name.replace(" ", "-")
        for each in others
        for name in (each.name, f"{each.vendor} {each.name}" if each.vendor else each.name)
    )
    rows = catalog_rows("out_of_scope.csv")
    return [{**row, "names": row["names"] or ";".join(names)} for row in rows]


_ROWS = {
    "sources": lambda: [_source_row(config) for config in configs().values()],
    "workloads": workloads,
    "reject_reasons": _reject_reasons,
    "machine_sizes": machine_size_rows,
    "out_of_scope": _out_of_scope,
}
