"""GMI Cloud's cards: lowest prices, which are flagged, and what is no price of a card."""

from tests.sources.edited_pages import each, edited, misread_edits, outcome


def test_a_card_has_a_floor_or_is_rejected() -> None:
    cases = [
        *each(["$2.60", "from <span>$2.60</span>"], "unknown_price_kind"),
        *each(["Contact Sales", "Pre-order", "preorder now", "Coming soon"], "not_offered"),
        *each(["from $2.6O", "from $2.60$3", "from $2.60/hr", "from €2.60"], "unreadable_price"),
        ("from $0.00", ["zero_price"]),
        ("from</span> <span>$2.60", ["unreadable_row"]),
    ]
    floor = [("NVIDIA H200", "2.6", "starting_price")]
    columns = "raw_label native_price flag_reason"
    assert not misread_edits("gmicloud", "pricing.html", "from $2.60", floor, cases, columns)


def test_a_price_per_gpu_hour_outside_of_the_cards_is_a_change() -> None:
    stray = "<p><span>from $1.00</span><span>/GPU-hour</span></p></section>"
    found = outcome("gmicloud", edited("gmicloud", "pricing.html", ("</section>", stray), times=1))
    assert found == ["changed: 6 prices per GPU-hour in 5 cards"]


def test_a_page_without_cards_is_a_change() -> None:
    for body in ("<h3>NVIDIA H100</h3><p>from $2.00</p>", "<h3>Intel</h3><p><span>/GPU-hour</span></p>"):
        found = outcome("gmicloud", f"<html>{body}</html>")
        assert found == ["changed: no card with a GPU and '/GPU-hour'"]
