"""DigitalOcean's tables and /v2/sizes, and what happens when they change."""

from decimal import Decimal

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.helpers import answer, contradicted, page, read, sample

PAGE = "droplets_pricing.html"


def variant(*replacements: tuple[str, str]) -> str:
    text = page("digitalocean", PAGE)
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return text


def prices(text: str) -> dict[tuple[str, str], Decimal]:
    listings, _ = read("digitalocean", answer(text))
    return {(row.price_kind, row.raw_label): row.native_price for row in listings}


def test_the_page_has_on_demand_spot_and_unpriced_contract_rows() -> None:
    listings, rejects = read("digitalocean", answer(page("digitalocean", PAGE)))
    assert len(listings) == 19
    eight = next(row for row in listings if row.raw_label == "NVIDIA H100 (8x)")
    assert (eight.gpu_count, eight.native_price, eight.native_unit) == (8, Decimal("35.28"), "instance_hour")
    assert [row.reason for row in rejects] == ["not_offered"] * 4


def test_columns_may_be_renamed_and_moved() -> None:
    text = variant(
        ("<th>GPU</th>\n      <th>Price</th>", "<th>Hourly Price</th>\n      <th>GPU Plan</th>"),
        (
            "<td>NVIDIA H100</td>\n      <td>$4.41 per hour</td>",
            "<td>$4.41 per hour</td><td>NVIDIA H100</td>",
        ),
    )
    assert prices(text)["on_demand", "NVIDIA H100"] == Decimal("4.41")
    assert prices(text)["spot", "AMD MI350X"] == Decimal("4.00")


def test_a_renamed_price_column_is_a_change() -> None:
    with pytest.raises(SourceChangedError, match="expected one column"):
        read("digitalocean", answer(variant(("<th>Price</th>", "<th>Amount</th>"))))


def test_a_missing_on_demand_section_is_a_change() -> None:
    with pytest.raises(SourceChangedError, match="no on-demand price"):
        read("digitalocean", answer(variant(("On-Demand GPU Droplet Pricing", "GPU Droplet Pricing"))))


def test_prices_under_an_unknown_heading_are_rejected() -> None:
    text = variant(("Spot GPU Droplet Pricing", "Reserved GPU Droplet Pricing"))
    listings, rejects = read("digitalocean", answer(text))
    assert {row.price_kind for row in listings} == {"on_demand"}
    assert [row.reason for row in rejects].count("unknown_terms") == 8


def test_contact_sales_does_not_shift_the_next_price() -> None:
    text = variant(("$35.28 per hour", "Contact sales"))
    listings, rejects = read("digitalocean", answer(text))
    assert ("on_demand", "NVIDIA H100 (8x)") not in prices(text)
    assert prices(text)["on_demand", "NVIDIA L40s"] == Decimal("1.57")
    assert len(listings) == 18
    assert len(rejects) == 5


def test_footnotes_and_other_currencies() -> None:
    text = variant(
        ("$4.41 per hour", "$4.41<sup>1</sup> per hour"),
        ("$4.47 per hour", "€4.47 per hour"),
        ("$0.76", "$0.00"),
    )
    listings, rejects = read("digitalocean", answer(text))
    by_label = {row.raw_label: row for row in listings}
    assert by_label["NVIDIA H100"].native_price == Decimal("4.41")
    assert (by_label["NVIDIA H200"].native_price, by_label["NVIDIA H200"].native_currency) == (
        Decimal("4.47"),
        "EUR",
    )
    assert "zero_price" in [row.reason for row in rejects]


@pytest.mark.parametrize("shown", ["$3175.20 per month", "$35.28/GPU/hour", "$35.28"])
def test_another_unit_is_not_read_as_a_droplets_hour(shown: str) -> None:
    _, rejects = read("digitalocean", answer(variant(("$35.28 per hour", shown))))
    assert "unreadable_price" in [row.reason for row in rejects]


def test_the_unit_may_stand_in_the_header() -> None:
    text = variant(("<th>Price</th>", "<th>Price per hour</th>"), ("$35.28 per hour", "$35.28"))
    assert prices(text)["on_demand", "NVIDIA H100 (8x)"] == Decimal("35.28")


