"""Civo's tables: a price per term, confirmed by the monthly one, and tables of other products."""

from decimal import Decimal

import pytest

from pipeline.contracts.listing import Listing, SourceChangedError
from tests.sources.captures import capture
from tests.sources.helpers import answer, page, read

H100_SMALL = "1 x NVIDIA H100 - 80GB"
EVERY_TERM = {None, 180, 360, 720, 1080}


def sample(old: str, new: str) -> str:
    text = page("civo", "pricing.html")
    assert old in text
    return text.replace(old, new, 1)


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
    by_term = {180: "1.19", 360: "1.09", 720: "0.99", 1080: "0.89"}
    expected = [(1, None, Decimal("1.29"))]
    expected += [(n, term, n * Decimal(price)) for n in (1, 2, 4) for term, price in by_term.items()]
    assert [(row.gpu_count, row.term_days, row.native_price) for row in listings] == expected
    assert {row.raw_label for row in listings} == {"NVIDIA L40S 48GB"}
    assert [reject.reason for reject in rejects] == ["conflicting_prices", "conflicting_prices"]


def test_a_price_without_a_monthly_one_stands_alone() -> None:
    monthly = (
        '<div id="price-value-monthly" data-option="monthly" class="price-value hidden">'
        "$2,182.70<span>per month</span></div>"
    )
    assert h100(read("civo", answer(sample(monthly, "")))[0])[None] == Decimal("2.99")


@pytest.mark.parametrize(
    ("old", "new", "reason", "lost"),
    [
        ("$2,182.70", "$2,193.61", None, set()),  # 730.0 hours, and half a percent more
        ("$2,182.70", "$2,193.62", "conflicting_prices", {None}),
        ("$2,036.70", "$20,367.0", "conflicting_prices", {180}),
        ("$2.99<span>", "$2.99/hr$2<span>", "unreadable_price", {None}),
        ("$2.99<span>per hour", "£2.99<span>per hour", "unreadable_price", {None}),
        ("$2.99<span>per hour", "Sold out<span>", "not_offered", {None}),
        (
            '"hourly" class="price-value">$2.99',
            '"daily" class="price-value">$2.99',
            "unreadable_price",
            {None},
        ),
        (H100_SMALL, "1 x NVIDIA H200 - 80GB", "unreadable_row", EVERY_TERM),
        (H100_SMALL, "NVIDIA H100 - 80GB", "unreadable_row", EVERY_TERM),
    ],
)
def test_a_price_that_is_not_certain_is_rejected(
    old: str, new: str, reason: str | None, lost: set[int | None]
) -> None:
    before = h100(read("civo", answer(page("civo", "pricing.html")))[0])
    assert before.keys() == EVERY_TERM
    listings, rejects = read("civo", answer(sample(old, new)))
    assert h100(listings) == {term: price for term, price in before.items() if term not in lost}
    assert (reason in {reject.reason for reject in rejects}) == bool(reason)


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


def test_a_page_without_gpu_tables_is_a_change() -> None:
    for body, problem in (
        ("<table><tr><td>L40S</td></tr></table>", "no table of GPU prices"),
        (
            "<table><caption>NVIDIA L40S GPU pricing</caption></table>",
            "the table of 'NVIDIA L40S' has no rows",
        ),
    ):
        with pytest.raises(SourceChangedError, match=problem):
            read("civo", answer(body))
