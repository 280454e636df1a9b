"""Text, numbers and money as pages write them: read exactly, or not at all."""

import re
from decimal import Decimal

from pipeline.parsing.prices import RowError, cell_price
from pipeline.parsing.text import (
    MONEY_IN_TEXT,
    UnreadableError,
    clean_text,
    is_not_offered,
    is_starting_price,
    money,
    number,
    whole_number,
)
from tests.parsing.cases import outcome, wrong


def refused(text: str) -> str | None:
    """Why a text is no money in dollars."""
    try:
        return f"read as {money(text)}"
    except UnreadableError as error:
        return str(error)


def test_money_in_dollars() -> None:
    shown = {
        "3.49": ["$3.49", "$ 3.49 /hr", "\u200b$3.49\ufeff", "＄3.49", "$3.49¹", "$3.49^1", "$3.49**"],
        "3": ["US$3", "US $3", "USD 3", "USD $3", "$3 USD", "3 USD", "3 $", "3$", "$3"],
        "4.00": ["$4.00 per hour", "$4.00 PER HOUR", "$4.00/GPU-hr", "$4.00/GPU/hr*", "$4 / GPU / hr"],
        "5": ["from $5", "Starting at $5", "starts at $5", "starting from $5", "as low as $5", "at $5"],
        "6": ["$6/gpu-hour", "$6/instance-hr", "$6/h", "$6/ 1 hour", "$6/instance/1 hour"],
        "2.0000": ["$2 .0000/ 1 hour"],
        "88.490000119": ["$88.490000119 / 1 hour"],
        "1940": ["$1,940.00", "$1,940"],
        "1234567.89": ["$1,234,567.89"],
        "999999999999999": ["$999999999999999"],
        "0.123456789012345": ["$0.123456789012345"],
        "0": ["$0", "$0.00"],
    }
    assert wrong(money, [(text, Decimal(amount)) for amount, texts in shown.items() for text in texts]) == []


def test_money_in_other_currencies_is_read_where_it_is_asked_for() -> None:
    for code, texts in {
        "EUR": ["€2.52", "2.52 €", "€ 2.52 / h", "EUR 2.52", "2.52 EUR", "EUR €2.52"],
        "GBP": ["£2.52", "2.52 £", "GBP 2.52", "£2.52/hr"],
    }.items():
        assert (
            wrong(lambda text, code=code: money(text, code), [(text, Decimal("2.52")) for text in texts])
            == []
        )
        shown = [f"{clean_text(text)!r} is not one USD price" for text in texts]
        assert [refused(text) for text in texts] == shown


def test_what_is_not_one_price_is_not_read() -> None:
    texts = [
        *("", "3.49", "$", "$3.49 12", "$3 - $4", "$3 or $4", "$3.9.9", "$-3", "-$3", "$3-", "$3.", "$.5"),
        *("CAD 3", "C$3", "us$1.49", "3 USD $", "$3 EUR", "$3 hour", "$3 perhour", "up to $3", "about $3"),
        *("$1.94.2026", "Contact sales", "$1.3O", "$1.39x", "A$1.39", "$1'399", "fromage $3"),
    ]  # fmt: skip
    assert wrong(money, [(text, f"{text!r} is not one USD price") for text in texts]) == []
    long = f"about ${'9' * 100}"
    assert refused(long) == f"{long[:80]!r} is not one USD price"
    for digits in ("9" * 100_000, "1," * 50_000 + "1"):
        assert refused(f"${digits}") == f"{digits!r} is not a number"


def test_digits_are_grouped_by_threes_and_at_most_fifteen() -> None:
    texts = ["1,94", "12,34,567", "1234,567", "1000,000", "1,0000", "9" * 16, f"0.{'1' * 16}"]
    assert wrong(money, [(f"${text}", f"{text!r} is not a number") for text in texts]) == []


