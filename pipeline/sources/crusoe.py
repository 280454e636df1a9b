"""Crusoe: the GPU section of the price page, per GPU-hour.

Each GPU is one list item with its own price cells, so that a "Contact sales" cell cannot hand its place to
the next row's price. The headings above the list say what each cell prices.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bs4 import Tag

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, PriceKind, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing import html
from pipeline.parsing.prices import RowError, cell_price, has_price
from pipeline.parsing.text import HOURLY
from pipeline.parsing.units import term_days

SECTION = r"^GPU instances? pricing$"
HEADINGS = ("h1", "h2", "h3")
KIND_HEADERS: tuple[tuple[str, PriceKind], ...] = (
    (r"\bspot\b", "spot"),
    (r"reserv|commit", "reserved"),
    (r"on[ -]demand", "on_demand"),
)


@dataclass(frozen=True, slots=True)
class _PriceColumn:
    """What a column of prices is for; ``kind`` is None where its heading does not say."""

    kind: PriceKind | None
    term_days: int | None
    units: frozenset[str]


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """One listing per GPU and price column. CPU, storage and token prices stand in other sections."""
    for answer in answers:
        section = _section(answer)
        columns = _price_columns(section, answer, config)
        rows = [
            tag for tag in section if tag.get("role") == "listitem" and tag.select(".pricing-item-heading")
        ]
        if not rows:
            raise SourceChangedError(f"{answer.url}: the GPU section has no rows")
        for row in rows:
            yield from _row(row, columns, answer)


def _section(answer: Answer) -> list[Tag]:
    """Every tag from the GPU heading up to the next heading of the page.

    Other sections repeat the GPUs at the prices of other products: a page with headings must have this one.
    """
    document = html.page(answer)
    headings = document.find_all(HEADINGS)
    if not headings:
        return document.find_all(True)  # the section alone, cut out of its page
    found = [h for h in headings if re.search(SECTION, html.text_of(h), re.IGNORECASE)]
    heading = html.exactly_one(
        (h for h in found if not html.is_hidden(h)), "heading 'GPU instances pricing'", answer
    )
    section = []
    for tag in heading.find_all_next():
        if tag.name in HEADINGS:
            break
        section.append(tag)
    return section


def _price_columns(section: list[Tag], answer: Answer, config: SourceConfig) -> list[_PriceColumn]:
    """What each price cell of a row prices, in order; without headings above them, as the yaml says."""
    headers = [html.text_of(tag) for tag in section if "pricing-heading" in tag.get_attribute_list("class")]
    # Without a heading that says what is priced, each price must say itself that it is per hour.
    units = HOURLY if headers else HOURLY - {""}
    headers = headers or config.settings["usual_columns"]
    model_at = html.column(headers, r"^(?:GPU|model|GPU model|instance|name)$", answer)
    if model_at != 0:
        raise SourceChangedError(f"{answer.url}: the GPU model is not the first column of {headers}")
    found = [_PriceColumn(_kind(header), term_days(header), units) for header in headers[1:]]
    if [price.kind for price in found].count("on_demand") != 1:
        raise SourceChangedError(f"{answer.url}: expected one on-demand column in {headers}")
    return found


def _kind(header: str) -> PriceKind | None:
    return next((kind for pattern, kind in KIND_HEADERS if re.search(pattern, header, re.IGNORECASE)), None)


def _row(row: Tag, columns: list[_PriceColumn], answer: Answer) -> Iterator[Listing | Reject]:
    name = html.text_of(html.exactly_one(row.select(".pricing-item-heading"), "GPU name in a row", answer))
    tags = [text for tag in row.select(".pricing-tag") if (text := html.text_of(tag))]
    # "NVIDIA A100" stands twice and only the tags tell the two apart, so they belong to the label.
    label = " ".join([name, *tags])
    cells = [html.text_of(cell) for cell in row.select(".pricing-rich")]
    raw = {"label": label, "cells": cells}
    if len(cells) != len(columns):
        yield Reject(
            RejectReason.UNREADABLE_ROW,
            f"{label!r} has {len(cells)} price cells under {len(columns)} price columns",
            raw,
            answer,
        )
        return
    for column, cell in zip(columns, cells, strict=True):
        kind = column.kind
        if kind is None:
            if has_price(cell):
                detail = f"{label}: {cell!r} stands in a column that is not known"
                yield Reject(RejectReason.UNKNOWN_PRICE_KIND, detail, raw, answer)
            continue
        try:
            price, currency = cell_price(cell, column.units)
        except RowError as error:
            yield Reject(error.reason, f"{label} {kind}: {error}", raw, answer)
            continue
        yield Listing(
            raw_label=label,
            gpu_count=1,
            price_kind=kind,
            native_price=price,
            native_currency=currency,
            native_unit="gpu_hour",
            answer=answer,
            term_days=column.term_days if kind == "reserved" else None,
            flag_reason="unstated_term" if kind == "reserved" and column.term_days is None else None,
        )
