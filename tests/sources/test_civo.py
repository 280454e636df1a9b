"""Civo's tables: a price per term, confirmed by the monthly one, and tables of other products."""

from decimal import Decimal

import pytest

from pipeline.contracts.listing import Listing, SourceChangedError
from tests.sources.captures import capture
from tests.sources.helpers import answer, page, read

H100_SMALL = "1 x NVIDIA H100 - 80GB"


def sample(old: str = "", new: str = "") -> str:
    text = page("civo", "pricing.html")
    assert not old or old in text
    return text.replace(old, new, 1) if old else text


def h100(rows: list[Listing]) -> dict[int | None, Decimal]:
    """Prices of the machine with one H100 by term."""
    return {
        row.term_days: row.native_price
        for row in rows
        if row.raw_label == "NVIDIA H100 SXM" and row.gpu_count == 1
    }


def test_the_captured_table_has_each_price_with_its_term() -> None:
    """The monthly price of the captured second and third machine is that of the first."""
    listings, rejects = read("civo", answer(capture("civo_l40s_table_2026-08-22.html")))
    assert [(row.gpu_count, row.term_days, row.native_price) for row in listings] == [
        (1, None, Decimal("1.29")),
        (1, 180, Decimal("1.19")),
        (1, 360, Decimal("1.09")),
        (1, 720, Decimal("0.99")),
        (1, 1080, Decimal("0.89")),
        (2, 180, Decimal("2.38")),
        (2, 360, Decimal("2.18")),
        (2, 720, Decimal("1.98")),
        (2, 1080, Decimal("1.78")),
        (4, 180, Decimal("4.76")),
        (4, 360, Decimal("4.36")),
        (4, 720, Decimal("3.96")),
        (4, 1080, Decimal("3.56")),
    ]
    assert {row.raw_label for row in listings} == {"NVIDIA L40S 48GB"}
    assert [reject.reason for reject in rejects] == ["conflicting_prices", "conflicting_prices"]


def test_the_headline_price_of_a_card_that_is_sold_for_terms_only_is_never_on_demand() -> None:
    listings, rejects = read("civo", answer(sample()))
    b200 = [row for row in listings if row.raw_label == "NVIDIA B200"]
    assert {(row.price_kind, row.term_days, row.native_price) for row in b200} == {
        ("reserved", 360, Decimal("35.92")),
        ("reserved", 720, Decimal("31.92")),
        ("reserved", 1080, Decimal("30.32")),
    }
    assert [reject.reason for reject in rejects] == ["not_offered", "not_offered"]


def test_a_price_without_a_monthly_one_stands_alone() -> None:
    monthly = (
        '<div id="price-value-monthly" data-option="monthly" class="price-value hidden">'
        "$2,182.70<span>per month</span></div>"
    )
    listings, _ = read("civo", answer(sample(monthly)))
    assert h100(listings)[None] == Decimal("2.99")


@pytest.mark.parametrize(
    ("old", "new", "reason", "lost"),
    [
        ("$2,182.70", "$2,282.70", "conflicting_prices", {None}),
        ("$2,036.70", "$20,367.0", "conflicting_prices", {180}),
        ("$2.99<span>", "$2.9O<span>", "unreadable_price", {None}),
        ("$2.99<span>", "$2.99/hr$2<span>", "unreadable_price", {None}),
        ("$2.99<span>per hour", "$2.99<span>per month", "unreadable_price", {None}),
        ("$2.99<span>per hour", "£2.99<span>per hour", "unreadable_price", {None}),
        ("$2.99<span>per hour", "Contact us<span>per hour", "not_offered", {None}),
        ("$2.99<span>per hour", "Sold out<span>", "not_offered", {None}),
        (H100_SMALL, "1 x NVIDIA H200 - 80GB", "unreadable_row", {None, 180, 360, 720, 1080}),
        (H100_SMALL, "NVIDIA H100 - 80GB", "unreadable_row", {None, 180, 360, 720, 1080}),
    ],
)
def test_a_price_that_is_not_certain_is_rejected(
    old: str, new: str, reason: str, lost: set[int | None]
) -> None:
    before = h100(read("civo", answer(sample()))[0])
    listings, rejects = read("civo", answer(sample(old, new)))
    assert h100(listings) == {term: price for term, price in before.items() if term not in lost}
    assert reason in {reject.reason for reject in rejects}


def test_a_card_of_another_memory_is_not_read_under_the_wrong_caption() -> None:
    listings, rejects = read("civo", answer(sample("1 x NVIDIA A100 - 80GB", "1 x NVIDIA A100 - 40GB")))
    assert {row.gpu_count for row in listings if row.raw_label == "NVIDIA A100 80GB"} == {8}
    assert "unreadable_row" in {reject.reason for reject in rejects}


def test_a_price_of_a_commitment_outside_of_its_terms_is_reported() -> None:
    stray = '<div data-option="hourly" class="price-value">$0.50<span>per hour</span></div>'
    text = sample('commitment-pricing"><div id="6', f'commitment-pricing">{stray}<div id="6')
    listings, rejects = read("civo", answer(text))
    assert Decimal("0.50") not in {row.native_price for row in listings}
    assert "unknown_term_length" in {reject.reason for reject in rejects}


@pytest.mark.parametrize("body", ["<table><tr><td>L40S</td></tr></table>"])
def test_a_page_without_gpu_tables_is_a_change(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("civo", answer(body))


def test_a_price_that_is_neither_hourly_nor_monthly_is_not_guessed_at() -> None:
    text = sample(
        'data-option="hourly" class="price-value">$2.99', 'data-option="daily" class="price-value">$2.99'
    )
    listings, rejects = read("civo", answer(text))
    assert None not in h100(listings)
    assert "unreadable_price" in {reject.reason for reject in rejects}
