"""Pages, tables as grids, cards and running text, and what headers say of a price."""

import re
from decimal import Decimal

import pytest
from bs4 import BeautifulSoup

from pipeline.contracts.listing import SourceChangedError
from pipeline.parsing import html
from pipeline.parsing.prices import RowError
from pipeline.parsing.tables import (
    MAX_SPAN,
    Table,
    column,
    columns,
    price_columns,
    prices_in_unknown_columns,
    table,
    visible_tables,
)
from pipeline.parsing.terms import price_kind, term_days
from pipeline.parsing.text_blocks import (
    MAX_CARD_CHARACTERS,
    MAX_LABEL_CHARACTERS,
    MAX_MARK_DEPTH,
    agrees_with_hourly,
    cards,
    items,
    label_before,
    leading_price,
    visible_texts,
)

from .helpers import answer


def first(markup, name):
    return BeautifulSoup(markup, "lxml").find(name)


def texts(grid):
    return [[html.text_of(cell) for cell in row] for row in grid.rows]


def test_headers_of_two_rows_are_joined():
    grid = table(
        first(
            "<table><thead><tr><th rowspan=2>Hardware</th><th>On-demand</th><th colspan=2>Reserved</th></tr>"
            "<tr><th>Pay as you go</th><th>7-30 days</th><th>31+ days</th></tr></thead>"
            "<tbody><tr><td>H100</td><td>$4</td><td colspan=2>Contact us</td></tr></tbody></table>",
            "table",
        )
    )
    assert grid.headers == ["Hardware", "On-demand Pay as you go", "Reserved 7-30 days", "Reserved 31+ days"]
    assert texts(grid) == [["H100", "$4", "Contact us", "Contact us"]]
    assert grid.rows[0][2] is grid.rows[0][3]


def test_a_cell_that_spans_rows_is_listed_in_each():
    grid = table(
        first(
            "<table><tr><th>A</th><th>B</th></tr>"
            "<tr><td rowspan=2>x</td><td>1</td></tr><tr><td>2</td></tr></table>",
            "table",
        )
    )
    assert texts(grid) == [["x", "1"], ["x", "2"]]


def test_inner_tables_are_cells_and_spans_have_a_maximum():
    grid = table(
        first(
            '<table><tr><th>A</th></tr><tr><td colspan="99999">x'
            "<table><tr><td>in</td></tr></table></td></tr></table>",
            "table",
        )
    )
    assert grid.headers == ["A"]
    assert len(grid.rows) == 1
    assert len(grid.rows[0]) == MAX_SPAN


def test_text_leaves_out_footnotes_and_scripts():
    tag = first("<td>$3<sup>1</sup>.99 <script>x</script><b>per\u00a0hour</b></td>", "td")
    assert html.text_of(tag) == "$3 .99 per hour"


@pytest.mark.parametrize(
    ("markup", "hidden"),
    [
        ("<div><p>x</p></div>", False),
        ("<div hidden><p>x</p></div>", True),
        ('<div class="a hide"><p>x</p></div>', True),
        ('<div class="hide-on-print"><p>x</p></div>', False),
        ('<div style="color:red; DISPLAY : none"><p>x</p></div>', True),
    ],
)
def test_hidden_parts(markup, hidden):
    assert html.is_hidden(first(markup, "p")) is hidden


def test_exactly_one():
    page = answer("")
    assert column(["GPU", "On-demand"], r"on-demand", page) == 1
    for headers in (["GPU"], ["On-demand", "On-demand"]):
        with pytest.raises(SourceChangedError):
            column(headers, r"on-demand", page)
    with pytest.raises(SourceChangedError, match="found 0"):
        html.exactly_one([], "table", page)


@pytest.mark.parametrize(
    "cut", ["<p>NVIDIA H100 $3.", "<p>NVIDIA H100 $3.99</p><di", "<table><tr><td>$1</td>\n<"]
)
def test_a_truncated_page_is_not_read(cut):
    with pytest.raises(SourceChangedError, match="truncated"):
        html.page(answer(cut))


def test_a_section_of_a_page_is_read():
    assert html.page(answer("<p>$3.99</p>\n<!-- end -->\n")).p.text == "$3.99"


def test_comments_are_not_text():
    cell = first("<table><tr><td><!-- price -->$<!-- -->3.99<!-- was $4.99 --></td></tr></table>", "td")
    assert html.text_of(cell) == "$ 3.99"


