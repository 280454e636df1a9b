"""Numbers and money as pages write them: read exactly, or not at all."""

from decimal import Decimal

import pytest

from pipeline.contracts.listing import Listing, Reject
from pipeline.parsing.prices import RowError, cell_price, gpu_hour_row
from pipeline.parsing.text import (
    UnreadableError,
    clean_text,
    is_not_offered,
    is_starting_price,
    money,
    number,
    whole_number,
)
from pipeline.parsing.units import gigabytes
from tests.sources.helpers import answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$3.49", "3.49"),
        ("$ 3.49 /hr", "3.49"),
        ("\u00a0$1.40", "1.40"),
        ("from $1.55", "1.55"),
        ("Starting at $1.55", "1.55"),
        ("$2 .0000/ 1 hour", "2.0000"),
        ("$88.490000119 / 1 hour", "88.490000119"),
        ("$3.90/GPU-hr", "3.90"),
        ("$3.90/GPU/hr*", "3.90"),
        ("$4.00 per hour", "4.00"),
        ("$1,940.00", "1940.00"),
        ("US$3", "3"),
        ("3.00 USD", "3.00"),
        ("$0.74**", "0.74"),
        ("$3.99¹", "3.99"),
        ("$3.99^1", "3.99"),
        ("＄3.99", "3.99"),
        ("\u200b$3.99\ufeff", "3.99"),
        ("$1,234,567.89", "1234567.89"),
        ("$999999999999999", "999999999999999"),
        ("$0.123456789012345", "0.123456789012345"),
        ("$0", "0"),
        ("$0.00", "0.00"),
        ("USD 3", "3"),
        ("USD $3", "3"),
        ("$3 USD", "3"),
        ("US $3", "3"),
        ("$3 / GPU / hr", "3"),
        ("$3/gpu-hour", "3"),
        ("$3 PER HOUR", "3"),
        ("$3/instance-hr", "3"),
        ("as low as $3", "3"),
        ("at $3", "3"),
    ],
)
def test_money_in_dollars(text, expected):
    assert money(text) == Decimal(expected)


def test_the_word_us_before_a_price_is_not_a_currency():
    with pytest.raises(UnreadableError, match="us"):
        money("us$1.49")


@pytest.mark.parametrize("text", ["£2.52", "2.52 £", "GBP 2.52", "£2.52/hr"])
def test_money_in_pounds(text):
    assert cell_price(text) == (Decimal("2.52"), "GBP", None)
    with pytest.raises(UnreadableError):
        money(text, "EUR")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("$0.00", "zero_price"),
        ("0 €", "zero_price"),
        ("-$1", "unreadable_price"),
        ("₹5", "unreadable_price"),
        ("5", "unreadable_price"),
        ("", "not_offered"),
    ],
)
def test_a_cell_without_a_price_says_why(text, reason):
    with pytest.raises(RowError) as refused:
        cell_price(text)
    assert refused.value.reason == reason


def test_the_least_price_is_any_above_zero():
    assert cell_price("$0.00000001") == (Decimal("1e-8"), "USD", None)


def test_currencies_are_chosen_by_the_reader():
    assert cell_price("€2", currencies=["EUR"]) == (Decimal(2), "EUR", None)
    with pytest.raises(RowError):
        cell_price("€2", currencies=["USD"])


@pytest.mark.parametrize("text", ["€2.52", "2.52 €", "€ 2.52 / h", "EUR 2.52", "2.52 EUR"])
def test_money_in_euros(text):
    assert money(text, "EUR") == Decimal("2.52")
    with pytest.raises(UnreadableError):
        money(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3.49",
        "$",
        "$3.49/month",
        "$3.49 per vCPU-hour",
        "$3.49 12",
        "$3 - $4",
        "$3.9.9",
        "$-3",
        "$1,94",
        "$12,34,567",
        "$1234,567",
        "$1000,000",
        "$1,0000",
        "$9999999999999999",
        "$0.1234567890123456",
        "-$3",
        "$3-",
        "$3.",
        "$.5",
        "CAD 3",
        "C$3",
        "3 USD $",
        "$3 EUR",
        "$3/hours",
        "$3/2 hours",
        "$3/day",
        "$3/GPU",
        "$3 hour",
        "$3 perhour",
        "up to $3",
        "$1.94.2026",
        "€2.52",
        "about $3",
        "$3 or $4",
        "Contact sales",
        "$" + "9" * 100_000,
        "$" + "1," * 50_000,
    ],
)
def test_what_is_not_one_price_is_not_read(text):
    with pytest.raises(UnreadableError):
        money(text)


