"""Tables as grids, and exactly-one selectors."""

import pytest
from bs4 import BeautifulSoup

from pipeline.contracts.listing import SourceChangedError
from pipeline.parsing import html
from pipeline.parsing.tables import MAX_SPAN, column, table

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


def test_a_cell_that_spans_rows_stands_in_each():
    grid = table(
        first(
            "<table><tr><th>A</th><th>B</th></tr>"
            "<tr><td rowspan=2>x</td><td>1</td></tr><tr><td>2</td></tr></table>",
            "table",
        )
    )
    assert texts(grid) == [["x", "1"], ["x", "2"]]


def test_inner_tables_and_silly_spans_do_no_harm():
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


def test_comments_are_no_text():
    cell = first("<table><tr><td><!-- price -->$<!-- -->3.99<!-- was $4.99 --></td></tr></table>", "td")
    assert html.text_of(cell) == "$ 3.99"
