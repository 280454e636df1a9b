"""Pages as a visitor sees them."""

from pipeline.parsing.html import (
    page,
)
from tests.parsing.cases import outcome
from tests.sources.helpers import answer


def test_a_truncated_page_is_not_read() -> None:
    for cut in ("<p>NVIDIA H100 $3.", "<p>NVIDIA H100 $3.99</p><di", f"<table>{'x' * 50}\n<"):
        problem = f"https://a.example/: the page is truncated: it ends in {cut[-40:]!r}"
        assert outcome(page, answer(cut, "https://a.example/")) == problem
    assert page(answer("<p>$3.99</p>\n<!-- end -->\n")).text.strip() == "$3.99"
    assert page(answer("no markup")).text == "no markup"
