"""TensorDock: GPUs of a marketplace by place (v2) or host (v0); CPU, memory and disk are charged on top."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from pipeline.sources.base import Answer, Listing, Reject, SourceChangedError
from pipeline.sources.config import SourceConfig
from pipeline.sources.text import UnreadableError, number, whole_number

HOURS_PER_MONTH = 730


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """One offer per GPU model of a location or host. A host without GPUs is none of ours.

    Raises SourceChangedError when an answer has neither shape, or none has a GPU.
    """
    rows = 0
    for answer in answers:
        for row in _read_answer(answer, config):
            rows += 1
            yield row
    if not rows:
        raise SourceChangedError(f"{config.name}: no GPU at any location (the list was empty in 2026-08 too)")


def _read_answer(answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    body = answer.json()
    hosts = body.get("hostnodes") if isinstance(body, dict) else None
    if isinstance(hosts, dict):
        for host in hosts.values():
            yield from _read_host(host, config, answer)
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
    for gpu in place.get("gpus") or []:
        label = gpu.get("displayName") or gpu.get("v0Name")
        pricing = gpu.get("pricing") or {}
        raw = {"location": _region(place), **gpu}
        try:
            if not label or gpu.get("price_per_hr") is None:
                raise UnreadableError("no name or no price_per_hr")
            yield _listing(
                str(label),
                number(gpu["price_per_hr"]),
                config,
                answer,
                region=_region(place),
                available=None if gpu.get("max_count") is None else whole_number(gpu["max_count"]) > 0,
                tier=f"marketplace_tier_{place['tier']}" if place.get("tier") is not None else None,
                storage_usd_per_gb_month=_per_month(pricing.get("per_gb_storage_hr")),
            )
        except UnreadableError as error:
            yield Reject(reason="unreadable", detail=f"{label}: {error}", raw=raw, answer=answer)


def _read_host(host: dict[str, Any], config: SourceConfig, answer: Answer) -> Iterator[Listing | Reject]:
    specs = host.get("specs") or {}
    online = (host.get("status") or {}).get("online")
    for label, gpu in (specs.get("gpu") or {}).items():
        raw = {"gpu": label, **host}
        try:
            if not isinstance(gpu, dict) or gpu.get("price") is None:
                raise UnreadableError("no price")
            amount = None if gpu.get("amount") is None else whole_number(gpu["amount"])
            yield _listing(
                str(label),
                number(gpu["price"]),
                config,
                answer,
                region=_region(host.get("location") or {}),
                available=None if online is None and amount is None else online is not False and amount != 0,
                storage_usd_per_gb_month=_per_month((specs.get("storage") or {}).get("price")),
            )
        except UnreadableError as error:
            yield Reject(reason="unreadable", detail=f"{label}: {error}", raw=raw, answer=answer)


def _listing(label: str, price: Decimal, config: SourceConfig, answer: Answer, **facts: Any) -> Listing:
    """Raises UnreadableError when the price is not above zero."""
    if price <= 0:
        raise UnreadableError(f"the price is {price}")
    return Listing(
        raw_label=label,
        gpu_count=1,
        price_kind="on_demand",
        native_price=price,
        native_currency="USD",
        native_unit="gpu_hour",
        answer=answer,
        flag_reason=str(config.settings["flag_reason"]),
        **facts,
    )


def _region(place: dict[str, Any]) -> str | None:
    parts = [place.get(name) for name in ("city", "stateprovince", "region", "country")]
    return ", ".join(dict.fromkeys(str(part) for part in parts if part)) or None


def _per_month(per_hour: Any) -> Decimal | None:
    return None if per_hour is None else number(per_hour) * HOURS_PER_MONTH
