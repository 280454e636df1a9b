"""Baseten's instances: the price per minute belongs to the GPU memory before it."""

from decimal import Decimal

import pytest

from pipeline.contracts.listing import SourceChangedError
from pipeline.gpus import identify
from tests.sources.helpers import answer, contradicted, page, read

PAGE = page("baseten", "pricing.html")
PRICE = "<span>$0.10833</span>"


def test_page_gives_gpus_per_minute_slices_and_no_cpu() -> None:
    listings, rejects = read("baseten", answer(PAGE))
    assert [
        (row.raw_label, row.native_price, row.native_unit, row.context["vram_gb"]) for row in listings
    ] == [
        ("L4", Decimal("0.01414"), "gpu_minute", 24),
        ("H100 MIG", Decimal("0.06250"), "instance_minute", 40),
        ("H100", Decimal("0.10833"), "gpu_minute", 80),
    ]
    assert (listings[2].vcpus, listings[2].ram_gib) == (26, 234)
    assert [reject.reason for reject in rejects] == ["not_offered"]


@pytest.mark.parametrize(
    ("label", "vram", "gpu_id", "gpu_count"),
    [
        ("H100 MIG", 40, "h100-80gb", 0.5),
        ("H100MIG", 40, "h100-80gb", 0.5),
        ("H100", 40, None, 1),  # nothing says that it is a slice
        ("A100 MIG", 40, None, None),  # a whole card of 40 GB or half of one of 80 GB
    ],
)
def test_the_memory_of_a_slice_gives_its_share(
    label: str, vram: int, gpu_id: str | None, gpu_count: float | None
) -> None:
    row = f"<p>{label}</p><p>{vram} GiB VRAM, 13 vCPUs, 117 GiB RAM</p><p>$0.06250</p>"
    (listing,), rejects = read("baseten", answer(row))
    found = identify(
        listing.raw_label, provider="baseten", context=listing.context, gpu_count=listing.gpu_count
    )
    assert (found.gpu_id, rejects) == (gpu_id, [])
    if gpu_id:
        assert found.gpu_count == gpu_count


@pytest.mark.parametrize(
    "row",
    [
        "<p>H100 80 GiB VRAM $0.10833</p>",
        "<p>H100</p><p>80 GiB VRAM</p><p>26 vCPUs</p><p>234 GiB RAM</p><p>$0.10833 / min</p>",
        "<p>H100</p><p>80 GiB VRAM, 26 vCPUs</p><p>$0.10833</p><p>$6.50</p>",
    ],
)
def test_other_layouts_of_a_row(row: str) -> None:
    listings, rejects = read("baseten", answer(f"{row}<p>T4 16 GiB VRAM</p><p>$0.01052</p>"))
    assert rejects == []
    assert [(found.raw_label, found.native_price) for found in listings] == [
        ("H100", Decimal("0.10833")),
        ("T4", Decimal("0.01052")),
    ]


def test_price_per_hour_is_kept_as_one() -> None:
    (listing,), _ = read("baseten", answer("<p>H100</p><p>80 GiB VRAM</p><p>$6.50 / hr</p>"))
    assert (listing.native_price, listing.native_unit) == (Decimal("6.50"), "gpu_hour")


def test_set_of_gpus_is_one_instance_with_the_memory_of_all() -> None:
    (listing,), _ = read("baseten", answer("<p>2x H100</p><p>160 GiB VRAM</p><p>$0.21666</p>"))
    assert (listing.gpu_count, listing.native_unit) == (2, "instance_minute")
    assert listing.context == {"vram_total_gb": 160}


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("", "not_offered"),
        ("<span>Contact sales</span>", "not_offered"),
        ("<span>€0.10833</span>", "unreadable_price"),
        ("<span>$0.10833 / month</span>", "unknown_unit"),
        ("<span>$0.00000</span>", "zero_price"),
        ("<span>$0.10833</span><span>$7.77</span>", "conflicting_prices"),
        ("<span>Save 10%</span>", "unreadable_price"),
    ],
)
def test_row_without_one_clear_price_never_gets_the_next_rows(cell: str, reason: str) -> None:
    listings, rejects = read("baseten", answer(PAGE.replace(PRICE, cell)))
    assert [row.raw_label for row in listings] == ["L4", "H100 MIG"]
    assert [reject.reason for reject in rejects] == [reason, "not_offered"]


def test_a_price_that_a_unit_is_glued_to_is_a_reject() -> None:
    listings, rejects = read("baseten", answer(PAGE.replace(f"RAM</span>{PRICE}", "RAM$2 .50/hr</span>")))
    assert [row.raw_label for row in listings] == ["L4", "H100 MIG"]
    assert [reject.reason for reject in rejects] == ["unreadable_price", "not_offered"]


@pytest.mark.parametrize("body", [PAGE.replace("VRAM", "memory")])
def test_page_of_another_shape_fails_the_source(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("baseten", answer(body))


def test_an_instance_at_two_prices_is_flagged() -> None:
    assert contradicted("baseten", answer(PAGE + "<p>H100 80 GiB VRAM $0.2</p>")) == ["H100", "H100"]


def test_a_space_behind_the_dollar_sign() -> None:
    listings, _ = read("baseten", answer("<b>L4</b><b>24 GiB VRAM, 4 vCPUs</b><b>$ 0.01414</b>"))
    assert [str(row.native_price) for row in listings] == ["0.01414"]
