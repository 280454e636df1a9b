"""Together: the cluster table among its hidden copy and the look-alike of another product."""

from decimal import Decimal

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Listing, ReaderWarning, Reject, SourceChangedError
from pipeline.sources import source_module

from .helpers import answer, page, read

PAGE = page("together", "pricing.html")


def section(table):
    anchors = [f'<div id="{name}" class="section-anchor"></div>' for name in ("gpu-clusters", "sandbox")]
    return f"<html><body>{anchors[0]}{table}{anchors[1]}</body></html>"


def table(headers, *rows, tag="<table>"):
    heads = "".join(f"<th>{header}</th>" for header in headers)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"{tag}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def prices(listings):
    return {(r.raw_label, r.price_kind, r.term_days): (r.native_price, r.native_currency) for r in listings}


def test_only_the_visible_cluster_table_is_read():
    listings, rejects = read("together", answer(PAGE))
    found = prices(listings)
    assert len(listings) == 13
    assert found["NVIDIA HGX H100", "on_demand", None][0] == Decimal("3.99")
    assert found["NVIDIA HGX H100", "spot", None][0] == Decimal("1.99")
    assert found["NVIDIA HGX H100", "reserved", 31][0] == Decimal("3.45")
    assert found["NVIDIA HGX B200", "reserved", 91][0] == Decimal("6.79")
    assert [r.reason for r in rejects] == ["not_offered"] * 23


@pytest.mark.parametrize(
    ("card", "smallest"), [("HGX H100", 8), ("HGX H200", 256), ("HGX B200", 256), ("GB200 NVL72", 512)]
)
def test_a_reservation_has_the_smallest_size_of_its_card(card, smallest):
    text = section(
        table(["Hardware", "On-demand", "Reserved 7-30 days"], [f"NVIDIA {card}", "$3.99", "$3.69"])
    )
    (on_demand, reserved), rejects = read("together", answer(text))
    assert rejects == []
    assert (on_demand.min_gpu_count, reserved.min_gpu_count) == (None, smallest)


def test_a_reservation_whose_smallest_size_is_unknown_is_rejected():
    text = section(table(["Hardware", "On-demand", "Reserved 7-30 days"], ["NVIDIA HGX B300", "$9", "$8"]))
    (row,), rejects = read("together", answer(text))
    assert row.price_kind == "on_demand"
    assert [reject.reason for reject in rejects] == ["unknown_terms"]


def test_the_hidden_copy_does_not_matter():
    changed = PAGE.replace('<div class="hide"><div class="u-mb-64">', '<div hidden><div class="u-mb-64">')
    assert prices(read("together", answer(changed))[0]) == prices(read("together", answer(PAGE))[0])


@pytest.mark.parametrize("caption", ["Preemptible", "Pre-emptible Pay as you go", "PREEMPTIBLE"])
def test_a_preemptible_price_is_spot(caption):
    rows = ["NVIDIA HGX H100", "$3.99", "$1.99", "$3.19"], ["NVIDIA HGX B200", "$8.19", "—", "$6.79"]
    text = section(table(["Hardware", "On-demand", caption, "Reserved 91-180 days"], *rows))
    listings, rejects = read("together", answer(text))
    assert prices(listings) == {
        ("NVIDIA HGX H100", "on_demand", None): (Decimal("3.99"), "USD"),
        ("NVIDIA HGX H100", "spot", None): (Decimal("1.99"), "USD"),
        ("NVIDIA HGX H100", "reserved", 91): (Decimal("3.19"), "USD"),
        ("NVIDIA HGX B200", "on_demand", None): (Decimal("8.19"), "USD"),
        ("NVIDIA HGX B200", "reserved", 91): (Decimal("6.79"), "USD"),
    }
    assert [reject.reason for reject in rejects] == ["not_offered"]


