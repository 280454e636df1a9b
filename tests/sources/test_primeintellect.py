"""Prime Intellect's offers: whole-offer prices and whose machine each is."""

from decimal import Decimal
from typing import Any

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Request, SourceChangedError
from pipeline.parsing.paging import next_page
from tests.sources.helpers import answer, following, page, read

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
URL = "https://api.primeintellect.ai/api/v1/availability/gpus?page=1&page_size=100"


def test_the_sample() -> None:
    listings, rejects = read("primeintellect", answer(page("primeintellect", "gpus.json")))
    assert len(listings) == 9
    assert [reject.reason for reject in rejects] == ["not_offered"]
    assert listings[4].price_kind == "spot"
    assert listings[7].available is False


def test_the_price_is_the_whole_offers_and_the_upstream_cloud_is_named_as_its_own_source_is() -> None:
    (row,), _ = read("primeintellect", answer({"items": [OFFER], "totalCount": 1}))
    assert (row.native_price, row.gpu_count, row.native_unit) == (Decimal("28.0"), 8, "instance_hour")
    assert row.context == {"form_factor": "SXM5"}
    assert (row.tier, row.region, row.node_network_gbps) == ("secure", "eu_north", 3200)
    assert row.upstream_provider == source_config("verda").provider


def test_an_unknown_cloud_keeps_its_name_and_none_is_none() -> None:
    listings, _ = read(
        "primeintellect", answer([OFFER | {"provider": "dc_roan"}, OFFER | {"provider": None}])
    )
    assert [row.upstream_provider for row in listings] == ["dc_roan", None]


def test_optional_fields_may_be_absent_and_numbers_may_be_text() -> None:
    bare = {"gpuType": "L40S_48GB", "gpuCount": "1", "prices": {"onDemand": "0.82"}}
    (row,), _ = read("primeintellect", answer([bare]))
    assert (row.native_price, row.gpu_count, row.native_currency) == (Decimal("0.82"), 1, "USD")
    assert (row.region, row.available, row.tier, row.instance_type) == (None, None, None, None)


@pytest.mark.parametrize(
    ("change", "doubt"),
    [
        ({"prepaidTime": 720}, "prepaid_time"),
        (
            {"vcpu": {"defaultCount": 8, "pricePerUnit": 0.01, "defaultIncludedInPrice": False}},
            "parts_priced_apart",
        ),
        ({"vcpu": {"defaultCount": 8, "pricePerUnit": 0.01, "defaultIncludedInPrice": True}}, None),
    ],
)
def test_a_doubtful_price_is_flagged(change: dict[str, Any], doubt: str | None) -> None:
    (row,), _ = read("primeintellect", answer([OFFER | change]))
    assert row.flag_reason == doubt


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"prices": {"onDemand": None, "communityPrice": None}}, "not_offered"),
        ({"prices": None}, "not_offered"),
        ({"prices": {"onDemand": 0}}, "zero_price"),
        ({"gpuCount": None}, "unknown_gpu_count"),
    ],
)
def test_unreadable_rows_are_rejected(change: dict[str, Any], reason: str) -> None:
    listings, rejects = read("primeintellect", answer([OFFER | change]))
    assert not listings
    assert [reject.reason for reject in rejects] == [reason]


@pytest.mark.parametrize(
    "body",
    ['{"items": [{"cloudId"', '{"items": []}', '{"H100_80GB": {"1": {"minPrice": 1.99}}}'],
)
def test_another_shape_is_a_change(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("primeintellect", answer(body))


def test_pages_are_asked_with_the_key_until_the_last() -> None:
    config = source_config("primeintellect")
    first = Request(URL, headers=config.requests[0].headers)
    assert config.paging is not None
    second = next_page(first, answer({"items": [OFFER], "totalCount": 150}, URL), config.paging)
    assert second is not None
    assert second == Request(URL.replace("page=1", "page=2"), headers=first.headers)
    assert following("primeintellect", answer({"items": [OFFER], "totalCount": 150}, second.url)) is None
    assert following("primeintellect", answer([OFFER], URL)) is None


def test_an_offer_with_no_gpus_or_an_odd_name_is_a_reject():
    good = {"gpuType": "H100_80GB", "gpuCount": 1, "prices": {"onDemand": 2.5}}
    listings, rejects = read(
        "primeintellect",
        answer({"items": [good, good | {"gpuCount": 0}, good | {"gpuType": 7}, good | {"prices": 3}]}),
    )
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == ["unknown_gpu_count", "missing_field", "not_offered"]
