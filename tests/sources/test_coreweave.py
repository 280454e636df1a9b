"""CoreWeave's tables of ``<div>``: columns by their headers, and the copy of each price for small screens."""

import pytest

from pipeline.contracts.listing import Listing, SourceChangedError
from tests.sources.helpers import answer, page, read

PAGE = page("coreweave", "pricing.html")
COUNT = '<div class="table-v2-cell"><div>{}</div></div>'


def short(listings: list[Listing]) -> list[tuple[object, ...]]:
    return [
        (row.raw_label, row.gpu_count, row.price_kind, row.region, str(row.native_price)) for row in listings
    ]


def with_swapped_headers(text: str) -> str:
    """The headers of on-demand and spot prices in each other's place."""
    on_demand, spot = "On-Demand Price (Per Hour)", "Spot Price (Per Hour)"
    return text.replace(on_demand, "@@").replace(spot, on_demand).replace("@@", spot)


def test_a_table_without_its_own_header_has_the_columns_of_the_one_before() -> None:
    start = PAGE.index('<div class="table-v2-header">', PAGE.index("REGION: EUROPE"))
    end = PAGE.index('<div class="table-v2-body">', start)
    listings, _ = read("coreweave", answer(PAGE[:start] + PAGE[end:]))
    assert short(listings)[-1] == ("NVIDIA HGX H100", 8, "on_demand", "EUROPE", "49.24")
    assert len(listings) == 15


def test_headers_swapped_against_their_cells_are_caught_by_the_mobile_copy() -> None:
    listings, rejects = read("coreweave", answer(with_swapped_headers(PAGE)))
    assert listings == []
    assert {r.reason for r in rejects} == {"conflicting_prices", "not_offered"}


def test_a_moved_column_is_followed() -> None:
    """Spot before the mobile copy and on-demand after it, header and cells alike."""
    row = PAGE[PAGE.index('<div role="listitem"', PAGE.index("NVIDIA L40S") - 400) :]
    row = row[: row.index("</div></div></div>\n")]
    row = row.replace("$18.00", "@@", 1).replace("<div>$7.88</div>", "<div>$18.00</div>", 1)
    before = PAGE[: PAGE.index('<div role="listitem"')]
    only = f"{before}{row.replace('@@', '$7.88', 1)}{'</div>' * 6}</section></body></html>"
    listings, _ = read("coreweave", answer(with_swapped_headers(only)))
    found = [(listing.price_kind, str(listing.native_price)) for listing in listings]
    assert found == [("spot", "7.88"), ("on_demand", "18.00")]


def test_a_price_that_is_not_offered_shifts_nothing() -> None:
    start = PAGE.index('data-product="hgx-h100"')
    for shown in ("Contact sales", "—", ""):
        changed = PAGE[:start] + PAGE[start:].replace("$49.24", shown, 2)
        listings, _ = read("coreweave", answer(changed))
        found = [row for row in short(listings) if row[0] == "NVIDIA HGX H100" and row[3] == "NORTH AMERICA"]
        assert found == [("NVIDIA HGX H100", 8, "spot", "NORTH AMERICA", "19.71")]
        assert ("NVIDIA HGX H200", 8, "on_demand", "NORTH AMERICA", "50.44") in short(listings)


def test_footnotes_of_a_count_are_not_digits_and_other_texts_are_refused() -> None:
    for shown in ("8¹", "8<sup>2</sup>", "8*", "8^1"):
        listings, _ = read("coreweave", answer(PAGE.replace(COUNT.format("8"), COUNT.format(shown))))
        assert {row.gpu_count for row in listings} == {4, 8}
    for shown in ("eight", "8 to 16"):
        listings, rejects = read("coreweave", answer(PAGE.replace(COUNT.format("8"), COUNT.format(shown))))
        assert short(listings) == [("NVIDIA GB200 NVL72", 4, "on_demand", "NORTH AMERICA", "42.00")]
        assert sum(r.reason == "unknown_gpu_count" for r in rejects) == 14


