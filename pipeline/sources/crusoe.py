"""Crusoe: the GPU section of the price page, with prices per GPU-hour.

Each GPU is one list item with its own price cells, so a "Contact sales" cell cannot shift the prices of the
next row. The headings above the list say what each cell's price is for.
"""

import re

from bs4 import Tag

from pipeline.sources import kit

SECTION = r"^GPU instances? pricing$"
SECTION_HEADINGS = ("h1", "h2", "h3")


@kit.reader("the GPU section has no rows")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per GPU and price column. CPU, storage and token prices are in other sections."""
    section = _section(answer)
    headers = [kit.text_of(tag) for tag in section if "pricing-heading" in tag.get_attribute_list("class")]
    rows = [
        [
            kit.exactly_one(kit.with_class(tag, "pricing-item-heading"), "GPU name in a row", answer),
            *kit.with_class(tag, "pricing-rich"),
        ]
        for tag in section
        if tag.get("role") == "listitem" and kit.with_class(tag, "pricing-item-heading")
    ]
    audit.columns(headers)
    # Without headings, each price must itself say that it is per hour.
    units = kit.HOURLY if headers else kit.HOURLY - {""}
    yield from _read_table(kit.Table(headers or audit.config.settings["usual_columns"], rows), units, answer)


def _section(answer: kit.Answer) -> list[Tag]:
    """Return every tag from the GPU heading up to the next heading on the page.

    Other sections list the same GPUs at the prices of other products, so a page with headings must contain
    the GPU section.
    """
    document = kit.page(answer)
    headings = document.find_all(SECTION_HEADINGS)
    if not headings:
        return document.find_all(True)  # the GPU section alone, cut out of its page
    found = [
        h for h in headings if re.search(SECTION, kit.text_of(h), re.IGNORECASE) and not kit.is_hidden(h)
    ]
    section = []
    for tag in kit.exactly_one(found, "heading 'GPU instances pricing'", answer).find_all_next():
        if tag.name in SECTION_HEADINGS:
            break
        section.append(tag)
    return section


def _read_table(grid: kit.Table, units: frozenset[str], answer: kit.Answer) -> kit.Rows:
    if kit.column(grid.headers, r"^(?:GPU|model|GPU model|instance|name)$", answer) != 0:
        raise answer.changed(f"the GPU model is not the first column of {grid.headers}")
    prices = kit.price_columns(grid.headers, answer)
    kit.require_on_demand(prices, grid.headers, answer)
    yield from grid.other_rows(answer)
    for cells, texts in grid.full_rows():
        label = _label(cells[0])
        yield from kit.prices_in_unknown_columns(
            grid.headers, texts, {0, *(price.at for price in prices)}, answer
        )
        for price in prices:
            without_term = price.kind == "reserved" and not price.term_days
            yield kit.gpu_hour_row(
                label,
                price.kind,
                texts[price.at],
                {"label": label, "cells": texts[1:]},
                answer,
                units,
                term_days=price.term_days,
                effective_from=price.effective_from,
                flag_reason=kit.FlagReason.UNSTATED_TERM if without_term else price.flag_reason,
            )


def _label(name: Tag) -> str:
    """Return the name and tags: "NVIDIA A100" is listed twice, with different tags (memory, form factor)."""
    row = name.find_parent(role="listitem")
    tags = kit.texts_of(kit.with_class(row, "pricing-tag")) if row else []
    return " ".join([kit.text_of(name), *filter(None, tags)])
