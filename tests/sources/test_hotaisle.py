"""Hot Aisle's cards: current offers, and a former price that is no longer offered."""

import time

from tests.sources.edited_pages import edited, outcome

SMALL = '$2.99/GPU/hr</p><p class="text-sm">For experiments.'
ONE_GPU = ("Small", 1, "2.99")
COLUMNS = "instance_type gpu_count native_price"


def test_a_page_without_cards_is_a_change() -> None:
    body = "<html><h2>Small</h2><p>$2.99/GPU/hr</p></html>"
    assert outcome("hotaisle", body) == ["changed: no card of a plan with GPUs"]


def test_a_page_of_thousands_of_headings_is_read_in_a_moment() -> None:
    headings = "<div>" + "<h2>More</h2><p>text</p>" * 4_000 + "</div><nav>"
    text = edited("hotaisle", "pricing.html", ("<nav>", headings))
    began = time.process_time()
    assert outcome("hotaisle", text) == outcome("hotaisle", edited("hotaisle", "pricing.html"))
    assert time.process_time() - began < 8
