"""Scaleway: server types with a price per instance-hour in EUR, and in a second answer which are available.

Both come as ``servers`` by name and are told apart by what a server holds. The zone stands only in the
answer's address. Types without a GPU are not ours and are skipped.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.answers import each_answer
from pipeline.parsing.prices import RowError, price_of
from pipeline.parsing.text import UnreadableError, number, whole_number

_ZONE = re.compile(r"/zones/([a-z]{2}-[a-z]{3}-\d{1,2})/")
_AVAILABLE = {"available": True, "scarce": True, "shortage": False}


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """Every GPU server type of every zone. Raises SourceChangedError when there is none."""
    pages, refused = each_answer(answers, _servers)
    yield from refused
    availability = {
        (_zone(answer), name): _AVAILABLE.get(str(server.get("availability")).lower())
        for answer, servers in pages
        for name, server in servers.items()
        if "availability" in server
    }
    gpu_servers = 0
    for answer, servers in pages:
        for name, server in servers.items():
            if "gpu" not in server or server["gpu"] in (0, "0", None):
                continue
            gpu_servers += 1
            try:
                available = availability.get((_zone(answer), name))
                yield _listing(name, server, available, answer, config)
            except RowError as problem:
                detail = f"{name} in {_zone(answer)}: {problem}"
                yield Reject(problem.reason, detail, {name: server}, answer)
    if not gpu_servers:
        raise SourceChangedError("no server type with a GPU in any answer of Scaleway")


def _servers(answer: Answer) -> dict[str, dict[str, Any]]:
    body = answer.json()
    held = body.get("servers", body) if isinstance(body, dict) else None
    if not isinstance(held, dict):
        raise SourceChangedError(f"{answer.url}: the answer has no servers by name")
    servers = {name: server for name, server in held.items() if isinstance(server, dict)}
    known = [server for server in servers.values() if "availability" in server or "gpu" in server]
    if held and not known:
        raise SourceChangedError(f"{answer.url}: the servers have neither a GPU count nor an availability")
    return servers


def _zone(answer: Answer) -> str | None:
    found = _ZONE.search(answer.url)
    return found[1] if found else None


def _listing(
    name: str, server: Mapping[str, Any], available: bool | None, answer: Answer, config: SourceConfig
) -> Listing:
    if server.get("end_of_service"):
        raise RowError(RejectReason.DISCONTINUED, "cannot be ordered any more")
    if server.get("mig_profile"):
        raise RowError(
            RejectReason.UNKNOWN_GPU_SHARE, f"a slice {server['mig_profile']!r} of a GPU of unknown share"
        )
    price = price_of(server.get("hourly_price"))
    gpu_count = _gpu_count(server)
    info = _part(server, "gpu_info")
    gpu_name, memory = info.get("gpu_name"), _quantity(info.get("gpu_memory"), 2**30)
    network = _part(server, "network")
    return Listing(
        raw_label=str(gpu_name or name),
        instance_type=name,
        label_kind="gpu_name" if gpu_name else "instance_type",
        gpu_count=float(gpu_count),
        price_kind="on_demand",
        native_price=price,
        native_currency=config.currency,
        native_unit="instance_hour",
        answer=answer,
        context={"vram_gb": memory} if memory else {},
        region=_zone(answer),
        available=available,
        vcpus=_quantity(server.get("ncpus"), 1),
        ram_gib=_quantity(server.get("ram"), 2**30),
        local_disk_gb=_quantity(server.get("scratch_storage_max_size"), 10**9),
        node_network_gbps=_quantity(network.get("sum_internal_bandwidth"), 10**9),
    )


def _part(server: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = server.get(name)
    return part if isinstance(part, dict) else {}


def _gpu_count(server: Mapping[str, Any]) -> int:
    try:
        count = whole_number(server["gpu"])
    except UnreadableError as error:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"GPU count {error}") from error
    if count < 1:
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"GPU count {count}")
    return count


def _quantity(value: Any, unit: int) -> float | None:
    """A positive amount in units of ``unit``, None where the answer has none."""
    try:
        amount = number(value)
    except UnreadableError:
        return None
    return float(amount / unit) if amount > 0 else None
