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


def test_a_moved_column_is_followed() -> None:
    """Spot before the mobile copy and on-demand after it, header and cells alike."""
    row = PAGE[PAGE.index('<div role="listitem"', PAGE.index("NVIDIA L40S") - 400) :]
    row = row[: row.index("</div></div></div>\n")]
    row = row.replace("$18.00", "@@", 1).replace("<div>$7.88</div>", "<div>$18.00</div>", 1)
    before = PAGE[: PAGE.index('<div role="listitem"')]
    only = f"{before}{row.replace('@@', '$7.88', 1)}{'</div>' * 6}</section></body></html>"
    found = outcome("coreweave", with_swapped_headers(only), columns="price_kind native_price")
    assert found == [("spot", "7.88"), ("on_demand", "18")]


def test_cpu_tables_have_the_gpu_tables_classes_and_are_passed_over() -> None:
    heads, cells = (
        "".join(f'<div class="table-v2-cell">{text}</div>' for text in texts)
        for texts in (("CPU Model", "vCPUs", "On-Demand Price (Per Hour)"), ("AMD Turin", "384", "$7.54"))
    )
    cpus = (
        '<div class="table-v2 gpu-pricing"><div class="table-v2-header"><div class="table-grid">'
        f'{heads}</div></div><div role="listitem"><div class="table-grid">{cells}</div></div></div>'
    )
    with_cpus = PAGE.replace("</body>", f"{cpus}</body>")
    assert outcome("coreweave", with_cpus) == outcome("coreweave", PAGE)
