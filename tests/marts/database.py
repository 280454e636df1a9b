"""A small database from CSV files: tables, macros and marts of sql/, with rows from a folder."""

import atexit
import csv
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from pipeline.catalog.tables import catalog_rows
from pipeline.offers.build import tier_class
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import create
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.marts import fill

CASES = Path(__file__).parent / "cases"

BASE = CASES / "_base"

AS_OF_DAY = "2026-08-22"

# Values that a case need not repeat in each row; its own values override them.
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "offers": {
        "day": AS_OF_DAY,
        "match_status": "matched",
        "match_rule": "exact",
        "match_confidence": "certain",
        "price_kind": "on_demand",
        "native_currency": "USD",
        "native_unit": "instance_hour",
        "source_url": "https://prices.example",
        "capture_sha256": "00",
    },
    "plans": {
        "model": "m",
        "method": "lora",
        "seq_len": 2048,
        "lora_rank": 16,
        "verdict": "fits",
        "fit_probability": 0.99,
        "micro_batch": 1,
        "checkpointing": "full",
        "sharding": "none",
        "quantization": "none",
        "stack": "hf",
        "offload": "",
        "memory_gib": 40,
        "memory_gib_low": 36,
        "memory_gib_high": 44,
        "usable_memory_gib": 79,
        "memory_margin_gib": 39,
        "bottleneck": "matrix products",
        "training_state_gib": 0,
        "result_gib": 0,
        "model_download_gib": 0,
        "evidence": "interpolated",
    },
    "sources": {
        "kind": "prices",
        "homepage": "https://prices.example",
        "evidence_level": "captured",
        "evidence_date": AS_OF_DAY,
        "evidence_note": "a case",
        "terms_automated": "unknown",
        "currency": "USD",
        "stale_after_days": 7,
        "needs_key": False,
        "serverless_training": True,
        "tier_class": "dedicated",
    },
    "cost_parameters": {"unit": "-", "source": "a case"},
    "machine_sizes": {"evidence": "captured", "read_on": AS_OF_DAY},
    "regions": {},
    "countries": {},
    "workloads": {"max_gpus": 8},
    "gpus": {},
    "models": {},
    "capture_outcomes": {
        "attempt": "",
        "status": "captured",
        "accepted": True,
        "requests": 1,
        "failed_requests": 0,
        "bytes": 0,
        "duration_seconds": 0,
        "retries": 0,
        "rows": 0,
        "rejects": 0,
        "matched": 0,
        "ambiguous": 0,
        "unknown": 0,
    },
    "rejects": {
        "detail": "a case",
        "observed_at": f"{AS_OF_DAY} 06:00:00+00",
        "source_url": "https://prices.example",
        "capture_sha256": "00",
    },
    "reject_reasons": {"sentence": "a case"},
    "incidents": {
        "noticed_at": f"{AS_OF_DAY} 06:00:00+00",
        "kind": "damaged_file",
        "sentence": "a case",
        "reason": "a case",
        "remedy": "a case",
    },
    "exchange_rates": {},
    "job_settings": {},
}


def _rows(folder: Path, table: str) -> list[dict[str, Any]]:
    own = folder / f"{table}.csv"
    path = own if own.exists() else BASE / f"{table}.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [{k: v or None for k, v in row.items()} for row in csv.DictReader(file)]


def _parameters(folder: Path) -> list[dict[str, Any]]:
    """The cost parameters of a case, and those of the base that it does not name."""
    own = _rows(folder, "cost_parameters")
    named = {row["name"] for row in own}
    return own + [row for row in _rows(BASE, "cost_parameters") if row["name"] not in named]


def _completed(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    full = {**DEFAULTS[table], **{k: v for k, v in row.items() if v is not None}}
    if table == "offers":
        full.setdefault("provider", full["source"].title())
        full.setdefault("raw_label", full.get("gpu_id", "?"))
        full.setdefault("observed_at", f"{full['day']} 06:00:00+00")
        full.setdefault("native_price", full.get("usd_per_hour"))
        full.setdefault("tier_class", tier_class(full.get("tier"), full["price_kind"], "dedicated"))
        by_the_gpu = full["native_unit"].startswith("gpu_") and full["gpu_count"] == "1"
        named = "instance_type" in full or "gpu_counts" in full or full["tier_class"] == "marketplace"
        full.setdefault("size_evidence", "assumed" if by_the_gpu and not named else "offered")
        if full.get("usd_per_hour"):
            full.setdefault("usd_per_gpu_hour", Decimal(full["usd_per_hour"]) / Decimal(full["gpu_count"]))
    if table == "plans" and "tokens_per_second" in full:
        full.setdefault("tokens_per_second_low", full["tokens_per_second"])
        full.setdefault("tokens_per_second_high", full["tokens_per_second"])
    if table == "sources":
        full.setdefault("title", full["source"].title())
        full.setdefault("provider", full["source"].title())
    return full


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        full = _completed(table, row)
        names = ", ".join(f'"{name}"' for name in full)
        marks = ", ".join("?" for _ in full)
        connection.execute(f"INSERT INTO main.{table} ({names}) VALUES ({marks})", list(full.values()))


@cache
def _empty() -> Path:
    """A file with every table and macro of sql/ and no rows but the settings of a job, made once."""
    folder = tempfile.mkdtemp(prefix="gpufare-empty-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = Path(folder) / "empty.duckdb"
    with connect(file) as connection:
        create(connection)
        settings = catalog_rows("job_settings.csv")
        _insert(connection, "job_settings", [{k: v or None for k, v in row.items()} for row in settings])
    return file


def with_macros(folder: Path) -> duckdb.DuckDBPyConnection:
    """A database in a folder with every table and macro of sql/ and no rows."""
    return connect(Path(shutil.copy(_empty(), folder / "case.duckdb")))


def set_day(connection: duckdb.DuckDBPyConnection) -> None:
    """Make AS_OF_DAY the day of the publication and the present one, for this connection."""
    connection.execute(f"SET VARIABLE as_of_day = DATE '{AS_OF_DAY}'")
    connection.execute(f"SET VARIABLE today = DATE '{AS_OF_DAY}'")
    connection.execute(f"SET VARIABLE as_of_time = TIMESTAMPTZ '{AS_OF_DAY} 07:00:00+00'")


def from_folder(folder: Path, workplace: Path, queries: Iterable[str]) -> duckdb.DuckDBPyConnection:
    """The database of a case as of AS_OF_DAY, with the marts filled that the queries read, except ``plans``:
    the case lists them.
    """
    connection = with_macros(workplace)
    offers = _rows(folder, "offers")
    named = {row["source"] for row in _rows(folder, "sources")}
    _insert(connection, "sources", _rows(folder, "sources"))
    _insert(connection, "sources", [{"source": s} for s in sorted({o["source"] for o in offers} - named)])
    own = ("gpus", "models", "workloads", "plans", "cost_parameters", "machine_sizes", "regions", "countries")
    recorded = ("capture_outcomes", "rejects", "reject_reasons", "incidents", "exchange_rates")
    for table in own + recorded:
        rows = _parameters(folder) if table == "cost_parameters" else _rows(folder, table)
        _insert(connection, table, rows)
    _insert(connection, "offers", offers)
    set_day(connection)
    lineage = Lineage(connection)
    for mart in lineage.marts(set().union(*map(lineage.names_in, queries))):
        if mart != "plans":
            fill(connection, mart)
    return connection
