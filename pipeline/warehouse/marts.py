"""Fills one published table with the query of the same name in sql/marts."""

import hashlib
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from pipeline.contracts import paths
from pipeline.contracts.disk import UnwritableError, is_exhaustion
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.paths import Home
from pipeline.offers.record_files import set_aside
from pipeline.offers.records import replacing
from pipeline.warehouse.connection import quoted
from pipeline.warehouse.scripts import BuildError


def fill(connection: duckdb.DuckDBPyConnection, table: str, home: Home | None = None) -> list[Incident]:
    """Insert the rows of a table. Raises BuildError.

    With a home, a timeless table is computed once per state of the catalogue and the model. Returns what is
    wrong with the file in which it is kept; the table is then computed.
    """
    query = _query(table)
    try:
        if home is not None and is_timeless(table):
            return _fill_from_cache(connection, table, query, home)
        _insert(connection, table, query)
    except duckdb.Error as error:
        raise BuildError(f"sql/marts/{table}.sql: {error}") from error
    return []


def _insert(connection: duckdb.DuckDBPyConnection, table: str, query: str) -> None:
    connection.execute(f"INSERT INTO main.{table} BY NAME {query}")


def is_timeless(table: str) -> bool:
    """Whether the query is marked as depending on the catalogue and the model only."""
    return _query(table).startswith("-- timeless")


def _query(table: str) -> str:
    return (paths.SQL_DIR / "marts" / f"{table}.sql").read_text(encoding="utf-8").rstrip().rstrip(";")


def _fill_from_cache(
    connection: duckdb.DuckDBPyConnection, table: str, query: str, home: Home
) -> list[Incident]:
    file = home.cache / f"{table}-{state_of_model()}.parquet"
    kept = f"FROM read_parquet('{quoted(file)}')"
    incidents = []
    if file.exists():
        try:
            _insert(connection, table, kept)
        except duckdb.Error as error:
            if is_exhaustion(error):
                raise
            incidents.append(_set_aside(home, file, str(error).splitlines()[0]))
        else:
            return []
    try:
        with replacing(file) as temporary:
            connection.execute(f"COPY ({query}) TO '{quoted(temporary)}' (FORMAT parquet)")
    except UnwritableError as error:
        _insert(connection, table, query)
        return [*incidents, _incident(home, file, IncidentKind.UNWRITABLE, str(error), "computed without it")]
    _insert(connection, table, kept)
    for outdated in set(home.cache.glob(f"{table}-*.parquet")) - {file}:
        with suppress(OSError):
            outdated.unlink()
    return incidents


def _set_aside(home: Home, file: Path, reason: str) -> Incident:
    try:
        place = set_aside(home, file)
        remedy = f"moved to {place.relative_to(home.root)}, and computed again"
    except OSError as error:
        remedy = f"computed again; it could not be moved to {home.damaged}: {error.strerror}"
    return _incident(home, file, IncidentKind.DAMAGED_FILE, reason, remedy)


def _incident(home: Home, file: Path, kind: IncidentKind, reason: str, remedy: str) -> Incident:
    path = str(file.relative_to(home.root))
    return Incident(at=datetime.now(UTC), kind=kind, path=path, reason=reason, remedy=remedy)


def state_of_model() -> str:
    """A hash over everything that a timeless table depends on."""
    digest = hashlib.sha256(duckdb.__version__.encode())
    folders = [paths.SQL_DIR / name for name in ("schema", "model", "marts")]
    for folder in (paths.CATALOG_DIR, *folders):
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            digest.update(str(path.relative_to(folder.parent)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
