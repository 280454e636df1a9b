"""Replicate: hardware charged per second for the whole set of GPUs."""

import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from bs4 import BeautifulSoup

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.html import page
from pipeline.parsing.running_text import Item, items, visible_texts
from pipeline.parsing.text import UnreadableError, is_not_offered, money, number

SECONDS_PER_HOUR = 3600
HOURLY_ROUNDING_USD = Decimal("0.006")
"""The page's hourly price is its price per second, rounded to the cent."""

GPU_LABEL = re.compile(r"(?:\d{1,2}x )?nvidia [a-z0-9][a-z0-9 ()-]{0,40}", re.IGNORECASE)
ADDITIONAL = re.compile(r"additional (?:multi-gpu )?hardware\b.{0,200}", re.IGNORECASE)
_COUNT_OF_LABEL = re.compile(r"(\d{1,2})x ", re.IGNORECASE)
_COUNT_OF_SKU = re.compile(r"-(\d{1,2})x$")
_SKU = re.compile(r"gpu-[a-z0-9-]{1,40}")
_PRICE = r"(?P<%s>[^\s\d]? ?\d[\d,.]{0,15}) ?(?:/|per) ?(?:%s)\b"
_ROW = re.compile(
    rf"[| ]*(?P<sku>{_SKU.pattern})?[| ]*"
    rf"(?:{_PRICE % ('second', 'sec|second|s')})?[| ]*(?:{_PRICE % ('hour', 'hr|hour|h')})?",
    re.IGNORECASE,
)
"""What follows a label: the SKU, the price per second, the price per hour. Nothing else may come between."""

_TOTAL_VRAM = re.compile(r"\bGPU RAM ?:? ?(\d{1,5}) ?GB", re.IGNORECASE)


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """GPU hardware of the page's text, or of the data embedded in its scripts.

    Raises SourceChangedError when neither holds a price: then the page is drawn by a script in the browser.
    """
    for answer in answers:
        soup = page(answer)
        rows = list(_read_text(soup, answer)) or list(_read_embedded(soup, config, answer))
        if not rows:
            raise SourceChangedError(
                f"{answer.url}: no hardware with a price per second, neither as text nor as embedded data; "
                "the table is drawn by a script in the browser, which is not run here"
            )
        yield from rows


def _read_text(soup: BeautifulSoup, answer: Answer) -> Iterator[Listing | Reject]:
    texts = visible_texts(soup)
    further = next((text for text in texts if ADDITIONAL.fullmatch(text)), None)
    before = texts[: texts.index(further)] if further else texts
    after = texts[len(before) :]
    for part, by_contract in ((before, False), (after, True)):
        for item in items(part, GPU_LABEL):
            row = _read_item(item, by_contract, answer)
            if row is not None:
                yield row


def _read_item(item: Item, by_contract: bool, answer: Answer) -> Listing | Reject | None:
    found = _ROW.match(item.rest)
    raw = f"{item.label} {item.rest[:200]}"
    if found is None or found["second"] is None:
        return _without_price(item, found, raw, answer)
    try:
        price = money(found["second"])
        if price <= 0:
            return Reject(RejectReason.ZERO_PRICE, f"{item.label}: {found['second']!r}", raw, answer)
        if found["hour"] and abs(price * SECONDS_PER_HOUR - money(found["hour"])) > HOURLY_ROUNDING_USD:
            detail = f"{item.label}: {found['second']} a second is not {found['hour']} an hour"
            return Reject(RejectReason.CONFLICTING_PRICES, detail, raw, answer)
        vram = _TOTAL_VRAM.search(item.rest)
        return _listing(item.label, found["sku"], price, vram[1] if vram else None, by_contract, answer)
    except UnreadableError as error:
        return Reject(RejectReason.UNREADABLE_ROW, f"{item.label}: {error}", raw, answer)


def _without_price(item: Item, found: re.Match[str] | None, raw: str, answer: Answer) -> Reject | None:
    """A row (it has a SKU) without a price per second; a GPU named in running text is none."""
    if found is None or found["sku"] is None:
        return None
    behind = item.rest[found.end("sku") :].strip(" |")
    if is_not_offered(" ".join(behind.split()[:2])):
        return Reject(RejectReason.NOT_OFFERED, f"{item.label}: {behind[:40]!r}", raw, answer)
    return Reject(
        RejectReason.UNREADABLE_PRICE, f"{item.label}: no price per second in {behind[:40]!r}", raw, answer
    )


def _read_embedded(soup: BeautifulSoup, config: SourceConfig, answer: Answer) -> Iterator[Listing | Reject]:
    for script in soup.find_all("script"):
        try:
            data = json.loads(script.string or "", parse_float=Decimal)
        except ValueError:
            continue
        for found in _objects(data):
            yield from _read_object(found, config, answer)


def _objects(data: Any) -> Iterator[dict[str, Any]]:
    """Every object inside a JSON value, without recursion: the depth is the page's to choose."""
    waiting = [data]
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, dict):
            yield value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _read_object(found: dict[str, Any], config: SourceConfig, answer: Answer) -> Iterator[Listing | Reject]:
    skus = [str(found[key]) for key in config.settings["embedded_sku_keys"] if key in found]
    sku = next((name for name in skus if _SKU.fullmatch(name)), None)
    prices = [found[key] for key in config.settings["embedded_price_keys"] if found.get(key) is not None]
    if sku is None or not prices:
        return
    label = found.get("name")
    try:
        price = money(prices[0]) if isinstance(prices[0], str) and "$" in prices[0] else number(prices[0])
        if not isinstance(label, str) or price <= 0 or len(prices) != 1:
            raise UnreadableError(f"{sku}: not one name and one price above zero")
        yield _listing(label, sku, price, None, False, answer)
    except UnreadableError as error:
        yield Reject(RejectReason.UNREADABLE_ROW, str(error), found, answer)


def _listing(
    label: str, sku: str | None, price: Decimal, total_vram: str | None, by_contract: bool, answer: Answer
) -> Listing:
    """Raises UnreadableError when label and SKU do not agree on the number of GPUs."""
    of_label, of_sku = _COUNT_OF_LABEL.match(label), _COUNT_OF_SKU.search(sku or "")
    gpu_count = int(of_label[1]) if of_label else 1
    if sku and gpu_count != (int(of_sku[1]) if of_sku else 1):
        raise UnreadableError(f"{label!r} and {sku!r} do not agree on the number of GPUs")
    return Listing(
        raw_label=label,
        instance_type=sku,
        gpu_count=gpu_count,
        price_kind="reserved" if by_contract else "serverless",
        tier="committed_spend" if by_contract else None,
        native_price=price,
        native_currency="USD",
        native_unit="instance_second",
        answer=answer,
        context={"vram_total_gb": number(total_vram)} if total_vram else {},
    )