def test_units_are_chosen_by_the_reader():
    assert money("$0.0011 / sec", units={"sec"}) == Decimal("0.0011")
    with pytest.raises(UnreadableError, match="sec"):
        money("$0.0011 / sec")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-",
        "—",
        "––",
        "N/A",
        "Contact sales",
        "[Contact us](#form)",
        "Sold out",
        "Get in touch",
        "null",
        "--",
        "−",
        "x",
        "Coming soon",
        "Talk to us",
        "Request a quote",
    ],
)
def test_marks_of_absence(text):
    assert is_not_offered(text)


@pytest.mark.parametrize("text", ["$3.49", "0", "from $1.55", "4^1", "High", "---", "xx", "contactless"])
def test_offered_machines_are_not_read_as_not_offered(text):
    assert not is_not_offered(text)


def test_floors():
    assert is_starting_price("from $1.55")
    assert is_starting_price("As low as $1.55")
    for text in ("$1.55", "$1.55 from", "fromage $1", "up to $1.55"):
        assert not is_starting_price(text)


def test_footnotes_are_dropped_before_digits_are_folded():
    assert clean_text(" NVIDIA\u00a0 HGX\n H100¹ ") == "NVIDIA HGX H100"
    assert clean_text("4^1") == "4"
    assert clean_text("Free^*^") == "Free"
    assert clean_text("H100 –\u00ad SXM") == "H100 - SXM"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, "3"),
        (Decimal("2.5"), "2.5"),
        (0.1, "0.1"),
        ("26.00", "26.00"),
        ("1,940.5", "1940.5"),
        ("-3", "-3"),
        (-3, "-3"),
        ("12", "12"),
        ("1e3", "1000"),
        (10**18, "1e18"),
        (Decimal("1e-18"), "1e-18"),
        (Decimal("0e-99"), "0"),
        ("999999999999999", "999999999999999"),
        ("0E-9", "0"),
        (0, "0"),
    ],
)
def test_numbers(value, expected):
    assert number(value) == Decimal(expected)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        [],
        {},
        "",
        "2,5",
        "1,2345",
        "12,34",
        ",123",
        "1234,567",
        "--3",
        "+3",
        "1e1000",
        "1000000000000000",
        10**19,
        Decimal("1e-19"),
        Decimal("-1e19"),
        False,
        1e300,
        float("-inf"),
        "1.2.3",
        "NaN",
        float("nan"),
        float("inf"),
        Decimal("NaN"),
        Decimal("1e999"),
        "1e99",
    ],
)
def test_what_is_not_a_number(value):
    with pytest.raises(UnreadableError):
        number(value)


def test_whole_numbers():
    assert whole_number("8") == 8
    assert whole_number(Decimal("8.0")) == 8
    assert whole_number("0") == 0
    assert whole_number("-1") == -1
    for value in ("0.5", 2.5, Decimal("1e999999")):
        with pytest.raises(UnreadableError):
            whole_number(value)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("80 GB", 80),
        ("80GB", 80),
        ("80g", 80),
        ("1.5 GiB", 1.5),
        ("9999 GB", 9999),
        ("10000 GB", None),
        ("1.55 GB", None),
        ("80", None),
        ("80 TB", None),
        ("", None),
        (None, None),
    ],
)
def test_gigabytes(text, amount):
    assert gigabytes(text) == amount


def test_a_price_per_gpu_hour_is_a_listing_of_one_gpu():
    row = gpu_hour_row("H100", "reserved", "€2 /hr", {}, answer(""), term_days=30)
    assert isinstance(row, Listing)
    assert (row.raw_label, row.gpu_count, row.native_unit, row.term_days) == ("H100", 1, "gpu_hour", 30)
    assert (row.native_price, row.native_currency, row.flag_reason) == (Decimal(2), "EUR", None)
    floor = gpu_hour_row("H100", "on_demand", "from €2 /hr", {}, answer(""))
    assert isinstance(floor, Listing)
    assert floor.flag_reason == "starting_price"


def test_a_row_without_a_price_says_what_it_is_for():
    row = gpu_hour_row("H100", "reserved", "Contact us", ["x"], answer(""), term_days=30)
    assert isinstance(row, Reject)
    assert (row.reason, row.raw) == ("not_offered", ["x"])
    assert row.detail.startswith("H100, reserved for 30 days: ")
