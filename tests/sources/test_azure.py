import json
from collections import Counter
from datetime import date
from decimal import Decimal

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import SourceChangedError
from pipeline.sources import azure
from tests.sources.helpers import answer, page, read


def item(**fields):
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


def reservation(**fields):
    return item(type="Reservation", retailPrice=500000, **fields)


def test_items_without_their_envelope():
    """Prices of 2026-10: only two names tell Linux, Windows, spot and Low Priority meters apart."""
    meters = [
        ("NC80adis_H100_v5", "germanywestcentral", 3.63, "NC80adisH100v5 Low Priority", "NCadsH100v5 Series"),
        ("NC80adis_H100_v5", "southcentralus", 20.44, "NC80adisH100v5", "NCadsH100v5 Series Windows"),
        ("NC48ads_A100_v4", "eastus", 7.346, "NC48ads_A100_v4", "NCads A100 v4 Series Linux"),
        ("NC48ads_A100_v4", "eastus", 1.469, "NC48ads_A100_v4 Low Priority", "NCads A100 v4 Series Linux"),
        ("NC24ads_A100_v4", "eastus", 0.67877, "NC24ads_A100_v4 Spot", "NCads A100 v4 Series Linux"),
        ("ND96isr_H100_v5", "japaneast", 142.564, "ND96isrH100v5", "NDsr H100 v5 Series"),
        ("ND96isr_H100_v5", "spaincentral", 23.620397, "ND96isrH100v5 Spot", "NDsr H100 v5 Series"),
        ("ND96isr_H100_v5", "polandcentral", 24.436474, "ND96isrH100v5 Spot", "NDsr H100 v5 Series Windows"),
        ("ND96isr_H200_v5", "uksouth", 106.0, "ND96isrH200v5 Spot", "NDsrH200v5 Series"),
        ("ND96isr_H200_v5", "usgovvirginia", 106.0, "ND96isrH200v5", "NDsrH200v5 Series"),
        ("ND96asr_v4", "eastus", 12.645, "ND96asr_A100_v4 Low Priority", "NDasr A100 v4 Series Windows"),
        ("ND96isr_MI300X_v5", "eastus2", 9.686477, "ND96isrMI300Xv5 Spot", "NDMI300Xv5 Srs Windows"),
    ]
    fields = ("armSkuName", "armRegionName", "retailPrice", "meterName", "productName")
    items = [item(**dict(zip(fields, (f"Standard_{size}", *rest), strict=True))) for size, *rest in meters]
    listings, rejects = read("azure", answer(items))
    assert Counter(r.reason for r in rejects) == {"not_linux": 4, "other_price_kind": 2}
    found = {(r.instance_type, r.region, r.price_kind): str(r.native_price) for r in listings}
    assert found == {
        ("Standard_NC48ads_A100_v4", "eastus", "on_demand"): "7.346",
        ("Standard_NC24ads_A100_v4", "eastus", "spot"): "0.67877",
        ("Standard_ND96isr_H100_v5", "japaneast", "on_demand"): "142.564",
        ("Standard_ND96isr_H100_v5", "spaincentral", "spot"): "23.620397",
        ("Standard_ND96isr_H200_v5", "uksouth", "spot"): "106.0",
        ("Standard_ND96isr_H200_v5", "usgovvirginia", "on_demand"): "106.0",
    }
    assert {row.label_kind for row in listings} == {"instance_type"}
    assert [r.region for r in listings if r.flag_reason == "restricted_region"] == ["usgovvirginia"]


def next_urls(body, url="https://prices.azure.com/api/retail/prices?$filter=x"):
    return [request.url for request in azure.next_requests(answer(body, url), source_config("azure"))]


def test_the_pages_follow_one_another():
    third, fourth = (answer(page("azure", name)) for name in ("page_3.json", "page_4.json"))
    linked = [
        entry["url"] for entry in json.loads(page("azure", "index.json")) if entry["file"] == "page_4.json"
    ]
    assert next_urls(third.text()) == linked
    assert next_urls(fourth.text()) == []
    assert next_urls("<html>busy</html>") == []
    assert next_urls([item()]) == []
    assert next_urls({"Items": None}) == []


@pytest.mark.parametrize("link", ["", None])
def test_full_page_with_an_empty_link_continues_at_its_position(link):
    url = "https://prices.azure.com/api/retail/prices?$filter=x"
    full = {"Items": [item()] * 1000, "NextPageLink": link}
    assert next_urls(full, url) == [f"{url}&$skip=1000"]
    assert next_urls(full, f"{url}&$skip=1000") == [f"{url}&$skip=2000"]
    assert next_urls({"Items": [item()] * 100}, f"{url}&$skip=1000") == [f"{url}&$skip=1100"]
    assert next_urls({"Items": [item()] * 999, "NextPageLink": link}, url) == []
    assert next_urls({"Items": [], "NextPageLink": link}, f"{url}&$skip=2000") == []


