"""Thunder Compute: GPUs in two modes, from the pricing page's cards or its JSON-LD products."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bs4 import Tag

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.answers import at_least_one
from pipeline.parsing.html import json_ld, page, text_of
from pipeline.parsing.prices import RowError, gpu_hour_field, gpu_hour_row
from pipeline.parsing.text import MONEY_IN_TEXT
from pipeline.parsing.text_blocks import cards, label_before, prices_with_words

_MARK = re.compile(r"\bVRAM:? ?(?P<vram>\d{2,3}) ?GB\b", re.IGNORECASE)
_PRICE = re.compile(
    rf"\bGPU ?/ ?(?:hr|hour)\b[\s():]{{0,6}}(?P<after>{MONEY_IN_TEXT})"
    rf"|(?P<before>{MONEY_IN_TEXT}) ?/ ?GPU ?/ ?(?:hr|hour)\b",
    re.IGNORECASE,
)
_END = re.compile(_PRICE.pattern + r"|\bcontact\b", re.IGNORECASE)
_DOLLARS = re.compile(r"\$")
_MODE_ATTRIBUTES = ("id", "aria-label", "aria-labelledby", "data-mode", "data-tier")
MAX_JSON_LD_DEPTH = 8


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """GPUs by the hour, per mode (``tier``) where the page names the mode.

    JSON-LD is read where the page shows no cards. Storage, vCPUs and snapshots
    are skipped. Raises SourceChangedError when no GPU is found.
    """
    rows = (row for answer in answers for row in _read_answer(answer, config))
    return at_least_one(rows, f"{config.name}: no GPU in a card or in JSON-LD")


def _read_answer(answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    if answer.is_json:
        yield from _read_products(answer.json(), answer, config)
        return
    soup = page(answer)
    shown = [
        row for element, text in cards(soup, _MARK, _END) for row in _read_card(element, text, answer, config)
    ]
    yield from shown
    if not shown:
        for document in json_ld(soup, answer):
            yield from _read_products(document, answer, config)


def _mode(text: str, config: SourceConfig) -> str | None:
    """The one mode that a text names; None where it names none or both."""
    found = [
        mode
        for mode, words in config.settings["modes"].items()
        if any(re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) for word in words)
    ]
    return found[0] if len(found) == 1 else None


def _read_card(element: Tag, text: str, answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    try:
        label, mark = label_before(text, _MARK, _DOLLARS)
    except RowError as error:
        yield Reject(error.reason, str(error), text, answer)
        return
    prices = prices_with_words(text, _PRICE)
    if not prices:
        reason = RejectReason.NOT_OFFERED if "$" not in text else RejectReason.UNREADABLE_ROW
        yield Reject(reason, f"{label}: no price per GPU-hour", text, answer)
        return
    around = _mode_around(element, config)
    tiers = [_mode(words, config) or around for words, _ in prices]
    if len(set(tiers)) != len(prices):
        yield Reject(RejectReason.UNREADABLE_ROW, f"{label}: several prices of the same mode", text, answer)
        return
    for tier, (_, price) in zip(tiers, prices, strict=True):
        cell = price["after"] or price["before"]
        context = {"vram_gb": float(mark["vram"])}
        yield gpu_hour_row(label, "on_demand", cell, text, answer, tier=tier, context=context)


def _mode_around(element: Tag, config: SourceConfig) -> str | None:
    """The mode in the names of the elements around a card, or else in the last heading that names one."""
    for part in (element, *element.parents):
        named = " ".join(str(part.get(name) or "") for name in _MODE_ATTRIBUTES)
        if mode := _mode(re.sub(r"[-_]", " ", named), config):
            return mode
    for heading in element.find_all_previous(["h1", "h2", "h3", "h4"]):
        if mode := _mode(text_of(heading), config):
            return mode
    return None


def _read_products(node: Any, answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    for product in _products(node):
        name = str(product.get("name") or "")
        if any(word in name.casefold() for word in config.settings["extras"]):
            continue
        offers = product.get("offers")
        for offer in offers if isinstance(offers, list) else [offers]:
            yield _read_offer(name, offer if isinstance(offer, dict) else {}, product, answer, config)


def _products(node: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Every Product node, however a page nests them (lists, @graph, itemListElement)."""
    if depth > MAX_JSON_LD_DEPTH:
        return
    if isinstance(node, list):
        for part in node:
            yield from _products(part, depth + 1)
    elif isinstance(node, dict):
        kinds = node.get("@type")
        if "Product" in (kinds if isinstance(kinds, list) else [kinds]):
            yield node
        for key in ("@graph", "itemListElement", "item", "mainEntity", "hasVariant"):
            yield from _products(node.get(key), depth + 1)


def _read_offer(
    name: str, offer: Mapping[str, Any], product: dict[str, Any], answer: Answer, config: SourceConfig
) -> Listing | Reject:
    terms = offer.get("priceSpecification")
    terms = terms if isinstance(terms, dict) else {}
    unit = str(terms.get("unitCode") or terms.get("unitText") or offer.get("unitCode") or "hour").casefold()
    if not name or "lowPrice" in offer or unit not in config.settings["hour_units"]:
        detail = f"{name or 'a product without a name'}: not one price per hour (unit {unit!r})"
        return Reject(RejectReason.UNKNOWN_TERMS, detail, product, answer)
    currency = offer.get("priceCurrency") or terms.get("priceCurrency")
    if not isinstance(currency, str):
        detail = f"{name}: the price names no currency"
        return Reject(RejectReason.MISSING_FIELD, detail, product, answer)
    price = offer.get("price", terms.get("price"))
    tier = _mode(f"{name} {offer.get('name') or ''} {product.get('category') or ''}", config)
    return gpu_hour_field(name, "on_demand", price, currency, product, answer, tier=tier)
