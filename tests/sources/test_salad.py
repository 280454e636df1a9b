"""Salad's tables and rows: every price is interruptible."""

from decimal import Decimal

import pytest

from pipeline.contracts.listing import Listing, SourceChangedError
from tests.sources.helpers import answer, page, read, sample

HEADED = """<table><tr><th>GPU</th><th>VRAM</th><th>RAM</th><th>vCPU</th><th>$/hour</th><th>$/month</th></tr>
<tr><td>RTX 4090</td><td>24GB</td><td>8GB</td><td>4 vCPUs</td><td>$0.160</td><td>$116.80</td></tr></table>"""


def prices(listings: list[Listing]) -> dict[tuple[str, str | None], Decimal]:
    return {(row.raw_label, row.tier): row.native_price for row in listings}


def variant(old: str, new: str) -> str:
    text = sample("salad_rows_2026-05-24.html")
    assert old in text
    return text.replace(old, new)


def test_each_priority_has_its_price() -> None:
    listings, rejects = read("salad", answer(page("salad", "pricing.html")))
    assert len(listings) == 4 * 15
    assert {row.price_kind for row in listings} == {"spot"}
    found = prices(listings)
    assert [str(found["RTX 4090", tier]) for tier in ("high", "medium", "low", "batch")] == [
        "0.330",
        "0.273",
        "0.217",
        "0.160",
    ]
    assert [reject.reason for reject in rejects] == ["not_offered"] * 4


def test_monthly_prices_are_not_a_priority() -> None:
    text = page("salad", "pricing.html").replace("Monthly (Lowest)", "Monthly (Lowest x 730 h)")
    listings, _ = read("salad", answer(text))
    assert prices(listings)["RTX 4090", "batch"] == Decimal("0.160")
    assert len(listings) == 4 * 15


@pytest.mark.parametrize("order", ["0.500 0.417 0.333 0.250 182.50", "182.50 0.250 0.333 0.417 0.500"])
@pytest.mark.parametrize("tag", ["td", "i"])
def test_four_prices_without_headers_are_ordered_by_priority(order: str, tag: str) -> None:
    shown = "".join(f"<{tag}>${amount}</{tag}>" for amount in order.split())
    machine = "".join(f"<{tag}>{text}</{tag}>" for text in ("RTX 5090", "32GB", "8GB", "4 vCPUs"))
    block = f"<table><tr>{machine}{shown}</tr></table>" if tag == "td" else f"<div>{machine}{shown}</div>"
    listings, rejects = read("salad", answer(block))
    assert not rejects
    assert {tier: str(price) for (_, tier), price in prices(listings).items()} == {
        "batch": "0.250",
        "low": "0.333",
        "medium": "0.417",
        "high": "0.500",
    }


@pytest.mark.parametrize("shown", ["0.500 0.417 0.250 0.250 182.50", "0.500 0.417 0.333 0.250 240.90"])
def test_four_prices_that_do_not_fit_are_refused(shown: str) -> None:
    cells = "".join(f"<td>${amount}</td>" for amount in shown.split())
    good = (
        "<tr><td>RTX 4090</td><td>24GB</td><td>8GB</td><td>4 vCPUs</td><td>$0.160</td><td>$116.80</td></tr>"
    )
    row = f"<tr><td>RTX 5090</td><td>32GB</td><td>8GB</td><td>4 vCPUs</td>{cells}</tr>"
    listings, rejects = read("salad", answer(f"<table>{good}{row}</table>"))
    assert [row.raw_label for row in listings] == ["RTX 4090"]
    assert [reject.reason for reject in rejects] == ["unreadable_price"]


def test_rows_without_priorities_have_the_lowest() -> None:
    listings, rejects = read("salad", answer(sample("salad_rows_2026-05-24.html")))
    assert len(listings) == 15
    assert {row.price_kind for row in listings} == {"spot"}
    assert prices(listings)["RTX 4090", None] == Decimal("0.250")
    assert (listings[0].context, listings[0].ram_gib, listings[0].vcpus) == ({"vram_gb": 4}, 8, 4)
    assert [reject.reason for reject in rejects] == ["not_offered"]


