"""Hyperstack: the GPU cards of the price page (on-demand, reservation, spot), or the API's pricebook.

Prices are per GPU-hour. A card prices GPUs when one of its headings says so; CPU and AI Studio cards look
alike otherwise.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from bs4 import Tag

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, PriceKind, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing import html
from pipeline.parsing.json_lists import items_of
from pipeline.parsing.prices import RowError, cell_price, optional_number, price_of

GPU_HEADER = r"^GPUs?(?: model| type| name)?$"
PRICE_HEADER = r"pric(?:e|ing)|per hour|starting from|^spot\b|on[ -]demand"
TITLE_KINDS: tuple[tuple[str, PriceKind], ...] = (
    (r"\bspot\b", "spot"),
    (r"reserv", "reserved"),
    (r"on[ -]demand", "on_demand"),
)
SPOT_SUFFIX = "-spot"


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """One listing per GPU and card, or per GPU row of a pricebook.

    A reservation is priced "starting from", without its term: it is flagged and so not ranked.
    """
    for answer in answers:
        if answer.is_json:
            yield from _pricebook(answer, config)
        else:
            yield from _page(answer, config)


def _page(answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    cards = [card for card in html.page(answer).select(".page-price_card") if not html.is_hidden(card)]
    gpu_cards = [card for card in cards if html.columns(_headers(card, config), _gpu_header(card))]
    if not any(_kind(card) == "on_demand" for card in gpu_cards):
        raise SourceChangedError(f"{answer.url}: no card with on-demand GPU prices")
    for card in gpu_cards:
        yield from _card(card, answer, config)


def _headers(card: Tag, config: SourceConfig) -> list[str]:
    """The headings of a card; one of GPUs that came without them has those of the yaml."""
    headers = [html.text_of(head) for head in card.select(".page-price_card_head_item")]
    kind = None if re.search(r"\bCPU\b", _title(card)) else _kind(card)
    return headers or (config.settings["usual_columns"][kind] if kind else [])


def _gpu_header(card: Tag) -> str:
    """What the column of GPUs is called: "Model" alone says it on a card whose title names GPUs."""
    return GPU_HEADER if re.search(r"\bGPUs?\b", _title(card)) is None else rf"{GPU_HEADER}|^model$"


def _title(card: Tag) -> str:
    return " ".join(html.text_of(title) for title in card.select("h2, h3, h4"))


def _kind(card: Tag) -> PriceKind | None:
    title = _title(card)
    return next((kind for pattern, kind in TITLE_KINDS if re.search(pattern, title, re.IGNORECASE)), None)


def _card(card: Tag, answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    headers, kind = _headers(card, config), _kind(card)
    gpu_at = html.column(headers, _gpu_header(card), answer)
    price_at = html.column(headers, PRICE_HEADER, answer)
    vram_at, ram_at = html.columns(headers, r"^VRAM\b"), html.columns(headers, r"\bRAM \(GB\) per GPU$")
    rows = card.select(".page-price_card_row_item")
    if not rows:
        raise SourceChangedError(f"{answer.url}: the card {_title(card)!r} has no rows")
    for row in rows:
        cells = [html.text_of(cell) for cell in row.select(".page-price_card_row_item_col")]
        raw = {"card": _title(card), "cells": cells}
        if not cells:
            continue  # the page's last row is sometimes an empty frame
        if len(cells) != len(headers):
            detail = f"{len(cells)} cells under {len(headers)} headings"
            yield Reject(RejectReason.UNREADABLE_ROW, detail, raw, answer)
            continue
        if kind is None:
            detail = f"the card {_title(card)!r} does not say what kind of price it lists"
            yield Reject(RejectReason.UNKNOWN_PRICE_KIND, detail, raw, answer)
            continue
        try:
            price, currency = cell_price(cells[price_at])
        except RowError as error:
            yield Reject(error.reason, f"{cells[gpu_at]} {kind}: {error}", raw, answer)
            continue
        vram_gb = optional_number(cells[vram_at[0]]) if vram_at else None
        yield Listing(
            raw_label=cells[gpu_at],
            gpu_count=1,
            price_kind=kind,
            native_price=price,
            native_currency=currency,
            native_unit="gpu_hour",
            answer=answer,
            context={"vram_gb": vram_gb} if vram_gb else {},
            ram_gib=optional_number(cells[ram_at[0]]) if ram_at else None,
            flag_reason="starting_price_of_an_unstated_term" if kind == "reserved" else None,
        )


def _pricebook(answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    items = items_of(answer, "pricebook", "data", "prices", "resources")
    is_gpu = re.compile(str(config.settings["pricebook_gpu"])).search
    try:
        gpus = [item for item in items if is_gpu(item["name"])]
    except (KeyError, TypeError) as error:
        raise SourceChangedError(f"{answer.url}: a row of the pricebook has no name") from error
    if not gpus:
        raise SourceChangedError(f"{answer.url}: the pricebook names no GPU")
    for item in gpus:
        name = item["name"]
        try:
            price = price_of(_list_price(item, answer))
        except RowError as error:
            yield Reject(error.reason, f"{name}: {error}", item, answer)
            continue
        yield Listing(
            raw_label=name.removesuffix(SPOT_SUFFIX),
            gpu_count=1,
            price_kind="spot" if name.endswith(SPOT_SUFFIX) else "on_demand",
            native_price=price,
            native_currency=config.currency,
            native_unit="gpu_hour",
            answer=answer,
        )


def _list_price(item: dict[str, Any], answer: Answer) -> Any:
    """The price before the discount of whoever's account asked: ``value`` is after it."""
    if "value" not in item:
        raise SourceChangedError(f"{answer.url}: {item['name']!r} has no value")
    return item.get("original_value", item["value"]) if item.get("discount_applied") else item["value"]
