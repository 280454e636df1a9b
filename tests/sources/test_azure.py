"""Azure's meters: which are prices of a Linux machine, and of which kind, by their names and dates."""

from collections import Counter
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Listing, Reject, SourceChangedError
from pipeline.sources import azure
from tests.sources.helpers import answer, page, read

WINDOWS = {"productName": "Virtual Machines NDsr H100 v5 Series Windows"}


def item(**fields: Any) -> dict[str, Any]:
    return {
        "armSkuName": "Standard_ND96isr_H100_v5",
        "armRegionName": "eastus",
        "retailPrice": 98.32,
        "unitOfMeasure": "1 Hour",
        "meterName": "ND96isrH100v5",
        "productName": "Virtual Machines NDsr H100 v5 Series",
        "type": "Consumption",
        **fields,
    }


def read_items(*items: Any) -> tuple[list[Listing], list[Reject]]:
    return read("azure", answer(list(items)))


def next_urls(body: Any, url: str = "https://prices.azure.com/api/retail/prices?$filter=x") -> list[str]:
    return [request.url for request in azure.next_requests(answer(body, url), source_config("azure"))]


def test_the_pages_follow_one_another() -> None:
    assert next_urls(page("azure", "page_3.json")) == [
        answer(page("azure", "page_3.json")).json()["NextPageLink"]
    ]
    for last in (page("azure", "page_4.json"), "<html>busy</html>", [item()], {"Items": None}):
        assert next_urls(last) == []


def test_full_page_with_an_empty_link_continues_at_its_position() -> None:
    url = "https://prices.azure.com/api/retail/prices?$filter=x"
    for link in ("", None):
        full = {"Items": [item()] * 1000, "NextPageLink": link}
        assert next_urls(full, url) == [f"{url}&$skip=1000"]
        assert next_urls(full, f"{url}&$skip=1000") == [f"{url}&$skip=2000"]
        assert next_urls({"Items": [item()] * 100}, f"{url}&$skip=1000") == [f"{url}&$skip=1100"]
        assert next_urls({"Items": [item()] * 999, "NextPageLink": link}, url) == []
        assert next_urls({"Items": [], "NextPageLink": link}, f"{url}&$skip=2000") == []


def plans(*pairs: tuple[str, Any]) -> dict[str, Any]:
    return {
        "savingsPlan": [{"unitPrice": price, "retailPrice": price, "term": term} for term, price in pairs]
    }


def test_a_savings_plan_is_an_hourly_price_for_its_term() -> None:
    listings, rejects = read_items(
        item(**plans(("3 Years", 50.5), ("1 Year", "70.25")), armRegionName="usgovtexas")
    )
    assert rejects == []
    assert [(r.price_kind, r.tier, r.term_days, str(r.native_price)) for r in listings] == [
        ("on_demand", None, None, "98.32"),
        ("reserved", "savings_plan", 1095, "50.5"),
        ("reserved", "savings_plan", 365, "70.25"),
    ]
    assert {(r.native_unit, r.flag_reason) for r in listings} == {("instance_hour", "restricted_region")}


def test_a_savings_plan_that_is_unclear_is_refused_alone() -> None:
    for fields, kind, reason in (
        (plans(("7 Years", 50)), "on_demand", "unknown_term_length"),
        (plans(("1 Year", 0)), "on_demand", "zero_price"),
        ({"meterName": "ND96isrH100v5 Spot", **plans(("1 Year", 50))}, "spot", "unknown_price_kind"),
    ):
        (listing,), (reject,) = read_items(item(**fields))
        assert (listing.price_kind, reject.reason) == (kind, reason)
        assert reject.detail.startswith("Standard_ND96isr_H100_v5, eastus: ")


def test_a_price_whose_time_is_over_is_refused() -> None:
    """The API lists earlier prices of a meter as items of their own."""
    for start, end, is_today in (
        ("2026-04-01T00:00:00Z", "2026-08-21T23:59:59Z", False),
        ("2026-04-01T00:00:00Z", "2026-08-22T23:59:59Z", True),
        (
            "2026-09-01T00:00:00Z",
            "2026-08-31T23:59:59Z",
            False,
        ),  # no day is in it: seen with prices of a cent
        (None, "2026-08-21T23:59:59Z", False),
    ):
        old = item(effectiveStartDate=start, effectiveEndDate=end, retailPrice=0.002)
        listings, rejects = read_items(item(), old)
        assert len(listings) == 1 + is_today
        assert [row.reason for row in rejects] == ([] if is_today else ["discontinued"])


def test_a_size_without_rdma_joins_no_cluster() -> None:
    for size, max_nodes in (
        *((size, None) for size in ("ND96isr_H100_v5", "ND96isrf_H100_v5", "ND96asr_v4", "NC40ads_H100_v5")),
        *((size, 1) for size in ("ND96is_flex_H100_v5", "ND96is_noIB_H100_v5", "ND96is_H100_v5")),
    ):
        (listing,), _ = read_items(item(armSkuName=f"Standard_{size}"))
        assert listing.max_nodes == max_nodes, size


