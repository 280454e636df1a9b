"""Exports what a monitoring of prices needs as a file of Prometheus' node exporter: ``gpufare.prom``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from pipeline.export.folder import replaced
from pipeline.export.package import resource, write_descriptor
from pipeline.warehouse.query import ask

FILE = "gpufare.prom"


@dataclass(frozen=True, slots=True)
class Gauge:
    """A metric: ``query`` gives a value and then a label per name of ``labels``."""

    name: str
    help: str
    labels: tuple[str, ...]
    query: str


GAUGES = (
    Gauge(
        "gpufare_published_timestamp_seconds",
        "When the prices were published, in seconds since 1970.",
        (),
        "SELECT epoch(as_of_time) FROM main.publication",
    ),
    Gauge(
        "gpufare_source_age_days",
        "Days since the newest accepted prices of a source.",
        ("source",),
        "SELECT age_days, source FROM main.source_health WHERE age_days IS NOT NULL ORDER BY source",
    ),
    Gauge(
        "gpufare_source_offers",
        "Offers of a source's newest accepted day.",
        ("source",),
        "SELECT offers, source FROM main.source_health WHERE offers IS NOT NULL ORDER BY source",
    ),
    Gauge(
        "gpufare_source_offers_ranked",
        "Those of them that rankings use.",
        ("source",),
        "SELECT offers_ranked, source FROM main.source_health WHERE offers_ranked >= 0 ORDER BY source",
    ),
    Gauge(
        "gpufare_source_rejects",
        "Rows of a source's newest accepted day that were not read.",
        ("source",),
        "SELECT rejects, source FROM main.source_health WHERE rejects IS NOT NULL ORDER BY source",
    ),
    Gauge(
        "gpufare_source_last_attempt_accepted",
        "1 where a source's newest attempt was accepted, else 0.",
        ("source",),
        """SELECT last_attempt_accepted::INTEGER, source FROM main.source_health
            WHERE last_attempt_accepted IS NOT NULL ORDER BY source""",
    ),
    Gauge(
        "gpufare_cheapest_total_usd",
        "US dollars for the whole job at its cheapest, by workload and price kind.",
        ("workload", "price_kind", "gpu", "provider"),
        """SELECT total_usd, workload, price_kind, gpu, provider FROM main.cheapest_gpu_per_workload
            WHERE objective = 'cost' AND rank = 1 AND day = (SELECT as_of_day FROM main.publication)
            ORDER BY workload, price_kind""",
    ),
)


def export_prometheus(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[str]:
    """Write the file and the descriptor. Returns a line. Raises ExportError and QueryError."""
    with replaced(folder) as new:
        lines = [line for gauge in GAUGES for line in _lines(gauge, ask(connection, gauge.query).rows)]
        (new / FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
        file = resource("gpufare", new / FILE, new, "Gauges in Prometheus' text format.")
        write_descriptor(new, "Cloud-GPU prices for Prometheus", [file], ())
    samples = sum(not line.startswith("#") for line in lines)
    return [f"{samples} samples of {len(GAUGES)} metrics in {folder / FILE}"]


def _lines(gauge: Gauge, rows: Sequence[tuple[Any, ...]]) -> Iterable[str]:
    yield f"# HELP {gauge.name} {gauge.help}"
    yield f"# TYPE {gauge.name} gauge"
    for value, *labels in rows:
        pairs = ",".join(f'{n}="{_escaped(v)}"' for n, v in zip(gauge.labels, labels, strict=True))
        yield f"{gauge.name}{{{pairs}}} {value}" if pairs else f"{gauge.name} {value}"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
