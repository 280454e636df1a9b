"""Exports the newest offers as machines in other tools' catalogues, and lists the offers omitted there."""

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb

from pipeline.export.cells import safe_text
from pipeline.export.folder import replaced
from pipeline.export.forms import Offer, Stated, machines_of
from pipeline.export.package import resource, write_descriptor
from pipeline.export.tools import accelerator, clouds
from pipeline.warehouse.query import ask

OFFERS = """
    SELECT
        o.source, o.raw_label, o.instance_type, o.listing_id, o.gpu_id, o.gpu_count, o.gpu_counts,
        o.size_evidence, o.price_kind, o.region, o.tier, o.vcpus, o.ram_gib, o.local_disk_gb, o.usd_per_hour,
        o.storage_usd_per_gb_month, o.host_usd_per_vcpu_hour, o.host_usd_per_gib_hour, o.not_ranked_reason,
        g.vendor, g.memory_gb
    FROM main.offers_latest AS o
    LEFT JOIN main.gpus AS g USING (gpu_id)
    ORDER BY o.usd_per_hour / o.gpu_count, o.source, o.instance_type, o.region, o.raw_label, o.price_kind
"""
"""Cheapest first, so that the first offer of a machine is its lowest price."""

PRICE_KINDS = ("on_demand", "spot")

LACKS = {
    "instance_type": "no name of the machine",
    "region": "no region",
    "vcpus": "no vCPUs",
    "ram_gib": "no memory",
    "zone": "no zone",
}
"""Columns that other catalogues require but some offers lack; ``zone`` only where the tool lists zones."""

UNSETTLED = "several machines or none fit"

LEFT_OUT = "left_out.csv"

Machine = Mapping[str, Any]
"""A machine in a region: its first offer, the tool's names for itself, its ``cloud`` and its ``accelerator``,
and its ``on_demand`` and ``spot`` prices in USD per hour of the whole machine (None if not offered).
``memory_gb`` is per GPU."""

Columns = Mapping[str, tuple[str, str, Callable[[Mapping[str, Any]], Any]]]
"""The columns of a file, by name: the type, the description, and a function from a row to a value."""


def no_files(folder: Path) -> Sequence[tuple[str, str]]:
    """Write nothing."""
    return ()


def unchanged(machine: Offer) -> Iterator[dict[str, Any]]:
    """Yield a machine as its source names it."""
    yield dict(machine)


@dataclass(frozen=True, slots=True)
class Layout:
    """A tool's catalogue and its columns.

    ``file`` is the path of the file with a cloud's machines; the path contains {cloud}. Clouds in
    ``always_written`` get a file even without machines, and those in ``cloud_columns`` get further columns.
    With ``row_per_price``, on-demand and spot prices have separate rows with ``price`` and ``is_spot``.
    ``refusal`` is a tool's own reason to leave an offer out, or None; ``named`` yields a machine with the
    tool's name, region and size where they are not the source's, once for each ``zone`` if the tool lists
    zones. ``further_files`` writes more files beside those of the clouds, and returns their paths with
    descriptions.
    """

    tool: str
    title: str
    description: str
    file: str
    columns: Columns
    always_written: Sequence[str] = ()
    cloud_columns: Mapping[str, Columns] = field(default_factory=dict)
    row_per_price: bool = False
    refusal: Callable[[Offer], str | None] = lambda offer: None
    named: Callable[[Offer], Iterator[dict[str, Any]]] = unchanged
    further_files: Callable[[Path], Sequence[tuple[str, str]]] = no_files

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


def export_machines(connection: duckdb.DuckDBPyConnection, folder: Path, layout: Layout) -> list[str]:
    """Write a file of machines for each cloud, a file of the omitted offers, and the descriptor.

    Return a summary, as lines. Raises ExportError, QueryError and CatalogError.
    """
    listed = _list(connection, layout)
    by_cloud: dict[str, list[Mapping[str, Any]]] = {cloud: [] for cloud in layout.always_written}
    for key in sorted(listed.machines):
        machine = listed.machines[key]
        by_cloud.setdefault(machine["cloud"], []).extend(layout.rows(machine))
    with replaced(folder) as new:
        left_out = sorted(listed.left_out, key=_place_in_list)
        resources = [_write(new, LEFT_OUT, "Offers that the tool cannot list.", LEFT_OUT_COLUMNS, left_out)]
        for cloud, rows in by_cloud.items():
            file = layout.file.format(cloud=cloud)
            columns = {**layout.columns, **layout.cloud_columns.get(cloud, {})}
            resources.append(_write(new, file, layout.description, columns, rows))
        resources += [resource(new / path, new, text) for path, text in layout.further_files(new)]
        sources = {machine["source"] for machine in listed.machines.values()}
        write_descriptor(new, layout.title, resources, sources)
    return listed.summary()