def test_prices_not_of_a_linux_machine_are_refused() -> None:
    for fields, reason in (
        (WINDOWS, "not_linux"),
        ({"meterName": "ND96isrH100v5 Spot", **WINDOWS}, "not_linux"),
        ({"type": "Reservation", **WINDOWS}, "not_linux"),
        ({"productName": "NDMI300Xv5 Srs Windows"}, "not_linux"),
        ({"meterName": "ND96isrH100v5 Low Priority"}, "other_price_kind"),
        ({"meterName": "ND96isrH100v5 Low Priority", **WINDOWS}, "not_linux"),
        ({"type": "DevTestConsumption"}, "other_product"),
        ({"productName": "NDsr H100 v5 Series Cloud Services"}, "other_product"),
        ({"meterName": "ND96isrH100v5 Expired"}, "discontinued"),
        ({"serviceName": "Azure Machine Learning"}, "other_product"),
        ({"type": "SomethingElse"}, "other_price_kind"),
        ({"unitOfMeasure": "1/Month"}, "unknown_unit"),
        ({"tierMinimumUnits": 100.0}, "volume_price"),
        ({"retailPrice": "free"}, "unreadable_price"),
        ({"retailPrice": -5}, "zero_price"),
        ({"armRegionName": ""}, "missing_field"),
        ({"meterName": None}, "missing_field"),
        ({"type": "Reservation", "reservationTerm": "2 Weeks"}, "unknown_term_length"),
        ({"type": "Reservation"}, "unknown_term_length"),
    ):
        listings, rejects = read_items(item(), item(**fields))
        assert (len(listings), [reject.reason for reject in rejects]) == (1, [reason]), fields
    usual = {"serviceName": "Virtual Machines", "tierMinimumUnits": 0.0, "unitOfMeasure": "1/Hour"}
    assert len(read_items(item(**usual))[0]) == 1


def test_foreseen_meters_of_a_size_are_one_reject_that_counts_them() -> None:
    regions = [item(armRegionName=f"region{n}", **WINDOWS) for n in range(5)]
    other_size = item(armSkuName="Standard_ND96isr_H200_v5", **WINDOWS)
    unknown = [item(type="Lease", armRegionName=region) for region in ("eastus", "westus")]
    zero = [item(retailPrice=0, armRegionName=region) for region in ("eastus", "westus")]
    _, rejects = read_items(item(), *regions, other_size, item(type="DevTestConsumption"), *unknown, *zero)
    counted = Counter((str(reject.reason), reject.detail.rpartition(" (")[2]) for reject in rejects)
    more = {key: n for key, n in counted.items() if "more)" in key[1]}
    assert more == {("not_linux", "and 4 more)"): 1, ("other_price_kind", "and 1 more)"): 1}
    assert Counter(str(reject.reason) for reject in rejects) == {
        "zero_price": 2,
        "not_linux": 2,
        "other_product": 1,
        "other_price_kind": 1,
    }


def test_a_reservation_is_the_total_of_its_term() -> None:
    for term, days in (("1 Year", 365), ("3 Years", 1095), ("5 Years", 1825)):
        (row,), _ = read_items(item(type="Reservation", retailPrice=500000, reservationTerm=term))
        assert (row.price_kind, row.native_unit, row.term_days) == ("reserved", "instance_term", days)
        assert row.native_price == Decimal(500000)


def test_optional_fields_and_other_currencies() -> None:
    for fields, expected in (
        ({"retailPrice": "98.32", "savingsPlan": None}, ("on_demand", "USD", "98.32", None)),
        ({"currencyCode": "EUR"}, ("on_demand", "EUR", "98.32", None)),
        ({"skuName": "ND96isrH100v5 Spot"}, ("spot", "USD", "98.32", None)),
        ({"effectiveStartDate": "2026-12-01T00:00:00Z"}, ("on_demand", "USD", "98.32", date(2026, 12, 1))),
        ({"effectiveStartDate": "2026-08-01T00:00:00Z"}, ("on_demand", "USD", "98.32", None)),
    ):
        (row,), _ = read_items(item(**fields))
        found = (row.price_kind, row.native_currency, str(row.native_price), row.effective_from)
        assert found == expected
    (row,), _ = read("azure", answer({"BillingCurrency": "EUR", "Items": [item(), None]}))
    assert row.native_currency == "EUR"


def test_other_sizes_are_skipped() -> None:
    others = ("Standard_D2s_v5", "Standard_NP10s", "Standard_HB120rs_v3", "", None)
    listings, rejects = read_items(item(), *(item(armSkuName=name) for name in others))
    assert (len(listings), rejects) == (1, [])
    for body in ([item(armSkuName="Standard_D2s_v5")], {"Items": []}, {"Items": {"0": item()}}):
        with pytest.raises(SourceChangedError):
            read("azure", answer(body))
