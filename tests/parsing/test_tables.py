"""Price tables: grids whose columns are known by their headers."""

from datetime import UTC, date, datetime

from bs4 import BeautifulSoup

from pipeline.contracts.listing import Answer, Reject
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.tables import (
    MAX_SPAN,
    PriceColumn,
    Table,
    column,
    columns,
    price_columns,
    prices_in_unknown_columns,
    require_on_demand,
)
from tests.parsing.cases import outcome, wrong
from tests.parsing.test_cases import grid
from tests.sources.helpers import answer

PAGE = answer("", "https://a.example/")


def test_a_cell_spans_its_stated_columns_up_to_a_maximum() -> None:
    widths = {"1": 1, "2": 2, " 2 ": 2, "0": 1, "-2": 1, "two": 1, "²": 1, "": 1}
    widths |= {str(MAX_SPAN - 1): MAX_SPAN - 1, str(MAX_SPAN): MAX_SPAN, str(MAX_SPAN + 1): MAX_SPAN}
    cases = [(span, ["x"] * width) for span, width in widths.items()]
    assert wrong(lambda span: grid(f'<tr><td colspan="{span}">x</td></tr>')[1][0], cases) == []


def test_rows_have_one_cell_under_each_header() -> None:
    soup = BeautifulSoup("<table><tr><td>x</td></tr></table>", "lxml")
    cell = soup.find_all("td")[0]
    found = Table(["A", "B"], [[cell], [cell, cell], [cell] * 3])
    assert found.full_rows() == [([cell, cell], ["x", "x"])]
    assert list(found.other_rows(PAGE)) == [
        Reject(RejectReason.UNREADABLE_ROW, f"the row has {n} cells under 2 headers", ["x"] * n, PAGE)
        for n in (1, 3)
    ]


def test_columns_by_their_headers() -> None:
    headers = ["GPU", "Price", "price per month", "RAM"]
    assert columns(headers, "^price") == [1, 2]
    assert column(headers, "^RAM", PAGE) == 3
    for pattern, number in (("price", 2), ("disk", 0)):
        problem = f"https://a.example/: expected one column like {pattern!r}, found {number} in {headers}"
        assert outcome(column, headers, pattern, PAGE) == problem
    cases = [("^ram", "80"), ("^price", None), ("disk", None)]
    assert wrong(lambda pattern: Table(headers, []).text(["H100", "$2", "$9", "80"], pattern), cases) == []


def test_a_price_in_an_unknown_column_is_a_reject_and_other_texts_are_not() -> None:
    texts = ["$1", "$2", "High", "$0.00", "€3"]
    found = prices_in_unknown_columns(["A", "B", "C", "D", "E"], texts, {0}, PAGE)
    assert list(found) == [
        Reject(
            RejectReason.UNKNOWN_PRICE_KIND, f"'{price}' is a price in the unknown column '{at}'", texts, PAGE
        )
        for price, at in (("$2", "B"), ("€3", "E"))
    ]


# ------------------------------------------------------------------ columns of prices


def on(day: date) -> Answer:
    return answer("", "https://a.example/", datetime(day.year, day.month, day.day, 6, tzinfo=UTC))


NEW_YEAR = date(2027, 1, 1)
NOVEMBER = on(date(2026, 11, 22))


def test_price_columns_by_kind_and_term() -> None:
    headers = ["GPU", "On-demand 1 year", "Spot", "Reserved", "7-30 days", "Reserved for 1 day", "RAM"]
    assert price_columns(headers, PAGE) == [
        PriceColumn(1, "On-demand 1 year", "on_demand"),
        PriceColumn(2, "Spot", "spot"),
        PriceColumn(3, "Reserved", "reserved"),
        PriceColumn(4, "7-30 days", "reserved", 7),
        PriceColumn(5, "Reserved for 1 day", "reserved", 1),
    ]


def test_price_columns_know_from_when_they_hold() -> None:
    headers = [
        "GPU",
        "On-demand",
        "On-demand (from 1 January)",
        "Spot until 31 December",
        "Spot from January 1",
    ]
    for day, superseded in (
        (date(2026, 11, 22), [False, False, False, False]),
        (date(2026, 12, 31), [False, False, False, False]),
        (NEW_YEAR, [True, False, True, False]),
    ):
        prices = price_columns(headers, on(day))
        assert [price.effective_from for price in prices] == [None, NEW_YEAR, None, NEW_YEAR]
        assert [price.flag_reason for price in prices] == [
            "superseded" if each else None for each in superseded
        ]
        require_on_demand(prices, headers, on(day))


def test_on_demand_columns_that_leave_two_prices_for_a_day_are_refused() -> None:
    for headers in (
        ["GPU", "Spot"],
        ["GPU", "On-demand", "On-demand, monthly"],
        ["GPU", "On-demand from January 1, 2027", "On demand (effective 2027-01-01)"],
    ):
        problem = f"https://a.example/: not one on-demand column in {headers}"
        assert outcome(require_on_demand, price_columns(headers, NOVEMBER), headers, NOVEMBER) == problem


def test_a_price_column_with_a_date_that_is_not_understood_is_refused() -> None:
    problem = "https://a.example/: the date in the column 'On-demand (effective soon)' cannot be read"
    assert outcome(price_columns, ["GPU", "On-demand (effective soon)"], NOVEMBER) == problem