@pytest.mark.parametrize(
    ("span", "width"),
    [
        ("1", 1),
        ("2", 2),
        (str(MAX_SPAN - 1), MAX_SPAN - 1),
        (str(MAX_SPAN), MAX_SPAN),
        (str(MAX_SPAN + 1), MAX_SPAN),
        ("0", 1),
        ("-2", 1),
        ("two", 1),
        (" 2 ", 2),
        ("²", 1),
    ],
)
def test_a_cell_spans_its_stated_columns_up_to_a_maximum(span, width):
    grid = table(first(f'<table><tr><th>A</th></tr><tr><td colspan="{span}">x</td></tr></table>', "table"))
    assert [len(row) for row in grid.rows] == [width]


@pytest.mark.parametrize(("span", "last"), [(1, "x"), (2, "xx"), (3, "xxx"), (4, "xxx")])
def test_a_cell_spans_rows_down_to_the_end_of_the_table(span, last):
    rows = f'<tr><td rowspan="{span}">x</td><td>1</td></tr><tr><td>2</td></tr><tr><td>3</td></tr>'
    grid = table(first(f"<table><tr><th>A</th><th>B</th></tr>{rows}</table>", "table"))
    assert "".join(row[0] for row in texts(grid) if row[0] == "x") == last
    assert [row[-1] for row in texts(grid)] == ["1", "2", "3"]


def test_header_rows_of_different_widths_name_no_column():
    grid = table(
        first(
            "<table><thead><tr><th>A</th></tr><tr><th>B</th><th>C</th></tr></thead>"
            "<tr><td>1</td><td>2</td></tr></table>",
            "table",
        )
    )
    assert grid.headers == ["", ""]
    assert texts(grid) == [["1", "2"]]


def test_a_row_of_headers_in_the_body_is_a_header_and_one_with_data_is_not():
    grid = table(first("<table><tr><th>A</th></tr><tr><th>x</th><td>1</td></tr></table>", "table"))
    assert (grid.headers, texts(grid)) == (["A"], [["x", "1"]])


def test_every_row_of_the_head_is_a_header_even_with_data_cells():
    markup = (
        "<table><thead><tr><td>GPU</td><td>Price</td></tr></thead>"
        "<tbody><tr><td>H100</td><td>$2</td></tr></tbody></table>"
    )
    grid = table(first(markup, "table"))
    assert grid.headers == ["GPU", "Price"]
    assert texts(grid) == [["H100", "$2"]]


def test_a_cell_spans_three_rows_and_no_fourth():
    rows = "".join(f"<tr><td>{number}</td></tr>" for number in (2, 3))
    markup = (
        f'<table><tr><th>A</th><th>B</th></tr><tr><td rowspan="3">x</td><td>1</td></tr>{rows}'
        "<tr><td>y</td><td>4</td></tr></table>"
    )
    assert texts(table(first(markup, "table"))) == [["x", "1"], ["x", "2"], ["x", "3"], ["y", "4"]]


def test_a_table_without_header_cells_has_no_headers():
    grid = table(first("<table><tr><td>x</td></tr></table>", "table"))
    assert (grid.headers, texts(grid)) == ([], [["x"]])


def test_rows_have_one_cell_under_each_header():
    cell = first("<table><tr><td>x</td></tr></table>", "td")
    rows = [[cell], [cell, cell], [cell, cell, cell], []]
    grid = Table(["A", "B"], rows)
    assert grid.full_rows() == [([cell, cell], ["x", "x"])]
    rejects = list(grid.other_rows(answer("")))
    assert {row.reason for row in rejects} == {"unreadable_row"}
    assert [len(row.raw) for row in rejects] == [1, 3, 0]


def test_columns_by_their_headers():
    headers = ["GPU", "Price", "price per month", "RAM"]
    assert columns(headers, r"^price") == [1, 2]
    grid = Table(headers, [])
    assert grid.text(["H100", "$2", "$9", "80"], "^ram") == "80"
    assert grid.text(["H100", "$2", "$9", "80"], "^price") is None
    assert grid.text(["H100", "$2", "$9", "80"], "disk") is None


def test_a_price_in_an_unknown_column_is_a_reject_and_other_texts_are_not():
    rejects = list(
        prices_in_unknown_columns(["A", "B", "C", "D"], ["$1", "$2", "High", "$0.00"], {0}, answer(""))
    )
    assert [(reject.reason, reject.raw[1]) for reject in rejects] == [("unknown_price_kind", "$2")]
    assert "'B'" in rejects[0].detail