def test_an_unclear_gpu_count_is_rejected() -> None:
    text = variant(("<td>NVIDIA H100 (8x)</td>", "<td>NVIDIA H100 x8</td>"))
    _, rejects = read("digitalocean", answer(text))
    assert "unknown_gpu_count" in [row.reason for row in rejects]


def test_a_hidden_copy_with_other_prices_is_ignored() -> None:
    shown = variant()
    start, end = shown.index('<div class="overflow-auto">'), shown.index("<h3 id=")
    hidden = shown[start:end].replace("$4.41", "$9.99").replace("<div", '<div style="display: none"', 1)
    assert prices(shown[:end] + hidden + shown[end:])["on_demand", "NVIDIA H100"] == Decimal("4.41")


def test_a_droplet_at_two_prices_is_flagged() -> None:
    shown = variant()
    start, end = shown.index('<div class="overflow-auto">'), shown.index("<h3 id=")
    copy = shown[start:end].replace("$4.41", "$9.99")
    assert contradicted("digitalocean", answer(shown[:end] + copy + shown[end:])) == ["NVIDIA H100"] * 2


@pytest.mark.parametrize("body", ['{"sizes": [{"slug"', "[]"])
def test_what_is_not_a_price_list_is_a_change(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("digitalocean", answer(body))


def test_sizes_of_the_api() -> None:
    listings, rejects = read("digitalocean", answer(sample("digitalocean_sizes_2026-08.json")))
    assert not rejects
    assert [(r.instance_type, r.raw_label, r.gpu_count, r.region, r.native_price) for r in listings] == [
        ("gpu-h100x8-640gb", "nvidia_h100", 8, "nyc1", Decimal("23.92")),
        ("gpu-mi300x8-1536gb", "amd_mi300x", 8, "nyc1", Decimal("15.92")),
    ]
    assert listings[0].context == {"vram_total_gb": 640.0}
    assert (listings[0].vcpus, listings[0].ram_gib, listings[0].available) == (160, 1920, True)
    assert listings[0].local_disk_gb == 46177.3  # 2046 GiB to boot from and 40960 GiB of scratch


def test_sizes_bare_by_region_and_incomplete() -> None:
    gpu = {"count": 1, "vram": {"amount": 80, "unit": "gib"}, "model": "nvidia_h100"}
    sizes = [
        {"slug": "gpu-h100x1-80gb", "price_hourly": "4.41", "regions": ["nyc2", "tor1"], "gpu_info": gpu},
        {"slug": "gpu-h200x1-141gb", "price_hourly": 4.47, "regions": [], "gpu_info": gpu | {"count": "1"}},
        {"slug": "gpu-no-price", "price_hourly": None, "regions": ["nyc2"], "gpu_info": gpu},
        {"slug": "gpu-no-model", "price_hourly": 1, "regions": ["nyc2"], "gpu_info": {"count": 1}},
        {"slug": "s-1vcpu", "price_hourly": 0.006, "regions": ["nyc2"]},
    ]
    listings, rejects = read("digitalocean", answer(sizes))
    assert [(r.instance_type, r.region, r.available) for r in listings] == [
        ("gpu-h100x1-80gb", "nyc2", None),
        ("gpu-h100x1-80gb", "tor1", None),
        ("gpu-h200x1-141gb", None, False),
    ]
    assert [r.reason for r in rejects] == ["not_offered", "missing_field"]


def test_one_odd_size_does_not_take_the_others_along() -> None:
    good = {
        "slug": "gpu-l40sx1-48gb",
        "price_hourly": 1.57,
        "gpu_info": {"count": 1, "model": "nvidia_l40s", "vram": 48},
        "regions": "tor1",
        "disk_info": ["?"],
    }
    listings, rejects = read("digitalocean", answer([good | {"gpu_info": "nvidia"}, good]))
    assert [(row.instance_type, row.region) for row in listings] == [("gpu-l40sx1-48gb", None)]
    assert [reject.reason for reject in rejects] == ["missing_field"]