def _place_in_list(offer: Offer) -> tuple[str, ...]:
    columns = ("source", "instance_type", "raw_label", "region", "price_kind")
    return tuple(offer[column] or "" for column in columns)


class _Listed:
    """Machines by source, name, number of GPUs, region and zone, and the offers that are in none of them.

    The number is 0 if the name has one size; a listing, which is named by its id, may be rented by parts.
    """

    def __init__(self, layout: Layout, stated: Stated) -> None:
        self.machines: dict[tuple[str, str, int, str, str], dict[str, Any]] = {}
        self.left_out: list[dict[str, Any]] = []
        self._layout, self._stated = layout, stated
        self._offers = 0
        self._size_of: dict[tuple[str, str, int], tuple[Any, ...]] = {}

    def add(self, offer: Offer) -> None:
        """List an offer's machines, or else the offer with the ``reasons``."""
        found = machines_of(offer, self._layout.tool, self._stated)
        machines = [named for machine in found for named in self._layout.named(machine)]
        lacks = [
            [text for column, text in LACKS.items() if machine.get(column, "") is None]
            for machine in machines
        ]
        reasons = min(lacks, key=len, default=[UNSETTLED]) + _refusals(offer, self._layout)
        if not reasons:
            whole = [machine for machine, lacking in zip(machines, lacks, strict=True) if not lacking]
            refused = [self._add(machine) for machine in whole]
            reasons = [] if None in refused else sorted({text for text in refused if text})
        if reasons:
            self.left_out.append({**offer, "reasons": reasons})
        else:
            self._offers += 1

    def _add(self, machine: dict[str, Any]) -> str | None:
        """List a machine; return the reason if it cannot be."""
        is_listing = machine["instance_type"] == machine["listing_id"]
        count = int(machine["gpu_count"]) if is_listing else 0
        name = (machine["source"], machine["instance_type"], count)
        size = (machine["gpu_id"], machine["gpu_count"], machine["vcpus"], machine["ram_gib"])
        if self._size_of.setdefault(name, size) != size:
            return "another size than elsewhere under the same name"
        listed = self.machines.setdefault(
            (*name, machine["region"], machine.get("zone", "")), self._with_names(machine)
        )
        if listed[machine["price_kind"]] is not None:
            return "more expensive than the same machine in the same region"
        listed[machine["price_kind"]] = machine["usd_per_hour"]
        return None

    def _with_names(self, machine: dict[str, Any]) -> dict[str, Any]:
        tool, source = self._layout.tool, machine["source"]
        names = {
            "cloud": clouds(tool)[source].name,
            "accelerator": accelerator(tool, source, machine["gpu_id"]),
        }
        return {**machine, **names, **dict.fromkeys(PRICE_KINDS)}

    def summary(self) -> list[str]:
        """Return what was listed and what was omitted, as lines."""
        found = self.machines.values()
        prices = sum(machine[kind] is not None for machine in found for kind in PRICE_KINDS)
        names = {(machine["source"], machine["instance_type"]) for machine in found}
        counts = Counter(reason for offer in self.left_out for reason in offer["reasons"])
        return [
            f"{self._offers} offers listed as {prices} prices of {len(names)} machines, by region; "
            f"{len(self.left_out)} offers are omitted ({LEFT_OUT} has each):",
            *(f"  {count} x {reason}" for reason, count in counts.most_common()),
        ]


def _list(connection: duckdb.DuckDBPyConnection, layout: Layout) -> _Listed:
    """Return the newest ranked offers as machines for a tool, and the other offers."""
    offers = [*ask(connection, OFFERS).dicts()]
    listed = _Listed(layout, Stated.by(offers))
    for offer in offers:
        listed.add(offer)
    return listed


def _refusals(offer: Offer, layout: Layout) -> list[str]:
    """Return the reasons for which a tool cannot list an offer, whatever its machine."""
    tool, source, kind = layout.tool, offer["source"], offer["price_kind"]
    cloud, reasons = clouds(tool).get(source), []
    if cloud is None or cloud.left_out:
        reasons.append(cloud.left_out if cloud else f"{tool} has no such provider")
    if kind not in PRICE_KINDS:
        reasons.append(f"{tool} has no prices that are {kind}")
    elif kind == "spot" and cloud is not None and cloud.spot == "no":
        reasons.append(f"{tool} has no spot machines of {source}")
    if offer["not_ranked_reason"] is not None:
        reasons.append(f"not ranked: {offer['not_ranked_reason']}")
    if offer["gpu_id"] is not None and not accelerator(tool, source, offer["gpu_id"]):
        reasons.append(f"{tool} has no name for its GPU")
    own = layout.refusal(offer)
    return [*reasons, own] if own else reasons


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
