"""Fills one published table with the query of the same name in sql/marts."""

import hashlib
from pathlib import Path

import duckdb

from pipeline.contracts import paths
from pipeline.offers.records import replacing
from pipeline.warehouse.connection import quoted
from pipeline.warehouse.scripts import BuildError


def fill(connection: duckdb.DuckDBPyConnection, table: str, cache: Path | None = None) -> None:
    """Insert the rows of a table. Raises BuildError.

    With a folder ``cache``, a timeless table is computed once per state of the catalogue and the model.
    """
    query = _query(table)
    try:
        if cache is not None and is_timeless(table):
            query = _cached(connection, table, query, cache)
        connection.execute(f"INSERT INTO main.{table} BY NAME {query}")
    except duckdb.Error as error:
        raise BuildError(f"sql/marts/{table}.sql: {error}") from error


def is_timeless(table: str) -> bool:
    """Whether the query is marked as depending on the catalogue and the model only."""
    return _query(table).startswith("-- timeless")


def _query(table: str) -> str:
    return (paths.SQL_DIR / "marts" / f"{table}.sql").read_text(encoding="utf-8").rstrip().rstrip(";")


def _cached(connection: duckdb.DuckDBPyConnection, table: str, query: str, cache: Path) -> str:
    file = cache / f"{table}-{_state_of_model()}.parquet"
    if not file.exists():
        with replacing(file) as temporary:
            connection.execute(f"COPY ({query}) TO '{quoted(temporary)}' (FORMAT parquet)")
            for outdated in cache.glob(f"{table}-*.parquet"):
                outdated.unlink()
    return f"FROM read_parquet('{quoted(file)}')"


def _state_of_model() -> str:
    """A hash over everything that a timeless table depends on."""
    digest = hashlib.sha256()
    for folder in (paths.CATALOG_DIR, paths.SQL_DIR / "model", paths.SQL_DIR / "marts"):
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
