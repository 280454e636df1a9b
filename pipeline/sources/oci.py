"""Oracle Cloud: prices per GPU-hour by part number, and the shapes that these parts bill."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, PriceKind, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.json_lists import items_of, objects_in
from pipeline.parsing.prices import RowError, price_of
from pipeline.parsing.text import UnreadableError, clean_text, number, whole_number

PAY_AS_YOU_GO = "PAY_AS_YOU_GO"
_MACHINE = re.compile(r"\bCompute ?-.{0,40}\bGPU\b")
_SHAPE_NOTE = re.compile(r" \([^()]{1,40}\)$")


@dataclass(frozen=True, slots=True)
class Part:
    """A part number that is billed per GPU-hour."""

    number: str
    label: str
    price: Decimal
    currency: str
    answer: Answer


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """One offer per GPU part, or per shape that bills it where the shapes are known.

    Products and shapes that are not GPUs by the hour are none of ours. Raises SourceChangedError when no
    answer has a GPU.
    """
    items = [(item, answer) for answer in answers for item in items_of(answer, "items")]
    shapes = [(item, answer) for item, answer in items if _is_shape(item) and item.get("gpuQty")]
    products = [(item, answer) for item, answer in items if not _is_shape(item)]
    if products and not any("metricName" in item and "serviceCategory" in item for item, _ in products):
        raise SourceChangedError(f"{config.name}: no product has a metricName and a serviceCategory")
    gpus = [(item, answer) for item, answer in products if _is_gpu_hour(item, config)]
    if not gpus and not shapes:
        raise SourceChangedError(f"{config.name}: no product billed per GPU-hour and no GPU shape")
    parts: dict[str, Part] = {}
    for item, answer in gpus:
        part = _read_part(item, answer)
        if isinstance(part, Reject):
            yield part
        elif parts.setdefault(part.number, part).price != part.price:
            raise SourceChangedError(f"{answer.url}: two prices for part {part.number}")
    billed: set[str] = set()
    for shape, answer in shapes:
        numbers = dict.fromkeys(str(product.get("partNumber")) for product in objects_in(shape, "products"))
        billed.update(numbers)
        named = [parts[part_number] for part_number in numbers if part_number in parts]
        yield from _read_shape(shape, named, config, answer)
    yield from (
        _listing(part, part.price, "on_demand") for part in parts.values() if part.number not in billed
    )


def _is_shape(item: dict[str, Any]) -> bool:
    return "gpuQty" in item or "shapeType" in item


def _is_gpu_hour(item: dict[str, Any], config: SourceConfig) -> bool:
    """Whether a product is a GPU rented by the hour."""
    metric, category = (clean_text(str(item.get(name, ""))) for name in ("metricName", "serviceCategory"))
    prefix = config.settings["category_prefix"]
    return metric == config.settings["metric"] and re.match(rf"{re.escape(prefix)}\b", category) is not None


def _read_part(item: dict[str, Any], answer: Answer) -> Part | Reject:
    label = item.get("displayName")
    part_number = item.get("partNumber")
    if not label or not part_number:
        return Reject(
            RejectReason.MISSING_FIELD, "the product has no displayName or no partNumber", item, answer
        )
    if not _MACHINE.search(clean_text(str(label))):
        detail = f"{label} is billed per GPU-hour but is no machine (software has the same metric)"
        return Reject(RejectReason.OTHER_PRODUCT, detail, item, answer)
    try:
        price, currency = _price(item)
    except RowError as error:
        return Reject(error.reason, f"{label}: {error}", item, answer)
    return Part(str(part_number), str(label), price, currency, answer)


def _price(item: dict[str, Any]) -> tuple[Decimal, str]:
    """The one pay-as-you-go price, in USD where that is among the currencies. Raises RowError."""
    priced: dict[str, list[Any]] = {}
    for local in objects_in(item, "currencyCodeLocalizations"):
        for price in objects_in(local, "prices"):
            if price.get("model") == PAY_AS_YOU_GO:
                priced.setdefault(str(local.get("currencyCode")), []).append(price.get("value"))
    currency = "USD" if "USD" in priced else next(iter(priced), "")
    if not currency or (currency != "USD" and len(priced) > 1):
        raise RowError(RejectReason.NOT_OFFERED, f"no pay-as-you-go price in USD, but in {sorted(priced)}")
    prices = {price_of(value) for value in priced[currency]}
    if len(prices) != 1:
        raise RowError(RejectReason.CONFLICTING_PRICES, f"several pay-as-you-go prices: {sorted(prices)}")
    return prices.pop(), currency


def _read_shape(
    shape: dict[str, Any], parts: list[Part], config: SourceConfig, answer: Answer
) -> Iterator[Listing | Reject]:
    name = _SHAPE_NOTE.sub("", clean_text(str(shape.get("name") or "")))
    if len(parts) != 1:
        detail = f"{name}: {len(parts)} of its parts have a price per GPU-hour, not one"
        yield Reject(RejectReason.INCOMPLETE_PRICE, detail, shape, answer)
        return
    if not name:
        yield Reject(RejectReason.MISSING_FIELD, "a GPU shape without a name", shape, answer)
        return
    part = parts[0]
    if shape.get("hidden") is True or (shape.get("status") or "ACTIVE") != "ACTIVE":
        yield Reject(RejectReason.NOT_OFFERED, f"{name} is hidden or not active", shape, answer)
        return
    try:
        gpu_count = whole_number(shape["gpuQty"])
        ram_gib = None if shape.get("bundleMemoryQty") is None else float(number(shape["bundleMemoryQty"]))
    except UnreadableError as error:
        yield Reject(RejectReason.UNREADABLE_ROW, f"{name}: {error}", shape, answer)
        return
    if gpu_count <= 0:
        yield Reject(RejectReason.UNKNOWN_GPU_COUNT, f"{name} has {gpu_count} GPUs", shape, answer)
        return
    yield _listing(part, part.price, "on_demand", name, gpu_count, ram_gib)
    if shape.get("allowPreemptible") is True:
        half = part.price * number(config.settings["preemptible_share"])
        yield _listing(part, half, "spot", name, gpu_count, ram_gib)


def _listing(
    part: Part,
    price: Decimal,
    kind: PriceKind,
    shape: str | None = None,
    gpu_count: int = 1,
    ram_gib: float | None = None,
) -> Listing:
    return Listing(
        raw_label=shape or part.label,
        label_kind="instance_type" if shape else "gpu_name",
        instance_type=shape,
        gpu_count=gpu_count,
        price_kind=kind,
        tier="preemptible_by_rule" if kind == "spot" else None,
        native_price=price,
        native_currency=part.currency,
        native_unit="gpu_hour",
        answer=part.answer,
        ram_gib=ram_gib,
    )
