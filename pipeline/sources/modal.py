"""Modal: serverless GPUs, charged per GPU-second."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from pipeline.sources.base import Answer, Listing, NativeUnit, Reject, SourceChangedError
from pipeline.sources.config import SourceConfig
from pipeline.sources.html import page
from pipeline.sources.running_text import Item, items, visible_texts
from pipeline.sources.text import UnreadableError, is_not_offered, money

GPU_LABEL = re.compile(r"(?:nvidia|amd) [a-z0-9][a-z0-9 ,.+()-]{0,60}", re.IGNORECASE)
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
        rows = [row for item in items(visible_texts(page(answer)), GPU_LABEL) if (row := _read(item, answer))]
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


def _read(item: Item, answer: Answer) -> Listing | Reject | None:
    found = _PRICE.match(item.rest)
    if found is None:
        first = " ".join(item.rest.split()[:3])
        if first and is_not_offered(first):
            return _reject("not_offered", f"{item.label}: {first!r}", item, answer)
        if "$" in first:
            return _reject("unreadable_price", f"{item.label}: {item.rest[:80]!r}", item, answer)
        return None
    unit = UNITS.get(found["unit"].lower())
    if unit is None or found["more"]:
        return _reject("unreadable_price", f"{item.label}: a price per {found['unit']}", item, answer)
    try:
        price = money(found["price"])
    except UnreadableError as error:
        return _reject("unreadable_price", f"{item.label}: {error}", item, answer)
    if price <= 0:
        return _reject("zero_price", f"{item.label}: {found['price']!r}", item, answer)
    return Listing(
        raw_label=item.label,
        gpu_count=1,
        price_kind="serverless",
        native_price=price,
        native_currency="USD",
        native_unit=unit,
        answer=answer,
    )


def _reject(reason: str, detail: str, item: Item, answer: Answer) -> Reject:
    return Reject(reason=reason, detail=detail, raw=f"{item.label} {item.rest[:200]}", answer=answer)
