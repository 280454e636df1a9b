"""Lium: the public feed of marketplace nodes that can be rented now, with one offer per node.

Any number of a node's free GPUs, from the minimum order up, can be rented, each with its share of the host.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pipeline.sources import kit

_KINDS: Mapping[str, kit.PriceKind] = {"secure": "on_demand", "spot": "spot"}
_ROUNDING_USD = Decimal("0.01")
"""The price of a whole node may be rounded to the cent."""


@kit.reader("the feed has no node")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """Every node in the feed. Raises SourceChangedError if the feed contains other objects."""
    feed = audit.envelope(answer, "nodes")
    nodes = feed.items("nodes")
    if nodes and not any("gpu_model" in node.raw for node in nodes):
        raise answer.changed(f"the objects are not nodes: {sorted(nodes[0].raw)[:12]}")
    seen = set[str]()
    yield from kit.read_rows(nodes, lambda node: _read_once(node, seen), "id")
    if (stated := feed.optional_number("count")) is not None and stated != len(nodes):
        detail = f"the feed states {stated:g} nodes and lists {len(nodes)}"
        yield kit.Reject(kit.RejectReason.UNREAD_PAGE, detail, stated, answer)


def _read_once(node: kit.JsonObject, seen: set[str]) -> kit.Listings:
    node_id = node.name("id")
    if node_id in seen:
        raise kit.RowError(kit.RejectReason.DUPLICATE, "listed twice")
    seen.update([node_id] if node.peek("id") else [])
    yield from _read_node(node)


def _read_node(node: kit.JsonObject) -> kit.Listings:
    tier, counts = node.text("tier"), _rentable(node)
    if tier not in _KINDS:
        raise kit.RowError(kit.RejectReason.UNKNOWN_PRICE_KIND, f"the tier {tier!r} is unknown")
    gpus = counts[0] if len(counts) == 1 else 1
    country = node.optional_text("country_code")
    places = (node.optional_text("city"), node.optional_text("region"), country)
    vram_gb = node.optional_number("gpu_memory_gb")
    yield node.listing(
        node.text("gpu_model"),
        gpus,
        _price(node),
        listing_id=node.optional_text("id"),
        native_unit="gpu_hour",
        native_currency=node.optional_text("currency") or node.config.currency,
        price_kind=_KINDS[tier],
        gpu_counts=counts if len(counts) > 1 else None,
        min_gpu_count=counts[0],
        context=kit.known(vram_gb=vram_gb),
        region=", ".join(place for place in places if place) or None,
        country=country,
        available=True,
        tier=f"marketplace_{tier}",
        **_share(node, gpus),
    )


def _rentable(node: kit.JsonObject) -> tuple[int, ...]:
    """Return the numbers of GPUs that can be ordered now: only the whole node if no minimum is stated."""
    total, free = node.gpu_count("gpu_count"), node.whole_number("available_gpu_count")
    stated = node.get("min_rentable_gpu_count")
    smallest = total if stated is None else node.gpu_count("min_rentable_gpu_count")
    if free > total:
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, f"{free} GPUs are free of {total}")
    if smallest > free:
        detail = f"{free} GPUs are free, and the smallest order is {smallest}"
        raise kit.RowError(kit.RejectReason.NOT_OFFERED, detail)
    return tuple(range(smallest, free + 1))


def _price(node: kit.JsonObject) -> Decimal:
    """Return the price per GPU-hour, checked against the price of the whole node, if any."""
    price, gpus = node.price("price_per_gpu_hour"), node.gpu_count("gpu_count")
    if node.get("price_per_node_hour") is not None:
        whole = node.price("price_per_node_hour")
        if abs(price * gpus - whole) > _ROUNDING_USD:
            detail = f"{gpus} GPUs at {price} do not cost the {whole} of the whole node"
            raise kit.RowError(kit.RejectReason.CONFLICTING_PRICES, detail)
    return price


def _share(node: kit.JsonObject, gpus: int) -> dict[str, Any]:
    """Return the CPUs, memory and container disk that come with ``gpus`` GPUs: a share of the host's, not
    counting the memory that the host keeps for itself, and of the free disk the part that is no volume."""
    share, settings = gpus / node.gpu_count("gpu_count"), node.config.settings
    cpus, free_gb = node.optional_number("cpu_count"), node.optional_number("disk_free_gb")
    host_gib, kept = node.optional_number("ram_gb"), settings["host_keeps"]
    if host_gib is not None:
        host_gib -= max(kept["least_gib"], kept["share"] * host_gib)
    return {
        "vcpus": None if cpus is None else cpus * share,
        "ram_gib": None if host_gib is None else max(0.0, host_gib * share),
        "local_disk_gb": None if free_gb is None else free_gb * share // settings["disk_parts"],
    }
