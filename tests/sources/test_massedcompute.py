"""Massed Compute's stream: every row twice, cells that come later, and rows that have no price."""

import json
from decimal import Decimal

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.captures import capture
from tests.sources.helpers import answer, page, read


def row(label: str, count: int, price: str | None, *, card: bool = False, unit: str = "/hr") -> str:
    """Return a row of the stream as a separate line."""
    cell = [f"$${price}", ["$", "small", None, {"children": unit}]] if price else "Request"
    children = [["$", "span", None, {"children": ["×", str(count)]}], ["$", "td", None, {"children": cell}]]
    key = f"{label}{'-mobile' if card else ''}-x {count}-0"
    return json.dumps(["$", "tr", key, {"children": children}], ensure_ascii=False, separators=(",", ":"))


def stream(*lines: str, piece: int = 80) -> str:
    """A page with the lines in pieces, which end anywhere."""
    text = "\n".join(lines)
    pieces = [text[at : at + piece] for at in range(0, len(text), piece)]
    scripts = [f"<script>self.__next_f.push([1,{json.dumps(part)}])</script>" for part in pieces]
    return f"<html><body>{''.join(scripts)}</body></html>"


A30 = row("A30 (24GB)", 1, "0.35")


def test_the_captured_rows_are_read() -> None:
    listings, rejects = read("massedcompute", answer(capture("massedcompute_pricing_rsc_2026-08-22.txt")))
    assert [(row.raw_label, row.gpu_count, row.native_price, row.vcpus, row.ram_gib) for row in listings] == [
        ("B300 SXM6", 8, Decimal("52.80"), 280, 2800),
        ("B200 SXM6", 8, Decimal("43.46"), 280, 2800),
        ("RTX PRO 6000 Blackwell (96GB)", 1, Decimal("2.19"), 16, 144),
        ("H200 NVL (141GB)", 1, Decimal("3.62"), 16, 180),
        ("H200 NVL (141GB) NVLink", 4, Decimal("15.28"), 62, 720),
        ("RTX PRO 4500 Blackwell (32GB)", 1, Decimal("0.92"), 16, 74),
        ("H100 (80GB)", 1, Decimal("2.73"), 16, 128),
    ]
    assert rejects == []


def test_both_copies_of_a_row_are_one_offer() -> None:
    listings, rejects = read("massedcompute", answer(stream(row("A30 (24GB)", 1, "0.35", card=True), A30)))
    assert [(row.raw_label, row.native_price) for row in listings] == [("A30 (24GB)", Decimal("0.35"))]
    assert rejects == []


def test_copies_that_disagree_are_rejected() -> None:
    other = row("H100 (80GB)", 1, "2.99", card=True)
    listings, rejects = read("massedcompute", answer(stream(row("H100 (80GB)", 1, "2.73"), other, A30)))
    assert [row.raw_label for row in listings] == ["A30 (24GB)"]
    assert [reject.reason for reject in rejects] == ["conflicting_prices"]


def test_a_row_without_a_price_does_not_take_one_that_comes_later() -> None:
    later = '7d:["$","td",null,{"children":["$$23.36",["$","small",null,{"children":"/hr"}]]}]'
    text = stream(row("H100 (80GB)", 8, None), later, A30)
    listings, rejects = read("massedcompute", answer(text))
    assert [row.raw_label for row in listings] == ["A30 (24GB)"]
    assert [reject.reason for reject in rejects] == ["not_offered"]


def test_a_copy_whose_cells_come_later_leaves_the_price_to_the_other_one() -> None:
    deferred = '["$","tr","B200 SXM6-x 8-0",{"children":["$L2f","$L30"]}]'
    with_price = row("B200 SXM6", 8, "43.46", card=True)
    for lines in ([with_price, deferred], [deferred, with_price]):
        listings, rejects = read("massedcompute", answer(stream(*lines)))
        assert [(row.gpu_count, row.native_price) for row in listings] == [(8, Decimal("43.46"))]
        assert rejects == []
    listings, rejects = read("massedcompute", answer(stream(deferred, A30)))
    assert [row.raw_label for row in listings] == ["A30 (24GB)"]
    assert [reject.reason for reject in rejects] == ["missing_field"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (row("L4", 1, "0.4O"), "unreadable_price"),
        (row("L4", 1, "0.40/hr$2"), "unreadable_price"),
        (row("L4", 1, "0"), "zero_price"),
        (row("L4", 1, "0.40", unit="/mo"), "unknown_unit"),
        (row("L4", 0, "0.40"), "unknown_gpu_count"),
        (row("L4", 2, "0.40").replace('×","2', '×","4'), "conflicting_prices"),
    ],
)
def test_a_row_that_is_not_certain_is_rejected(line: str, reason: str) -> None:
    listings, rejects = read("massedcompute", answer(stream(line, A30)))
    assert [row.raw_label for row in listings] == ["A30 (24GB)"]
    assert [reject.reason for reject in rejects] == [reason]


@pytest.mark.parametrize("body", ['<script>self.__next_f.push([1,"\\"a\\u00\\""])</script>'])
def test_a_page_without_rows_is_a_change(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("massedcompute", answer(body))


def test_the_sample_page() -> None:
    listings, rejects = read("massedcompute", answer(page("massedcompute", "pricing.html")))
    assert len(listings) == 17
    assert [reject.reason for reject in rejects] == ["not_offered"]
