"""The newest offers as machines that the catalogues of other tools can list, and what is left out."""

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
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
"""What other catalogues must have, and sources do not always say."""

LEFT_OUT = "left_out.csv"
LEFT_OUT_COLUMNS = {
    "source": "Key of the source in gpufare.",
    "raw_label": "The GPU or machine in the source's own words.",
    "instance_type": "The source's own name of the machine.",
    "gpu_id": "Key of the GPU in gpufare.",
    "gpu_count": "Number of GPUs.",
    "price_kind": "on_demand, flex_start, spot, reserved or serverless.",
    "region": "The source's own name of the region.",
    "reasons": "Why it is left out: all reasons, separated by semicolons.",
}

Offer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """A tool's catalogue: its columns, each with type and description, and a machine's rows in them.

    ``file`` is the path of a cloud's machines, with {cloud} in it; the clouds ``always_written`` have a file
    with a heading where there is no machine, too.
    """

    tool: str
    title: str
    description: str
    file: str
    columns: Mapping[str, tuple[str, str]]
    rows: Callable[["Machine"], list[dict[str, Any]]]
    always_written: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine in a region, as a tool names it; prices in USD per hour of the whole machine, None where it
    is not offered so. ``memory_gb`` is that of one GPU."""

    source: str
    cloud: str
    instance_type: str
    region: str
    accelerator: str
    vendor: str
    count: int
    memory_gb: float
    vcpus: float
    ram_gib: float
    disk_gb: float | None
    on_demand: Any
    spot: Any


@dataclass(frozen=True, slots=True)
class Split:
    """The machines that a tool can list, and the offers that it cannot, each with all reasons."""

    machines: list[Machine]
    left_out: list[tuple[Offer, list[str]]]

    def lines(self) -> list[str]:
        """What is written and what is not, in words; an offer can have several reasons."""
        prices = sum((m.on_demand is not None) + (m.spot is not None) for m in self.machines)
        counts = Counter(reason for _, reasons in self.left_out for reason in reasons)
        return [
            f"{prices} prices of {len(self.machines)} machines; {len(self.left_out)} offers are left out "
            f"({LEFT_OUT} has each):",
            *(f"  {count} x {reason}" for reason, count in counts.most_common()),
        ]


@cache
def clouds(tool: str) -> dict[str, str]:
    """A tool's name of each source that it knows and can take."""
    return {
        row["source"]: row["name"]
        for row in catalog_rows("consumers/clouds.csv")
        if row["tool"] == tool and row["name"]
    }


@cache
def _refused(tool: str) -> dict[str, str]:
    """Why a tool that knows a source cannot take it."""
    return {
        row["source"]: row["left_out"] for row in catalog_rows("consumers/clouds.csv") if row["tool"] == tool
    }


@cache
def accelerators(tool: str) -> dict[str, str]:
    """A tool's name of each GPU."""
    return {
        row["gpu_id"]: row["name"]
        for row in catalog_rows("consumers/accelerator_names.csv")
        if row["tool"] == tool
    }


def split(connection: duckdb.DuckDBPyConnection, tool: str) -> Split:
    """The newest ranked offers as machines for a tool (skypilot or gpuhunt). Raises QueryError."""
    taken: dict[tuple[str, str, str], dict[str, Offer]] = {}
    left_out: list[tuple[Offer, list[str]]] = []
    sizes: dict[tuple[str, str], tuple[Any, ...]] = {}
    for offer in ask(connection, OFFERS).dicts():
        reasons = _reasons(offer, tool)
        if not reasons:
            machine = (offer["source"], offer["instance_type"])
            size = (offer["gpu_id"], offer["gpu_count"], offer["vcpus"], offer["ram_gib"])
            kinds = taken.setdefault((*machine, offer["region"]), {})
            if sizes.setdefault(machine, size) != size:
                reasons = ["another size than elsewhere under the same name"]
            elif kinds.setdefault(offer["price_kind"], offer) is not offer:
                reasons = ["dearer than the same machine in the same region"]
        if reasons:
            left_out.append((offer, reasons))
    return Split([_machine(kinds, tool) for kinds in taken.values() if kinds], left_out)


