"""JarvisLabs: the pricing page (tables, or cards) or the API's server_meta."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

from bs4 import BeautifulSoup

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, PriceKind, Reject, Request
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.answers import at_least_one
from pipeline.parsing.cards import cards
from pipeline.parsing.html import Table, column, columns, is_hidden, page, table
from pipeline.parsing.json_lists import items_of
from pipeline.parsing.prices import RowError, cell_price, is_available, optional_number, price_of
from pipeline.parsing.text import UnreadableError, number

_PRICE = re.compile(
    r"[$€£₹] ?\d[\d,]*(?:\.\d+)?(?: ?(?:/|\bper\b) ?[a-z]+(?:[/ -](?:hr|hour|h)\b)?)?", re.IGNORECASE
)
_CARD_END = re.compile(_PRICE.pattern + r"|\b(?:contact|talk to|sold out)\b", re.IGNORECASE)
_GIGABYTES = re.compile(r"(\d{1,4}(?:\.\d)?) ?G(?:i?B)?", re.IGNORECASE)


def requests(config: SourceConfig, environment: Mapping[str, str]) -> list[Request]:
    """The API where there is a key for it, else the page."""
    (key,) = config.key_variables
    if environment.get(key):
        return [Request(config.settings["api_url"], headers={"Authorization": f"Bearer ${{{key}}}"})]
    return [Request(request.url) for request in config.requests]


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """GPUs by the hour, on demand and spot.

    CPU machines and storage are not ours and are passed over. Raises SourceChangedError when no GPU is found.
    """
    rows = (row for answer in answers for row in _read_answer(answer, config))
    return at_least_one(rows, f"{config.name}: no GPU in a table, a card or server_meta")


def _read_answer(answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    return _read_server_meta(answer) if answer.is_json else _read_page(answer, config)


def _read_server_meta(answer: Answer) -> Iterator[Listing | Reject]:
    for gpu in items_of(answer, "server_meta"):
        if not gpu.get("gpu_type"):
            detail = "a machine without gpu_type"
            yield Reject(RejectReason.MISSING_FIELD, detail, gpu, answer)
            continue
        yield _read_gpu(gpu, "on_demand", "price_per_hour", _free(gpu), answer)
        if "spot_price" in gpu:
            yield _read_gpu(gpu, "spot", "spot_price", is_available(gpu.get("spot_num_free_devices")), answer)


def _read_gpu(
    gpu: dict[str, Any], kind: PriceKind, field: str, available: bool | None, answer: Answer
) -> Listing | Reject:
    label = str(gpu["gpu_type"])
    try:
        price = price_of(gpu.get(field))
    except RowError as error:
        detail = f"{label} in {gpu.get('region')}, {kind}: {error}"
        return Reject(error.reason, detail, gpu, answer)
    return Listing.of_one_gpu(
        label,
        kind,
        price,
        "USD",
        answer,
        context=_vram(gpu.get("vram")),
        region=gpu.get("region") or None,
        available=available,
        vcpus=optional_number(gpu.get("cpus_per_gpu")),
        ram_gib=optional_number(gpu.get("ram_per_gpu")),
    )


def _free(gpu: dict[str, Any]) -> bool | None:
    return is_available(gpu.get("effective_num_free_devices", gpu.get("num_free_devices")))


def _vram(said: Any) -> dict[str, str | float | Decimal]:
    """Memory per GPU in GB, from ``"80"`` or ``80 GB``; nothing where it is not clear."""
    text = re.sub(r" ?G(i?B)?$", "", str(said).strip(), flags=re.IGNORECASE)
    try:
        return {"vram_gb": number(text)}
    except UnreadableError:
        return {}


def _read_page(answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    """The tables that have GPUs and prices (comparisons with other clouds have none); else the cards."""
    soup = page(answer)
    patterns = config.settings["headers"]
    grids = [table(tag) for tag in soup.find_all("table") if not is_hidden(tag)]
    priced = [grid for grid in grids if all(columns(grid.headers, patterns[of]) for of in ("gpu", "price"))]
    for grid in priced:
        yield from _read_table(grid, answer, config)
    if not priced:
        yield from _read_cards(soup, answer, config)


def _read_table(grid: Table, answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    patterns = config.settings["headers"]
    gpu_at = column(grid.headers, patterns["gpu"], answer)
    prices_at = columns(grid.headers, patterns["price"])
    for raw in grid.rows_under_headers(answer):
        if isinstance(raw, Reject):
            yield raw
            continue
        facts = {
            "context": _vram(grid.cell(raw, patterns["vram"])),
            "ram_gib": _gigabytes(grid.cell(raw, patterns["ram"])),
            "vcpus": optional_number(grid.cell(raw, patterns["vcpus"])),
        }
        for at in prices_at:
            yield _read_price(
                raw[gpu_at], grid.headers[at], _with_sign(raw[at], grid.headers[at]), facts, answer, config
            )


def _gigabytes(text: str | None) -> float | None:
    found = _GIGABYTES.fullmatch(text or "")
    return float(found[1]) if found else None


def _with_sign(cell: str, header: str) -> str:
    """A bare ``2.69`` under ``$/hour`` is dollars; under a header without a sign it is not money."""
    return f"${cell}" if "$" in header and re.fullmatch(r"\d[\d,.]*", cell) else cell


def _read_price(
    label: str, term: str, cell: str, facts: Mapping[str, Any], answer: Answer, config: SourceConfig
) -> Listing | Reject:
    """``term`` is what the page calls the price: a column's header, or the words before it on a card."""
    raw = {"label": label, "term": term, "price": cell}
    if any(word in term.casefold() for word in config.settings["other_terms"]):
        detail = f"{label}: a price under {term!r}"
        return Reject(RejectReason.UNKNOWN_TERMS, detail, raw, answer)
    try:
        price, currency = cell_price(cell)
    except RowError as error:
        detail = f"{label}, {term or 'price'}: {error}"
        return Reject(error.reason, detail, raw, answer)
    kind: PriceKind = "spot" if re.search(r"\bspot\b", term, re.IGNORECASE) else "on_demand"
    return Listing.of_one_gpu(label, kind, price, currency, answer, **facts)


