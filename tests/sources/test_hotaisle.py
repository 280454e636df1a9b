"""Hot Aisle's cards: current offers, and a former price that is no longer offered."""

import time
from decimal import Decimal

import pytest

from pipeline.contracts.listing import Listing, SourceChangedError
from tests.sources.captures import capture
from tests.sources.helpers import answer, page, read

SMALL = '<p class="mb-3 font-bold">$2.99/GPU/hr</p><p class="text-sm">For experiments.'


def machines(listings: list[Listing]) -> list[tuple[float | None, str, int | None, Decimal]]:
    return [(row.gpu_count, row.price_kind, row.term_days, row.native_price) for row in listings]


def sample(old: str = "", new: str = "") -> str:
    text = page("hotaisle", "pricing.html")
    assert not old or old in text
    return text.replace(old, new, 1) if old else text


def test_the_captured_cards_are_read_and_the_grandfathered_price_is_not() -> None:
    listings, rejects = read("hotaisle", answer(capture("hotaisle_pricing_2026-08-22.html")))
    assert machines(listings) == [
        (1, "on_demand", None, Decimal("2.99")),
        (2, "on_demand", None, Decimal("2.99")),
        (4, "on_demand", None, Decimal("2.99")),
        (8, "reserved", 30, Decimal("3.39")),
    ]
    assert [reject.reason for reject in rejects] == ["discontinued"]


def test_a_former_price_inside_a_card_is_not_a_price_either() -> None:
    kept = "Existing customers keep $1.99/GPU/hr."
    listings, rejects = read("hotaisle", answer(sample("For experiments.", kept)))
    assert Decimal("1.99") not in {row.native_price for row in listings}
    assert len(listings) == 3
    assert {reject.reason for reject in rejects} == {"discontinued"}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("bare metal, one-month minimum", "bare metal", "unknown_terms"),
        ('uppercase">VM</p><h2 class="text-2xl">Small', 'uppercase">Spot</p><h2>Small', "unknown_terms"),
        (SMALL, SMALL.replace("2.99", "2.9O"), "unreadable_price"),
        (SMALL, SMALL.replace("/GPU/hr", "/GPU/hr$2"), "unreadable_price"),
        (SMALL, SMALL.replace("/GPU/hr", "/hr"), "unreadable_price"),
        (SMALL, SMALL.replace("/GPU/hr", "/GPU/month"), "unreadable_price"),
        (SMALL, SMALL.replace("$2.99", "€2.99"), "unreadable_price"),
        (SMALL, SMALL.replace("$2.99/GPU/hr", "$2.99/GPU/hr or $3.09/GPU/hr"), "conflicting_prices"),
        (SMALL, SMALL.replace("$2.99/GPU/hr", "Contact us"), "not_offered"),
        (SMALL, SMALL.replace("$2.99/GPU/hr", "Sold out"), "not_offered"),
        ("<span>1x</span>", "<span>many</span>", "unknown_gpu_count"),
        ("<span>1x</span>", "<span>1x</span><span>2x</span>", "unknown_gpu_count"),
    ],
)
def test_a_card_that_is_not_certain_is_rejected(old: str, new: str, reason: str) -> None:
    before, _ = read("hotaisle", answer(sample()))
    listings, rejects = read("hotaisle", answer(sample(old, new)))
    assert len(listings) == len(before) - 1
    assert sorted(reject.reason for reject in rejects) == sorted(["discontinued", reason])


@pytest.mark.parametrize("body", ["<html><h2>Small</h2><p>$2.99/GPU/hr</p></html>"])
def test_a_page_without_cards_is_a_change(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("hotaisle", answer(body))


def test_a_page_of_thousands_of_headings_is_read_in_a_moment() -> None:
    text = sample("<nav>", "<div>" + "<h2>More</h2><p>text</p>" * 20_000 + "</div><nav>")
    began = time.perf_counter()
    listings, _ = read("hotaisle", answer(text))
    assert len(listings) == 4
    assert time.perf_counter() - began < 20
