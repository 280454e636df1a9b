"""Exports what a monitoring of prices needs as a file of Prometheus' node exporter: ``gpufare.prom``."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from pipeline.export.folder import replaced
from pipeline.export.package import resource, write_descriptor
from pipeline.warehouse.query import Result, ask

FILE = "gpufare.prom"


@dataclass(frozen=True, slots=True)
class Gauge:
    """A metric: the first column of ``query`` is its value, the others are its labels."""

    name: str
    help: str
    query: str


BEST = """FROM main.cheapest_gpu_per_workload
    WHERE rank = 1 AND day = (SELECT as_of_day FROM main.publication)
    ORDER BY workload, price_kind, objective"""
"""One row per workload, price kind and objective."""

GAUGES = (
    Gauge(
        "gpufare_published_timestamp_seconds",
        "When the prices were published, in seconds since 1970.",
        "SELECT epoch(as_of_time) FROM main.publication",
    ),
    Gauge(
        "gpufare_exported_timestamp_seconds",
        "When this file was written, in seconds since 1970.",
        "SELECT epoch(now())",
    ),
    Gauge(
        "gpufare_source_last_accepted_timestamp_seconds",
        "When the newest accepted answer of a source was received, in seconds since 1970.",
        """SELECT epoch(coalesce(max(o.observed_at), h.last_accepted_day::TIMESTAMPTZ)), h.source
            FROM main.source_health AS h
            LEFT JOIN main.capture_outcomes AS o
                ON o.source = h.source AND o.day = h.last_accepted_day AND o.accepted
            WHERE h.last_accepted_day IS NOT NULL GROUP BY h.source, h.last_accepted_day ORDER BY h.source""",
    ),
    Gauge(
        "gpufare_source_accepted",
        "1 where an answer of a source was ever accepted, else 0; of every source that a refresh asks.",
        """SELECT (last_accepted_day IS NOT NULL)::INTEGER, source FROM main.source_health
            WHERE state NOT IN ('disabled', 'needs_permission', 'needs_key') ORDER BY source""",
    ),
    Gauge(
        "gpufare_source_offers",
        "Offers of a source's newest accepted day.",
        "SELECT offers, source FROM main.source_health WHERE offers IS NOT NULL ORDER BY source",
    ),
    Gauge(
        "gpufare_source_offers_ranked",
        "Those of them that rankings use.",
        "SELECT offers_ranked, source FROM main.source_health WHERE offers_ranked >= 0 ORDER BY source",
    ),
    Gauge(
        "gpufare_source_rejects",
        "Rows of a source's newest accepted day that were not read.",
        "SELECT rejects, source FROM main.source_health WHERE rejects IS NOT NULL ORDER BY source",
    ),
    Gauge(
        "gpufare_source_last_attempt_accepted",
        "1 where a source's newest attempt was accepted, else 0.",
        """SELECT last_attempt_accepted::INTEGER, source FROM main.source_health
            WHERE last_attempt_accepted IS NOT NULL ORDER BY source""",
    ),
    Gauge(
        "gpufare_cheapest_total_usd",
        "US dollars for the whole job, run as is best for the objective: the least cost, or the least time.",
        f"SELECT total_usd, workload, price_kind, objective {BEST}",
    ),
    Gauge(
        "gpufare_cheapest_info",
        "1, with the GPU and the provider of gpufare_cheapest_total_usd as labels.",
        f"SELECT 1, workload, price_kind, objective, gpu, provider {BEST}",
    ),
)


def export_prometheus(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[str]:
    """Write the file and the descriptor. Returns a line. Raises ExportError and QueryError."""
    with replaced(folder) as new:
        lines = [line for gauge in GAUGES for line in _lines(gauge, ask(connection, gauge.query))]
        (new / FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
        file = resource(new / FILE, new, "Gauges in Prometheus' text format.")
        write_descriptor(new, "Cloud-GPU prices for Prometheus", [file], ())
    samples = sum(not line.startswith("#") for line in lines)
    return [f"{samples} samples of {len(GAUGES)} metrics in {folder / FILE}"]


def _lines(gauge: Gauge, samples: Result) -> Iterator[str]:
    yield f"# HELP {gauge.name} {gauge.help}"
    yield f"# TYPE {gauge.name} gauge"
    for value, *labels in samples.rows:
        pairs = ",".join(f'{n}="{_escaped(v)}"' for n, v in zip(samples.columns[1:], labels, strict=True))
        yield f"{gauge.name}{{{pairs}}} {value}" if pairs else f"{gauge.name} {value}"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
