"""Prime Intellect's offers: whole-offer prices and whose machine each is."""

from typing import Any

from pipeline.catalog.source_config import source_config
from tests.sources.edited_pages import alone, each, misread

OFFER: dict[str, Any] = {
    "cloudId": "c-1",
    "gpuType": "H100_80GB",
    "socket": "SXM5",
    "provider": "datacrunch",
    "region": "eu_north",
    "country": "FI",
    "gpuCount": 8,
    "gpuMemory": 640,
    "interconnect": 3200,
    "stockStatus": "Available",
    "security": "secure_cloud",
    "prices": {"onDemand": 28.0, "communityPrice": None, "isVariable": False, "currency": "USD"},
    "isSpot": False,
}


def test_the_price_is_the_whole_offers_and_the_upstream_cloud_is_named_as_its_own_source_is() -> None:
    verda = source_config("verda").provider
    cases = [
        ({}, [("28", 8, "USD", verda)]),
        ({"provider": "dc_roan"}, [("28", 8, "USD", "dc_roan")]),
        ({"provider": None}, [("28", 8, "USD", None)]),
        ({"prices": {"communityPrice": "0.82", "currency": "EUR"}}, [("0.82", 8, "EUR", verda)]),
        *each([{"prices": {"communityPrice": None}}, {"prices": 3}], "not_offered"),
        ({"gpuType": "CPU_NODE"}, ["changed: no offer with GPUs"]),
    ]
    columns = "native_price gpu_count native_currency upstream_provider"
    assert not misread("primeintellect", alone(OFFER), cases, columns)


def test_where_and_on_which_terms_a_machine_is_offered() -> None:
    usual = ("eu_north", True, "secure", 3200, "on_demand")
    cases = [
        ({}, [usual]),
        ({"region": None, "stockStatus": "Out_Of_Stock"}, [("FI", False, *usual[2:])]),
        *each([{"stockStatus": "unavailable"}, {"stockStatus": "none"}], ("eu_north", False, *usual[2:])),
        ({"stockStatus": None, "security": None}, [("eu_north", None, None, 3200, "on_demand")]),
        (
            {"security": "community_cloud", "interconnect": 0, "isSpot": True},
            [(*usual[:2], "community", None, "spot")],
        ),
    ]
    assert not misread(
        "primeintellect", alone(OFFER), cases, "region available tier node_network_gbps price_kind"
    )


def test_a_doubtful_price_is_flagged() -> None:
    apart = {"defaultCount": 8, "pricePerUnit": 0.01, "defaultIncludedInPrice": False}
    cases = [
        ({"prepaidTime": 720}, ["prepaid_time"]),
        *each([{"vcpu": apart}, {"memory": apart}], "parts_priced_apart"),
        *each(
            [{"vcpu": apart | {"defaultIncludedInPrice": True}}, {"vcpu": apart | {"pricePerUnit": 0}}], None
        ),
    ]
    assert not misread("primeintellect", alone(OFFER), cases, "flag_reason")
