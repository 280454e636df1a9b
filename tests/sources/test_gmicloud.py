"""GMI Cloud's cards: lowest prices, which are flagged, and what is no price of a card."""

from tests.sources.edited_pages import edited, outcome


def test_a_price_per_gpu_hour_outside_of_the_cards_is_a_change() -> None:
    stray = "<p><span>from $1.00</span><span>/GPU-hour</span></p></section>"
    found = outcome("gmicloud", edited("gmicloud", "pricing.html", ("</section>", stray), times=1))
    assert found == ["changed: 6 prices per GPU-hour in 5 cards"]


def test_a_page_without_cards_is_a_change() -> None:
    for body in ("<h3>NVIDIA H100</h3><p>from $2.00</p>", "<h3>Intel</h3><p><span>/GPU-hour</span></p>"):
        found = outcome("gmicloud", f"<html>{body}</html>")
        assert found == ["changed: no card with a GPU and '/GPU-hour'"]
