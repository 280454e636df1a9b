"""The machines that an offer sells, one by one: each size and region, with its name, vCPUs and memory."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pipeline.catalog.machine_sizes import NamedMachine, machine_size, named_machines
from pipeline.catalog.places import regions_of
from pipeline.export.tools import clouds

Offer = Mapping[str, Any]

Name = tuple[str, str]
"""A source, and its name of a machine."""


@dataclass(frozen=True, slots=True)
class Stated:
    """The vCPUs, GiB and regions that all offers together state about machines. Other offers of the same
    machine, such as its spot price, may not state them."""

    sizes: Mapping[Name, tuple[float, float]]
    regions: Mapping[Name, Sequence[str]]

    @classmethod
    def by(cls, offers: Iterable[Offer]) -> "Stated":
        """Return what offers state."""
        sizes: dict[Name, tuple[float, float]] = {}
        regions: dict[Name, dict[str, None]] = {}
        for offer in offers:
            if offer["instance_type"] is None:
                continue
            name = (offer["source"], offer["instance_type"])
            if offer["vcpus"] is not None and offer["ram_gib"] is not None:
                sizes[name] = (offer["vcpus"], offer["ram_gib"])
            if offer["region"] is not None:
                regions.setdefault(name, {})[offer["region"]] = None
        return cls(sizes, {name: [*found] for name, found in regions.items()})


def machines_of(offer: Offer, tool: str, stated: Stated) -> Iterator[dict[str, Any]]:
    """Yield an offer's machines: the offer with each size and region that a tool can list, in which unknown
    columns remain None. Raises CatalogError."""
    for machine, row_regions in _sized(offer, stated):
        for region in [offer["region"]] if offer["region"] else row_regions or _regions(offer, tool, stated):
            yield {**machine, "region": region}


def _regions(offer: Offer, tool: str, stated: Stated) -> Sequence[str | None]:
    """Return the regions in which a tool lists a price that names none; [None] if in none."""
    cloud = clouds(tool).get(offer["source"])
    found: Sequence[str] = ()
    if cloud is not None and cloud.regions == "every":
        found = regions_of(offer["source"])
    if cloud is not None and cloud.regions == "stated":
        found = stated.regions.get((offer["source"], offer["instance_type"]), ())
    return found or [None]


def _sized(offer: Offer, stated: Stated) -> Iterator[tuple[dict[str, Any], Sequence[str]]]:
    """Yield an offer with each size that it has, and the regions of that machine, which are empty if not
    known. A number of GPUs with several possible names is skipped."""
    found = [(row, count) for row in named_machines(offer["source"]) for count in _counts_with(row, offer)]
    times = Counter(count for _, count in found)
    for row, count in found:
        if times[count] == 1:
            yield _with(offer, row, count), row.regions
    if not found:
        size = stated.sizes.get((offer["source"], offer["instance_type"]), (None, None))
        known = {"vcpus": offer["vcpus"] or size[0], "ram_gib": offer["ram_gib"] or size[1]}
        yield {**offer, **known}, ()


def _counts_with(row: NamedMachine, offer: Offer) -> Sequence[int]:
    """Return the numbers of GPUs for which an offer sells a row's machine: the machine that the offer names
    or, if it names none, one with its card, unless the vCPUs contradict it."""
    if offer["instance_type"] is not None:
        return [int(offer["gpu_count"])] if row.instance_type == offer["instance_type"] else ()
    if row.gpu_id is None or row.gpu_id != offer["gpu_id"] or row.tier not in (None, offer["tier"]):
        return ()
    if row.gpu_count == offer["gpu_count"] and row.vcpus and offer["vcpus"] not in (None, row.vcpus):
        return ()
    return [count for count in counts_of(offer) if row.gpu_count in (None, count)]


def counts_of(offer: Offer) -> Sequence[int]:
    """Return the numbers of GPUs that can be rented at an offer's price per GPU."""
    if offer["gpu_counts"]:
        return list(offer["gpu_counts"])
    if offer["size_evidence"] == "catalogued":
        size = machine_size(offer["source"], offer["gpu_id"], offer["tier"])
        return size.gpu_counts if size else ()
    return [int(offer["gpu_count"])]


def _with(offer: Offer, row: NamedMachine, count: int) -> dict[str, Any]:
    """Return the offer with a row's name and with ``count`` GPUs; the vCPUs and memory that the offer states
    for this number take precedence over the row's."""
    is_own_count = count == offer["gpu_count"]
    scale = count if row.gpu_id is not None and row.gpu_count is None else 1
    size = {
        column: (offer[column] if is_own_count else None) or (known and known * scale)
        for column, known in (("vcpus", row.vcpus), ("ram_gib", row.ram_gib))
    }
    return {**with_count(offer, count), **size, "instance_type": row.instance_type}


def with_count(offer: Offer, count: int) -> dict[str, Any]:
    """Return the offer with ``count`` GPUs, at its price per GPU."""
    price = offer["usd_per_hour"]
    if price is not None and count != offer["gpu_count"]:
        price *= count / Decimal(offer["gpu_count"])
    return {**offer, "gpu_count": count, "usd_per_hour": price}
