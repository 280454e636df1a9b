"""TensorDock: GPUs of a marketplace by place (v2) or host (v0); CPU, memory and disk are charged on top."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject, Row
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing.answers import at_least_one
from pipeline.parsing.json_objects import FieldAudit, JsonObject
from pipeline.parsing.prices import RowError, gpu_hour_field, is_available
from pipeline.parsing.units import HOURS_PER_MONTH


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Row]:
    """One offer per GPU model of a location or host. A host without GPUs is skipped.

    Raises SourceChangedError when an answer has neither locations nor hosts, or none has a GPU.
    """
    audit = FieldAudit(config)
    rows = (row for answer in answers for row in _read_answer(answer, audit, config))
    yield from at_least_one(
        rows, f"{config.name}: no GPU at any location (the list was empty in 2026-08 too)"
    )
    yield from audit.warnings()


def _read_answer(answer: Answer, audit: FieldAudit, config: SourceConfig) -> Iterator[Listing | Reject]:
    body = audit.envelope(answer, "locations")
    if "hostnodes" in body:
        for host in body.objects_by_name("hostnodes").values():
            yield from _read_host(host, config)
        return
    data = body.object("data") if isinstance(body.raw.get("data"), dict) else body
    for place in data.items("locations", "data"):
        yield from _read_location(place, config)


def _read_location(place: JsonObject, config: SourceConfig) -> Iterator[Listing | Reject]:
    tier, region = place.get("tier"), _region(place)
    for gpu in place.objects("gpus"):
        yield _row(
            gpu,
            gpu.optional_text("displayName", "v0Name"),
            "price_per_hr",
            config,
            region=region,
            country=place.optional_text("country"),
            available=is_available(gpu.get("max_count")),
            tier=None if tier is None else f"marketplace_tier_{tier}",
            storage_usd_per_gb_month=_per_month(gpu.object("pricing"), "per_gb_storage_hr"),
        )


def _read_host(host: JsonObject, config: SourceConfig) -> Iterator[Listing | Reject]:
    specs, online = host.object("specs"), host.object("status").get("online")
    for label, gpu in specs.objects_by_name("gpu").items():
        amount = gpu.optional_number("amount")
        yield _row(
            gpu,
            label,
            "price",
            config,
            region=_region(host.object("location")),
            country=host.object("location").optional_text("country"),
            available=None if online is None and amount is None else online is not False and amount != 0,
            storage_usd_per_gb_month=_per_month(specs.object("storage"), "price"),
        )


def _row(
    gpu: JsonObject, label: str | None, price: str, config: SourceConfig, **facts: Any
) -> Listing | Reject:
    raw = {"location": facts["region"], **gpu.raw}
    if not label:
        return gpu.reject(RowError(RejectReason.MISSING_FIELD, "no name"), "a GPU", raw)
    facts["flag_reason"] = FlagReason(config.settings["flag_reason"])
    return gpu_hour_field(label, "on_demand", gpu.get(price), "USD", raw, gpu.answer, **facts)


def _region(place: JsonObject) -> str | None:
    parts = [place.get("city"), place.get("stateprovince", "region"), place.get("country")]
    return ", ".join(dict.fromkeys(str(part) for part in parts if part)) or None


def _per_month(parts: JsonObject, name: str) -> Decimal | None:
    try:
        return parts.price(name) * HOURS_PER_MONTH
    except RowError:
        return None
