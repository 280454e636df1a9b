"""A price that is the lowest of several ("from $1.55") is no row's own price, whichever page shows it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.capture.index import read_answer
from pipeline.capture.replay import page_entries
from pipeline.catalog.source_config import configs, source_config
from pipeline.contracts.listing import Answer, Listing
from pipeline.contracts.reject_reasons import FlagReason
from pipeline.parsing.prices import cell_price
from pipeline.parsing.text import is_starting_price
from pipeline.sources import source_module
from tests.sources.helpers import PAGES

_PRICE = re.compile(r"(?<!from )((?:(?<![A-Za-z])US)?\${1,2}\s?\d[\d,]*\s?\.\d|[€£]\s?\d)")
_REFUSE = ("massedcompute",)
"""Pages whose prices are texts of their own, which must begin with the sign."""
_WORDS = ("from", "Starting at", "starts at", "As low as")


def pages_with_prices(name: str) -> list[Answer]:
    """The sample pages of a source that show prices with their currency's sign."""
    folder: Path = PAGES / name
    entries = [entry for entry in page_entries(folder, source_config(name)) if entry.usable]
    answers = [read_answer(folder, entry, entry.observed_at) for entry in entries]
    return [answer for answer in answers if not answer.is_json and _PRICE.search(answer.text())]


SOURCES = [name for name, config in configs().items() if config.kind == "prices" and pages_with_prices(name)]


def read(name: str, answers: Sequence[Answer]) -> list[Listing]:
    rows = source_module(name).read(answers, source_config(name))
    return [row for row in rows if isinstance(row, Listing)]


@pytest.mark.parametrize("words", _WORDS)
@pytest.mark.parametrize("name", SOURCES)
def test_a_starting_price_on_a_page_is_flagged_or_rejected_never_plain(name: str, words: str) -> None:
    shown = pages_with_prices(name)
    before = len(read(name, shown))
    assert before > 0
    changed = [replace(page, body=_PRICE.sub(rf"{words} \1", page.text()).encode()) for page in shown]
    found = read(name, changed)
    assert len(found) == (0 if name in _REFUSE else before)
    assert [(row.raw_label, row.native_price) for row in found if row.flag_reason is None] == []


def test_most_page_readers_are_among_them() -> None:
    assert len(SOURCES) >= 18
    assert {"hotaisle", "civo", "e2e", "salad", "together", "nebius"} <= set(SOURCES)


@pytest.mark.parametrize("words", _WORDS)
def test_the_words_before_an_amount_flag_it(words: str) -> None:
    price = cell_price(f"{words} $1.55/hr")
    assert (str(price.amount), price.flag_reason) == ("1.55", FlagReason.STARTING_PRICE)


@pytest.mark.parametrize("text", ["$1.55", "at $1.55", "US$1.55 per hour"])
def test_a_plain_price_has_no_flag(text: str) -> None:
    assert not is_starting_price(text)
    assert cell_price(text).flag_reason is None
