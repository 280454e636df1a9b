"""Prime Intellect: an aggregator's offers, each with the cloud whose machine it is."""

from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.catalog.source_config import SourceConfig, configs
from pipeline.contracts.listing import Answer, Listing, Reject
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing.answers import at_least_one
from pipeline.parsing.json_lists import items_of, object_in
from pipeline.parsing.prices import RowError, optional_number, price_of
from pipeline.parsing.text import UnreadableError, whole_number

_SOLD_OUT = frozenset({"unavailable", "out_of_stock", "none"})


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """Every offer with GPUs; machines without (``CPU_NODE``) are passed over.

    Raises SourceChangedError when there is no offer.
    """
    rows = (
        _read_offer(offer, answer, config)
        for answer in answers
        for offer in _offers(answer)
        if offer.get("gpuType") not in config.settings["not_gpus"]
    )
    return at_least_one(rows, f"{config.name}: no offer with GPUs")


def _offers(answer: Answer) -> list[dict[str, Any]]:
    """The list of offers; the older address answers an object with one list per GPU type."""
    body = answer.json()
    if isinstance(body, dict) and body and "items" not in body:
        lists = list(body.values())
        if all(isinstance(held, list) for held in lists):
            offers = [offer for held in lists for offer in held]
            if all(isinstance(offer, dict) and "gpuType" in offer for offer in offers):
                return offers
    return items_of(answer, "items")


def _read_offer(offer: dict[str, Any], answer: Answer, config: SourceConfig) -> Listing | Reject:
    name = f"{offer.get('provider')} {offer.get('cloudId')}"
    prices = object_in(offer, "prices")
    on_demand = prices.get("onDemand")
    try:
        price = price_of(on_demand if on_demand is not None else prices.get("communityPrice"))
        label, gpu_count = offer["gpuType"], whole_number(offer["gpuCount"])
        if not isinstance(label, str) or not label or gpu_count < 1:
            raise UnreadableError(f"{gpu_count} of {label!r}")
    except RowError as error:
        return Reject(error.reason, f"{name}: {error}", offer, answer)
    except (KeyError, UnreadableError) as error:
        detail = f"{name}: no readable GPU type or count ({error})"
        return Reject(RejectReason.MISSING_FIELD, detail, offer, answer)
    return Listing(
        raw_label=label,
        instance_type=offer.get("cloudId"),
        gpu_count=gpu_count,
        price_kind="spot" if offer.get("isSpot") is True else "on_demand",
        native_price=price,
        native_currency=str(prices.get("currency") or config.currency),
        native_unit="instance_hour",
        answer=answer,
        context={"form_factor": str(offer["socket"])} if offer.get("socket") else {},
        region=offer.get("region") or offer.get("country") or None,
        available=_available(offer.get("stockStatus")),
        tier=_tier(offer.get("security")),
        upstream_provider=_upstream(offer.get("provider"), config),
        interconnect=offer.get("interconnectType") or None,
        node_network_gbps=optional_number(offer.get("interconnect")) or None,
        vcpus=_default_count(offer.get("vcpu")),
        ram_gib=_default_count(offer.get("memory")),
        flag_reason=_doubt(offer),
    )


def _available(stock_status: Any) -> bool | None:
    return stock_status.casefold() not in _SOLD_OUT if isinstance(stock_status, str) else None


def _tier(security: Any) -> str | None:
    """``secure_cloud`` and ``community_cloud`` as secure and community."""
    return security.removesuffix("_cloud") if isinstance(security, str) and security else None


def _upstream(name: Any, config: SourceConfig) -> str | None:
    """The cloud whose machine it is, by the name that its own source uses where there is one."""
    if not isinstance(name, str) or not name:
        return None
    source = configs().get(config.settings["upstream_sources"].get(name, ""))
    return source.provider if source else name


def _default_count(part: Any) -> float | None:
    return optional_number(part.get("defaultCount")) if isinstance(part, dict) else None


def _doubt(offer: dict[str, Any]) -> FlagReason | None:
    """Why the price may not be what a machine costs by the hour."""
    if offer.get("prepaidTime"):
        return FlagReason.PREPAID_TIME
    parts = [part for part in (offer.get("vcpu"), offer.get("memory")) if isinstance(part, dict)]
    if any(part.get("pricePerUnit") and part.get("defaultIncludedInPrice") is False for part in parts):
        return FlagReason.PARTS_PRICED_APART
    return None
