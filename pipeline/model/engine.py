"""A throw-away DuckDB holding the fit and speed model: the catalogue's tables and the macros of sql/model."""

import csv
import re
from pathlib import Path

import duckdb

from pipeline.contracts import paths

CATALOG_TABLES = ("gpus", "models", "model_constants", "model_bands", "measured_runs")
# sql/model files from 70 on price a plan and need offers; the files below need the catalogue only.
FIRST_COST_FILE = 70


def model_files() -> list[Path]:
    """The SQL files of the fit and speed model, in the order in which they are executed."""
    files = sorted((paths.SQL_DIR / "model").glob("*.sql"))
    return [path for path in files if int(re.match(r"\d+", path.name)[0]) < FIRST_COST_FILE]  # type: ignore[index]


def _create_table(connection: duckdb.DuckDBPyConnection, table: str, path: Path) -> None:
    schema = paths.SQL_DIR / "schema" / f"{table}.sql"
    connection.execute(schema.read_text(encoding="utf-8"))
    with path.open(newline="", encoding="utf-8") as file:
        columns = ", ".join(f'"{name}"' for name in next(csv.reader(file)))
    connection.execute(f"COPY main.{table} ({columns}) FROM '{path}' (HEADER, NULLSTR '')")


def connect_model() -> duckdb.DuckDBPyConnection:
    """Return an in-memory connection on which memory_of, speed_of and plans_for answer.

    Raises duckdb.Error where a catalogue file does not fit its table.
    """
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    )
    for table in CATALOG_TABLES:
        _create_table(connection, table, paths.CATALOG_DIR / f"{table}.csv")
    for path in model_files():
        connection.execute(path.read_text(encoding="utf-8"))
    return connection