@cache
def _spec(generations: tuple[str, ...]) -> re.Pattern[str]:
    """What every card has once: ``Hopper · 80 GB``."""
    names = "|".join(sorted(map(re.escape, generations), key=len, reverse=True))
    return re.compile(rf"\b(?:{names}) ?[·•|] ?(?P<vram>\d{{1,4}}) ?GB\b")


def _read_cards(soup: BeautifulSoup, answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    spec = _spec(tuple(config.settings["generations"]))
    for _, text in cards(soup, spec, _CARD_END):
        yield from _read_card(text, spec, answer, config)


def _read_card(
    text: str, spec: re.Pattern[str], answer: Answer, config: SourceConfig
) -> Iterator[Listing | Reject]:
    found = spec.search(text)
    label = text[: found.start()].strip() if found else ""
    if found is None or not label or len(label) > 60 or _PRICE.search(label):
        detail = f"not a GPU's name, its memory and its price: {text[:80]!r}"
        yield Reject(RejectReason.UNREADABLE_ROW, detail, text, answer)
        return
    rest = text[found.end() :]
    prices = list(_PRICE.finditer(rest))
    starts = [0, *(price.end() for price in prices)]
    terms = [rest[start : price.start()].strip() for start, price in zip(starts, prices, strict=False)]
    facts = {"context": _vram(found["vram"])}
    rows = [
        _read_price(label, term, price[0], facts, answer, config)
        for term, price in zip(terms, prices, strict=True)
    ]
    kinds = [row.price_kind for row in rows if isinstance(row, Listing)]
    if not rows:
        yield _read_price(label, "", rest or "-", facts, answer, config)
    elif len(kinds) != len(set(kinds)):
        detail = f"{label}: several prices without a name"
        yield Reject(RejectReason.UNREADABLE_ROW, detail, text, answer)
    else:
        yield from rows
