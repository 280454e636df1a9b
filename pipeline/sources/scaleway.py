"""Scaleway: server types with a price per instance-hour in EUR, and, in a second answer, their availability.

Both answers list ``servers``, keyed by name, but with different fields. The zone is stated only in the
answer's URL. Types without a GPU are skipped.
"""

import re
from functools import partial

from pipeline.sources import kit

_ZONE = re.compile(r"/zones/([a-z]{2}-[a-z]{3}-\d{1,2})/")
_AVAILABLE = {"available": True, "scarce": True, "shortage": False}


@kit.joint_reader("no server type with a GPU")
def read(answers: kit.Answers, audit: kit.FieldAudit) -> kit.Reading:
    """Every GPU server type in every zone."""
    pages, refused = kit.each_answer(answers, partial(_servers, audit=audit))
    yield from refused
    available = {
        (_zone(answer), name): _AVAILABLE.get(str(server.get("availability")).lower())
        for answer, servers in pages
        for name, server in servers.items()
        if "availability" in server.raw
    }
    for answer, servers in pages:
        for name, server in servers.items():
            if server.peek("gpu") not in (0, "0", None):
                yield _read_server(name, server, available.get((_zone(answer), name)))


def _servers(answer: kit.Answer, audit: kit.FieldAudit) -> dict[str, kit.JsonObject]:
    """Return the servers in an answer, keyed by name. Raises SourceChangedError if there are none."""
    body = answer.json()
    found = body.get("servers", body) if isinstance(body, dict) else None
    if not isinstance(found, dict):
        raise answer.changed("the answer has no servers by name")
    servers = {name: audit.item(raw, answer) for name, raw in found.items() if isinstance(raw, dict)}
    if found and not any("availability" in server.raw or "gpu" in server.raw for server in servers.values()):
        raise answer.changed("the servers have neither a GPU count nor an availability")
    return servers


def _zone(answer: kit.Answer) -> str | None:
    found = _ZONE.search(answer.url)
    return found[1] if found else None


def _read_server(name: str, server: kit.JsonObject, available: bool | None) -> kit.Listing | kit.Reject:
    try:
        return _listing(name, server, available)
    except kit.RowError as error:
        return server.reject(error, f"{name} in {_zone(server.answer)}", {name: server.raw})


def _listing(name: str, server: kit.JsonObject, available: bool | None) -> kit.Listing:
    if server.get("end_of_service"):
        raise kit.RowError(kit.RejectReason.DISCONTINUED, "can no longer be ordered")
    if profile := server.get("mig_profile"):
        raise kit.RowError(
            kit.RejectReason.UNKNOWN_GPU_SHARE, f"a slice {profile!r} of a GPU of unknown share"
        )
    info, network = server.object("gpu_info"), server.object("network")
    gpu_name, vram_gib = info.optional_text("gpu_name"), info.optional_number("gpu_memory", per=2**30)
    return server.listing(
        gpu_name or name,
        server.gpu_count("gpu"),
        server.price("hourly_price"),
        instance_type=name,
        label_kind="gpu_name" if gpu_name else "instance_type",
        billing_increment_seconds=server.config.settings["increment_seconds"].get(name),
        context=kit.known(vram_gb=vram_gib),
        region=_zone(server.answer),
        available=available,
        vcpus=server.optional_number("ncpus") or None,
        ram_gib=server.optional_number("ram", per=2**30) or None,
        local_disk_gb=server.optional_number("scratch_storage_max_size", per=10**9) or None,
        node_network_gbps=network.optional_number("sum_internal_bandwidth", per=10**9) or None,
    )
