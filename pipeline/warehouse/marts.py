"""Fills one published table with the query of the same name in sql/marts."""

import duckdb

from pipeline.contracts import paths
from pipeline.warehouse.scripts import BuildError


def fill(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Insert the rows of a table. Raises BuildError."""
    try:
        connection.execute(f"INSERT INTO main.{table} BY NAME {query_of(table)}")
    except duckdb.Error as error:
        raise BuildError(f"sql/marts/{table}.sql: {error}") from error


def is_timeless(table: str) -> bool:
    """Whether the query is marked as depending on the catalogue and the model only."""
    return query_of(table).startswith("-- timeless")


def query_of(table: str) -> str:
    """The query that computes a table."""
    return (paths.SQL_DIR / "marts" / f"{table}.sql").read_text(encoding="utf-8").rstrip().rstrip(";")
