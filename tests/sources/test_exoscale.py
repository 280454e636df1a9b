"""Exoscale: two lists, of prices and of types, that only together make an offer."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.refresh.ingest import read_answers
from tests.sources.helpers import answer, page, read

PRICES = "https://portal.exoscale.com/api/pricing/opencompute"
TYPES = "https://api-ch-gva-2.exoscale.com/v2/instance-type"


def kind(family: str, size: str, /, **more: Any) -> dict[str, Any]:
    types = json.loads(page("exoscale", "instance_types.json"))["instance-types"]
    (found,) = (each for each in types if (each["family"], each["size"]) == (family, size))
    return found | more


def types(*kinds: dict[str, Any]) -> Any:
    return answer({"instance-types": list(kinds)}, TYPES)


def prices(**usd: str) -> Any:
    return answer({"chf": dict.fromkeys(usd, "9.9"), "eur": dict.fromkeys(usd, "8.8"), "usd": usd}, PRICES)


def test_a_type_has_the_dollar_price_of_its_name() -> None:
    (row,), rejects = read("exoscale", prices(running_gpu3_small="1.0453"), types(kind("gpu3", "small")))
    assert (row.native_price, row.native_currency, row.native_unit) == (
        Decimal("1.0453"),
        "USD",
        "instance_hour",
    )
    assert rejects == []


def test_the_order_of_the_two_answers_does_not_matter() -> None:
    both = prices(running_gpu3_small="1.0453"), types(kind("gpu3", "small"))
    assert read("exoscale", *both)[0] == read("exoscale", *reversed(both))[0]


def test_each_zone_has_its_own_offer_and_a_zone_named_twice_has_one() -> None:
    zones = ["ch-dk-2", "hr-zag-1", "ch-dk-2"]
    listings, _ = read("exoscale", prices(running_gpu3_small="1"), types(kind("gpu3", "small", zones=zones)))
    assert [row.region for row in listings] == ["ch-dk-2", "hr-zag-1"]


def test_the_count_is_the_list_s_and_not_the_size_s() -> None:
    (row,), _ = read("exoscale", prices(running_gpu3_small="1"), types(kind("gpu3", "small", gpus=2)))
    assert row.gpu_count == 2


def test_a_type_without_gpus_is_not_an_offer() -> None:
    listed = types(kind("standard", "large"), kind("gpu3", "small"), kind("gpu3", "medium", gpus=0))
    priced = prices(running_standard_large="0.09", running_gpu3_small="1", running_gpu3_medium="2")
    listings, rejects = read("exoscale", priced, listed)
    assert [row.instance_type for row in listings] == ["gpu3.small"]
    assert {reject.reason for reject in rejects} <= {RejectReason.DISCONTINUED}


@pytest.mark.parametrize("change", [{"zones": []}, {"zones": None}, {"size": "colossal"}])
def test_a_type_without_a_zone_or_a_price_is_not_offered(change: dict[str, Any]) -> None:
    listed = types(kind("gpu3", "small", **change), kind("gpu3", "medium"))
    _, rejects = read("exoscale", prices(running_gpu3_small="1", running_gpu3_medium="2"), listed)
    assert RejectReason.NOT_OFFERED in [reject.reason for reject in rejects]


@pytest.mark.parametrize("price", ["", "free", None, "-1"])
def test_a_price_that_is_none_is_a_reject(price: Any) -> None:
    listed = types(kind("gpu3", "small"), kind("gpu3", "medium"))
    listings, rejects = read("exoscale", prices(running_gpu3_small=price, running_gpu3_medium="2"), listed)
    assert [row.instance_type for row in listings] == ["gpu3.medium"]
    assert len(rejects) == 1


def test_a_gpu_price_without_its_type_is_counted() -> None:
    priced = prices(running_gpu3_small="1", running_gpu_small="1.1", running_medium="0.04")
    listings, rejects = read("exoscale", priced, types(kind("gpu3", "small")))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == [RejectReason.DISCONTINUED]


def test_the_disk_is_priced_per_gib_and_hour() -> None:
    (row,), _ = read(
        "exoscale", prices(running_gpu3_small="1", volume="0.00014"), types(kind("gpu3", "small"))
    )
    assert row.storage_usd_per_gb_month == Decimal("0.095181")
    (row,), _ = read("exoscale", prices(running_gpu3_small="1"), types(kind("gpu3", "small")))
    assert row.storage_usd_per_gb_month is None


def test_memory_is_in_bytes() -> None:
    (row,), _ = read("exoscale", prices(running_gpu3_small="1"), types(kind("gpu3", "small", memory=2**33)))
    assert row.ram_gib == 8


@pytest.mark.parametrize(
    "answers",
    [
        [prices(running_gpu3_small="1")],
        [types(kind("gpu3", "small"))],
        [answer({"chf": {"running_gpu3_small": "1"}}, PRICES), types(kind("gpu3", "small"))],
        [answer({"usd": [1]}, PRICES), types(kind("gpu3", "small"))],
        [prices(running_gpu3_small="1"), types(kind("standard", "large"))],
        [prices(running_gpu3_small="1"), answer({"instance-types": None}, TYPES)],
        [prices(running_gpu3_small="1"), answer("{", TYPES)],
        [answer("<html></html>", PRICES), types(kind("gpu3", "small"))],
        [answer('{"usd": {"running_gpu3_small": 1}, "usd": {}}', PRICES), types(kind("gpu3", "small"))],
    ],
)
def test_less_than_two_lists_is_a_changed_source(answers: list[Any]) -> None:
    with pytest.raises(SourceChangedError):
        read("exoscale", *answers)


def test_a_family_called_after_its_card_only_is_known() -> None:
    answers = [prices(running_gpub300_huge="80"), types(kind("gpub300", "huge"))]
    (offer,) = read_answers(answers, source_config("exoscale"), {}).offers
    assert (offer.raw_label, offer.gpu_id, offer.gpu_count) == ("gpub300.huge", "b300-sxm-288gb", 8)
