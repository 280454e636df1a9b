"""Hot Aisle's cards: current offers, and a former price that is no longer offered."""

import time

from tests.sources.edited_pages import each, edited, misread_edits, outcome

SMALL = '$2.99/GPU/hr</p><p class="text-sm">For experiments.'
ONE_GPU = ("Small", 1, "2.99")
COLUMNS = "instance_type gpu_count native_price"


def test_a_card_that_is_not_certain_is_rejected() -> None:
    unreadable = ["$2.9O/GPU/hr", "$2.99/GPU/hr$2", "$2.99/hr", "$2.99/GPU/month", "€2.99/GPU/hr"]
    former = ["$2.99/GPU/hr (legacy)", "$2.99/GPU/hr. Existing customers keep $1.99/GPU/hr."]
    prices = [
        *each(["$2.99/gpu/hour", "$2.99/GPU-hour", "$2.99/GPU/h"], ONE_GPU),
        *each(unreadable, "unreadable_price"),
        ("$2.99/GPU/hr or $3.09/GPU/hr", ["conflicting_prices"]),
        *each(["Contact us", "Sold out"], "not_offered"),
        *each(former, "discontinued", "discontinued"),  # the card, and its paragraph
    ]
    cases = [(SMALL.replace("$2.99/GPU/hr", text), expected) for text, expected in prices]
    assert not misread_edits("hotaisle", "pricing.html", SMALL, [ONE_GPU], cases, COLUMNS)


def test_a_card_names_one_gpu_and_numbers_of_them() -> None:
    counts = ["many", "1x</span><span>2x", "0x", "1x & 1x", "1x</span><span>MI355X"]
    numbers = [
        *each([f"<span>{text}</span>" for text in counts], "unknown_gpu_count"),
        ("<span>1x, 2x or 3 x</span>", [("Small", count, "2.99") for count in (1, 2, 3)]),
    ]
    assert not misread_edits("hotaisle", "pricing.html", "<span>1x</span>", [ONE_GPU], numbers, COLUMNS)


def test_a_card_is_of_virtual_machines_or_of_bare_metal_for_a_month() -> None:
    large = [("Large", "reserved", 30, "bare_metal")]
    kept = "bare metal, one-month minimum"
    cases = [("bare metal", ["unknown_terms"]), ("for a 1 month minimum", large)]
    columns = "instance_type price_kind term_days tier"
    assert not misread_edits("hotaisle", "pricing.html", kept, large, cases, columns)
    card = 'uppercase">VM</p><h2 class="text-2xl">Small'
    terms = ("Spot", "Bare metal", "VM</p><p>One-month minimum", "VM</p><p>Bare metal")
    others = each([card.replace("VM", words) for words in terms], "unknown_terms")
    small = [("Small", "on_demand", None, "vm")]
    assert not misread_edits("hotaisle", "pricing.html", card, small, others, columns)


def test_a_page_without_cards_is_a_change() -> None:
    body = "<html><h2>Small</h2><p>$2.99/GPU/hr</p></html>"
    assert outcome("hotaisle", body) == ["changed: no card of a plan with GPUs"]


def test_a_page_of_thousands_of_headings_is_read_in_a_moment() -> None:
    headings = "<div>" + "<h2>More</h2><p>text</p>" * 4_000 + "</div><nav>"
    text = edited("hotaisle", "pricing.html", ("<nav>", headings))
    began = time.process_time()
    assert outcome("hotaisle", text) == outcome("hotaisle", edited("hotaisle", "pricing.html"))
    assert time.process_time() - began < 8
