"""Google Cloud: the page's whole machines, and machines added up from the catalogue's parts."""

from datetime import date
from typing import Any

import pytest

from pipeline.contracts.listing import Answer
from tests.sources.edited_pages import at_six, edited, outcome
from tests.sources.helpers import answer, page, read

NAME = "accelerator-optimized.html"
US = ["us-central1", "us-east4"]
H100_NAME = "Nvidia H100 80GB GPU"


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


H100 = sku(f"{H100_NAME} running in Americas", "GPU", "9.5")
CORE = sku("A3 Instance Core running in Americas", "CPU", "0.03")
RAM = sku("A3 Instance Ram running in Americas", "RAM", "0.003")
SSD = sku("SSD backed Local Storage", "LocalSSD", "0.073")


def catalog(*skus: dict[str, Any]) -> dict[str, Any]:
    return {"skus": list(skus), "nextPageToken": ""}


def one_gpu(*skus: dict[str, Any]) -> list[Any]:
    """The a3-highgpu-1g in the catalogue of some SKUs, and the rejects of all machines, once each."""
    found = outcome("gcp", catalog(*skus), columns="raw_label region native_price flag_reason")
    of_one = [row[1:] for row in found if row[0] == "a3-highgpu-1g"]
    return of_one + sorted({row for row in found if isinstance(row, str)})


# --- the page ---


def test_a_price_of_a_third_way_of_the_scheduler_is_a_reject() -> None:
    found = outcome("gcp", edited("gcp", NAME, ("DWS Flex-start price", "DWS price")), columns="price_kind")
    assert (found.count("flex_start"), found.count("other_price_kind")) == (1, 4)


def dated(day: date, **prices: str) -> Answer:
    """A page of one machine, with a price per column."""
    heads = "".join(f"<th>{header}</th>" for header in ("Machine type", "GPU", "Components", *prices))
    texts = ("a3-highgpu-8g", "Nvidia H100", "GPUs: 8", *(f"${price} / 1 hour" for price in prices.values()))
    cells = "".join(f"<td>{text}</td>" for text in texts)
    return answer(f"<table><tr>{heads}</tr><tr>{cells}</tr></table>", observed_at=at_six(day))


NEW_YEAR = date(2027, 1, 1)
ANNOUNCED = {
    "Price (USD) info Consumption model ID: 2031-TEST-0000": "88",
    "Price (USD) effective January 1, 2027": "99",
    "Spot pricing from January 1, 2027": "30",
    "Compute Resource CUDs - 1 Year": "60",
    "Compute Resource CUDs - 1 Year from January 1, 2027": "50",
    "Compute Flexible CUD - 1 Year": "70",
    "DWS Flex-start price until December 31, 2026": "40",
}


@pytest.mark.parametrize(("today", "superseded"), [(date(2026, 12, 31), []), (NEW_YEAR, ["88", "60", "40"])])
def test_prices_announced_for_a_later_day_hold_from_then_on(today: date, superseded: list[str]) -> None:
    found = outcome("gcp", dated(today, **ANNOUNCED), columns="native_price effective_from flag_reason")
    assert len(found) == len(ANNOUNCED)
    assert {price for price, start, _ in found if start == NEW_YEAR} == {"99", "30", "50"}
    assert [price for price, _, flag in found if flag == "superseded"] == superseded


def test_answers_without_machines_fail_the_source() -> None:
    headers = "<table><tr><th>Machine type</th><th>GPU</th><th>Components</th><th>Price</th></tr></table>"
    assert outcome("gcp", headers) == ["changed: the price tables have no machine"]
    assert outcome("gcp", catalog(CORE)) == ["changed: the catalogue has no GPU"]


# --- the billing catalogue ---


def test_a_machine_is_the_sum_of_its_parts_in_each_region() -> None:
    listings, rejects = read("gcp", answer(catalog(H100, CORE)), answer([RAM, SSD]))
    assert (rejects, {row.region for row in listings}) == ([], set(US))
    assert {row.gpu_count for row in listings} == {1, 2, 4, 8}
    (one,) = [row for row in listings if (row.raw_label, row.region) == ("a3-highgpu-1g", "us-east4")]
    # 9.5 + 26 * 0.03 + 234 * 0.003 + 750 * 0.073 / 730
    assert (str(one.native_price.normalize()), one.gpu_count, one.flag_reason) == ("11.057", 1, None)
    assert (one.native_unit, one.price_kind, one.tier) == ("instance_hour", "on_demand", None)
    assert (one.label_kind, one.instance_type) == ("instance_type", "a3-highgpu-1g")
    assert one.context == {"gpu_name": H100_NAME}
    # 750 GiB of local SSD are 805.31 GB.
    assert (one.vcpus, one.ram_gib, one.local_disk_gb) == (26, 234, pytest.approx(805.306368))


