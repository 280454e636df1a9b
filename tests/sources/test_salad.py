"""Salad's tables and rows: every price is interruptible."""

from tests.sources.edited_pages import each, edited, misread, outcome
from tests.sources.helpers import page, sample

ROWS = sample("salad_rows_2026-05-24.html")
CELLS = "<td>$0.250</td><td>$182.50</td>"
"""The prices of the RTX 4090 in the rows."""


def of_rtx_4090(shown: str) -> str:
    """One row with other texts after the machine's."""
    return f"<table><tr><td>RTX 4090</td><td>24GB</td><td>8GB</td><td>4 vCPUs</td>{shown}</tr></table>"


def cells(texts: str, tag: str = "td") -> str:
    return "".join(f"<{tag}>{text}</{tag}>" for text in texts.split(" "))


def test_a_column_of_months_is_not_a_priority() -> None:
    usual = outcome("salad", page("salad", "pricing.html"), columns="raw_label tier native_price")
    assert ("RTX 4090", "batch", "0.16") in usual
    named = edited("salad", "pricing.html", ("Monthly (Lowest)", "Monthly (Lowest x 730 h)"))
    assert outcome("salad", named, columns="raw_label tier native_price") == usual


def test_rows_without_priorities_have_the_lowest() -> None:
    found = outcome("salad", ROWS, columns="raw_label tier native_price price_kind context ram_gib vcpus")
    assert found[0] == ("GTX 1650", None, "0.02", "spot", {"vram_gb": 4}, 8, 4)
    assert (len(found), found[-1]) == (16, "not_offered")


def test_the_prices_of_a_row_are_known_by_their_size_or_refused() -> None:
    lowest = [(None, "0.25")]
    by_priority = [("batch", "0.25"), ("low", "0.333"), ("medium", "0.417"), ("high", "0.5")]
    cases = [
        *each(["$0.250 $182.50", "$182.50 $0.250", "$0.250 $184.31", "$0.250 $182.50 High"], *lowest),
        *each(["$0.500 $0.417 $0.333 $0.250 $182.50", "$182.50 $0.250 $0.333 $0.417 $0.500"], *by_priority),
        *each(["$0.250 $184.35", "$0.250 $180.60", "$0.250 $0.300", "$0.250 $18.25"], "unreadable_price"),
        *each(["$0.500 $0.417 $0.250 $0.250 $182.50", "$0.500 $0.4 $0.3 $0.2 $240.90"], "unreadable_price"),
        ("$0.250", ["unreadable_row"]),
        ("$0.000 $0.00", ["zero_price"]),
    ]
    for tag in ("td", "i"):
        made = lambda texts, tag=tag: of_rtx_4090(cells(texts, tag))  # noqa: E731
        assert not misread("salad", made, cases, "tier native_price")


def test_a_row_without_a_price_is_not_offered_only_if_stated() -> None:
    cases = [
        *each(["", "Contact sales"], "not_offered"),
        *each(["0.160 116.80", "see the calculator"], "unreadable_row"),
    ]
    assert CELLS in ROWS
    usual = outcome("salad", ROWS)
    for shown, (reason,) in cases:
        found = outcome("salad", ROWS.replace(CELLS, f"<td>{shown}</td>"))
        assert set(usual) - set(found) == {("RTX 4090", "0.25")}
        assert sorted(found[-2:]) == sorted(["not_offered", reason])
