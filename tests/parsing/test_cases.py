"""What is read from texts and numbers: the functions of this room, and their cases in cases.yaml.

A case is an outcome and the inputs that have it: what a function returns, exact numbers as texts, or the
message of its error, with {!r} for the input.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from bs4 import BeautifulSoup, Tag

from pipeline.parsing import (
    dates,
    gpu_counts,
    html,
    prices,
    printable,
    tables,
    terms,
    text,
    text_blocks,
    units,
)
from tests.parsing.cases import outcome, wrong
from tests.sources.helpers import answer

NOVEMBER = answer("", observed_at=datetime(2026, 11, 22, 6, tzinfo=UTC))
MARK, END = re.compile(r"VRAM (?P<vram>\d+) GB"), re.compile(r"\$\d+\.\d+|contact", re.IGNORECASE)


def first(name: str, markup: str) -> Tag:
    found = BeautifulSoup(markup, "lxml").find(name)
    assert isinstance(found, Tag)
    return found


def grid(rows: str) -> tuple[list[str], list[list[str]]]:
    found = tables.table(first("table", f"<table>{rows}</table>"))
    return found.headers, [html.texts_of(row) for row in found.rows]


def valid(header: str) -> tuple[date | None, date | None]:
    found = dates.validity(header, NOVEMBER)
    return found.first_day, found.ended_on


def leading_price(shown: str) -> tuple[str, str | None, str] | None:
    price = text_blocks.leading_price(shown)
    return price and (price.amount, price.time_unit, price.rest)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "gpu_count": gpu_counts.gpu_count,
    "gpu_count_in": gpu_counts.gpu_count_in,
    "price_kind": terms.price_kind,
    "term_days": terms.term_days,
    "gigabytes": units.gigabytes,
    "gb_from_gib": units.gb_from_gib,
    "usd_per_gb_month": units.usd_per_gb_month,
    "usd_per_gib_month_as_gb": lambda shown: units.usd_per_gb_month(shown, units.GB_PER_GIB),
    "money": text.money,
    "money_in_euros": lambda shown: text.money(shown, "EUR"),
    "money_in_pounds": lambda shown: text.money(shown, "GBP"),
    "money_per_second": lambda shown: text.money(shown, units={"sec"}),
    "is_not_offered": text.is_not_offered,
    "is_starting_price": text.is_starting_price,
    "clean_text": text.clean_text,
    "number": text.number,
    "whole_number": text.whole_number,
    "printable": printable.printable,
    "date_of": dates.date_of,
    "validity": valid,
    "price_of": prices.price_of,
    "cell_price": prices.cell_price,
    "optional_number": prices.optional_number,
    "is_available": prices.is_available,
    "text_of": lambda markup: html.text_of(first("p", f"<p>{markup}</p>")),
    "is_hidden": lambda markup: html.is_hidden(first("p", markup)),
    "table": grid,
    "cards": lambda markup: [
        found for _, found in text_blocks.cards(BeautifulSoup(markup, "lxml"), MARK, END)
    ],
    "visible_texts": lambda markup: text_blocks.visible_texts(BeautifulSoup(markup, "lxml")),
    "leading_price": leading_price,
}


def plain(found: Any) -> Any:
    """An outcome as the file states it."""
    if isinstance(found, list | tuple):
        return [plain(part) for part in found]
    return f"{found.normalize():f}" if isinstance(found, Decimal) else found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_input_has_its_outcome(name: str) -> None:
    cases = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text(encoding="utf-8"))
    assert cases.keys() == FUNCTIONS.keys()
    expected = [
        (given, found.format(given) if isinstance(found, str) else found)
        for found, *inputs in cases[name]
        for given in inputs
    ]
    assert wrong(lambda given: plain(outcome(FUNCTIONS[name], given)), expected) == []
