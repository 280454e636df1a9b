"""Loads the catalogue and the record into their tables."""

import csv
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import duckdb

from pipeline.catalog.source_config import CatalogError, SourceConfig, configs
from pipeline.catalog.workloads import workloads
from pipeline.contracts import paths
from pipeline.contracts.paths import Home
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.warehouse.scripts import BuildError

Rows = Sequence[Mapping[str, Any]]


def load_catalog(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the catalogue's tables, as far as they exist: catalog/X.csv into main.X, and those in ``_ROWS``.

    Raises CatalogError naming the file when a column or a value does not fit its table.
    """
    tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    for path in sorted(paths.CATALOG_DIR.glob("*.csv")):
        if path.stem in tables:
            _load_csv(connection, path)
    for table in _ROWS.keys() & tables:
        _insert(connection, table, _ROWS[table]())


def _load_csv(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    with path.open(newline="", encoding="utf-8") as file:
        columns = ", ".join(f'"{name}"' for name in next(csv.reader(file)))
    try:
        connection.execute(
            f"COPY main.{path.stem} ({columns}) FROM '{path}' (HEADER, NULLSTR '', AUTO_DETECT false)"
        )
    except duckdb.Error as error:
        raise CatalogError(f"catalog/{path.name} does not fit its table: {error}") from error


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Rows) -> None:
    """Insert rows with the same keys, by their names. One statement for all: for small tables."""
    names = ", ".join(f'"{name}"' for name in rows[0])
    marks = ", ".join("?" for _ in rows[0])
    connection.execute(
        f"INSERT INTO main.{table} ({names}) VALUES {', '.join(f'({marks})' for _ in rows)}",  # noqa: S608
        [value for row in rows for value in row.values()],
    )


def _source_row(config: SourceConfig) -> dict[str, Any]:
    """One row of the table ``sources``."""
    attributes, billing = config.attributes, config.billing
    return {
        "source": config.name,
        "title": config.title,
        "provider": config.provider,
        "homepage": config.homepage,
        "kind": config.kind,
        "evidence_level": config.evidence.level,
        "evidence_date": config.evidence.date,
        "evidence_note": config.evidence.note,
        "currency": config.currency,
        "key_variables": ", ".join(config.key_variables) or None,
        "needs_key": config.needs_key,
        "disabled": config.disabled,
        "stale_after_days": config.stale_after_days,
        "billing_increment_seconds": billing.increment_seconds,
        "minimum_seconds": billing.minimum_seconds,
        "min_gpu_count": billing.min_gpu_count,
        "charged_while_stopped": billing.charged_while_stopped,
        "storage_usd_per_gb_month": attributes.storage_usd_per_gb_month,
        "egress_usd_per_gb": attributes.egress_usd_per_gb,
        "interconnect": attributes.interconnect,
        "node_network_gbps": attributes.node_network_gbps,
        "max_nodes": attributes.max_nodes,
        "persistent_disk": attributes.persistent_disk,
        "local_nvme": attributes.local_nvme,
        "notes": config.notes or None,
    }


def _source_rows() -> Rows:
    return [_source_row(config) for config in configs().values()]


def _reject_reasons() -> Rows:
    return [
        {"reason": reason.value, "sentence": reason.sentence, "held": reason.held} for reason in RejectReason
    ]


_ROWS = {"sources": _source_rows, "workloads": workloads, "reject_reasons": _reject_reasons}


def load_record(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> None:
    """Load the record up to ``day`` and no further: a past day is built without knowledge of its future.

    Raises BuildError.
    """
    try:
        _load_parquet(connection, "offers", home.offers, day)
        _load_parquet(connection, "rejects", home.rejects, day)
        _load_json(connection, "capture_outcomes", _outcomes(home.outcomes, day), _STANDS)
        _load_json(connection, "exchange_rates", _up_to(home.exchange_rates, "*.json", day))
    except duckdb.Error as error:
        raise BuildError(f"the record under {home.root} cannot be loaded: {error}") from error


def _load_parquet(connection: duckdb.DuckDBPyConnection, table: str, folder: Path, day: date) -> None:
    files = _up_to(folder, "*/*.parquet", day)
    if files:
        connection.execute(
            f"""INSERT INTO main.{table} BY NAME
                SELECT * EXCLUDE (filename), parse_filename(filename, true)::DATE AS day
                  FROM read_parquet(?, filename = true, union_by_name = true)
                 ORDER BY day, source""",  # noqa: S608 - our own table
            [files],
        )


_STANDS = """* REPLACE (
    coalesce(attempt, '') AS attempt,
    accepted AND row_number() OVER (
        PARTITION BY source, day, accepted
        ORDER BY status = 'captured' DESC, if(status = 'captured', 0, rows) DESC, attempt DESC
    ) = 1 AS stands
)"""
"""Which of a day's attempts gave the day's offers. Outcome.merit orders them alike."""


def _load_json(
    connection: duckdb.DuckDBPyConnection, table: str, files: Sequence[str], select: str = "*"
) -> None:
    """Read the table's own columns from the files; other fields are left out."""
    if files:
        columns = connection.execute(
            "SELECT column_name, data_type FROM duckdb_columns()"
            " WHERE table_name = ? AND database_name = current_database()",
            [table],
        ).fetchall()
        connection.execute(
            f"INSERT INTO main.{table} BY NAME SELECT {select} FROM read_json(?, columns = ?)",  # noqa: S608
            [files, dict(columns)],
        )


def load_incidents(connection: duckdb.DuckDBPyConnection, home: Home) -> None:
    """Load the incidents, again if need be. Raises BuildError."""
    try:
        connection.execute("DELETE FROM main.incidents")
        _load_json(connection, "incidents", [str(path) for path in sorted(home.incidents.glob("[!.]*.json"))])
    except duckdb.Error as error:
        raise BuildError(f"{home.incidents} cannot be loaded: {error}") from error


def _outcomes(folder: Path, day: date) -> list[str]:
    """Earlier versions kept one outcome per source and day."""
    attempts = [
        str(path)
        for path in sorted(folder.glob("*/*/[!.]*.json"))
        if date.fromisoformat(path.parent.name) <= day
    ]
    return _up_to(folder, "*/*.json", day) + attempts


def _up_to(folder: Path, pattern: str, day: date) -> list[str]:
    """The files named by a day not after ``day``."""
    return [str(path) for path in sorted(folder.glob(pattern)) if date.fromisoformat(path.stem) <= day]
