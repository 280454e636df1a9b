"""Baseten's instances: the price per minute belongs to the GPU memory before it."""

from decimal import Decimal

from pipeline.gpus import identify
from tests.sources.helpers import answer, contradicted, page, read

PAGE = page("baseten", "pricing.html")
PRICE = "<span>$0.10833</span>"


def test_the_memory_of_a_slice_gives_its_share() -> None:
    for label, vram, gpu_id, gpu_count in (
        ("H100 MIG", 40, "h100-80gb", 0.5),
        ("H100MIG", 40, "h100-80gb", 0.5),
        ("H100", 40, None, 1),  # nothing says that it is a slice
        ("A100 MIG", 40, None, None),  # a whole card of 40 GB or half of one of 80 GB
    ):
        row = f"<p>{label}</p><p>{vram} GiB VRAM, 13 vCPUs, 117 GiB RAM</p><p>$0.06250</p>"
        (listing,), rejects = read("baseten", answer(row))
        found = identify(
            listing.raw_label, provider="baseten", context=listing.context, gpu_count=listing.gpu_count
        )
        assert (found.gpu_id, rejects) == (gpu_id, [])
        assert found.gpu_count == gpu_count or gpu_id is None


def test_other_layouts_of_a_row() -> None:
    for row in (
        "<p>H100 80 GiB VRAM $0.10833</p>",
        "<p>H100</p><p>80 GiB VRAM</p><p>26 vCPUs</p><p>234 GiB RAM</p><p>$ 0.10833 / min</p>",
        "<p>H100</p><p>80 GiB VRAM, 26 vCPUs</p><p>$0.10833</p><p>$6.50</p>",
    ):
        listings, rejects = read("baseten", answer(f"{row}<p>T4 16 GiB VRAM</p><p>$0.01052</p>"))
        found = [(row.raw_label, row.native_price, row.native_unit) for row in listings]
        assert found == [
            ("H100", Decimal("0.10833"), "gpu_minute"),
            ("T4", Decimal("0.01052"), "gpu_minute"),
        ]
        assert rejects == []


def test_price_per_hour_is_kept_as_one() -> None:
    (listing,), _ = read("baseten", answer("<p>H100</p><p>80 GiB VRAM</p><p>$6.50 / hr</p>"))
    assert (listing.native_price, listing.native_unit) == (Decimal("6.50"), "gpu_hour")


def test_set_of_gpus_is_one_instance_with_the_memory_of_all() -> None:
    (listing,), _ = read("baseten", answer("<p>2x H100</p><p>160 GiB VRAM</p><p>$0.21666</p>"))
    assert (listing.gpu_count, listing.native_unit) == (2, "instance_minute")
    assert listing.context == {"vram_total_gb": 160}


def test_row_without_one_clear_price_never_gets_the_next_rows() -> None:
    for old, new, reason in (
        (PRICE, "", "not_offered"),
        (PRICE, "<span>$0.10833 / month</span>", "unknown_unit"),
        (PRICE, "<span>$0.10833</span><span>$7.77</span>", "conflicting_prices"),
        (PRICE, "<span>Save 10%</span>", "unreadable_price"),
        (f"RAM</span>{PRICE}", "RAM$2 .50/hr</span>", "unreadable_price"),
    ):
        assert old in PAGE
        listings, rejects = read("baseten", answer(PAGE.replace(old, new)))
        assert [row.raw_label for row in listings] == ["L4", "H100 MIG"]
        assert [reject.reason for reject in rejects] == [reason, "not_offered"]


def test_an_instance_at_two_prices_is_flagged() -> None:
    assert contradicted("baseten", answer(PAGE + "<p>H100 80 GiB VRAM $0.2</p>")) == ["H100", "H100"]
