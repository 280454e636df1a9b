"""E2E Networks: a table that a button multiplies, beside the same prices in rupees."""

import pytest

from tests.sources.edited_pages import edited, outcome

PRESSED = "px-4 py-2 bg-cyan-500/20"
OTHER = "px-4 py-2 bg-gray-100"
THIRD_TABLE = "<table><thead><tr><th>Item</th><th>vRAM</th><th>Hourly</th></tr></table>"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        # Eight is pressed, so the same table is of machines of eight GPUs.
        (
            [(PRESSED, "a"), (OTHER + '">8<!-- -->x', PRESSED + '">8<!-- -->x'), ('a">1', OTHER + '">1')],
            "of the numbers of GPUs, ['8'] are pressed",
        ),
        ([(PRESSED, OTHER)], "of the numbers of GPUs, [] are pressed"),
        ([("Prices are per GPU-hour", "Prices are per hour")], "the page does not say that prices are per G"),
        ([("Prices are per GPU-hour", "Prices are per node")], "the page does not say that prices are per G"),
        ([(">Item<", ">Plan<")], "0 tables of GPUs"),
        ([(">Monthly<", ">Quarterly<")], ""),
        ([(">Annually<", ">Monthly<")], ""),
        ([("</table>", "</table>" + THIRD_TABLE)], "2 tables of GPUs"),
    ],
)
def test_a_page_that_may_be_of_other_machines_is_not_read(
    changes: list[tuple[str, str]], problem: str
) -> None:
    (found,) = outcome("e2e", edited("e2e", "pricing.html", *changes))
    assert found.startswith(f"changed: {problem}")


def test_without_buttons_the_line_below_the_table_is_enough() -> None:
    bare = edited("e2e", "pricing.html", ("<button", "<i"), ("</button>", "</i>"))
    found = outcome("e2e", bare, columns="gpu_count")
    assert found == [1] * 30


def test_a_new_column_of_prices_and_a_row_of_another_width_are_counted() -> None:
    weekly = ("Annually</th>", "Annually</th><th>Weekly</th>"), ("</td></tr>", "</td><td>$1.00</td></tr>")
    found = outcome("e2e", edited("e2e", "pricing.html", *weekly), columns="raw_label")
    assert found[30:] == ["unknown_price_kind"] * 10
    wider = edited("e2e", "pricing.html", ("$55,089.45</span></td>", "$55,089.45</span></td><td>new</td>"))
    assert outcome("e2e", wider, columns="raw_label")[27:] == ["unreadable_row"]
