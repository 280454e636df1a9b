"""Crusoe: the GPU section of the price page, per GPU-hour.

Each GPU is one list item with its own price cells, so that a "Contact sales" cell cannot give its place to
the next row's price. The headings above the list say what each cell prices.
"""

import re
from collections.abc import Iterator, Sequence

from bs4 import Tag

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject, Row, SourceChangedError
from pipeline.contracts.reject_reasons import FlagReason
from pipeline.parsing.html import (
    around_with_role,
    exactly_one,
    is_hidden,
    page,
    text_of,
    texts_of,
    with_class,
)
from pipeline.parsing.json_objects import FieldAudit
from pipeline.parsing.prices import gpu_hour_row
from pipeline.parsing.tables import Table, column, price_columns, prices_in_unknown_columns, require_on_demand
from pipeline.parsing.text import HOURLY

SECTION = r"^GPU instances? pricing$"
SECTION_HEADINGS = ("h1", "h2", "h3")


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Row]:
    """One listing per GPU and price column. CPU, storage and token prices are in other sections."""
    audit = FieldAudit(config)
    for answer in answers:
        section = _section(answer)
        headers = [text_of(tag) for tag in section if "pricing-heading" in tag.get_attribute_list("class")]
        rows = [
            [
                exactly_one(with_class(tag, "pricing-item-heading"), "GPU name in a row", answer),
                *with_class(tag, "pricing-rich"),
            ]
            for tag in section
            if tag.get("role") == "listitem" and with_class(tag, "pricing-item-heading")
        ]
        audit.columns(headers)
        # Without a heading that says what is priced, each price must say itself that it is per hour.
        units = HOURLY if headers else HOURLY - {""}
        yield from _read_table(Table(headers or config.settings["usual_columns"], rows), units, answer)
    yield from audit.warnings()


def _section(answer: Answer) -> list[Tag]:
    """Every tag from the GPU heading up to the next heading of the page.

    Other sections repeat the GPUs at the prices of other products: a page with headings must have this one.
    """
    document = page(answer)
    headings = document.find_all(SECTION_HEADINGS)
    if not headings:
        return document.find_all(True)  # the section alone, cut out of its page
    found = [h for h in headings if re.search(SECTION, text_of(h), re.IGNORECASE) and not is_hidden(h)]
    section = []
    for tag in exactly_one(found, "heading 'GPU instances pricing'", answer).find_all_next():
        if tag.name in SECTION_HEADINGS:
            break
        section.append(tag)
    return section


def _read_table(grid: Table, units: frozenset[str], answer: Answer) -> Iterator[Listing | Reject]:
    if column(grid.headers, r"^(?:GPU|model|GPU model|instance|name)$", answer) != 0:
        raise SourceChangedError(f"{answer.url}: the GPU model is not the first column of {grid.headers}")
    prices = price_columns(grid.headers, answer)
    require_on_demand(prices, grid.headers, answer)
    if not grid.rows:
        raise SourceChangedError(f"{answer.url}: the GPU section has no rows")
    yield from grid.other_rows(answer)
    for cells in grid.full_rows():
        label, texts = _label(cells[0]), texts_of(cells)
        yield from prices_in_unknown_columns(
            grid.headers, texts, {0, *(price.at for price in prices)}, answer
        )
        for price in prices:
            flag = FlagReason.SUPERSEDED if price.superseded else None
            if price.kind == "reserved" and not price.term_days:
                flag = FlagReason.UNSTATED_TERM
            yield gpu_hour_row(
                label,
                price.kind,
                texts[price.at],
                {"label": label, "cells": texts[1:]},
                answer,
                units,
                term_days=price.term_days,
                effective_from=price.effective_from,
                flag_reason=flag,
            )


def _label(name: Tag) -> str:
    """Name and tags: "NVIDIA A100" is listed twice, and only the tags (memory, form) distinguish the two."""
    row = around_with_role(name, "listitem")
    tags = texts_of(with_class(row, "pricing-tag")) if row else []
    return " ".join([text_of(name), *filter(None, tags)])
