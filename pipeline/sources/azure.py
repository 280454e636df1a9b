"""Azure: items of the Retail Prices API, in pages. The GPU follows from the size (armSkuName).

What an item is for stands in its text fields: Windows in productName, Spot and Low Priority at the end of
meterName. Sizes that are no GPU sizes (settings.gpu_sizes) are not ours and are skipped.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing.json_lists import items_of
from pipeline.parsing.prices import RowError, price_of
from pipeline.parsing.text import UnreadableError, number

_MANDATORY = (
    "armSkuName",
    "armRegionName",
    "retailPrice",
    "unitOfMeasure",
    "meterName",
    "productName",
    "type",
)


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """Every Linux price of a GPU size. Raises SourceChangedError when no item has the mandatory fields."""
    gpu_items = 0
    for answer in answers:
        items, currency = items_of(answer, "Items"), _currency(answer, config)
        if items and not any(all(name in item for name in _MANDATORY) for item in items):
            raise SourceChangedError(f"{answer.url}: no item has all of {', '.join(_MANDATORY)}")
        for item in items:
            if not re.fullmatch(config.settings["gpu_sizes"], str(item.get("armSkuName", ""))):
                continue
            gpu_items += 1
            try:
                yield _listing(item, currency, answer, config)
            except RowError as problem:
                detail = f"{item['armSkuName']} in {item.get('armRegionName')}: {problem}"
                yield Reject(problem.reason, detail, item, answer)
    if not gpu_items:
        raise SourceChangedError("no item of a GPU size in any answer of Azure")


def _currency(answer: Answer, config: SourceConfig) -> str:
    """The currency of items that do not name theirs."""
    body = answer.json()
    return str(body.get("BillingCurrency") or config.currency) if isinstance(body, dict) else config.currency


def _listing(item: Mapping[str, Any], currency: str, answer: Answer, config: SourceConfig) -> Listing:
    missing = [name for name in _MANDATORY if item.get(name) in (None, "")]
    if missing:
        raise RowError(RejectReason.MISSING_FIELD, f"without {', '.join(missing)}")
    _refuse_other_products(item)
    term_days = _term_days(item, config)
    region = str(item["armRegionName"])
    restricted = region.startswith(tuple(config.settings["restricted_region_prefixes"]))
    return Listing(
        raw_label=item["armSkuName"],
        instance_type=item["armSkuName"],
        label_kind="instance_type",
        gpu_count=None,
        price_kind="reserved" if term_days else "spot" if _is_spot(item) else "on_demand",
        native_price=price_of(item["retailPrice"]),
        native_currency=str(item.get("currencyCode") or currency),
        native_unit="instance_term" if term_days else "instance_hour",
        answer=answer,
        term_days=term_days,
        region=region,
        effective_from=_effective_from(item, answer),
        flag_reason=FlagReason.RESTRICTED_REGION if restricted else None,
    )


def _refuse_other_products(item: Mapping[str, Any]) -> None:
    """Meters that carry the same size but are not a Linux machine that anyone can rent."""
    product, meter = str(item["productName"]), str(item["meterName"])
    if item.get("serviceName") not in (None, "Virtual Machines"):
        raise RowError(RejectReason.OTHER_PRODUCT, f"of the service {item['serviceName']!r}")
    if "windows" in product.lower():
        raise RowError(RejectReason.NOT_LINUX, f"a Windows meter: {product!r}")
    if "cloudservices" in product.replace(" ", "").lower():
        raise RowError(RejectReason.OTHER_PRODUCT, f"a meter of Cloud Services: {product!r}")
    if meter.lower().endswith("low priority"):
        raise RowError(RejectReason.OTHER_PRICE_KIND, f"Low Priority is for Azure Batch only: {meter!r}")
    if meter.lower().endswith("expired"):
        raise RowError(RejectReason.DISCONTINUED, f"an expired meter: {meter!r}")
    if item["type"] == "DevTestConsumption":
        raise RowError(RejectReason.OTHER_PRODUCT, "only for Dev/Test subscriptions")
    if item["type"] not in ("Consumption", "Reservation"):
        raise RowError(RejectReason.OTHER_PRICE_KIND, f"of type {item['type']!r}")
    if item["unitOfMeasure"] not in ("1 Hour", "1/Hour"):
        raise RowError(RejectReason.UNKNOWN_UNIT, f"a price per {item['unitOfMeasure']!r}")
    if _is_tiered(item):
        raise RowError(RejectReason.VOLUME_PRICE, f"only above {item['tierMinimumUnits']} units")


def _is_tiered(item: Mapping[str, Any]) -> bool:
    try:
        return number(item.get("tierMinimumUnits") or 0) != 0
    except UnreadableError:
        return True


def _is_spot(item: Mapping[str, Any]) -> bool:
    return any(str(item.get(name, "")).lower().endswith(" spot") for name in ("meterName", "skuName"))


def _term_days(item: Mapping[str, Any], config: SourceConfig) -> int | None:
    if item["type"] != "Reservation":
        return None
    days = config.settings["term_days"].get(str(item.get("reservationTerm")))
    if days is None:
        raise RowError(RejectReason.UNKNOWN_TERM_LENGTH, f"a reservation for {item.get('reservationTerm')!r}")
    return int(days)


def _effective_from(item: Mapping[str, Any], answer: Answer) -> date | None:
    """The day from which the price holds, where it is still to come."""
    try:
        day = date.fromisoformat(str(item.get("effectiveStartDate", ""))[:10])
    except ValueError:
        return None
    return day if day > answer.observed_at.astimezone(UTC).date() else None
