"""Massed Compute's stream: every row twice, cells that come later, and rows that have no price."""

import json

from tests.sources.edited_pages import flight, misread


def row(label: str, count: int, price: str | None, *, card: bool = False, unit: str = "/hr") -> str:
    """Return a row of the stream as a separate line."""
    cell = [f"$${price}", ["$", "small", None, {"children": unit}]] if price else "Request"
    children = [["$", "span", None, {"children": ["×", str(count)]}], ["$", "td", None, {"children": cell}]]
    key = f"{label}{'-mobile' if card else ''}-x {count}-0"
    return json.dumps(["$", "tr", key, {"children": children}], ensure_ascii=False, separators=(",", ":"))


A30 = row("A30 (24GB)", 1, "0.35")
LATER = '7d:["$","td",null,{"children":["$$23.36",["$","small",null,{"children":"/hr"}]]}]'
DEFERRED = '["$","tr","B200 SXM6-x 8-0",{"children":["$L2f","$L30"]}]'


def test_the_copies_of_a_row_are_one_machine_with_one_price() -> None:
    a30, b200 = ("A30 (24GB)", "0.35", 1), ("B200 SXM6", "43.46", 8)
    with_price = row("B200 SXM6", 8, "43.46", card=True)
    cases = [
        ([row("A30 (24GB)", 1, "0.35", card=True), A30], [a30]),
        ([row("A30 (24GB)", 1, "0.36", card=True), A30], ["conflicting_prices"]),
        ([row("A30 (24GB)", 1, "0.35", unit="/ hour")], [a30]),
        ([row("A30 (24GB)", 2, "0.7"), A30], [("A30 (24GB)", "0.7", 2), a30]),
        # A row without a price does not take one that comes later in the stream.
        ([row("H100 (80GB)", 8, None), LATER, A30], [a30, "not_offered"]),
        ([with_price, DEFERRED], [b200]),
        ([DEFERRED, with_price], [b200]),
        ([DEFERRED, LATER, A30], [a30, "missing_field"]),
        ([row("L4", 1, "0.4O")], ["unreadable_price"]),
        ([row("L4", 1, "0.40/hr$2")], ["unreadable_price"]),
        ([row("L4", 1, "0.40", unit="/mo")], ["unknown_unit"]),
        ([row("L4", 0, "0.40")], ["unknown_gpu_count"]),
        ([row("L4", 2, "0.40").replace('×","2', '×","4')], ["conflicting_prices"]),
        ([row("L4", 1, None).replace("Request", "Sold out")], ["not_offered"]),
        (["0:[]"], ["changed: the page's data has no row of a GPU"]),
    ]
    columns = "raw_label native_price gpu_count"
    assert not misread("massedcompute", lambda lines: flight("\n".join(lines)), cases, columns)
