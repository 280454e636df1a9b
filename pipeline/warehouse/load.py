"""Loads the catalogue into its tables."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from pipeline.catalog.machine_sizes import machine_size_rows
from pipeline.catalog.own import OwnCatalogue, read_own_catalogue
from pipeline.catalog.source_config import CatalogError, SourceConfig, configs
from pipeline.catalog.workloads import workloads
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.home import paths
from pipeline.home.paths import Home

Rows = Sequence[Mapping[str, Any]]


def load_catalog(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the catalogue's tables, as far as they exist: catalog/X.csv into main.X, and those in ``_ROWS``.

    Raises CatalogError naming the file when a column or a value does not fit its table.
    """
    tables = _tables(connection)
    for path in sorted(paths.CATALOG_DIR.glob("*.csv")):
        if path.stem in tables - _ROWS.keys():
            _load_csv(connection, path)
    for table in _ROWS.keys() & tables:
        _insert(connection, table, _ROWS[table]())


def load_planned(connection: duckdb.DuckDBPyConnection, own: OwnCatalogue) -> None:
    """Add to the catalogue's tables, as far as they exist, the user's own rows that plans depend on."""
    for table in own.planned().keys() & _tables(connection):
        _insert(connection, table, own.planned()[table])


def _tables(connection: duckdb.DuckDBPyConnection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}


def load_other_models(connection: duckdb.DuckDBPyConnection, own: OwnCatalogue) -> None:
    """Add the user's own models that are not there yet: plans of published workloads need none of them."""
    loaded = {name for (name,) in connection.execute("SELECT model FROM main.models").fetchall()}
    if rows := [model.row() for model in own.models if model.model not in loaded]:
        _insert(connection, "models", rows)


def load_own_catalogue(connection: duckdb.DuckDBPyConnection, home: Home) -> list[str]:
    """Add the user's own models and GPUs to the catalogue's. Returns what could not be loaded, in lines."""
    own = read_own_catalogue(home)
    load_planned(connection, own)
    load_other_models(connection, own)
    return [problem for _, problem in own.problems]


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
        "terms_automated": config.terms.automated,
        "terms_url": config.terms.url,
        "terms_read_on": config.terms.read_on,
        "terms_note": config.terms.note or None,
        "coverage_share": config.coverage.share,
        "coverage_regions": config.coverage.regions,
        "coverage_with_key": config.coverage.with_key,
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
        "tier_class": attributes.tier_class,
        "country": attributes.country,
        "persistent_disk": attributes.persistent_disk,
        "local_nvme": attributes.local_nvme,
        "serverless_training": attributes.serverless_training,
        "notes": config.notes or None,
    }


def _reject_reasons() -> Rows:
    return [
        {"reason": reason.value, "sentence": reason.sentence, "held": reason.held} for reason in RejectReason
    ]


_ROWS = {
    "sources": lambda: [_source_row(config) for config in configs().values()],
    "workloads": workloads,
    "reject_reasons": _reject_reasons,
    "machine_sizes": machine_size_rows,
}