def plans(*pairs):
    return {
        "savingsPlan": [{"unitPrice": price, "retailPrice": price, "term": term} for term, price in pairs]
    }


def test_a_savings_plan_is_an_hourly_price_for_its_term():
    listings, rejects = read(
        "azure", answer([item(**plans(("3 Years", 50.5), ("1 Year", "70.25")), armRegionName="usgovtexas")])
    )
    assert rejects == []
    assert [(r.price_kind, r.tier, r.term_days, str(r.native_price)) for r in listings] == [
        ("on_demand", None, None, "98.32"),
        ("reserved", "savings_plan", 1095, "50.5"),
        ("reserved", "savings_plan", 365, "70.25"),
    ]
    assert {(r.native_unit, r.flag_reason) for r in listings} == {("instance_hour", "restricted_region")}


@pytest.mark.parametrize(
    ("fields", "kinds", "reason"),
    [
        (plans(("7 Years", 50)), ["on_demand"], "unknown_term_length"),
        (plans(("1 Year", 0)), ["on_demand"], "zero_price"),
        ({"meterName": "ND96isrH100v5 Spot", **plans(("1 Year", 50))}, ["spot"], "unknown_price_kind"),
    ],
)
def test_a_savings_plan_that_is_unclear_is_refused_alone(fields, kinds, reason):
    listings, rejects = read("azure", answer([item(**fields)]))
    assert ([row.price_kind for row in listings], [row.reason for row in rejects]) == (kinds, [reason])
    assert "Standard_ND96isr_H100_v5, eastus" in rejects[0].detail


@pytest.mark.parametrize(
    ("start", "end", "is_today"),
    [
        ("2026-04-01T00:00:00Z", "2026-07-31T23:59:59Z", False),
        ("2026-04-01T00:00:00Z", "2026-08-22T23:59:59Z", True),
        ("2026-04-01T00:00:00Z", "2027-07-31T23:59:59Z", True),
        (
            "2026-09-01T00:00:00Z",
            "2026-08-31T23:59:59Z",
            False,
        ),  # no day is in it: seen with prices of a cent
        (None, "2026-08-21T23:59:59Z", False),
    ],
)
def test_a_price_whose_time_is_over_is_refused(start, end, is_today):
    """The API lists earlier prices of a meter as items of their own."""
    old = item(effectiveStartDate=start, effectiveEndDate=end, retailPrice=0.002)
    listings, rejects = read("azure", answer([item(), old]))
    assert len(listings) == 1 + is_today
    assert [row.reason for row in rejects] == ([] if is_today else ["discontinued"])


@pytest.mark.parametrize(
    ("size", "max_nodes"),
    [
        ("Standard_ND96isr_H100_v5", None),
        ("Standard_ND96isrf_H100_v5", None),
        ("Standard_ND96asr_v4", None),
        ("Standard_ND96is_flex_H100_v5", 1),
        ("Standard_ND96is_noIB_H100_v5", 1),
        ("Standard_ND96is_H100_v5", 1),
        ("Standard_NC40ads_H100_v5", None),
    ],
)
def test_a_size_without_rdma_joins_no_cluster(size, max_nodes):
    (listing,), _ = read("azure", answer([item(armSkuName=size)]))
    assert listing.max_nodes == max_nodes


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"productName": "Virtual Machines NDsr H100 v5 Series Windows"}, "not_linux"),
        ({"meterName": "ND96isrH100v5 Low Priority"}, "other_price_kind"),
        ({"type": "DevTestConsumption"}, "other_product"),
        ({"productName": "NDsr H100 v5 Series Cloud Services"}, "other_product"),
        ({"meterName": "ND96isrH100v5 Expired"}, "discontinued"),
        ({"serviceName": "Azure Machine Learning"}, "other_product"),
        ({"type": "SomethingElse"}, "other_price_kind"),
        ({"unitOfMeasure": "1/Month"}, "unknown_unit"),
        ({"tierMinimumUnits": 100.0}, "volume_price"),
        ({"retailPrice": 0}, "zero_price"),
        ({"retailPrice": "free"}, "unreadable_price"),
        ({"retailPrice": -5}, "zero_price"),
        ({"armRegionName": ""}, "missing_field"),
        ({"meterName": None}, "missing_field"),
        ({"type": "Reservation", "reservationTerm": "2 Weeks"}, "unknown_term_length"),
        ({"type": "Reservation"}, "unknown_term_length"),
    ],
)
def test_prices_not_of_a_linux_machine_are_refused(fields, reason):
    listings, rejects = read("azure", answer({"Items": [item(), item(**fields)]}))
    assert len(listings) == 1
    assert [r.reason for r in rejects] == [reason]


