"""TensorDock: GPUs on a marketplace, by location (v2) or host (v0); CPU, memory and disk cost extra."""

from typing import Any

from pipeline.sources import kit


@kit.reader("no GPU at any location (the list was empty in 2026-08 too)")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One offer per GPU model at a location or on a host. A host without GPUs is skipped.

    Raises SourceChangedError for an answer with neither locations nor hosts.
    """
    body = audit.envelope(answer, "locations")
    if "hostnodes" in body:
        for host in body.objects_by_name("hostnodes").values():
            yield from _read_host(host)
        return
    data = body.object("data") if isinstance(body.raw.get("data"), dict) else body
    for place in data.items("locations", "data"):
        yield from _read_location(place)


def _read_location(place: kit.JsonObject) -> kit.Rows:
    tier, region = place.get("tier"), _region(place)
    for gpu in place.objects("gpus"):
        yield _row(
            gpu,
            gpu.optional_text("displayName", "v0Name"),
            "price_per_hr",
            region=region,
            country=place.optional_text("country"),
            available=kit.is_available(gpu.get("max_count")),
            tier=None if tier is None else f"marketplace_tier_{tier}",
            storage_usd_per_gb_month=kit.usd_per_gb_month(gpu.object("pricing").get("per_gb_storage_hr")),
        )


def _read_host(host: kit.JsonObject) -> kit.Rows:
    specs, online = host.object("specs"), host.object("status").get("online")
    for label, gpu in specs.objects_by_name("gpu").items():
        amount = gpu.optional_number("amount")
        yield _row(
            gpu,
            label,
            "price",
            region=_region(host.object("location")),
            country=host.object("location").optional_text("country"),
            available=None if online is None and amount is None else online is not False and amount != 0,
            storage_usd_per_gb_month=kit.usd_per_gb_month(specs.object("storage").get("price")),
        )


def _row(gpu: kit.JsonObject, label: str | None, price: str, **facts: Any) -> kit.Listing | kit.Reject:
    flag = kit.FlagReason.CPU_AND_MEMORY_CHARGED_EXTRA
    try:
        if not label:
            raise kit.RowError(kit.RejectReason.MISSING_FIELD, "no name")
        return gpu.listing(label, 1, gpu.price(price), native_unit="gpu_hour", flag_reason=flag, **facts)
    except kit.RowError as error:
        return gpu.reject(error, label or "a GPU", {"location": facts["region"], **gpu.raw})


def _region(place: kit.JsonObject) -> str | None:
    parts = [place.get("city"), place.get("stateprovince", "region"), place.get("country")]
    return ", ".join(dict.fromkeys(str(part) for part in parts if part)) or None
