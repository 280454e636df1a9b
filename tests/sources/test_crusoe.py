"""Crusoe: "Contact sales" cells keep their place in any surroundings."""

from datetime import date, datetime
from decimal import Decimal

import pytest

from pipeline.contracts.listing import Listing, SourceChangedError
from tests.sources.helpers import answer, page, read

PAGE = page("crusoe", "pricing.html")
CONTACT = '<p><a href="/contact-sales">Contact sales</a></p>'
HEADERS = ("GPU model", "On-demand", "Current spot")
H100 = "NVIDIA H100 80GB HGX"


def row(name: str, vram: str, form: str, *prices: str) -> str:
    cells = "".join(f'<div class="pricing-rich w-richtext">{price}</div>' for price in prices)
    return (
        f'<div role="listitem" class="prixing-item"><h4 class="pricing-item-heading">{name}</h4>'
        f'<div class="pricing-tag is-dark">{vram}</div><div class="pricing-tag">{form}</div>{cells}</div>'
    )


def section(headers: tuple[str, ...], *rows: str) -> str:
    heads = "".join(f'<div class="pricing-heading is-d">{header}</div>' for header in headers)
    return (
        f"<html><body><h3>GPU&nbsp;instances pricing</h3>{heads}{''.join(rows)}"
        f"<h3>CPU instances pricing</h3>{row('CPU', '', '', '<p>$0.04/vCPU-hr</p>')}</body></html>"
    )


def h100(*prices: str) -> str:
    return row("NVIDIA H100", "80GB", "HGX", *prices)


def prices(listings: list[Listing]) -> dict[tuple[str, str], tuple[Decimal, str]]:
    return {(r.raw_label, r.price_kind): (r.native_price, r.native_currency) for r in listings}


def test_a_new_contact_sales_row_changes_no_other_row() -> None:
    before = prices(read("crusoe", answer(PAGE))[0])
    h200 = "NVIDIA H200 141GB HGX", "on_demand"
    assert before[h200] == (Decimal("4.29"), "USD")
    after = prices(read("crusoe", answer(PAGE.replace("<p>$4.29/GPU-hr</p>", CONTACT)))[0])
    assert after == {key: price for key, price in before.items() if key != h200}


def test_spot_prices_appear_and_columns_swap() -> None:
    swapped = section(
        ("GPU model", "Current spot", "On-demand"),
        h100("<p>$1.95/GPU-hr</p>", "<p>$\u00a03.90 /GPU-hr<sup>1</sup></p>"),
        row("NVIDIA B200", "180GB", "HGX", CONTACT, "<p>from €6.00/GPU-hr*</p>"),
    )
    listings, rejects = read("crusoe", answer(swapped))
    assert prices(listings) == {
        (H100, "spot"): (Decimal("1.95"), "USD"),
        (H100, "on_demand"): (Decimal("3.90"), "USD"),
        ("NVIDIA B200 180GB HGX", "on_demand"): (Decimal("6.00"), "EUR"),
    }
    assert [r.reason for r in rejects] == ["not_offered"]


def test_a_price_in_an_unknown_column_is_a_reject() -> None:
    headers = ("GPU model", "On-demand", "Availability", "Interruptible")
    wider = section(headers, h100("<p>$3.90/GPU-hr</p>", "<p>High</p>", "<p>$1.95</p>"))
    listings, rejects = read("crusoe", answer(wider))
    assert prices(listings) == {(H100, "on_demand"): (Decimal("3.90"), "USD")}
    assert [r.reason for r in rejects] == ["unknown_price_kind"]


def test_no_price_where_none_can_be_read() -> None:
    for cells, reasons in (
        (("<p>$3.90/vCPU-hr</p>", CONTACT), ["unreadable_price", "not_offered"]),
        (("<p>—</p>", ""), ["not_offered", "not_offered"]),
        (("<p>$3.90/GPU-hr</p>",), ["unreadable_row"]),
    ):
        listings, rejects = read("crusoe", answer(section(HEADERS, h100(*cells))))
        assert (listings, [r.reason for r in rejects]) == ([], reasons)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (section(("Region", *HEADERS), h100("x", "$1", CONTACT)), "the GPU model is not the first column"),
        (PAGE.replace("GPU instances pricing</h3>", "Accelerators</h3>"), "exactly one heading"),
        (section(HEADERS) + section(HEADERS), "exactly one heading"),
        (PAGE.replace("pricing-item-heading", "heading"), "the GPU section has no rows"),
        (section(HEADERS), "the GPU section has no rows"),
        (PAGE[:900], "truncated"),
    ],
)
def test_another_shape_fails_the_source(body: str, problem: str) -> None:
    with pytest.raises(SourceChangedError, match=problem):
        read("crusoe", answer(body))


def test_a_reserved_column_has_the_term_of_its_heading() -> None:
    for heading, term, flag in (("Reserved (1 year)", 365, None), ("Reserved", None, "unstated_term")):
        cells = ("<p>$3.90/GPU-hr</p>", "<p>$3.10/GPU-hr</p>")
        listings, _ = read("crusoe", answer(section(("GPU model", "On-demand", heading), h100(*cells))))
        found = [(r.price_kind, str(r.native_price), r.term_days, r.flag_reason) for r in listings]
        assert found == [("on_demand", "3.90", None, None), ("reserved", "3.10", term, flag)]


def test_rows_cut_out_of_their_page_have_the_usual_columns() -> None:
    start = PAGE.index('<div role="listitem"')
    rows = PAGE[start : PAGE.index('<div role="listitem"', PAGE.index("$4.29"))]
    listings, rejects = read("crusoe", answer(rows))
    assert prices(listings) == {("NVIDIA H200 141GB HGX", "on_demand"): (Decimal("4.29"), "USD")}
    assert {r.reason for r in rejects} == {"not_offered"}
    _, rejects = read("crusoe", answer(rows.replace("$4.29/GPU-hr", "$6.00")))
    assert "unreadable_price" in {r.reason for r in rejects}


def test_an_on_demand_column_of_a_later_day_stands_beside_the_one_of_today() -> None:
    headers = ("GPU model", "On-demand", "On-demand (from January 1, 2027)", "Current spot")
    html = section(headers, h100("<p>$3.90/GPU-hr</p>", "<p>$4.20/GPU-hr</p>", CONTACT))
    for day, flag in (("2026-11-22", None), ("2027-01-02", "superseded")):
        observed_at = datetime.fromisoformat(f"{day}T06:00:00+00:00")
        listings, _ = read("crusoe", answer(html, observed_at=observed_at))
        found = [(str(r.native_price), r.effective_from, r.flag_reason) for r in listings]
        assert found == [("3.90", None, flag), ("4.20", date(2027, 1, 1), None)]