def test_a_machine_whose_parts_have_not_one_price_each_is_incomplete() -> None:
    def part(of: dict[str, Any], usd: str, **more: Any) -> dict[str, Any]:
        return sku(of["description"], of["category"]["resourceGroup"], usd, **more)

    t4 = sku("Nvidia Tesla T4 GPU running in Americas", "GPU", "0.35")
    both = [(region, "11.057", None) for region in US]
    without_disk = [(region, "10.982", "local_ssd_not_priced") for region in US]
    incomplete = ["incomplete_price"]
    cases = [
        ([H100, CORE, RAM, SSD], both),
        ([H100, H100, CORE, CORE, RAM, SSD, SSD], both),  # stated twice is no contradiction
        ([H100, CORE, RAM], without_disk),
        ([H100, CORE, RAM, SSD, part(SSD, "0.09")], without_disk),
        ([H100, t4, CORE], incomplete),
        ([H100, part(H100, "10.5"), CORE, RAM, SSD], incomplete),
        ([H100, CORE, RAM, part(CORE, "0.5"), SSD], incomplete),
        ([H100, CORE, RAM, part(RAM, "0.5"), SSD], incomplete),
        ([H100, CORE, part(CORE, "0.5", serviceRegions=["us-east4"]), RAM, SSD], [both[0], *incomplete]),
        ([part(H100, "0.0"), CORE, RAM], ["unreadable_price"]),
        ([part(H100, "-1.0"), CORE, RAM], ["unreadable_price"]),
        ([H100 | {"pricingInfo": []}, CORE, RAM], ["unreadable_price"]),
        ([H100 | {"serviceRegions": "all"}, CORE, RAM], []),
    ]
    wrong = [(skus, found) for skus, expected in cases if (found := one_gpu(*skus)) != expected]
    assert wrong == []


def test_other_charging_models_are_never_on_demand() -> None:
    others = [
        ("Commitment v1: Nvidia H100 80GB GPU running in Americas for 1 Year", "Commit1Yr"),
        ("Reserved Nvidia H100 80GB GPU in Mumbai in Calendar Mode", "OnDemand"),
        ("Sole Tenancy Premium for Nvidia H100 80GB GPU", "OnDemand"),
    ]
    for description, usage in others:
        found = outcome("gcp", catalog(sku(description, "GPU", "4.2", usage), CORE, RAM))
        assert found == ["other_price_kind"]


def test_spot_parts_make_spot_machines_and_slices_are_whole() -> None:
    attached = f"{H100_NAME} attached to Spot Preemptible VMs running in Americas"
    spot = [
        sku("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Mumbai", "GPU", "2.8", "Preemptible"),
        sku(attached, "GPU", "4", "Preemptible"),
        sku("Spot Preemptible A3 Instance Core running in Americas", "CPU", "0.01", "Preemptible"),
        sku("Spot Preemptible A3 Instance Ram running in Americas", "RAM", "0.001", "Preemptible"),
    ]
    b200 = sku("A4 Nvidia B200 (1 gpu slice) running in Americas", "GPU", "16.11")
    found = outcome("gcp", catalog(b200, *spot, CORE, RAM), columns="price_kind raw_label native_price")
    listed = {row for row in found if isinstance(row, tuple)}
    assert {kind for kind, *_ in listed} == {"spot"}
    assert {("spot", "a4-highgpu-8g", "22.4"), ("spot", "a3-highgpu-1g", "4.494")} <= listed


def test_the_catalogue_prices_whole_machines_of_the_scheduler() -> None:
    """8.055 per slice was read on 2026-06-15; eight of them are the 64.44 of the page."""
    b200 = "A4 Nvidia B200 (1 gpu slice)"
    columns = "price_kind tier native_price region max_run_hours billing_increment_seconds"
    for description, tier, hours, increment in (
        (f"{b200} attached to DWS Defined Duration VMs running in Americas", "flex_start", 168, None),
        (f"DWS Calendar Mode {b200} in Americas", "calendar_mode", 90 * 24, 86_400),
    ):
        assert outcome("gcp", catalog(sku(description, "GPU", "8.055")), columns=columns) == [
            ("flex_start", tier, "64.44", region, hours, increment) for region in US
        ]


# --- both ---


def test_the_page_comes_before_the_catalogue_in_its_own_region() -> None:
    today = catalog(H100, CORE, RAM, SSD)
    found = outcome("gcp", page("gcp", NAME), today, columns="raw_label price_kind region native_price")
    assert [row for row in found if row[:2] == ("a3-highgpu-8g", "on_demand")] == [
        ("a3-highgpu-8g", "on_demand", None, "88.49"),
        ("a3-highgpu-8g", "on_demand", "us-east4", "88.456"),
    ]


def test_a_price_of_another_day_on_the_page_does_not_hide_that_of_the_catalogue() -> None:
    day, later, earlier = date(2026, 12, 31), "Price from January 1, 2027", "Price until December 1, 2026"
    of_catalogue = ("a3-highgpu-8g", "us-central1", None)
    cases = [(day, later, NEW_YEAR, [of_catalogue]), (day, earlier, None, [of_catalogue])]
    for today, header, starts, others in [*cases, (NEW_YEAR, later, NEW_YEAR, [])]:
        answers = dated(today, **{header: "99"}), catalog(H100, CORE, RAM)
        found = outcome("gcp", *answers, columns="raw_label region effective_from")
        here = [row for row in found if row[0] == "a3-highgpu-8g" and row[1] != "us-east4"]
        assert here == [("a3-highgpu-8g", None, starts), *others]