def test_hidden_tables_are_not_listed():
    soup = BeautifulSoup("<table><tr><td>1</td></tr></table><div hidden><table></table></div>", "lxml")
    assert [texts(grid) for grid in visible_tables(soup)] == [[["1"]]]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("On-demand", "on_demand"),
        ("ON DEMAND", "on_demand"),
        ("Pay as you go", "on_demand"),
        ("Spot price", "spot"),
        ("Preemptible", "spot"),
        ("pre-emptible", "spot"),
        ("Reserved", "reserved"),
        ("1-year commitment", "reserved"),
        ("3 year CUD", "reserved"),
        ("Reserved on-demand capacity", "reserved"),
        ("Spotlight", None),
        ("Price", None),
        ("", None),
    ],
)
def test_kinds_of_price(text, kind):
    assert price_kind(text) == kind


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("1 day", 1),
        ("7-30 days", 7),
        ("31+ days", 31),
        ("181 + days", 181),
        ("2 weeks - 1 year", 14),
        ("12-month commitment", 360),
        ("1 year", 365),
        ("3-Year", 1095),
        ("Reserved (6 months)", 180),
        ("9999 days", 9999),
        ("monthly", None),
        ("year", None),
        ("24 hours", None),
        ("", None),
    ],
)
def test_terms_in_days(text, days):
    assert term_days(text) == days


def test_price_columns_by_kind_and_term():
    headers = ["GPU", "On-demand", "Spot", "Reserved", "7-30 days", "Spot for 1 day", "RAM"]
    found = [(price.at, price.kind, price.term_days) for price in price_columns(headers, answer(""))]
    assert found == [
        (1, "on_demand", None),
        (2, "spot", None),
        (3, "reserved", None),
        (4, "reserved", 7),
        (5, "spot", None),
    ]


MARK = re.compile(r"VRAM (?P<vram>\d+) GB")
END = re.compile(r"\$\d+\.\d+|contact", re.IGNORECASE)


def card_texts(markup):
    return [text for _, text in cards(BeautifulSoup(markup, "lxml"), MARK, END)]


@pytest.mark.parametrize(("longer", "found"), [(0, 1), (1, 0)])
def test_a_card_is_no_longer_than_its_limit(longer, found):
    card = "H100 VRAM 80 GB $2.00 "
    text = card + "x" * (MAX_CARD_CHARACTERS - len(card) + longer)
    assert len(card_texts(f"<div>{text}</div>")) == found


@pytest.mark.parametrize(("longer", "end"), [(0, "$2.00"), (1, "GB")])
def test_a_card_grows_no_further_than_its_limit(longer, end):
    inner, price = "H100 VRAM 80 GB", "$2.00"
    filler = "x" * (MAX_CARD_CHARACTERS - len(inner) - len(price) + longer)
    assert card_texts(f"<div><p>{inner}</p><i>{filler}</i><b>{price}</b></div>")[0].endswith(end)


@pytest.mark.parametrize(("deeper", "found"), [(0, 1), (1, 0)])
def test_a_mark_is_spread_over_few_levels(deeper, found):
    depth = MAX_MARK_DEPTH - 1 + deeper
    markup = f"<div>H100 VRAM {'<b>' * depth}80 GB{'</b>' * depth} $2.00</div>"
    assert len(card_texts(markup)) == found


def test_a_card_without_a_price_does_not_take_the_next_cards():
    markup = "<div><div>H100 VRAM 80 GB</div><div>A100 VRAM 40 GB <b>$1.00</b></div></div>"
    assert card_texts(markup) == ["H100 VRAM 80 GB", "A100 VRAM 40 GB $1.00"]


def test_a_card_keeps_the_text_after_its_price():
    assert card_texts("<div>H100 VRAM 80 GB $2.00 /mo</div>") == ["H100 VRAM 80 GB $2.00 /mo"]


def test_a_card_with_two_sizes_in_gb_is_one_card():
    markup = "<div>H100 VRAM 80 GB <i>200 GB</i> $2.00</div>"
    assert card_texts(markup) == ["H100 VRAM 80 GB 200 GB $2.00"]


def test_hidden_and_scripted_cards_are_not_read():
    markup = "<div hidden>H100 VRAM 80 GB $2.00</div><script>A100 VRAM 40 GB $1.00</script>"
    assert card_texts(markup) == []


def test_cards_in_one_element_are_cut_after_each_price():
    markup = "<p>H100 VRAM 80 GB $2.00 /hr A100 VRAM 40 GB $1.00 per GPU-hour, L4 VRAM 24 GB</p>"
    assert card_texts(markup) == ["H100 VRAM 80 GB $2.00", "A100 VRAM 40 GB $1.00", "L4 VRAM 24 GB"]