def test_the_mobile_copy_must_agree() -> None:
    copied = '<span class="item-value">$68.80</span>'
    assert copied in PAGE
    listings, rejects = read("coreweave", answer(PAGE.replace(copied, copied.replace("68", "86"))))
    assert len(listings) == 14
    assert [r.reason for r in rejects if r.reason != "not_offered"] == ["conflicting_prices"]


def test_another_shape_fails_clearly() -> None:
    wider = 'VRAM (GB)</div></div><div class="table-v2-cell">New</div>'
    for old, new in (
        ('class="table-v2 ', 'class="table-v3 '),
        ("VRAM (GB)</div></div>", wider),
        ('role="listitem"', 'role="row"'),
    ):
        assert old in PAGE
        with pytest.raises(SourceChangedError):
            read("coreweave", answer(PAGE.replace(old, new)))


def table_of(headers: list[str], *rows: list[str], eyebrow: str = "REGION: EUROPE") -> str:
    def grid(cells: list[str]) -> str:
        inner = "".join(f'<div class="table-v2-cell">{cell}</div>' for cell in cells)
        return f'<div class="table-grid">{inner}</div>'

    items = "".join(f'<div role="listitem">{grid(row)}</div>' for row in rows)
    return (
        f'<strong class="eyebrow">{eyebrow}</strong><div class="table-v2 gpu-pricing">'
        f'<div class="table-v2-header">{grid(headers)}</div>{items}</div>'
    )


def test_cpu_tables_have_the_gpu_tables_classes_and_are_passed_over() -> None:
    headers = ["CPU Model", "CPU Type", "vCPUs", "On-Demand Price (Per Hour)"]
    cpus = table_of(headers, ["AMD Turin", "High Core", "384", "$7.54"])
    listings, rejects = read("coreweave", answer(PAGE.replace("</body>", f"{cpus}</body>")))
    assert (len(listings), len(rejects)) == (15, 7)


def test_a_region_without_spot_or_with_a_column_of_prices_that_is_not_known() -> None:
    without = table_of(["GPU Model", "GPU Count", "On-Demand Price"], ["NVIDIA HGX H100", "8", "$50.00"])
    listings, rejects = read("coreweave", answer(without))
    assert short(listings) == [("NVIDIA HGX H100", 8, "on_demand", "EUROPE", "50.00")]
    assert rejects == []
    renamed = table_of(
        ["GPU Model", "GPU Count", "On-Demand Price", "Interruptible Price"],
        ["NVIDIA HGX H100", "8", "$50.00", "$20.00"],
    )
    listings, rejects = read("coreweave", answer(renamed))
    assert short(listings) == [("NVIDIA HGX H100", 8, "on_demand", "EUROPE", "50.00")]
    assert [r.reason for r in rejects] == ["unknown_price_kind"]


def test_one_unreadable_row_leaves_the_others() -> None:
    odd = table_of(
        ["GPU Model", "GPU Count", "On-Demand Price"],
        ["NVIDIA HGX H200", "$52.00"],
        ["NVIDIA HGX H100", "8", "$50.00"],
        eyebrow="New",
    )
    listings, rejects = read("coreweave", answer(odd))
    assert short(listings) == [("NVIDIA HGX H100", 8, "on_demand", None, "50.00")]
    assert [r.reason for r in rejects] == ["unreadable_row"]


def test_a_section_without_its_header_has_the_usual_columns() -> None:
    cells = ["NVIDIA HGX H100", "8", "80", "128", "2,048", "61.44", "$50.00", "N/A", "$6.25"]
    bare = table_of([], cells).replace(
        '<div class="table-v2-header"><div class="table-grid"></div></div>', ""
    )
    listings, rejects = read("coreweave", answer(bare))
    assert short(listings) == [("NVIDIA HGX H100", 8, "on_demand", "EUROPE", "50.00")]
    assert [r.reason for r in rejects] == ["not_offered"]
    shorter = table_of([], cells[:-2]).replace(
        '<div class="table-v2-header"><div class="table-grid"></div></div>', ""
    )
    with pytest.raises(SourceChangedError, match="no header row"):
        read("coreweave", answer(shorter))
