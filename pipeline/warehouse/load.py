"""Loads the reviewed facts of catalog/ and the small JSON records into their tables."""

import csv
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import duckdb

from pipeline.catalog.source_config import CatalogError, SourceConfig, configs
from pipeline.contracts import paths
from pipeline.contracts.reject_reasons import RejectReason


def load_catalog(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the catalogue's tables: catalog/X.csv into main.X where sql/schema has it, sources, workloads,
    reject reasons.

    Raises CatalogError naming the file when a column or a value does not fit its table.
    """
    tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    for path in sorted(paths.CATALOG_DIR.glob("*.csv")):
        if path.stem in tables:
            _load_csv(connection, path)
    insert(connection, "sources", [_source_row(config) for config in configs().values()])
    from pipeline.catalog.workloads import workloads

    insert(connection, "workloads", workloads())
    reasons = [{"reason": reason.value, "sentence": reason.sentence} for reason in RejectReason]
    insert(connection, "reject_reasons", reasons)


def _load_csv(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    with path.open(newline="", encoding="utf-8") as file:
        columns = ", ".join(f'"{name}"' for name in next(csv.reader(file)))
    try:
        connection.execute(f"COPY main.{path.stem} ({columns}) FROM '{path}' (HEADER, NULLSTR '')")
    except duckdb.Error as error:
        raise CatalogError(f"catalog/{path.name} does not fit its table: {error}") from error


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


def load_json_records(
    connection: duckdb.DuckDBPyConnection, table: str, folder: Path, pattern: str, day: date
) -> None:
    """Fill a table from the JSON records (named by their day) up to ``day``, with the table's own columns."""
    files = [str(path) for path in sorted(folder.glob(pattern)) if date.fromisoformat(path.stem) <= day]
    if not files:
        return
    columns = connection.execute(
        "SELECT column_name, data_type FROM duckdb_columns()"
        " WHERE table_name = ? AND database_name = current_database()",
        [table],
    ).fetchall()
    connection.execute(
        f"INSERT INTO main.{table} BY NAME FROM read_json(?, columns = ?)",
        [files, dict(columns)],
    )


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows by the names of their keys, all bound as parameters. Small tables only."""
    if not rows:
        return
    columns = list(rows[0])
    names = ", ".join(f'"{name}"' for name in columns)
    marks = ", ".join("?" for _ in columns)
    connection.executemany(
        f"INSERT INTO main.{table} ({names}) VALUES ({marks})",  # noqa: S608 - names are our own
        [[row.get(name) for name in columns] for row in rows],
    )
