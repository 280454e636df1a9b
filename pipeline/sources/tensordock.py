"""TensorDock: GPUs of a marketplace by place (v2) or host (v0); CPU, memory and disk are charged on top."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing.answers import at_least_one
from pipeline.parsing.json_lists import object_in, objects_in
from pipeline.parsing.prices import RowError, is_available, optional_number, price_of
from pipeline.parsing.units import HOURS_PER_MONTH


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """One offer per GPU model of a location or host. A host without GPUs is none of ours.

    Raises SourceChangedError when an answer has neither shape, or none has a GPU.
    """
    rows = (row for answer in answers for row in _read_answer(answer, config))
    return at_least_one(rows, f"{config.name}: no GPU at any location (the list was empty in 2026-08 too)")


def _read_answer(answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    body = answer.json()
    hosts = body.get("hostnodes") if isinstance(body, dict) else None
    if isinstance(hosts, dict):
        for host in hosts.values():
            yield from _read_host(host if isinstance(host, dict) else {}, config, answer)
        return
    locations = body
    if isinstance(body, dict):
        data = body.get("data", body)
        locations = data.get("locations") if isinstance(data, dict) else data
    if not isinstance(locations, list) or not all(isinstance(place, dict) for place in locations):
        raise SourceChangedError(f"{answer.url}: neither locations (v2) nor hostnodes (v0)")
    for place in locations:
        yield from _read_location(place, config, answer)


def _read_location(place: dict[str, Any], config: SourceConfig, answer: Answer) -> Iterator[Listing | Reject]:
    for gpu in objects_in(place, "gpus"):
        yield _row(
            gpu.get("displayName") or gpu.get("v0Name"),
            gpu.get("price_per_hr"),
            {"location": _region(place), **gpu},
            config,
            answer,
            region=_region(place),
            available=is_available(gpu.get("max_count")),
            tier=f"marketplace_tier_{place['tier']}" if place.get("tier") is not None else None,
            storage_usd_per_gb_month=_per_month(object_in(gpu, "pricing").get("per_gb_storage_hr")),
        )


def _read_host(host: dict[str, Any], config: SourceConfig, answer: Answer) -> Iterator[Listing | Reject]:
    specs = object_in(host, "specs")
    online = object_in(host, "status").get("online")
    gpus = object_in(specs, "gpu")
    for label in gpus:
        gpu = object_in(gpus, label)
        amount = optional_number(gpu.get("amount"))
        yield _row(
            label,
            gpu.get("price"),
            {"gpu": label, **host},
            config,
            answer,
            region=_region(object_in(host, "location")),
            available=None if online is None and amount is None else online is not False and amount != 0,
            storage_usd_per_gb_month=_per_month(object_in(specs, "storage").get("price")),
        )


def _row(
    label: Any, price: Any, raw: Any, config: SourceConfig, answer: Answer, **facts: Any
) -> Listing | Reject:
    if not isinstance(label, str) or not label:
        return Reject(RejectReason.MISSING_FIELD, "a GPU without a name", raw, answer)
    try:
        native_price = price_of(price)
    except RowError as error:
        return Reject(error.reason, f"{label}: {error}", raw, answer)
    flag_reason = FlagReason(config.settings["flag_reason"])
    return Listing.per_gpu_hour(
        label, "on_demand", native_price, "USD", answer, flag_reason=flag_reason, **facts
    )


def _region(place: dict[str, Any]) -> str | None:
    parts = [place.get(name) for name in ("city", "stateprovince", "region", "country")]
    return ", ".join(dict.fromkeys(str(part) for part in parts if part)) or None


def _per_month(per_hour: Any) -> Decimal | None:
    try:
        return price_of(per_hour) * HOURS_PER_MONTH
    except RowError:
        return None
