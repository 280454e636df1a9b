"""E2E Networks: a table that a button multiplies, beside the same prices in rupees."""

from decimal import Decimal

import pytest

from pipeline.contracts.listing import Listing, Reject, SourceChangedError
from tests.sources.helpers import answer, page, read
from tests.sources.test_sources import read_sample

PRESSED = "px-4 py-2 bg-cyan-500/20"
OTHER = "px-4 py-2 bg-gray-100"


def changed(*changes: tuple[str, str]) -> tuple[list[Listing], list[Reject]]:
    """Read the page with the changes, each of which must alter it."""
    html = page("e2e", "pricing.html")
    for old, new in changes:
        assert old in html
        html = html.replace(old, new)
    return read("e2e", answer(html))


def test_each_gpu_is_priced_by_the_hour_the_month_and_the_year() -> None:
    offers = [offer for offer in read_sample("e2e").offers if offer.raw_label == "NVIDIA H100"]
    assert [(offer.price_kind, offer.term_days, offer.native_unit) for offer in offers] == [
        ("on_demand", None, "instance_hour"),
        ("reserved", 30, "instance_month"),
        ("reserved", 365, "instance_term"),
    ]
    assert [round(offer.usd_per_gpu_hour, 2) for offer in offers] == [
        Decimal("3.77"),
        Decimal("3.24"),
        Decimal("2.73"),
    ]


def test_memory_tells_two_cards_of_one_name_apart() -> None:
    offers = {offer.usd_per_gpu_hour: offer.gpu_id for offer in read_sample("e2e").offers}
    assert (offers[Decimal("2.1")], offers[Decimal("1.98")]) == ("a100-80gb", "a100-40gb")


@pytest.mark.parametrize(
    "changes",
    [
        # Another number is pressed, so the same table is of machines of that many GPUs.
        [(PRESSED, "a"), (OTHER + '">8<!-- -->x', PRESSED + '">8<!-- -->x'), ('a">1', OTHER + '">1')],
        [(PRESSED, OTHER)],
        [(OTHER, PRESSED)],
        [("Prices are per GPU-hour", "Prices are per hour")],
        [("Prices are per GPU-hour", "Prices are per node")],
        [(">Item<", ">Plan<")],
        [(">Hourly/On-Demand<", ">Price<")],
        [(">Monthly<", ">Quarterly<")],
        [(">Annually<", ">Monthly<")],
        [("<table", "<div"), ("</table>", "</div>")],
        [
            (
                "</table>",
                "</table>" + "<table><thead><tr><th>Item</th><th>vRAM</th><th>Hourly</th></tr></table>",
            )
        ],
    ],
)
def test_a_page_that_may_be_of_other_machines_is_not_read(changes: list[tuple[str, str]]) -> None:
    with pytest.raises(SourceChangedError):
        changed(*changes)


def test_without_buttons_the_line_below_the_table_is_enough() -> None:
    listings, _ = changed(("<button", "<i"), ("</button>", "</i>"))
    assert {row.gpu_count for row in listings} == {1}


def test_rupees_are_never_read() -> None:
    listings, rejects = changed(("$", "₹"))
    assert listings == []
    assert {reject.reason for reject in rejects} == {"unreadable_price"}


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("Contact us", "not_offered"),
        ("$0.00", "zero_price"),
        ("$3.77/min", "unreadable_price"),
        ("3.77", None),
    ],
)
def test_a_cell_without_a_price_leaves_the_other_terms(cell: str, reason: str | None) -> None:
    listings, rejects = changed(("$3.77", cell))
    assert len(listings) == 29
    assert [reject.reason for reject in rejects] == [reason or "unreadable_price"]


def test_a_month_s_price_per_hour_is_not_a_month_s() -> None:
    listings, rejects = changed(("$2,363.01", "$3.24/hr"))
    assert len(listings) == 29
    assert [reject.reason for reject in rejects] == ["unreadable_price"]


@pytest.mark.parametrize(
    ("label", "reason"), [("", "missing_field"), ("8x NVIDIA H100", "unknown_gpu_count")]
)
def test_a_row_that_is_not_of_one_known_gpu_is_rejected(label: str, reason: str) -> None:
    listings, rejects = changed((">NVIDIA H100<", f">{label}<"))
    assert len(listings) == 27
    assert {reject.reason for reject in rejects} == {reason}


def test_a_new_column_of_prices_is_counted() -> None:
    html = page("e2e", "pricing.html").replace("Annually</th>", "Annually</th><th>Weekly</th>")
    listings, rejects = read("e2e", answer(html.replace("</td></tr>", "</td><td>$1.00</td></tr>")))
    assert len(listings) == 30
    assert {reject.reason for reject in rejects} == {"unknown_price_kind"}


def test_a_row_of_another_width_is_counted() -> None:
    listings, rejects = changed(("$55,089.45</span></td></tr>", "$55,089.45</span></td><td>new</td></tr>"))
    assert len(listings) == 27
    assert [reject.reason for reject in rejects] == ["unreadable_row"]
