"""CoreWeave's tables of ``<div>``: columns by their headers, and the copy of each price for small screens."""

from tests.sources.edited_pages import outcome
from tests.sources.helpers import page

PAGE = page("coreweave", "pricing.html")


def with_swapped_headers(text: str) -> str:
    """The headers of on-demand and spot prices in each other's place."""
    on_demand, spot = "On-Demand Price (Per Hour)", "Spot Price (Per Hour)"
    return text.replace(on_demand, "@@").replace(spot, on_demand).replace("@@", spot)


def test_a_table_without_its_own_header_has_the_columns_of_the_one_before() -> None:
    start = PAGE.index('<div class="table-v2-header">', PAGE.index("REGION: EUROPE"))
    end = PAGE.index('<div class="table-v2-body">', start)
    assert outcome("coreweave", PAGE[:start] + PAGE[end:]) == outcome("coreweave", PAGE)


def test_headers_swapped_against_their_cells_are_caught_by_the_mobile_copy() -> None:
    assert set(outcome("coreweave", with_swapped_headers(PAGE))) == {"conflicting_prices", "not_offered"}
