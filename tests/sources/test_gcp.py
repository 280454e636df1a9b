"""Google Cloud: the page's whole machines, and machines added up from the catalogue's parts."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from pipeline.capture.visit import first_requests
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer, SourceChangedError
from pipeline.parsing.paging import next_page
from pipeline.sources import gcp as source
from tests.sources.helpers import answer, contradicted, page, read

PAGE = page("gcp", "accelerator-optimized.html")
US = ["us-central1", "us-east4"]


def sku(description: str, group: str, usd: str, usage: str = "OnDemand", **more: Any) -> dict[str, Any]:
    """One SKU of the billing catalogue."""
    units, _, nanos = usd.partition(".")
    price = {"currencyCode": "USD", "units": units, "nanos": int(nanos.ljust(9, "0"))}
    return {
        "skuId": "0000-0000-0000",
        "description": description,
        "category": {"resourceFamily": "Compute", "resourceGroup": group, "usageType": usage},
        "serviceRegions": US,
        "pricingInfo": [{"pricingExpression": {"usageUnit": "h", "tieredRates": [{"unitPrice": price}]}}],
    } | more


H100 = sku("Nvidia H100 80GB GPU running in Americas", "GPU", "9.5")
A3_CORE = sku("A3 Instance Core running in Americas", "CPU", "0.03")
A3_RAM = sku("A3 Instance Ram running in Americas", "RAM", "0.003")
LOCAL_SSD = sku("SSD backed Local Storage", "LocalSSD", "0.073")


def catalog(*skus: dict[str, Any]) -> Any:
    return answer({"skus": list(skus), "nextPageToken": ""})


def test_page_keeps_commitments_and_flex_start_apart_from_on_demand() -> None:
    listings, rejects = read("gcp", answer(PAGE))
    assert len(listings) == 39
    assert Counter(reject.reason for reject in rejects) == {"not_offered": 1, "unreadable_price": 1}
    a4 = [row for row in listings if row.raw_label == "a4-highgpu-8g"]
    assert {row.price_kind for row in a4} == {"flex_start", "spot", "reserved"}
    mega_spot = next(row for row in listings if row.raw_label == "a3-megagpu-8g" and row.price_kind == "spot")
    assert (mega_spot.native_price, mega_spot.gpu_count) == (Decimal("55.894489"), 8)
    assert (mega_spot.vcpus, mega_spot.ram_gib, mega_spot.context["gpu_name"]) == (208, 1872, "Nvidia H100")
    assert {row.label_kind for row in listings} == {"instance_type"}
    eighth = next(row for row in listings if row.raw_label == "g4-standard-6")
    assert eighth.gpu_count == 0.125


def test_flex_start_runs_for_a_week_and_calendar_mode_is_booked_by_the_day() -> None:
    listings, _ = read("gcp", answer(PAGE))
    found = {
        (row.raw_label, row.tier): (row.native_price, row.max_run_hours, row.billing_increment_seconds)
        for row in listings
        if row.price_kind == "flex_start"
    }
    assert found == {
        ("a4-highgpu-8g", "flex_start"): (Decimal("64.44"), 168, None),
        ("a4-highgpu-8g", "calendar_mode"): (Decimal("90.22"), 90 * 24, 86_400),
        ("a3-ultragpu-8g", "flex_start"): (Decimal("42.4"), 168, None),
        ("a2-highgpu-1g", "flex_start"): (Decimal("2"), 168, None),
        ("g4-standard-6", "flex_start"): (Decimal("0.32344"), 168, None),
    }


def test_price_of_a_third_way_of_the_scheduler_is_a_reject() -> None:
    _, rejects = read("gcp", answer(PAGE.replace("DWS Flex-start price", "DWS price")))
    assert Counter(reject.reason for reject in rejects)["other_price_kind"] == 4


def test_columns_may_move_and_the_short_header_spellings_are_read_too() -> None:
    short = """<table><tr><th>GPU</th><th>Machine type</th><th>CUD 3 Year</th><th>Current Spot pricing</th>
      <th>DWS Flex-start price</th><th>Price (USD)*</th><th>Components</th><th>Availability</th></tr>
      <tr><td>Nvidia H100</td><td>a3-highgpu-8g</td><td>$38.86 / 1 hour</td><td>N/A</td><td>$40 / 1 hour</td>
      <td>$88.49 / 1 hour</td><td>GPUs: 8 vCPUs: 208</td><td>many</td></tr></table>"""
    listings, _ = read("gcp", answer(short))
    found = [(row.price_kind, row.term_days, row.native_price) for row in listings]
    assert found == [
        ("on_demand", None, Decimal("88.49")),
        ("reserved", 1095, Decimal("38.86")),
        ("flex_start", None, Decimal("40")),
    ]


def dated(day: date, **prices: str) -> Answer:
    """A page of one machine, with a price per column."""
    heads = "".join(f"<th>{header}</th>" for header in ("Machine type", "GPU", "Components", *prices))
    texts = ("a3-highgpu-8g", "Nvidia H100", "GPUs: 8", *(f"${price} / 1 hour" for price in prices.values()))
    cells = "".join(f"<td>{text}</td>" for text in texts)
    observed_at = datetime(day.year, day.month, day.day, 6, tzinfo=UTC)
    return answer(f"<table><tr>{heads}</tr><tr>{cells}</tr></table>", observed_at=observed_at)


ANNOUNCED = {
    "Price (USD) info Consumption model ID: 2031-TEST-0000": "88",
    "Price (USD) effective January 1, 2027": "99",
    "Spot pricing from January 1, 2027": "30",
    "Compute Resource CUDs - 1 Year": "60",
    "Compute Resource CUDs - 1 Year from January 1, 2027": "50",
    "Compute Flexible CUD - 1 Year": "70",
    "DWS Flex-start price until December 31, 2026": "40",
}


@pytest.mark.parametrize(
    ("today", "superseded"), [(date(2026, 12, 31), []), (date(2027, 1, 1), ["88", "60", "40"])]
)
def test_prices_announced_for_a_later_day_hold_from_then_on(today: date, superseded: list[str]) -> None:
    listings, rejects = read("gcp", dated(today, **ANNOUNCED))
    assert rejects == []
    later = {str(row.native_price) for row in listings if row.effective_from == date(2027, 1, 1)}
    assert (len(listings), later) == (len(ANNOUNCED), {"99", "30", "50"})
    assert [str(row.native_price) for row in listings if row.flag_reason == "superseded"] == superseded


def test_a_price_announced_on_the_page_does_not_hide_that_of_the_catalogue() -> None:
    page_only = dated(date(2026, 12, 31), **{"Price from January 1, 2027": "99"})
    listings, _ = read("gcp", page_only, catalog(H100, A3_CORE, A3_RAM))
    found = [row for row in listings if row.raw_label == "a3-highgpu-8g" and row.region != "us-east4"]
    assert [row.effective_from for row in found] == [date(2027, 1, 1), None]


def test_a_column_with_a_date_that_is_not_understood_fails_the_source() -> None:
    with pytest.raises(SourceChangedError, match="the date in the column"):
        read("gcp", dated(date(2026, 12, 31), **{"Price (effective soon)": "99"}))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<p>Price (USD)</p>", "<p>Amount</p>"),
        ("<p>Machine type</p>", "<p>Shape</p>"),
        ("<p>Components</p>", "<p>Parts</p>"),
        ("CUDs - 1 Year", "CUDs - short"),
    ],
)
def test_renamed_mandatory_column_fails_the_source(old: str, new: str) -> None:
    assert old in PAGE
    with pytest.raises(SourceChangedError):
        read("gcp", answer(PAGE.replace(old, new)))


def test_a_machine_at_two_prices_is_flagged() -> None:
    first = PAGE[PAGE.index("<table>") : PAGE.index("</table>") + 8]
    twice = PAGE.replace("</body>", first.replace("$88.49 /", "$77.49 /") + "</body>")
    assert contradicted("gcp", answer(twice)) == ["a3-highgpu-8g"] * 2


@pytest.mark.parametrize("cell", ["€88.49 / 1 hour", "$88.49 / 1 month", "88.49", "$88.49 $99.00"])
def test_cell_that_is_not_dollars_per_hour_is_a_reject(cell: str) -> None:
    listings, rejects = read("gcp", answer(PAGE.replace("$88.49 / 1 hour", cell)))
    assert len(listings) == 38
    assert Counter(reject.reason for reject in rejects)["unreadable_price"] == 2


def test_row_with_a_cell_too_few_is_a_reject() -> None:
    listings, rejects = read(
        "gcp", answer(PAGE.replace('<td colspan="1" rowspan="1">$52.962297 / 1 hour</td>', ""))
    )
    assert "a3-highgpu-8g" not in {row.raw_label for row in listings}
    assert Counter(reject.reason for reject in rejects)["unreadable_row"] == 1


@pytest.mark.parametrize("body", ["<table><tr><th>Machine type</th></tr></table>", '{"skus": ['])
def test_answer_of_another_shape_fails_the_source(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("gcp", answer(body))


def test_catalogue_adds_gpu_core_memory_and_local_ssd_up_per_region() -> None:
    listings, rejects = read("gcp", catalog(H100, A3_CORE), answer([A3_RAM, LOCAL_SSD]))
    assert rejects == []
    assert {row.region for row in listings} == set(US)
    one = next(row for row in listings if row.raw_label == "a3-highgpu-1g" and row.region == "us-east4")
    # 9.5 + 26 * 0.03 + 234 * 0.003 + 750 * 0.073 / 730
    assert one.native_price == Decimal("11.057")
    assert (one.gpu_count, one.native_unit, one.price_kind, one.flag_reason) == (
        1,
        "instance_hour",
        "on_demand",
        None,
    )
    assert (one.label_kind, one.instance_type, one.context) == (
        "instance_type",
        "a3-highgpu-1g",
        {"gpu_name": "Nvidia H100 80GB GPU"},
    )
    # 750 GiB of local SSD are 805.31 GB.
    assert (one.vcpus, one.ram_gib, one.local_disk_gb) == (26, 234, pytest.approx(805.306368))
    assert sorted({row.gpu_count for row in listings if row.gpu_count is not None}) == [1, 2, 4, 8]


def test_without_the_local_ssd_rate_the_sum_is_flagged() -> None:
    listings, _ = read("gcp", catalog(H100, A3_CORE, A3_RAM))
    one = next(row for row in listings if row.raw_label == "a3-highgpu-1g")
    assert (one.native_price, one.flag_reason) == (Decimal("10.982"), "local_ssd_not_priced")


def test_gpu_part_alone_is_never_a_machine_price() -> None:
    t4 = sku("Nvidia Tesla T4 GPU running in Americas", "GPU", "0.35")
    listings, rejects = read("gcp", catalog(H100, t4, A3_CORE))
    assert listings == []
    assert {reject.reason for reject in rejects} == {"incomplete_price"}


@pytest.mark.parametrize(
    ("description", "usage"),
    [
        ("Commitment v1: Nvidia H100 80GB GPU running in Americas for 1 Year", "Commit1Yr"),
        ("Reserved Nvidia H100 80GB GPU in Mumbai in Calendar Mode", "OnDemand"),
    ],
)
def test_other_charging_models_are_never_on_demand(description: str, usage: str) -> None:
    listings, rejects = read("gcp", catalog(sku(description, "GPU", "4.2"), A3_CORE, A3_RAM))
    assert listings == []
    assert [reject.reason for reject in rejects] == ["other_price_kind"]


def test_spot_parts_make_spot_machines_and_slices_are_whole() -> None:
    b200 = sku("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Mumbai", "GPU", "2.8", "Preemptible")
    spot = [
        sku(
            "Nvidia H100 80GB GPU attached to Spot Preemptible VMs running in Americas",
            "GPU",
            "4",
            "Preemptible",
        ),
        sku("Spot Preemptible A3 Instance Core running in Americas", "CPU", "0.01", "Preemptible"),
        sku("Spot Preemptible A3 Instance Ram running in Americas", "RAM", "0.001", "Preemptible"),
    ]
    on_demand_b200 = sku("A4 Nvidia B200 (1 gpu slice) running in Americas", "GPU", "16.11")
    listings, _ = read("gcp", catalog(b200, on_demand_b200, *spot, A3_CORE, A3_RAM))
    assert {row.price_kind for row in listings} == {"spot"}
    prices = {row.raw_label: row.native_price for row in listings if row.region == "us-east4"}
    assert prices["a4-highgpu-8g"] == Decimal("22.4")
    assert prices["a3-highgpu-1g"] == Decimal("4.494")


def test_two_rates_for_one_part_price_no_machine() -> None:
    dearer = sku("Nvidia H100 80GB GPU running in Americas", "GPU", "10.5")
    listings, rejects = read("gcp", catalog(H100, dearer, A3_CORE, A3_RAM))
    assert listings == []
    assert {reject.reason for reject in rejects} == {"incomplete_price"}


@pytest.mark.parametrize("part", [A3_CORE, A3_RAM])
def test_a_contradicted_core_or_memory_rate_prices_no_machine(part: dict[str, Any]) -> None:
    other = sku(part["description"], part["category"]["resourceGroup"], "0.5")
    listings, rejects = read("gcp", catalog(H100, A3_CORE, A3_RAM, other, LOCAL_SSD))
    assert listings == []
    assert {reject.reason for reject in rejects} == {"incomplete_price"}


def test_a_rate_stated_twice_is_not_a_contradiction() -> None:
    listings, rejects = read("gcp", catalog(H100, H100, A3_CORE, A3_CORE, A3_RAM, LOCAL_SSD, LOCAL_SSD))
    assert {(row.price_kind, row.flag_reason) for row in listings} == {("on_demand", None)}
    assert rejects == []


def test_a_contradiction_in_one_region_leaves_the_others() -> None:
    dearer = sku("A3 Instance Core", "CPU", "0.5", serviceRegions=["us-east4"])
    listings, rejects = read("gcp", catalog(H100, A3_CORE, dearer, A3_RAM, LOCAL_SSD))
    assert {row.region for row in listings} == {"us-central1"}
    assert {reject.reason for reject in rejects} == {"incomplete_price"}


def test_a_contradicted_local_ssd_rate_flags_the_sum_without_it() -> None:
    dearer = sku("SSD backed Local Storage", "LocalSSD", "0.09")
    listings, _ = read("gcp", catalog(H100, A3_CORE, A3_RAM, LOCAL_SSD, dearer))
    assert {row.flag_reason for row in listings} == {"local_ssd_not_priced"}


@pytest.mark.parametrize("usd", ["0.0", "-1.0"])
def test_a_part_without_a_price_above_zero_is_rejected(usd: str) -> None:
    listings, rejects = read("gcp", catalog(sku(H100["description"], "GPU", usd), A3_CORE, A3_RAM))
    assert listings == []
    assert [reject.reason for reject in rejects] == ["unreadable_price"]


def test_page_comes_before_the_catalogue_in_its_own_region() -> None:
    listings, _ = read("gcp", answer(PAGE), catalog(H100, A3_CORE, A3_RAM, LOCAL_SSD))
    on_demand = [row for row in listings if (row.raw_label, row.price_kind) == ("a3-highgpu-8g", "on_demand")]
    assert [(row.region, row.native_price) for row in on_demand] == [
        (None, Decimal("88.49")),
        ("us-east4", Decimal("88.456")),
    ]


def test_key_stays_out_of_addresses_and_pages_are_followed() -> None:
    config = source_config("gcp")
    assert len(first_requests(config, source, {})) == 1
    _, first = first_requests(config, source, {"GCP_API_KEY": "secret"})
    assert "secret" not in first.url
    assert first.headers == {"X-Goog-Api-Key": "${GCP_API_KEY}"}
    assert config.paging is not None
    following = next_page(first, answer({"skus": [], "nextPageToken": "a b"}), config.paging)
    assert following == replace(first, url=f"{first.url}&pageToken=a+b")
    assert next_page(first, answer({"skus": [], "nextPageToken": ""}), config.paging) is None
    assert next_page(first, answer(PAGE), config.paging) is None


@pytest.mark.parametrize(
    ("description", "tier"),
    [
        (
            "A4 Nvidia B200 (1 gpu slice) attached to DWS Defined Duration VMs running in Americas",
            "flex_start",
        ),
        ("DWS Calendar Mode A4 Nvidia B200 (1 gpu slice) in Americas", "calendar_mode"),
    ],
)
def test_catalogue_prices_whole_machines_of_the_scheduler(description: str, tier: str) -> None:
    """8.055 per slice was read on 2026-06-15; eight of them are the 64.44 of the page."""
    listings, rejects = read("gcp", catalog(sku(description, "GPU", "8.055")))
    assert rejects == []
    assert [(row.price_kind, row.tier, row.native_price, row.region) for row in listings] == [
        ("flex_start", tier, Decimal("64.44"), region) for region in US
    ]


def test_gpu_of_the_scheduler_without_its_other_parts_is_not_a_machine() -> None:
    card = "Nvidia H100 80GB GPU attached to DWS Defined Duration VMs running in Americas"
    listings, rejects = read("gcp", catalog(sku(card, "GPU", "4.2"), A3_CORE, A3_RAM))
    assert listings == []
    assert {reject.reason for reject in rejects} == {"incomplete_price"}
