"""Modal: serverless GPUs, charged per GPU-second.

A row is a text followed by a price for a whole second or hour. Not only those that name a vendor are read: a
GPU under another name is for the normalizer to know, not for this reader to lose.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, NativeUnit, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.html import page
from pipeline.parsing.prices import RowError, cell_price
from pipeline.parsing.running_text import Item, items_at, visible_texts
from pipeline.parsing.text import is_not_offered

GPU_LABEL = re.compile(r"(?:nvidia|amd)[®™]? [a-z0-9][a-z0-9 ,.+()/®™-]{0,60}", re.IGNORECASE)
BARE_VENDOR = re.compile(r"(?:nvidia|amd)[®™]?", re.IGNORECASE)
UNNAMED_LABEL = re.compile(r"(?=.{0,40}\d)[A-Z](?:[\w/®™]|[ ,()-]{1,2}(?=\w)){1,40}\)?")
"""A model without its vendor ("H100", "RTX PRO 6000 (96 GB)"): counts only right before a price."""

NO_LABEL = re.compile(
    r"\b(?:cpus?|cores?|memory|ram|storage|volumes?|disks?|network)\b|\b(?:from|at|for|only|just|low as)$",
    re.IGNORECASE,
)
UNITS: Mapping[str, NativeUnit] = {
    "s": "gpu_second",
    "sec": "gpu_second",
    "second": "gpu_second",
    "h": "gpu_hour",
    "hr": "gpu_hour",
    "hour": "gpu_hour",
}
_PRICE = re.compile(
    r"(?P<price>\S? ?\d[\d,. ]{0,20}) ?(?:/|per) ?(?P<unit>[a-z]{1,8})(?P<more> ?/)?", re.IGNORECASE
)


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """GPUs with a price per second (or hour, where the page shows that). CPU and memory are none of ours.

    A GPU named in running text without a price is no row. Raises SourceChangedError when no GPU has a price,
    or one has two.
    """
    for answer in answers:
        texts = _with_vendors(visible_texts(page(answer)))
        rows = [row for item in items_at(texts, _labels(texts)) if (row := _read(item, answer))]
        if not rows:
            raise SourceChangedError(f"{answer.url}: no GPU with a price per second")
        prices: dict[str, Decimal] = {}
        for row in rows:
            if (
                isinstance(row, Listing)
                and prices.setdefault(row.raw_label, row.native_price) != row.native_price
            ):
                raise SourceChangedError(f"{answer.url}: two prices for {row.raw_label}")
        yield from rows


def _with_vendors(texts: list[str]) -> list[str]:
    """Names in one piece: a vendor that stands in an element of its own joins what follows it."""
    joined: list[str] = []
    for text in texts:
        if joined and BARE_VENDOR.fullmatch(joined[-1]):
            joined[-1] += f" {text}"
        else:
            joined.append(text)
    return joined


def _labels(texts: list[str]) -> list[int]:
    def is_priced(at: int) -> bool:
        found = _PRICE.match(" ".join(texts[at + 1 : at + 4]))
        return found is not None and not found["more"] and found["unit"].lower() in UNITS

    return [
        at
        for at, text in enumerate(texts)
        if GPU_LABEL.fullmatch(text)
        or (UNNAMED_LABEL.fullmatch(text) and not NO_LABEL.search(text) and is_priced(at))
    ]


def _read(item: Item, answer: Answer) -> Listing | Reject | None:
    found = _PRICE.match(item.rest)
    if found is None:
        first = " ".join(item.rest.split()[:3])
        if first and is_not_offered(first):
            return _reject(RejectReason.NOT_OFFERED, f"{item.label}: {first!r}", item, answer)
        if "$" in first:
            return _reject(RejectReason.UNREADABLE_PRICE, f"{item.label}: {item.rest[:80]!r}", item, answer)
        return None
    unit = UNITS.get(found["unit"].lower())
    if unit is None or found["more"]:
        return _reject(RejectReason.UNKNOWN_UNIT, f"{item.label}: a price per {found['unit']}", item, answer)
    try:
        price, currency = cell_price(found["price"])
    except RowError as error:
        return _reject(error.reason, f"{item.label}: {error}", item, answer)
    return Listing(
        raw_label=item.label,
        gpu_count=1,
        price_kind="serverless",
        native_price=price,
        native_currency=currency,
        native_unit=unit,
        answer=answer,
    )


def _reject(reason: RejectReason, detail: str, item: Item, answer: Answer) -> Reject:
    return Reject(reason, detail, f"{item.label} {item.rest[:200]}", answer)
