"""Crusoe: "Contact sales" cells keep their place in any surroundings."""

from datetime import date, datetime
from decimal import Decimal

import pytest

from pipeline.contracts.listing import SourceChangedError

from .helpers import answer, page, read

PAGE = page("crusoe", "pricing.html")
CONTACT = '<p><a href="/contact-sales">Contact sales</a></p>'


def row(name, vram, form, *prices):
    cells = "".join(f'<div class="pricing-rich w-richtext">{price}</div>' for price in prices)
    return (
        f'<div role="listitem" class="prixing-item"><h4 class="pricing-item-heading">{name}</h4>'
        f'<div class="pricing-tag is-dark">{vram}</div><div class="pricing-tag">{form}</div>{cells}</div>'
    )


def section(headers, *rows):
    heads = "".join(f'<div class="pricing-heading is-d">{header}</div>' for header in headers)
    return (
        f"<html><body><h3>GPU&nbsp;instances pricing</h3>{heads}{''.join(rows)}"
        f"<h3>CPU instances pricing</h3>{row('CPU', '', '', '<p>$0.04/vCPU-hr</p>')}</body></html>"
    )


HEADERS = ("GPU model", "On-demand", "Current spot")


def prices(listings):
    return {(r.raw_label, r.price_kind): (r.native_price, r.native_currency) for r in listings}


def test_a_contact_sales_row_does_not_take_the_next_price():
    listings, rejects = read("crusoe", answer(PAGE))
    found = prices(listings)
    assert found["NVIDIA H200 141GB HGX", "on_demand"] == (Decimal("4.29"), "USD")
    assert not any("B200" in label or "MI355X" in label for label, _ in found)
    assert len(listings) == 6
    assert [r.reason for r in rejects] == ["not_offered"] * 12


def test_a_new_contact_sales_row_changes_no_other_row():
    before = prices(read("crusoe", answer(PAGE))[0])
    changed = PAGE.replace("<p>$4.29/GPU-hr</p>", CONTACT)
    after = prices(read("crusoe", answer(changed))[0])
    assert after == {key: price for key, price in before.items() if key[0] != "NVIDIA H200 141GB HGX"}


def test_spot_prices_appear_and_columns_swap():
    swapped = section(
        ("GPU model", "Current spot", "On-demand"),
        row("NVIDIA H100", "80GB", "HGX", "<p>$1.95/GPU-hr</p>", "<p>$\u00a03.90 /GPU-hr<sup>1</sup></p>"),
        row("NVIDIA B200", "180GB", "HGX", CONTACT, "<p>from $6.00/GPU-hr*</p>"),
    )
    listings, rejects = read("crusoe", answer(swapped))
    assert prices(listings) == {
        ("NVIDIA H100 80GB HGX", "spot"): (Decimal("1.95"), "USD"),
        ("NVIDIA H100 80GB HGX", "on_demand"): (Decimal("3.90"), "USD"),
        ("NVIDIA B200 180GB HGX", "on_demand"): (Decimal("6.00"), "USD"),
    }
    assert [r.reason for r in rejects] == ["not_offered"]


def test_unknown_column_is_ignored():
    wider = section(
        ("GPU model", "On-demand", "Availability", "Current spot"),
        row("NVIDIA H100", "80GB", "HGX", "<p>$3.90/GPU-hr</p>", "<p>High</p>", "<p>$1.95/GPU-hr</p>"),
    )
    assert prices(read("crusoe", answer(wider))[0]) == {
        ("NVIDIA H100 80GB HGX", "on_demand"): (Decimal("3.90"), "USD"),
        ("NVIDIA H100 80GB HGX", "spot"): (Decimal("1.95"), "USD"),
    }


def test_a_price_in_an_unknown_column_is_a_reject():
    wider = section(
        ("GPU model", "On-demand", "Interruptible"),
        row("NVIDIA H100", "80GB", "HGX", "<p>$3.90/GPU-hr</p>", "<p>$1.95/GPU-hr</p>"),
    )
    listings, rejects = read("crusoe", answer(wider))
    assert [r.native_price for r in listings] == [Decimal("3.90")]
    assert [r.reason for r in rejects] == ["unknown_price_kind"]


def test_a_row_with_a_cell_too_few_is_a_reject():
    short = section(HEADERS, row("NVIDIA H100", "80GB", "HGX", "<p>$3.90/GPU-hr</p>"))
    listings, rejects = read("crusoe", answer(short))
    assert listings == []
    assert [r.reason for r in rejects] == ["unreadable_row"]


