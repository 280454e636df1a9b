"""Baseten: GPU instances for models, charged per minute."""

import re
from collections.abc import Iterator
from decimal import Decimal

from pipeline.sources import kit

MAX_TEXTS_PER_ROW = 12

_VRAM = re.compile(r"(?P<label>.{0,40}?) ?(?P<vram>\d{1,4} ?Gi?B VRAM\b[ ,|·]*.{0,200})", re.IGNORECASE)
_SPECS = re.compile(
    r"(?P<vram>\d{1,4}) ?Gi?B VRAM\b[ ,|·]*"
    r"(?:(?P<vcpus>\d{1,4}) ?vCPUs?)?[ ,|·]*(?:(?P<ram>\d{1,5}) ?Gi?B RAM)?[ ,|·]*"
    r"(?P<price>$|(?<![^\W\d_]).*)",
    re.IGNORECASE,
)
"""No letter may directly precede the price: "RAM$2.50" is not the row's price."""


@kit.reader('no instance with "GiB VRAM"')
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """Yield one offer per instance with GPU memory."""
    for item in _items(kit.visible_texts(kit.page(answer))):
        yield _read_item(item, audit.config, answer)


def _items(texts: list[str]) -> Iterator[kit.Item]:
    """Yield an item per "80 GiB VRAM"; its name comes first in the same string, or is the previous string."""
    parts: list[str] = []
    starts: list[int] = []
    for text in texts:
        found = _VRAM.fullmatch(text)
        if found is None:
            parts.append(text)
            continue
        if found["label"] or not parts:
            parts.append(found["label"])
        starts.append(len(parts) - 1)
        parts.append(found["vram"])
    yield from kit.items(parts, starts, MAX_TEXTS_PER_ROW)


def _read_item(item: kit.Item, config: kit.SourceConfig, answer: kit.Answer) -> kit.Listing | kit.Reject:
    label = item.label.strip(" ,|·")
    specs = _SPECS.match(item.rest)
    if specs is None or not re.search(r"[A-Za-z]", label) or "$" in label:
        return item.reject(kit.RejectReason.UNREADABLE_ROW, "no name before the GPU memory", answer)
    try:
        price, unit = _price(specs["price"], config)
        gpu_count = kit.gpu_count_in(label) or 1
    except kit.RowError as error:
        return item.reject(error.reason, str(error), answer)
    # The memory stated for a MIG slice is the slice's memory, and determines the slice's share of the GPU.
    is_slice = re.search(r"MIG\b", label, re.IGNORECASE) is not None
    return price.listing(
        label,
        None if is_slice and gpu_count == 1 else gpu_count,
        answer,
        price_kind="serverless",
        native_unit=kit.native_unit(unit, "gpu" if gpu_count == 1 and not is_slice else "instance"),
        context={"vram_gb" if gpu_count == 1 else "vram_total_gb": Decimal(specs["vram"])},
        vcpus=kit.optional_number(specs["vcpus"]),
        ram_gib=kit.optional_number(specs["ram"]),
    )


def _price(text: str, config: kit.SourceConfig) -> tuple[kit.CellPrice, kit.TimeUnit]:
    """Return the price and its unit. Raises RowError if a second amount is not the same price per hour."""
    if kit.is_not_offered(" ".join(text.split()[:2])):
        raise kit.RowError(kit.RejectReason.NOT_OFFERED, f"no price is given: {text[:40]!r}")
    price = kit.leading_price(text)
    if price is None:
        raise kit.RowError(kit.RejectReason.UNREADABLE_PRICE, f"no price in {text[:60]!r}")
    unit = price.time_unit if price.unit else config.settings["bare_price_unit"]
    if unit is None:
        raise kit.RowError(kit.RejectReason.UNKNOWN_UNIT, f"a price per {price.unit}")
    found = kit.cell_price(price.amount, currencies=["USD"])
    hourly = kit.leading_price(price.rest) if price.rest.startswith("$") else None
    if hourly is not None and not kit.agrees_with_hourly(found.amount, unit, hourly.amount):
        detail = f"{price.amount} and {hourly.amount} are not the same price per {unit} and per hour"
        raise kit.RowError(kit.RejectReason.CONFLICTING_PRICES, detail)
    return found, unit
