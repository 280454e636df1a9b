"""GMI Cloud's cards: lowest prices, which are flagged, and what is no price of a card."""

from decimal import Decimal

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.captures import capture
from tests.sources.helpers import answer, page, read


def sample(old: str = "", new: str = "") -> str:
    text = page("gmicloud", "pricing.html")
    assert not old or old in text
    return text.replace(old, new, 1) if old else text


def test_the_captured_cards_are_floors_and_flagged() -> None:
    listings, rejects = read("gmicloud", answer(capture("gmicloud_pricing_cards_2026-08-22.html")))
    assert [(row.raw_label, row.native_price, row.flag_reason) for row in listings] == [
        ("NVIDIA GB200", Decimal("8.00"), "starting_price"),
        ("NVIDIA H100 GPU", Decimal("2.00"), "starting_price"),
        ("NVIDIA H200", Decimal("2.60"), "starting_price"),
        ("NVIDIA B200 GPU", Decimal("4.00"), "starting_price"),
    ]
    assert [reject.reason for reject in rejects] == ["not_offered"]


@pytest.mark.parametrize(
    ("price", "reason"),
    [
        ("$2.60", "unknown_price_kind"),
        ("Contact Sales", "not_offered"),
        ("Sold out", "not_offered"),
        ("from $2.6O", "unreadable_price"),
        ("from $2.60$3", "unreadable_price"),
        ("from $2.60/hr", "unreadable_price"),
        ("from €2.60", "unreadable_price"),
        ("from $0.00", "zero_price"),
        ("from <span>$2.60</span>", "unknown_price_kind"),
    ],
)
def test_a_card_without_a_certain_floor_is_rejected(price: str, reason: str) -> None:
    listings, rejects = read("gmicloud", answer(sample("from $2.60", price)))
    assert len(listings) == 3
    assert sorted(reject.reason for reject in rejects) == sorted(["not_offered", reason])


def test_a_price_per_gpu_hour_outside_of_the_cards_is_a_change() -> None:
    stray = "<p><span>from $1.00</span><span>/GPU-hour</span></p></section>"
    with pytest.raises(SourceChangedError, match="6 prices per GPU-hour in 5 cards"):
        read("gmicloud", answer(sample("</section>", stray)))


def test_a_page_without_cards_is_a_change() -> None:
    with pytest.raises(SourceChangedError, match="no card"):
        read("gmicloud", answer("<html><h3>NVIDIA H100</h3><p>from $2.00</p></html>"))