def test_a_windows_reservation_or_spot_is_still_windows():
    windows = {"productName": "Virtual Machines NDsr H100 v5 Series Windows"}
    _, rejects = read(
        "azure", answer([item(meterName="ND96isrH100v5 Spot", **windows), reservation(**windows)])
    )
    assert {r.reason for r in rejects} == {"not_linux"}


def test_foreseen_meters_of_a_size_are_one_reject_that_counts_them():
    windows = {"productName": "Virtual Machines NDsr H100 v5 Series Windows"}
    regions = [item(armRegionName=f"region{n}", **windows) for n in range(5)]
    other_size = item(armSkuName="Standard_ND96isr_H200_v5", **windows)
    dev_test = item(type="DevTestConsumption")
    unknown = [item(type="Lease", armRegionName=region) for region in ("eastus", "westus")]
    zero = [item(retailPrice=0, armRegionName=region) for region in ("eastus", "westus")]
    _, rejects = read("azure", answer([item(), *regions, other_size, dev_test, *unknown, *zero]))
    counted = Counter((str(reject.reason), reject.detail.rpartition(" (")[2]) for reject in rejects)
    assert {key: n for key, n in counted.items() if "more)" in key[1]} == {
        ("not_linux", "and 4 more)"): 1,
        ("other_price_kind", "and 1 more)"): 1,
    }
    assert Counter(str(reject.reason) for reject in rejects) == {
        "zero_price": 2,
        "not_linux": 2,
        "other_product": 1,
        "other_price_kind": 1,
    }


@pytest.mark.parametrize(("term", "days"), [("1 Year", 365), ("3 Years", 1095), ("5 Years", 1825)])
def test_a_reservation_is_the_total_of_its_term(term, days):
    (listing,), _ = read("azure", answer([reservation(reservationTerm=term)]))
    assert (listing.price_kind, listing.native_unit, listing.term_days) == ("reserved", "instance_term", days)
    assert listing.native_price == Decimal(500000)


def test_optional_fields_other_currencies_and_types():
    listings, _ = read(
        "azure",
        answer(
            [
                item(retailPrice="98.32", savingsPlan=None),
                item(currencyCode="EUR", retailPrice=90),
                item(skuName="ND96isrH100v5 Spot", retailPrice=20.5),
                item(effectiveStartDate="2026-12-01T00:00:00Z", armRegionName="westus"),
            ]
        ),
    )
    assert [(r.price_kind, r.native_currency, str(r.native_price)) for r in listings] == [
        ("on_demand", "USD", "98.32"),
        ("on_demand", "EUR", "90"),
        ("spot", "USD", "20.5"),
        ("on_demand", "USD", "98.32"),
    ]
    assert [r.effective_from for r in listings] == [None, None, None, date(2026, 12, 1)]


def test_other_sizes_are_skipped():
    others = ("Standard_D2s_v5", "Standard_NP10s", "Standard_HB120rs_v3", "", None)
    listings, rejects = read("azure", answer([item(), *(item(armSkuName=name) for name in others)]))
    assert (len(listings), rejects) == (1, [])


@pytest.mark.parametrize(
    "body",
    [
        '{"Items": [{"armSkuName": "Stan',
        {"Items": []},
        {"items": [item()]},
        {"Items": {"0": item()}},
        [],
        [item(armSkuName="Standard_D2s_v5")],
    ],
)
def test_another_shape_is_a_clear_failure(body):
    with pytest.raises(SourceChangedError):
        read("azure", answer(body))


def test_items_that_name_no_currency_have_that_of_their_envelope():
    item = {
        "armSkuName": "Standard_ND96isr_H100_v5",
        "armRegionName": "westeurope",
        "retailPrice": 90.5,
        "unitOfMeasure": "1 Hour",
        "meterName": "ND96isrH100v5",
        "productName": "Virtual Machines NDsr H100 v5 Series",
        "type": "Consumption",
    }
    listings, _ = read("azure", answer({"BillingCurrency": "EUR", "Items": [item, None]}))
    assert [row.native_currency for row in listings] == ["EUR"]
    assert [row.native_currency for row in read("azure", answer([item]))[0]] == ["USD"]