def test_renamed_column_is_skipped_and_the_rest_is_read():
    renamed = PAGE.replace("Preemptible", "Interruptible")
    rows = list(source_module("together").read([answer(renamed)], source_config("together")))
    found = prices([row for row in rows if isinstance(row, Listing)])
    usual = prices(read("together", answer(PAGE))[0])
    assert found == {key: price for key, price in usual.items() if key[1] != "spot"}
    unread = [row for row in rows if isinstance(row, Reject) and row.reason == "unknown_price_kind"]
    assert len(unread) == len(usual) - len(found) > 0
    warnings = [row.text for row in rows if isinstance(row, ReaderWarning)]
    assert any("Interruptible Pay as you go" in text for text in warnings)


def test_two_visible_tables_are_not_chosen_between():
    with pytest.raises(SourceChangedError, match="found 2"):
        read("together", answer(PAGE.replace('class="hide"', "")))


def test_columns_move_and_terms_change():
    moved = table(
        ("181+ days", "Pay as you go", "Hardware", "1-3 months", "Region", "Surge"),
        ("from $2.49*", "$\u00a03.99<sup>2</sup>", "NVIDIA  HGX\u00a0H100", "$3.69", "Global", "$9.99"),
    )
    listings, rejects = read("together", answer(section(moved)))
    assert prices(listings) == {
        ("NVIDIA HGX H100", "on_demand", None): (Decimal("3.99"), "USD"),
        ("NVIDIA HGX H100", "reserved", 30): (Decimal("3.69"), "USD"),
        ("NVIDIA HGX H100", "reserved", 181): (Decimal("2.49"), "USD"),
    }
    assert [r.reason for r in rejects] == ["unknown_price_kind"]


def test_a_price_that_spans_columns_is_not_given_to_any():
    spanning = (
        "<table><tr><th>Hardware</th><th>On-Demand</th><th>7-30 days</th><th>31-90 days</th></tr>"
        '<tr><td>NVIDIA HGX H100</td><td>$3.99</td><td colspan="2">$3.45</td></tr>'
        '<tr><td>NVIDIA HGX H200</td><td>—</td><td colspan="2">Contact us</td></tr></table>'
    )
    listings, rejects = read("together", answer(section(spanning)))
    assert prices(listings) == {("NVIDIA HGX H100", "on_demand", None): (Decimal("3.99"), "USD")}
    assert [r.reason for r in rejects] == ["unreadable_price"] * 2 + ["not_offered"] * 3


def test_rows_with_cells_missing_unreadable_or_in_euros():
    odd = table(
        ("Hardware", "On-Demand", "7-30 days"),
        ("NVIDIA HGX H100", "$3.99"),
        ("NVIDIA HGX H200", "€5.20", "call"),
        ("NVIDIA HGX B200", "$0.00", "$7.99/day"),
    )
    listings, rejects = read("together", answer(section(odd)))
    assert prices(listings) == {("NVIDIA HGX H200", "on_demand", None): (Decimal("5.20"), "EUR")}
    assert [r.reason for r in rejects] == [
        "unreadable_row",
        "unreadable_price",
        "zero_price",
        "unreadable_price",
    ]


@pytest.mark.parametrize(
    "body",
    [
        PAGE.replace('id="gpu-clusters"', 'id="clusters"'),
        PAGE.replace("Pay as you go", "Hourly").replace("ON-Demand", "Rate"),
        PAGE.replace("Hardware", "Product"),
        section("<p>Contact us</p>"),
        section(table(("Hardware", "On-Demand"))),
        section(table(("Hardware", "On-Demand", "On-Demand (new)"), ("NVIDIA HGX H100", "$3.99", "$4.99"))),
        PAGE[: PAGE.index("On-demand hourly rates")],
        '{"prices": []}',
    ],
)
def test_another_shape_fails_the_source(body):
    with pytest.raises(SourceChangedError):
        read("together", answer(body))


def test_a_hidden_copy_of_the_whole_section_is_not_read():
    html = page("together", "pricing.html")
    body = html[html.index("<body>") + 6 : html.index("</body>")]
    hidden = f'<div style="display: none">{body.replace("$3.99", "$9.99")}</div></body>'
    usual, _ = read("together", answer(html))
    listings, _ = read("together", answer(html.replace("</body>", hidden)))
    assert [row.native_price for row in listings] == [row.native_price for row in usual]