def export_machines(connection: duckdb.DuckDBPyConnection, folder: Path, layout: Layout) -> list[str]:
    """Write an export: a file of machines per cloud, the offers that are left out, and the descriptor.

    Returns lines on what is in it and what is not. Raises ExportError and QueryError.
    """
    found = split(connection, layout.tool)
    by_cloud: dict[str, list[Machine]] = {cloud: [] for cloud in layout.always_written}
    for machine in found.machines:
        by_cloud.setdefault(machine.cloud, []).append(machine)
    fields = [{"name": n, "type": kind, "description": text} for n, (kind, text) in layout.columns.items()]
    with replaced(folder) as new:
        resources = [_write_left_out(new, found.left_out)]
        for cloud, machines in by_cloud.items():
            path = layout.file.format(cloud=cloud)
            rows = [row for machine in machines for row in layout.rows(machine)]
            write_csv(new / path, list(layout.columns), rows)
            name = path.removesuffix(".csv").replace("/", "-")
            resources.append(resource(name, new / path, new, layout.description, {"fields": fields}))
        write_descriptor(new, layout.title, resources, {machine.source for machine in found.machines})
    return found.lines()


def _write_left_out(folder: Path, left_out: Iterable[tuple[Offer, list[str]]]) -> dict[str, Any]:
    """Write the offers that are left out into the folder of an export. Returns the resource."""
    rows = [{**offer, "reasons": "; ".join(reasons)} for offer, reasons in left_out]
    schema = {
        "fields": [
            {"name": name, "type": "number" if name == "gpu_count" else "string", "description": text}
            for name, text in LEFT_OUT_COLUMNS.items()
        ]
    }
    write_csv(folder / LEFT_OUT, list(LEFT_OUT_COLUMNS), rows)
    return resource("left-out", folder / LEFT_OUT, folder, "Offers that the tool cannot take.", schema)


def write_csv(file: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows with a heading; text that a spreadsheet would run gets an apostrophe."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: safe_text(row[name]) for name in columns} for row in rows)


def plain(number: Any) -> str:
    """A number as a plain decimal without zeros at its end; '' for None."""
    return "" if number is None else f"{number:f}".rstrip("0").rstrip(".")


def _reasons(offer: Offer, tool: str) -> list[str]:
    reasons = [text for column, text in LACKS.items() if offer[column] is None]
    if offer["source"] not in clouds(tool):
        reasons.append(_refused(tool).get(offer["source"]) or f"{tool} has no such provider")
    if offer["price_kind"] not in PRICE_KINDS:
        reasons.append(f"{tool} has no prices that are {offer['price_kind']}")
    if offer["not_ranked_reason"] is not None:
        reasons.append(f"not ranked: {offer['not_ranked_reason']}")
    if offer["gpu_id"] is not None and offer["gpu_id"] not in accelerators(tool):
        reasons.append(f"{tool} has no name for its GPU")
    return reasons


def _machine(kinds: Mapping[str, Offer], tool: str) -> Machine:
    offer = next(iter(kinds.values()))
    return Machine(
        source=offer["source"],
        cloud=clouds(tool)[offer["source"]],
        instance_type=str(safe_text(offer["instance_type"])),
        region=str(safe_text(offer["region"])),
        accelerator=accelerators(tool)[offer["gpu_id"]],
        vendor=offer["vendor"],
        count=int(offer["gpu_count"]),
        memory_gb=offer["memory_gb"],
        vcpus=offer["vcpus"],
        ram_gib=offer["ram_gib"],
        disk_gb=offer["local_disk_gb"],
        on_demand=kinds["on_demand"]["usd_per_hour"] if "on_demand" in kinds else None,
        spot=kinds["spot"]["usd_per_hour"] if "spot" in kinds else None,
    )
