"""Cards, which are blocks of text, and running text that is cut at its labels."""

import re
from decimal import Decimal

from bs4 import BeautifulSoup, Tag

from pipeline.contracts.listing import Reject
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.text_blocks import (
    MAX_CARD_CHARACTERS,
    MAX_LABEL_CHARACTERS,
    MAX_MARK_DEPTH,
    Item,
    agrees_with_hourly,
    card_around,
    cards,
    items,
    label_before,
    leading_price,
    native_unit,
    visible_texts,
)
from tests.parsing.cases import outcome, wrong
from tests.sources.helpers import answer

MARK = re.compile(r"VRAM (?P<vram>\d+) GB")
END = re.compile(r"\$\d+\.\d+|contact", re.IGNORECASE)


def soup(markup: str) -> BeautifulSoup:
    return BeautifulSoup(markup, "lxml")


def card_texts(markup: str) -> list[str]:
    return [text for _, text in cards(soup(markup), MARK, END)]


def test_cards() -> None:
    cases = {
        "<div>H100 VRAM 80 GB $2.00 /mo</div>": ["H100 VRAM 80 GB $2.00 /mo"],
        "<div>H100 VRAM 80 GB <i>200 GB</i> $2.00</div>": ["H100 VRAM 80 GB 200 GB $2.00"],
        "<div>H100 <b>VRAM 80 <i>GB</i></b></div><p>$2.00</p>": ["H100 VRAM 80 GB $2.00"],
        # A card without a price does not take the next card's.
        "<div><div>H100 VRAM 80 GB</div><div>A100 VRAM 40 GB <b>$1.00</b></div></div>": [
            "H100 VRAM 80 GB", "A100 VRAM 40 GB $1.00",
        ],
        # Cards in one element are cut after each price.
        "<p>H100 VRAM 80 GB $2.00 /hr A100 VRAM 40 GB $1.00 per GPU-hour, L4 VRAM 24 GB</p>": [
            "H100 VRAM 80 GB $2.00", "A100 VRAM 40 GB $1.00", "L4 VRAM 24 GB",
        ],
        "<p>H100 VRAM 80 GB $2.00 or $3.00 A100 VRAM 40 GB contact</p>": [
            "H100 VRAM 80 GB $2.00 or $3.00", "A100 VRAM 40 GB contact",
        ],
        "<div hidden>H100 VRAM 80 GB $2.00</div><script>A100 VRAM 40 GB $1.00</script>": [],
        "<p>H100 with 80 GB $2.00</p>": [],
    }  # fmt: skip
    assert wrong(card_texts, cases.items()) == []


def test_a_card_is_no_longer_than_its_limit_and_grows_no_further() -> None:
    for longer, found in ((0, 1), (1, 0)):
        card = "H100 VRAM 80 GB $2.00 "
        text = card + "x" * (MAX_CARD_CHARACTERS - len(card) + longer)
        assert len(card_texts(f"<div>{text}</div>")) == found
    for longer, end in ((0, "$2.00"), (1, "GB")):
        inner, price = "H100 VRAM 80 GB", "$2.00"
        filler = "x" * (MAX_CARD_CHARACTERS - len(inner) - len(price) + longer)
        assert card_texts(f"<div><p>{inner}</p><i>{filler}</i><b>{price}</b></div>")[0].endswith(end)


def test_a_mark_is_spread_over_few_levels() -> None:
    for deeper, found in ((0, 1), (1, 0)):
        depth = MAX_MARK_DEPTH - 1 + deeper
        markup = f"<div>H100 VRAM {'<b>' * depth}80 GB{'</b>' * depth} $2.00</div>"
        assert len(card_texts(markup)) == found


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


def test_an_item_has_a_maximum_of_texts_and_ends_at_the_next() -> None:
    for most, rest in ((0, ""), (1, "a"), (2, "a b"), (3, "a b")):
        found = list(items(["x", "H100", "a", "b", "L4", "c"], [1, 4], most))
        assert found == [Item("H100", rest), Item("L4", "c" if most else "")]
    (item,) = items(["H100", *map(str, range(30))], [0])
    assert item.rest.split() == [str(at) for at in range(24)]


def test_an_item_becomes_a_reject() -> None:
    found = Item("H100", "x" * 300).reject(RejectReason.NOT_OFFERED, "sold out", answer(""))
    assert found == Reject(RejectReason.NOT_OFFERED, "H100: sold out", f"H100 {'x' * 200}", answer(""))


def test_visible_texts_break_before_prices_and_omit_what_is_not_shown() -> None:
    cases = {
        "<head><title>Prices</title></head><p>H100 $2.00 now</p><!-- x --><p hidden>L4</p><p> </p>"
        "<sup>1</sup><noscript>A</noscript><template>B</template><svg><text>C</text></svg>":
            ["H100", "$2.00 now"],
        # Letters that are glued to a price stay with it.
        "H100 A$2.00": ["H100", "A$2.00"],
        "H100 CA$2.00 US$1.50": ["H100", "CA$2.00", "US$1.50"],
        "80 GB$2.00": ["80", "GB$2.00"],
        "H100reserved$2.00": ["H100reser", "ved$2.00"],
        "H100$2.00€3": ["H100", "$2.00", "€3"],
        "Café$2": ["C", "afé$2"],
        "L4 from $2 or as low as $1": ["L4", "from $2 or", "as low as $1"],
    }  # fmt: skip
    assert wrong(lambda markup: visible_texts(soup(markup)), cases.items()) == []


def test_a_price_at_the_start_of_a_text() -> None:
    def parts(text: str) -> tuple[str, str | None, str] | None:
        price = leading_price(text)
        return price and (price.amount, price.time_unit, price.rest)

    cases = [
        ("$0.001 / sec more", ("$0.001", "second", "more")), ("| $2 .50/hr | x", ("$2 .50", "hour", "x")),
        ("€2 per minute", ("€2", "minute", "")), ("2 / h", ("2", "hour", "")),
        ("$1,940 / month", ("$1,940", None, "")), ("$2 / core / sec", ("$2", None, "")),
        ("$2", ("$2", None, "")), ("$$2 / H", ("$$2", "hour", "")), ("$1.3O/sec", ("$1.3O", "second", "")),
        ("$2 /sec0nd", ("$2", None, "")), ("from $2 / h", ("from $2", "hour", "")),
        *((text, None) for text in ("", "only from 2", "Contact us", "USD 2 / h")),
    ]  # fmt: skip
    assert wrong(parts, cases) == []
    units = [price and price.unit for price in map(leading_price, ("$1,940 / month", "$2"))]
    assert units == ["month", ""]


def test_an_hourly_price_is_the_finer_price_rounded_to_the_cent() -> None:
    hourly = [("$3.600", True), ("$3.606", True), ("$3.594", True), ("$3.607", False), ("$3.593", False)]
    for price, unit in (("0.001", "second"), ("0.06", "minute"), ("3.60", "hour")):
        assert wrong(lambda text: agrees_with_hourly(Decimal(price), unit, text), hourly) == []  # noqa: B023
    refused = outcome(agrees_with_hourly, Decimal("3.6"), "hour", "€3.60")
    assert refused == "unreadable_price: '€3.60' is not one USD price"
    assert (native_unit("minute", "gpu"), native_unit("hour", "instance")) == ("gpu_minute", "instance_hour")