def test_the_monthly_price_is_known_by_its_size() -> None:
    text = variant("<td>$0.250</td><td>$182.50</td>", "<td>$182.50</td><td>$0.250</td>")
    listings, _ = read("salad", answer(text))
    assert prices(listings)["RTX 4090", None] == Decimal("0.250")


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        ("<td>$0.250</td><td>$0.300</td>", "unreadable_price"),
        ("<td>$0.250</td><td>$18.25</td>", "unreadable_price"),
        ("<td>$0.250</td>", "unreadable_row"),
        ("<td>$0.000</td><td>$0.00</td>", "zero_price"),
    ],
)
def test_prices_that_do_not_fit_are_rejected(shown: str, reason: str) -> None:
    listings, rejects = read("salad", answer(variant("<td>$0.250</td><td>$182.50</td>", shown)))
    assert ("RTX 4090", None) not in prices(listings)
    assert len(listings) == 14
    assert reason in [reject.reason for reject in rejects]


def test_a_table_with_headers() -> None:
    listings, rejects = read("salad", answer(HEADED))
    assert not rejects
    assert prices(listings) == {("RTX 4090", None): Decimal("0.160")}
    assert listings[0].context == {"vram_gb": 24}


def test_columns_moved_and_priorities_named() -> None:
    text = """<table><thead><tr><th>High</th><th>Batch priority</th><th>Monthly</th><th>GPU</th></tr></thead>
    <tr><td>$0.30</td><td>$0.16</td><td>$116.80</td><td>RTX 4090</td></tr>
    <tr><td>N/A</td><td>$0.10</td><td>$73.00</td><td>RTX 3090</td></tr></table>"""
    listings, rejects = read("salad", answer(text))
    assert prices(listings) == {
        ("RTX 4090", "batch"): Decimal("0.16"),
        ("RTX 4090", "high"): Decimal("0.30"),
        ("RTX 3090", "batch"): Decimal("0.10"),
    }
    assert [reject.reason for reject in rejects] == ["not_offered"]


def test_rows_in_blocks() -> None:
    blocks = """<div><div><b>RTX 5090</b><i>32GB</i><i>8GB</i><i>4 vCPUs</i><i>$0.250</i><i>$182.50</i></div>
    <div><b>RTX 4090</b><i>24GB</i><i>8GB</i><i>4 vCPUs</i><i>$0.160</i><i>$116.80</i></div></div>"""
    listings, rejects = read("salad", answer(blocks))
    assert not rejects
    assert prices(listings) == {("RTX 5090", None): Decimal("0.250"), ("RTX 4090", None): Decimal("0.160")}


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        ("", "not_offered"),
        ("Contact sales", "not_offered"),
        ("0.160 116.80", "unreadable_row"),
        ("see the calculator", "unreadable_row"),
    ],
)
def test_a_row_without_a_price_is_not_offered_only_if_stated(shown: str, reason: str) -> None:
    listings, rejects = read("salad", answer(variant("<td>$0.250</td><td>$182.50</td>", f"<td>{shown}</td>")))
    assert ("RTX 4090", None) not in prices(listings)
    assert [reject.reason for reject in rejects if "RTX 4090" in reject.detail] == [reason]


@pytest.mark.parametrize(
    "body",
    [
        "<html><body><div id='root'></div></body></html>",
        HEADED.replace("$/hour", "Amount"),
        '{"items": [',
        '{"items": []}',
    ],
)
def test_a_page_without_gpus_counts_as_changed(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("salad", answer(body))


def test_a_new_column_in_a_table_without_headers_costs_nothing() -> None:
    row = "<td>RTX 4090</td><td>24GB</td><td>8GB</td><td>4 vCPUs</td><td>$0.160</td><td>$116.80</td>"
    listings, rejects = read("salad", answer(f"<table><tr>{row}<td>High</td></tr></table>"))
    assert [(r.raw_label, str(r.native_price), r.context) for r in listings] == [
        ("RTX 4090", "0.160", {"vram_gb": 24.0})
    ]
    assert rejects == []
