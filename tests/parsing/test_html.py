"""Pages as a visitor sees them."""

from bs4 import BeautifulSoup, Tag

from pipeline.parsing.html import (
    exactly_one,
    hides,
    is_hidden,
    named,
    page,
    strings_in,
    text_of,
    texts_of,
    with_class,
)
from pipeline.parsing.text_blocks import visible_texts
from tests.parsing.cases import outcome, wrong
from tests.sources.helpers import answer


def first(markup: str, name: str) -> Tag:
    found = BeautifulSoup(markup, "lxml").find(name)
    assert isinstance(found, Tag)
    return found


def text_in(markup: str) -> str:
    return text_of(first(f"<p>{markup}</p>", "p"))


def test_a_truncated_page_is_not_read() -> None:
    for cut in ("<p>NVIDIA H100 $3.", "<p>NVIDIA H100 $3.99</p><di", f"<table>{'x' * 50}\n<"):
        problem = f"https://a.example/: the page is truncated: it ends in {cut[-40:]!r}"
        assert outcome(page, answer(cut, "https://a.example/")) == problem
    assert page(answer("<p>$3.99</p>\n<!-- end -->\n")).text.strip() == "$3.99"
    assert page(answer("no markup")).text == "no markup"


def test_footnotes_scripts_and_comments_are_not_text() -> None:
    cases = {
        "$3<sup>1</sup>.99 <script>x</script><style>y</style><b>per\u00a0hour</b>": "$3 .99 per hour",
        "<!-- price -->$<!-- -->3.99<!-- was $4.99 -->": "$ 3.99",
        "a<sup>see <i>note</i></sup> b": "a b",
        "<sup>12</sup>a": "a",
    }
    assert wrong(text_in, cases.items()) == []
    assert texts_of([first("<b> x </b>", "b"), first("<i>y</i>", "i")]) == ["x", "y"]


def test_two_digits_of_a_superscript_after_whole_money_may_be_cents() -> None:
    """They are joined to the amount in a form that is no price; a footnote is dropped as ever."""
    cents = {
        "$1<sup>39</sup>": "$1~39", "€ 1,200<sup> .39 </sup>": "€ 1,200~.39", "£1.<sup>39</sup>": "£1.~39",
        "$1 <sup><b>39</b></sup> / hr": "$1~39 / hr",
    }  # fmt: skip
    footnotes = {
        "$1.39<sup>1</sup>": "$1.39", "$1.39<sup>12</sup>": "$1.39", "$2<sup>1</sup>": "$2",
        "$2<sup>123</sup>": "$2", "H100<sup>12</sup>": "H100",
    }  # fmt: skip
    assert wrong(text_in, [*cents.items(), *footnotes.items()]) == []
    assert visible_texts(BeautifulSoup("<p>H100 $1<sup>39</sup> / hr</p>", "lxml")) == [
        "H100",
        "$1~39",
        "/ hr",
    ]


def test_excluded_tags_are_left_out_with_all_that_is_in_them() -> None:
    root = first("<div>a<p>b<i>c</i></p><b>d</b> </div>", "div")
    assert strings_in(root, lambda part: part.name == "p") == ["a", "d"]


def test_hidden_parts() -> None:
    hidden = [
        *("<div hidden><p>x</p></div>", '<div class="a hide"><p>x</p></div>', '<p class="hidden">x</p>'),
        *('<div class="w-condition-invisible"><p>x</p></div>', '<p style="color:red; DISPLAY : none">x</p>'),
    ]
    shown = [
        *("<div><p>x</p></div>", '<div class="hide-on-print"><p>x</p></div>', "<p><b hidden>x</b></p>"),
        '<p style="display: block">x</p>',
    ]
    cases = [*((markup, True) for markup in hidden), *((markup, False) for markup in shown)]
    assert wrong(lambda markup: is_hidden(first(markup, "p")), cases) == []
    assert not hides(first("<div hidden><p>x</p></div>", "p"))


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
