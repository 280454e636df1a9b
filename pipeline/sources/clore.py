"""Clore.ai: whole servers in a marketplace of hosts, each at its host's asking price in dollars per day."""

import re
from typing import Any

from pipeline.sources import kit

HOURS_PER_DAY = 24
DOLLARS = "USD-Blockchain"
"""The marketplace's name for dollar balances, which renters pay for in coins."""

_THREADS = re.compile(r"\d{1,4}/(\d{1,4})")


@kit.reader("no server")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One flagged listing per server with a price in dollars. Spot prices, which are bids, are skipped."""
    return kit.read_rows(audit.items(answer, "servers"), _read_server, "id")


def _read_server(server: kit.JsonObject) -> kit.Listings:
    specs = server.object("specs")
    label, vram_gib = specs.text("gpu"), specs.optional_number("gpuram")
    gpu_count = _gpu_count(label, server.get("gpu_array"))
    yield server.listing(
        label,
        gpu_count,
        round(server.object("price").object("on_demand").price(DOLLARS) / HOURS_PER_DAY, 6),
        context=kit.known(vram_gb=vram_gib),
        country=specs.object("net").optional_text("cc"),
        available=_available(server, gpu_count),
        vcpus=_threads(specs.get("cpus")),
        ram_gib=specs.optional_number("ram") or None,
        reliability=server.optional_number("reliability"),
        # Marketplace and order fees are added to the price.
        flag_reason=kit.FlagReason.PARTS_PRICED_APART,
    )


def _gpu_count(label: str, gpus: Any) -> int:
    """Return the GPU count in the label, checked against the list of GPUs, if any. Raises RowError."""
    stated = kit.gpu_count_in(label)
    listed = (
        [name for gpu in gpus for name in (gpu if isinstance(gpu, list) else [gpu])]
        if isinstance(gpus, list)
        else []
    )
    if stated is None or (listed and len(listed) != stated):
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, f"{label!r}, and a list of {len(listed)} GPUs")
    return stated


def _available(server: kit.JsonObject, gpu_count: int) -> bool | None:
    """False if the server is rented, even in part, because the price is for all of its GPUs."""
    rented = server.get("rented")
    free = server.object("partial_gpu_rental").optional_number("available_gpus")
    if rented is True or (free is not None and free < gpu_count):
        return False
    return True if rented is False else None


def _threads(cpus: Any) -> float | None:
    """Return the number of threads in a string such as ``8/16`` (cores and threads)."""
    found = _THREADS.fullmatch(cpus) if isinstance(cpus, str) else None
    return kit.optional_number(found[1]) if found else None