@pytest.mark.parametrize(
    ("length", "is_label"), [(MAX_LABEL_CHARACTERS, True), (MAX_LABEL_CHARACTERS + 1, False)]
)
def test_a_label_is_no_longer_than_its_limit(length, is_label):
    text = "H" * length + " VRAM 80 GB $2.00"
    if is_label:
        assert label_before(text, MARK, END)[0] == "H" * length
    else:
        with pytest.raises(RowError):
            label_before(text, MARK, END)


@pytest.mark.parametrize("text", ["VRAM 80 GB $2.00", "H100 $2.00", "H100 $1.00 VRAM 80 GB"])
def test_a_card_needs_a_label_before_its_mark(text):
    with pytest.raises(RowError):
        label_before(text, MARK, END)


@pytest.mark.parametrize(("max_texts", "rest"), [(1, "a"), (2, "a b"), (3, "a b"), (0, "")])
def test_item_has_a_maximum_of_texts_and_ends_at_the_next(max_texts, rest):
    found = list(items(["H100", "a", "b", "L4", "c"], [0, 3], max_texts))
    assert [item.label for item in found] == ["H100", "L4"]
    assert found[0].rest == rest


def test_an_item_has_its_usual_limit_of_texts():
    (item,) = items(["H100", *map(str, range(30))], [0])
    assert item.rest.split() == [str(at) for at in range(24)]


def test_visible_texts_break_before_prices_and_omit_hidden_ones():
    markup = (
        "<head><title>Prices</title></head><p>H100 $2.00 now</p><!-- x --><sup>1</sup><p hidden>L4</p>"
        "<noscript>A</noscript><template>B</template><svg><text>C</text></svg><p> </p>"
    )
    assert visible_texts(BeautifulSoup(markup, "lxml")) == ["H100", "$2.00 now"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("H100 A$2.00", ["H100", "A$2.00"]),
        ("H100 CA$2.00 US$1.50", ["H100", "CA$2.00", "US$1.50"]),
        ("80 GB$2.00", ["80", "GB$2.00"]),
        ("H100reserved$2.00", ["H100reser", "ved$2.00"]),
        ("H100$2.00€3", ["H100", "$2.00", "€3"]),
        ("Café$2", ["C", "afé$2"]),
    ],
)
def test_letters_that_are_glued_to_a_price_stay_with_it(text, parts):
    assert visible_texts(BeautifulSoup(f"<p>{text}</p>", "lxml")) == parts


@pytest.mark.parametrize(
    ("text", "amount", "unit", "rest"),
    [
        ("$0.001 / sec more", "$0.001", "second", "more"),
        ("| $2 .50/hr | x", "$2 .50", "hour", "x"),
        ("€2 per minute", "€2", "minute", ""),
        ("2 / h", "2", "hour", ""),
        ("$1,940 / month", "$1,940", None, ""),
        ("$2 / core / sec", "$2", None, ""),
        ("$2", "$2", None, ""),
        ("$$2 / h", "$$2", "hour", ""),
        ("$1.3O/sec", "$1.3O", "second", ""),
        ("$2 /sec0nd", "$2", None, ""),
        ("from $2 / h", "from $2", "hour", ""),
    ],
)
def test_a_price_at_the_start_of_a_text(text, amount, unit, rest):
    price = leading_price(text)
    assert price is not None
    assert (price.amount, price.time_unit, price.rest) == (amount, unit, rest)


@pytest.mark.parametrize("text", ["", "only from 2", "Contact us", "USD 2 / h"])
def test_a_text_that_begins_without_a_price(text):
    assert leading_price(text) is None


@pytest.mark.parametrize(
    ("hourly", "agrees"),
    [("$3.600", True), ("$3.606", True), ("$3.594", True), ("$3.607", False), ("$3.593", False)],
)
def test_an_hourly_price_is_the_price_per_second_rounded(hourly, agrees):
    assert agrees_with_hourly(Decimal("0.001"), "second", hourly) is agrees
    assert agrees_with_hourly(Decimal("0.06"), "minute", hourly) is agrees


def test_an_hourly_price_is_itself():
    assert agrees_with_hourly(Decimal("3.60"), "hour", "$3.60")
    assert not agrees_with_hourly(Decimal("3.60"), "hour", "$7.20")


def test_an_hourly_price_in_another_currency_is_refused():
    with pytest.raises(RowError):
        agrees_with_hourly(Decimal("0.001"), "second", "€3.60")
