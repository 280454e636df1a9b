"""Baseten: GPU instances for models, charged per minute."""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.gpu_counts import gpu_count_in
from pipeline.parsing.html import page
from pipeline.parsing.prices import CellPrice, RowError, cell_price, optional_number, reject_contradictions
from pipeline.parsing.text import is_not_offered
from pipeline.parsing.text_blocks import (
    Item,
    agrees_with_hourly,
    items,
    leading_price,
    native_unit,
    visible_texts,
)
from pipeline.parsing.units import TimeUnit

MAX_TEXTS_PER_ROW = 12

_VRAM = re.compile(r"(?P<label>.{0,40}?) ?(?P<vram>\d{1,4} ?Gi?B VRAM\b[ ,|·]*.{0,200})", re.IGNORECASE)
_SPECS = re.compile(
    r"(?P<vram>\d{1,4}) ?Gi?B VRAM\b[ ,|·]*"
    r"(?:(?P<vcpus>\d{1,4}) ?vCPUs?)?[ ,|·]*(?:(?P<ram>\d{1,5}) ?Gi?B RAM)?[ ,|·]*"
    r"(?P<price>$|(?<![^\W\d_]).*)",
    re.IGNORECASE,
)
"""No letter may be glued to the price: "RAM$2.50" is no price of the row."""


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """One offer per instance with GPU memory. Raises SourceChangedError when there is none."""
    for answer in answers:
        rows = [_read_item(item, config, answer) for item in _items(visible_texts(page(answer)))]
        if not rows:
            raise SourceChangedError(f'{answer.url}: no instance with "GiB VRAM"')
        yield from reject_contradictions(rows, lambda row: row.raw_label)


def _items(texts: list[str]) -> Iterator[Item]:
    """Rows around "80 GiB VRAM"; the name is before it, in the same text or in the one before."""
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
    yield from items(parts, starts, MAX_TEXTS_PER_ROW)


def _read_item(item: Item, config: SourceConfig, answer: Answer) -> Listing | Reject:
    label = item.label.strip(" ,|·")
    specs = _SPECS.match(item.rest)
    if specs is None or not re.search(r"[A-Za-z]", label) or "$" in label:
        return item.reject(RejectReason.UNREADABLE_ROW, "no name before the GPU memory", answer)
    try:
        price, unit = _price(specs["price"], config)
        gpu_count = gpu_count_in(label) or 1
    except RowError as error:
        return item.reject(error.reason, str(error), answer)
    # The memory of a MIG slice is the slice's, and says what share of the GPU the price is for.
    is_slice = re.search(r"MIG\b", label, re.IGNORECASE) is not None
    return Listing(
        raw_label=label,
        gpu_count=None if is_slice and gpu_count == 1 else gpu_count,
        price_kind="serverless",
        native_price=price.amount,
        native_currency="USD",
        native_unit=native_unit(unit, "gpu" if gpu_count == 1 and not is_slice else "instance"),
        answer=answer,
        flag_reason=price.flag_reason,
        context={"vram_gb" if gpu_count == 1 else "vram_total_gb": Decimal(specs["vram"])},
        vcpus=optional_number(specs["vcpus"]),
        ram_gib=optional_number(specs["ram"]),
    )


def _price(text: str, config: SourceConfig) -> tuple[CellPrice, TimeUnit]:
    """Amount and unit. A second amount has to be the same price per hour. Raises RowError."""
    if is_not_offered(" ".join(text.split()[:2])):
        raise RowError(RejectReason.NOT_OFFERED, f"no price is given: {text[:40]!r}")
    price = leading_price(text)
    if price is None:
        raise RowError(RejectReason.UNREADABLE_PRICE, f"no price in {text[:60]!r}")
    unit = price.time_unit if price.unit else config.settings["bare_price_unit"]
    if unit is None:
        raise RowError(RejectReason.UNKNOWN_UNIT, f"a price per {price.unit}")
    found = cell_price(price.amount, currencies=["USD"])
    hourly = leading_price(price.rest) if price.rest.startswith("$") else None
    if hourly is not None and not agrees_with_hourly(found.amount, unit, hourly.amount):
        detail = f"{price.amount} and {hourly.amount} are not one price per {unit} and hour"
        raise RowError(RejectReason.CONFLICTING_PRICES, detail)
    return found, unit
