"""Exports the newest offers as machines in other tools' catalogues, and lists the offers omitted there."""

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb

from pipeline.catalog.tables import catalog_rows
from pipeline.export.cells import safe_text
from pipeline.export.folder import replaced
from pipeline.export.package import resource, write_descriptor
from pipeline.warehouse.query import ask

OFFERS = """
    SELECT
        o.source, o.raw_label, o.instance_type, o.gpu_id, o.gpu_count, o.price_kind, o.region, o.vcpus,
        o.ram_gib, o.local_disk_gb, o.usd_per_hour, o.not_ranked_reason, g.vendor, g.memory_gb
    FROM main.offers_latest AS o
    LEFT JOIN main.gpus AS g USING (gpu_id)
    ORDER BY o.source, o.instance_type, o.region, o.usd_per_hour, o.raw_label, o.price_kind
"""

PRICE_KINDS = ("on_demand", "spot")

LACKS = {
    "instance_type": "no name of the machine",
    "region": "no region",
    "vcpus": "no vCPUs",
    "ram_gib": "no memory",
}
"""Columns that other catalogues require but some offers lack."""

LEFT_OUT = "left_out.csv"

Machine = Mapping[str, Any]
"""A machine in a region: its first offer, the tool's names for its ``cloud`` and ``accelerator``, and its
``on_demand`` and ``spot`` prices in USD per hour of the whole machine (None if not offered). ``memory_gb``
is per GPU."""

Columns = Mapping[str, tuple[str, str, Callable[[Mapping[str, Any]], Any]]]
"""The columns of a file, by name: the type, the description, and a function from a row to a value."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A tool's catalogue and its columns.

    ``file`` is the path of the file with a cloud's machines; the path contains {cloud}. Clouds in
    ``always_written`` get a file even without machines. With ``row_per_price``, on-demand and spot prices
    have separate rows with ``price`` and ``is_spot``.
    """

    tool: str
    title: str
    description: str
    file: str
    columns: Columns
    always_written: Sequence[str] = ()
    row_per_price: bool = False

    def rows(self, machine: Machine) -> Iterator[Mapping[str, Any]]:
        """Yield the rows that the catalogue contains for a machine."""
        if not self.row_per_price:
            yield machine
            return
        for kind in PRICE_KINDS:
            if machine[kind] is not None:
                yield {**machine, "price": machine[kind], "is_spot": kind == "spot"}


LEFT_OUT_COLUMNS: Columns = {
    "source": ("string", "Key of the source in gpufare.", itemgetter("source")),
    "raw_label": ("string", "The GPU or machine in the source's own words.", itemgetter("raw_label")),
    "instance_type": ("string", "The source's own name of the machine.", itemgetter("instance_type")),
    "gpu_id": ("string", "Key of the GPU in gpufare.", itemgetter("gpu_id")),
    "gpu_count": ("number", "Number of GPUs.", itemgetter("gpu_count")),
    "price_kind": (
        "string",
        "on_demand, flex_start, spot, reserved or serverless.",
        itemgetter("price_kind"),
    ),
    "region": ("string", "The source's own name of the region.", itemgetter("region")),
    "reasons": (
        "string",
        "All reasons for omitting it, separated by semicolons.",
        lambda offer: "; ".join(offer["reasons"]),
    ),
}


def clouds(tool: str) -> dict[str, str]:
    """Return a tool's names for the sources that it can list."""
    return _tool_names(tool, "clouds.csv", "source", "name")


def accelerators(tool: str) -> dict[str, str]:
    """Return a tool's names for GPUs."""
    return _tool_names(tool, "accelerator_names.csv", "gpu_id", "name")


@cache
def _tool_names(tool: str, file: str, key: str, column: str) -> dict[str, str]:
    rows = catalog_rows(f"consumers/{file}")
    return {row[key]: row[column] for row in rows if row["tool"] == tool and row[column]}