@pytest.mark.parametrize(
    ("price", "reason"),
    [
        ("<p>$3.90/month</p>", "unreadable_price"),
        ("<p>$3.90/vCPU-hr</p>", "unreadable_price"),
        ("<p>$3.90 $4.10</p>", "unreadable_price"),
        ("<p>$0.00/GPU-hr</p>", "zero_price"),
        ("<p>—</p>", "not_offered"),
        ("", "not_offered"),
    ],
)
def test_no_price_where_none_can_be_read(price, reason):
    listings, rejects = read(
        "crusoe", answer(section(HEADERS, row("NVIDIA H100", "80GB", "HGX", price, CONTACT)))
    )
    assert listings == []
    assert [r.reason for r in rejects] == [reason, "not_offered"]


def test_euros_stay_euros():
    euros = section(HEADERS, row("NVIDIA H100", "80GB", "HGX", "<p>€3.60/GPU-hr</p>", CONTACT))
    assert prices(read("crusoe", answer(euros))[0]) == {
        ("NVIDIA H100 80GB HGX", "on_demand"): (Decimal("3.60"), "EUR")
    }


@pytest.mark.parametrize(
    "body",
    [
        PAGE.replace("On-demand", "Price"),
        PAGE.replace(">GPU model<", "><"),
        PAGE.replace("GPU instances pricing</h3>", "Accelerators</h3>"),
        PAGE.replace("pricing-item-heading", "heading"),
        section(HEADERS),
        section(HEADERS) + section(HEADERS),
        PAGE[:900],
    ],
)
def test_another_shape_fails_the_source(body):
    with pytest.raises(SourceChangedError):
        read("crusoe", answer(body))


def test_a_reserved_column_has_the_term_of_its_heading():
    html = page("crusoe", "pricing.html").replace("Current spot", "Reserved (1 year)")
    html = html.replace('<p>$3.90/GPU-hr</p></div><div class="pricing-rich w-richtext"><p>', "@@", 1)
    start = html.index("@@")
    cells = '<p>$3.90/GPU-hr</p></div><div class="pricing-rich"><p>$3.10/GPU-hr</p></div></div></div>'
    html = html[:start] + cells + html[html.index('<div role="listitem"', start) :]
    reserved = [row for row in read("crusoe", answer(html))[0] if row.price_kind == "reserved"]
    assert [(str(row.native_price), row.term_days, row.flag_reason) for row in reserved] == [
        ("3.10", 365, None)
    ]
    without_term = html.replace("Reserved (1 year)", "Reserved")
    (row,) = (row for row in read("crusoe", answer(without_term))[0] if row.price_kind == "reserved")
    assert (row.term_days, row.flag_reason) == (None, "unstated_term")


def test_rows_cut_out_of_their_page_have_the_usual_columns():
    html = page("crusoe", "pricing.html")
    start = html.index('<div role="listitem"')
    row = html[start : html.index('<div role="listitem"', html.index("$4.29"))]
    listings, rejects = read("crusoe", answer(row))
    assert [(r.raw_label, r.price_kind, str(r.native_price)) for r in listings] == [
        ("NVIDIA H200 141GB HGX", "on_demand", "4.29")
    ]
    assert {r.reason for r in rejects} == {"not_offered"}
    _, rejects = read("crusoe", answer(row.replace("$4.29/GPU-hr", "$6.00")))
    assert "unreadable_price" in {r.reason for r in rejects}


def test_an_on_demand_column_of_a_later_day_stands_beside_the_one_of_today():
    headers = ("GPU model", "On-demand", "On-demand (from January 1, 2027)", "Current spot")
    cells = ("<p>$3.90/GPU-hr</p>", "<p>$4.20/GPU-hr</p>", CONTACT)
    html = section(headers, row("NVIDIA H100", "80GB", "HGX", *cells))
    for day, flags in (("2026-11-22", [None, None]), ("2027-01-02", ["superseded", None])):
        listings, _ = read(
            "crusoe", answer(html, observed_at=datetime.fromisoformat(f"{day}T06:00:00+00:00"))
        )
        assert [(str(r.native_price), r.effective_from) for r in listings] == [
            ("3.90", None),
            ("4.20", date(2027, 1, 1)),
        ]
        assert [r.flag_reason for r in listings] == flags
