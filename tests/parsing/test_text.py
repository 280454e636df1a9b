"""Numbers and money in text: read exactly, or not at all. More cases are in cases.yaml."""

import re
from decimal import Decimal

from pipeline.parsing.prices import RowError, cell_price
from pipeline.parsing.text import MONEY_IN_TEXT, clean_text, money, number
from tests.parsing.cases import outcome, wrong


def test_long_texts_are_refused_in_short() -> None:
    long = f"about ${'9' * 100}"
    assert outcome(money, long) == f"{long[:80]!r} is not one USD price"
    for digits in ("9" * 100_000, "1," * 50_000 + "1"):
        assert outcome(money, f"${digits}") == f"{digits!r} is not a number"


def test_exact_numbers_are_not_rounded() -> None:
    exact = [Decimal("2.5"), Decimal("1e-18"), Decimal("0e-99")]
    assert wrong(number, [(value, value) for value in exact]) == []
    too_far = "the number is too large or too small for a price or a count"
    beyond = [Decimal(text) for text in ("1e-19", "-1e19", "NaN", "1e999")]
    assert wrong(number, [(value, too_far) for value in beyond]) == []


# ------------------------------------------------------------------ money in running text

GLUED = [
    *("A$1.39", "R$1.39", "$1.3O", "$1,3O", "$1.39x", "$1.39.5", "$1..39", "$1. 39", "$1 ,39", "$1.39–2.49"),
    *("$1.39 – $2.49", "$1.39-hr", "$1.39k", "$1.39e3", "$1.39%", "$1.39+", "$1.39€", "$1.39$2.49"),
    *("$1'399", "$1½", "$O.39", "$.39", "$-1.39", "$١.٣٩", "$1.3९", "$1.39/2.49"),
]
"""Money with something glued to it: no price, nor a part of it."""


def prices_in(text: str) -> list[Decimal]:
    """The prices that a reader of running text finds."""
    found = []
    for shown in re.findall(rf"{MONEY_IN_TEXT}(?:/\S+)?", clean_text(text)):
        try:
            found.append(cell_price(shown).amount)
        except RowError:
            continue
    return found


def test_money_with_something_glued_to_it_is_not_a_price() -> None:
    around = ["{}", "L4 · 24 GB {} on demand", "({})", "{}.", "{}, spot"]
    texts = [form.format(text) for text in GLUED for form in around]
    assert wrong(prices_in, [(text, []) for text in texts]) == []


def test_money_ends_where_it_surely_ends() -> None:
    shown = [
        *("$1.39", "at $1.39, and more", "$1.39. Then", "($1.39)", "$1.39|", "$ 1.39 / hr", "$1 .39"),
        *("$1.39①", "$1.39₁", "$1.39 - 8 GPUs", "$1.39·80 GB", "from $1.39"),
    ]  # fmt: skip
    assert wrong(prices_in, [(text, [Decimal("1.39")]) for text in shown]) == []
    assert prices_in("$1,399.00 or $2") == [Decimal("1399.00"), 2]
