"""Cards, which are blocks of text, and running text that is cut at its labels."""

import re
from decimal import Decimal

from bs4 import BeautifulSoup, Tag

from pipeline.parsing.text_blocks import (
    MAX_CARD_CHARACTERS,
    MAX_LABEL_CHARACTERS,
    agrees_with_hourly,
    card_around,
    cards,
    label_before,
    native_unit,
)
from tests.parsing.cases import outcome, wrong

MARK = re.compile(r"VRAM (?P<vram>\d+) GB")
END = re.compile(r"\$\d+\.\d+|contact", re.IGNORECASE)


def soup(markup: str) -> BeautifulSoup:
    return BeautifulSoup(markup, "lxml")


def card_texts(markup: str) -> list[str]:
    return [text for _, text in cards(soup(markup), MARK, END)]


def test_a_card_is_no_longer_than_its_limit_and_grows_no_further() -> None:
    for longer, found in ((0, 1), (1, 0)):
        card = "H100 VRAM 80 GB $2.00 "
        text = card + "x" * (MAX_CARD_CHARACTERS - len(card) + longer)
        assert len(card_texts(f"<div>{text}</div>")) == found
    for longer, end in ((0, "$2.00"), (1, "GB")):
        inner, price = "H100 VRAM 80 GB", "$2.00"
        filler = "x" * (MAX_CARD_CHARACTERS - len(inner) - len(price) + longer)
        assert card_texts(f"<div><p>{inner}</p><i>{filler}</i><b>{price}</b></div>")[0].endswith(end)


def test_the_card_around_a_heading() -> None:
    def around(markup: str) -> str | None:
        heading = soup(markup).h3
        assert isinstance(heading, Tag)
        found = card_around(heading, lambda text: "$" in text)
        return found and found.name

    long = "x" * MAX_CARD_CHARACTERS
    cases = [
        ("<section><div><h3>H100</h3><p>$2</p></div></section>", "div"),
        ("<section><div><h3>H100</h3></div><p>$2</p></section>", "section"),
        ("<section><div><h3>H100</h3></div><h3>A100</h3><p>$2</p></section>", None),
        ("<div hidden><h3>H100</h3><p>$2</p></div>", None),
        (f"<section><div><h3></h3>{long}</div>$2</section>", None),
        (f"<section><div><h3></h3>{long[2:]}</div>$2</section>", "section"),
        ("<div><h3>H100</h3></div>", None),
    ]
    assert wrong(around, cases) == []


def test_the_label_of_a_card_is_all_its_text_before_the_mark() -> None:
    fits = "H" * MAX_LABEL_CHARACTERS
    label, mark = label_before(f"{fits} VRAM 80 GB $2.00", MARK, END)
    assert (label, mark["vram"]) == (fits, "80")
    others = [f"H{fits} VRAM 80 GB $2.00", "VRAM 80 GB $2.00", "H100 $2.00", "H100 $1.00 VRAM 80 GB"]
    refusal = "unreadable_row: not a GPU's name, its memory and its price: {!r}"
    assert (
        wrong(
            lambda text: label_before(text, MARK, END), [(text, refusal.format(text[:80])) for text in others]
        )
        == []
    )


def test_an_hourly_price_is_the_finer_price_rounded_to_the_cent() -> None:
    hourly = [("$3.600", True), ("$3.606", True), ("$3.594", True), ("$3.607", False), ("$3.593", False)]
    for price, unit in (("0.001", "second"), ("0.06", "minute"), ("3.60", "hour")):
        assert wrong(lambda text: agrees_with_hourly(Decimal(price), unit, text), hourly) == []  # noqa: B023
    refused = outcome(agrees_with_hourly, Decimal("3.6"), "hour", "€3.60")
    assert refused == "unreadable_price: '€3.60' is not one USD price"
    assert (native_unit("minute", "gpu"), native_unit("hour", "instance")) == ("gpu_minute", "instance_hour")