def test_units_are_those_that_the_reader_asks_for() -> None:
    for unit, spelled in {
        "/month": "month", " per vCPU-hour": "vcpu-hour", "/hours": "hours", "/2 hours": "2hours",
        "/day": "day", "/GPU": "gpu", " / sec": "sec", " per 1 GPU": "1gpu",
    }.items():  # fmt: skip
        assert refused(f"$3{unit}") == f"{f'$3{unit}'!r} is a price per {spelled!r}"
    assert money("$0.0011 / sec", units={"sec"}) == Decimal("0.0011")
    assert outcome(money, "$3", units={"sec"}) == "'$3' is a price per ''"


def test_marks_of_absence() -> None:
    absent = [
        *("", " ", "-", "—", "––", "--", "−", "x", "N/A", "n/a*", "NA", "None", "null", "TBD", "Coming soon"),
        *("Contact sales", "[Contact us](#form)", "Sold out", "Get in touch", "Talk to us", "Contacting us"),
        *("Request a quote", "Get a quote", "Inquire"),
    ]  # fmt: skip
    present = ["$3.49", "0", "from $1.55", "4^1", "High", "---", "xx", "contactless", "requested", "soon"]
    assert wrong(is_not_offered, [(text, True) for text in absent]) == []
    assert wrong(is_not_offered, [(text, False) for text in present]) == []


def test_words_that_mark_the_lowest_of_several_prices() -> None:
    lowest = ["from $1.55", "Starting at $1.55", "starts at $1", "As low as $1.55", "  starts from $1"]
    assert wrong(is_starting_price, [(text, True) for text in lowest]) == []
    plain = ["$1.55", "$1.55 from", "fromage $1", "up to $1.55", "at $1.55"]
    assert wrong(is_starting_price, [(text, False) for text in plain]) == []


def test_a_text_is_cleaned_and_footnotes_are_dropped_before_digits_are_folded() -> None:
    cases = {
        " NVIDIA\u00a0 HGX\n H100¹ ": "NVIDIA HGX H100",
        "4^1": "4",
        "Free^*^": "Free",
        "H100 –\u00ad SXM": "H100 - SXM",
        "８ ＧＢ": "8 GB",
        "[A100](https://a.example) †": "A100",
        "$3①₁*": "$3",
    }
    assert wrong(clean_text, cases.items()) == []


def test_numbers() -> None:
    cases = [
        (3, "3"), (-3, "-3"), (0, "0"), (0.1, "0.1"), (Decimal("2.5"), "2.5"), ("26.00", "26.00"),
        ("12", "12"), ("1,940.5", "1940.5"), ("-3", "-3"), ("1e3", "1000"), ("1E-3", "0.001"), ("0E-9", "0"),
        (" 8¹ ", "8"),
        (10**18, "1e18"), (Decimal("1e-18"), "1e-18"), (Decimal("0e-99"), "0"), ("9" * 15, "9" * 15),
    ]  # fmt: skip
    assert wrong(number, [(value, Decimal(text)) for value, text in cases]) == []


def test_what_is_not_a_number() -> None:
    none = [
        *(None, True, False, [], {}, "", "2,5", "1,2345", "12,34", ",123", "1234,567", "--3", "+3", "1.2.3"),
        *("1e1000", "9" * 16, "NaN", "$3", "8x", "1 2"),
    ]  # fmt: skip
    assert wrong(number, [(value, f"{value!r} is not a number") for value in none]) == []
    huge = [10**19, Decimal("1e-19"), Decimal("-1e19"), 1e300, "1e99", Decimal("NaN"), Decimal("1e999")]
    too_far = "the number is too large or too small for a price or a count"
    assert wrong(number, [(value, too_far) for value in huge]) == []
    assert wrong(number, [(float(name), f"{name!r} is not a number") for name in ("nan", "-inf")]) == []


def test_whole_numbers() -> None:
    cases = [("8", 8), (Decimal("8.0"), 8), ("0", 0), ("-1", -1), (2.0, 2)]
    assert wrong(whole_number, cases) == []
    assert all(type(whole_number(value)) is int for value, _ in cases)
    refusals = [
        ("0.5", "0.5 is not a whole number"),
        (2.5, "2.5 is not a whole number"),
        ("x", "'x' is not a number"),
    ]
    assert wrong(whole_number, refusals) == []


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
