"""JarvisLabs: the pricing page (tables, or cards) or the API's server_meta."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, PriceKind, Reject, Request, Row
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.answers import at_least_one
from pipeline.parsing.html import page, texts_of
from pipeline.parsing.json_objects import FieldAudit, JsonObject, read_rows
from pipeline.parsing.prices import RowError, gpu_hour_field, gpu_hour_row, is_available, optional_number
from pipeline.parsing.tables import Table, column, columns, visible_tables
from pipeline.parsing.terms import price_kind
from pipeline.parsing.text import MONEY_IN_TEXT
from pipeline.parsing.text_blocks import cards, label_before, prices_with_words
from pipeline.parsing.units import gigabytes

_PRICE = re.compile(
    rf"{MONEY_IN_TEXT}(?: ?(?:/|\bper\b) ?[\w-]+(?:(?:[/ -]| / )(?:hr|hour|h)\b)?)?", re.IGNORECASE
)
_CARD_END = re.compile(_PRICE.pattern + r"|\b(?:contact|talk to|sold out)\b", re.IGNORECASE)


def requests(config: SourceConfig, environment: Mapping[str, str]) -> list[Request]:
    """The API where there is a key for it, else the page."""
    (key,) = config.key_variables
    if config.has_key(environment):
        return [Request(config.settings["api_url"], headers={"Authorization": f"Bearer ${{{key}}}"})]
    return _page_requests(config)


def retry_requests(answer: Answer, config: SourceConfig) -> list[Request]:
    """The page, which needs no key, where the API gives no answer: the key may be wrong or expired."""
    return _page_requests(config) if answer.url == config.settings["api_url"] else []


def _page_requests(config: SourceConfig) -> list[Request]:
    return [Request(request.url) for request in config.requests]


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Row]:
    """GPUs by the hour, on demand and spot.

    CPU machines and storage are skipped. Raises SourceChangedError when no GPU is found.
    """
    audit = FieldAudit(config)
    rows = (
        row
        for answer in answers
        for row in (_read_server_meta(answer, audit) if answer.is_json else _read_page(answer, audit, config))
    )
    yield from at_least_one(rows, f"{config.name}: no GPU in a table, a card or server_meta")
    yield from audit.warnings()


def _read_server_meta(answer: Answer, audit: FieldAudit) -> Iterator[Listing | Reject]:
    return read_rows(audit.items(answer, "server_meta"), _read_gpu, "gpu_type", "region")


def _read_gpu(gpu: JsonObject) -> Iterator[Listing | Reject]:
    machine = {
        "context": _vram(gpu.get("vram")),
        "region": gpu.optional_text("region"),
        "vcpus": gpu.optional_number("cpus_per_gpu"),
        "ram_gib": gpu.optional_number("ram_per_gpu"),
        "gpu_counts": tuple(range(1, gpu.gpu_count("num_gpus") + 1)) if gpu.get("num_gpus") else None,
    }
    prices: list[tuple[PriceKind, str, Any]] = [
        ("on_demand", "price_per_hour", gpu.get("effective_num_free_devices", "num_free_devices"))
    ]
    if "spot_price" in gpu:
        prices.append(("spot", "spot_price", gpu.get("spot_num_free_devices")))
    label = gpu.text("gpu_type")
    for kind, name, free in prices:
        price, available = gpu.get(name), is_available(free)
        yield gpu_hour_field(label, kind, price, "USD", gpu.raw, gpu.answer, available=available, **machine)


def _vram(stated: Any) -> dict[str, float]:
    """Memory per GPU in GB, from ``"80"`` or ``80 GB``; nothing where it is not clear."""
    memory_gb = optional_number(re.sub(r" ?G(i?B)?$", "", str(stated).strip(), flags=re.IGNORECASE))
    return {} if memory_gb is None else {"vram_gb": memory_gb}


def _read_page(answer: Answer, audit: FieldAudit, config: SourceConfig) -> Iterator[Listing | Reject]:
    """The tables that have GPUs and prices (comparisons with other clouds have none); else the cards."""
    soup = page(answer)
    headers = config.settings["headers"]
    grids = []
    for grid in visible_tables(soup):
        is_read = bool(columns(grid.headers, headers["gpu"]) and columns(grid.headers, headers["price"]))
        audit.table(grid.headers, is_read=is_read)
        grids += [grid] if is_read else []
    for grid in grids:
        yield from _read_table(grid, answer, config)
    if not grids:
        spec = _spec(tuple(config.settings["generations"]))
        for _, text in cards(soup, spec, _CARD_END):
            yield from _read_card(text, spec, answer, config)


def _read_table(grid: Table, answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    patterns = config.settings["headers"]
    gpu_at = column(grid.headers, patterns["gpu"], answer)
    yield from grid.other_rows(answer)
    for cells in grid.full_rows():
        texts = texts_of(cells)
        machine = {
            "context": _vram(grid.text(texts, patterns["vram"])),
            "ram_gib": gigabytes(grid.text(texts, patterns["ram"])),
            "vcpus": optional_number(grid.text(texts, patterns["vcpus"])),
        }
        for at in columns(grid.headers, patterns["price"]):
            header = grid.headers[at]
            yield _read_price(texts[gpu_at], header, _with_sign(texts[at], header), machine, answer, config)


def _with_sign(cell: str, header: str) -> str:
    """A bare ``2.69`` under ``$/hour`` is dollars; under a header without a sign it is not money."""
    return f"${cell}" if "$" in header and re.fullmatch(r"\d[\d,.]*", cell) else cell


def _read_price(
    label: str, terms: str, cell: str, machine: Mapping[str, Any], answer: Answer, config: SourceConfig
) -> Listing | Reject:
    """``terms`` is what the page calls the price: a column's header, or the words before it on a card."""
    raw = {"label": label, "term": terms, "price": cell}
    if any(word in terms.casefold() for word in config.settings["other_terms"]):
        return Reject(RejectReason.UNKNOWN_TERMS, f"{label}: a price under {terms!r}", raw, answer)
    kind: PriceKind = "spot" if price_kind(terms) == "spot" else "on_demand"
    return gpu_hour_row(label, kind, cell, raw, answer, **machine)


@cache
def _spec(generations: tuple[str, ...]) -> re.Pattern[str]:
    """What every card has once: ``Hopper · 80 GB``."""
    names = "|".join(sorted(map(re.escape, generations), key=len, reverse=True))
    return re.compile(rf"\b(?:{names}) ?[·•|] ?(?P<vram>\d{{1,4}}) ?GB\b")


def _read_card(
    text: str, spec: re.Pattern[str], answer: Answer, config: SourceConfig
) -> Iterator[Listing | Reject]:
    try:
        label, found = label_before(text, spec, _PRICE)
    except RowError as error:
        yield Reject(error.reason, str(error), text, answer)
        return
    rest, machine = text[found.end() :], {"context": _vram(found["vram"])}
    prices = [(words, price[0]) for words, price in prices_with_words(rest, _PRICE)] or [
        ("", rest.strip() or "-")
    ]
    rows = [_read_price(label, words, cell, machine, answer, config) for words, cell in prices]
    kinds = [row.price_kind for row in rows if isinstance(row, Listing)]
    if len(kinds) != len(set(kinds)):
        yield Reject(RejectReason.UNREADABLE_ROW, f"{label}: several prices of the same kind", text, answer)
    else:
        yield from rows