def export_machines(connection: duckdb.DuckDBPyConnection, folder: Path, layout: Layout) -> list[str]:
    """Write a file of machines for each cloud, a file of the omitted offers, and the descriptor.

    Return a summary, as lines. Raises ExportError and QueryError.
    """
    machines, left_out = _split(connection, layout.tool)
    by_cloud: dict[str, list[Mapping[str, Any]]] = {cloud: [] for cloud in layout.always_written}
    for machine in machines:
        by_cloud.setdefault(machine["cloud"], []).extend(layout.rows(machine))
    with replaced(folder) as new:
        resources = [_write(new, LEFT_OUT, "Offers that the tool cannot list.", LEFT_OUT_COLUMNS, left_out)]
        for cloud, rows in by_cloud.items():
            file = layout.file.format(cloud=cloud)
            resources.append(_write(new, file, layout.description, layout.columns, rows))
        write_descriptor(new, layout.title, resources, {machine["source"] for machine in machines})
    prices = sum(machine[kind] is not None for machine in machines for kind in PRICE_KINDS)
    counts = Counter(reason for offer in left_out for reason in offer["reasons"])
    return [
        f"{prices} prices of {len(machines)} machines; {len(left_out)} offers are omitted "
        f"({LEFT_OUT} has each):",
        *(f"  {count} x {reason}" for reason, count in counts.most_common()),
    ]


def _split(connection: duckdb.DuckDBPyConnection, tool: str) -> tuple[list[Machine], list[dict[str, Any]]]:
    """Return the newest ranked offers as machines for a tool, and the other offers with their ``reasons``."""
    machines: dict[tuple[str, str, str], dict[str, Any]] = {}
    left_out: list[dict[str, Any]] = []
    sizes: dict[tuple[str, str], tuple[Any, ...]] = {}
    for offer in ask(connection, OFFERS).dicts():
        name = (offer["source"], offer["instance_type"])
        size = (offer["gpu_id"], offer["gpu_count"], offer["vcpus"], offer["ram_gib"])
        reasons = _reasons(offer, tool)
        if not reasons and sizes.setdefault(name, size) != size:
            reasons = ["another size than elsewhere under the same name"]
        if not reasons:
            machine = machines.setdefault((*name, offer["region"]), _machine(offer, tool))
            if machine[offer["price_kind"]] is None:
                machine[offer["price_kind"]] = offer["usd_per_hour"]
            else:
                reasons = ["more expensive than the same machine in the same region"]
        if reasons:
            left_out.append({**offer, "reasons": reasons})
    return [*machines.values()], left_out


def _machine(offer: Mapping[str, Any], tool: str) -> dict[str, Any]:
    """Return the machine of an offer, without prices."""
    names = {"cloud": clouds(tool)[offer["source"]], "accelerator": accelerators(tool)[offer["gpu_id"]]}
    return {**offer, **names, **dict.fromkeys(PRICE_KINDS)}


def _reasons(offer: Mapping[str, Any], tool: str) -> list[str]:
    reasons = [text for column, text in LACKS.items() if offer[column] is None]
    if offer["source"] not in clouds(tool):
        refused = _tool_names(tool, "clouds.csv", "source", "left_out").get(offer["source"])
        reasons.append(refused or f"{tool} has no such provider")
    if offer["price_kind"] not in PRICE_KINDS:
        reasons.append(f"{tool} has no prices that are {offer['price_kind']}")
    if offer["not_ranked_reason"] is not None:
        reasons.append(f"not ranked: {offer['not_ranked_reason']}")
    if offer["gpu_id"] is not None and offer["gpu_id"] not in accelerators(tool):
        reasons.append(f"{tool} has no name for its GPU")
    return reasons


def _write(
    folder: Path, path: str, description: str, columns: Columns, rows: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Write rows below a header, and return the file's resource. Text that a spreadsheet would run as a
    formula gets an apostrophe."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([safe_text(value(row)) for _, _, value in columns.values()] for row in rows)
    fields = [{"name": name, "type": kind, "description": text} for name, (kind, text, _) in columns.items()]
    return resource(file, folder, description, {"fields": fields})


def decimal(number: Any) -> str:
    """Return a number as a plain decimal without trailing zeros; '' for None."""
    return "" if number is None else f"{number:f}".rstrip("0").rstrip(".")
