"""Pages as a visitor sees them."""

from bs4 import BeautifulSoup, Tag

from pipeline.parsing.html import (
    exactly_one,
    page,
)
from tests.parsing.cases import outcome
from tests.sources.helpers import answer


def first(markup: str, name: str) -> Tag:
    found = BeautifulSoup(markup, "lxml").find(name)
    assert isinstance(found, Tag)
    return found


def test_a_truncated_page_is_not_read() -> None:
    for cut in ("<p>NVIDIA H100 $3.", "<p>NVIDIA H100 $3.99</p><di", f"<table>{'x' * 50}\n<"):
        problem = f"https://a.example/: the page is truncated: it ends in {cut[-40:]!r}"
        assert outcome(page, answer(cut, "https://a.example/")) == problem
    assert page(answer("<p>$3.99</p>\n<!-- end -->\n")).text.strip() == "$3.99"
    assert page(answer("no markup")).text == "no markup"


def test_exactly_one_tag() -> None:
    tag = first("<b>x</b>", "b")
    assert exactly_one(iter([tag]), "row", answer("")) is tag
    for tags in ([], [tag, tag]):
        problem = f"https://a.example/: expected exactly one row, found {len(tags)}"
        assert outcome(exactly_one, tags, "row", answer("", "https://a.example/")) == problem
