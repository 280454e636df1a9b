"""Pages as a visitor sees them."""

from bs4 import BeautifulSoup, Tag

from pipeline.parsing.html import (
    exactly_one,
    hides,
    named,
    page,
    strings_in,
    texts_of,
    with_class,
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


def test_only_what_is_in_a_hidden_part_or_is_one_is_hidden() -> None:
    assert not hides(first("<div hidden><p>x</p></div>", "p"))
    assert texts_of([first("<b> x </b>", "b"), first("<i>y</i>", "i")]) == ["x", "y"]


def test_excluded_tags_are_left_out_with_all_that_is_in_them() -> None:
    root = first("<div>a<p>b<i>c</i></p><b>d</b> </div>", "div")
    assert strings_in(root, lambda part: part.name == "p") == ["a", "d"]


def test_tags_are_found_by_name_and_by_class() -> None:
    root = first('<div class="b"><p class="a b">1<b>2</b></p><i class="ab">3</i></div>', "div")
    assert texts_of(named(root, "b", "i")) == ["2", "3"]
    assert [tag.name for tag in with_class(root, "b")] == ["p"]


def test_exactly_one_tag() -> None:
    tag = first("<b>x</b>", "b")
    assert exactly_one(iter([tag]), "row", answer("")) is tag
    for tags in ([], [tag, tag]):
        problem = f"https://a.example/: expected exactly one row, found {len(tags)}"
        assert outcome(exactly_one, tags, "row", answer("", "https://a.example/")) == problem
