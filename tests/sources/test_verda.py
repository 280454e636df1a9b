"""Verda: API types, where they are free, and the page's JSON-LD, distinguished by what they contain."""

import json
from typing import Any

from pipeline.catalog.source_config import source_config
from pipeline.sources.verda import retry_requests
from tests.sources.edited_pages import outcome
from tests.sources.helpers import answer, sample

TYPE: dict[str, Any] = {
    "instance_type": "8H100.80S.176V",
    "price_per_hour": "26.00",
    "spot_price": "13.00",
    "currency": "usd",
    "gpu": {"description": "8x H100 SXM5 80GB", "number_of_gpus": 8},
    "gpu_memory": {"size_in_gigabytes": 640},
}
OFFER: dict[str, Any] = {
    "@type": "Offer",
    "name": "1x B200 SXM6 180GB spot",
    "description": "Hourly spot instance price",
    "price": 3.055,
    "priceCurrency": "USD",
    "priceSpecification": {"price": 3.055, "priceCurrency": "USD", "unitText": "hour"},
}
ON_DEMAND = "Hourly on-demand instance price"


def jsonld(document: Any) -> str:
    return f'<html><script type="application/ld+json">{json.dumps(document)}</script></html>'


def test_instance_types_of_the_api() -> None:
    types = sample("verda_instance_types_2026-08.json")
    assert outcome("verda", types, columns="instance_type price_kind gpu_count native_price native_unit") == [
        ("1H100.80S.30V", "on_demand", 1, "3.95", "instance_hour"),
        ("1H100.80S.30V", "spot", 1, "1.7", "instance_hour"),
        ("2A6000.20V", "on_demand", 2, "1.98", "instance_hour"),
        ("2A6000.20V", "spot", 2, "0.7", "instance_hour"),
        ("1V100.6V", "on_demand", 1, "0.89", "instance_hour"),
        ("1V100.6V", "spot", 1, "0.25", "instance_hour"),
    ]
    availability = [{"location_code": "FIN-01", "availabilities": ["2A6000.20V", "CPU.4V.16G"]}]
    locations = [{"code": "FIN-01", "name": "Finland 1", "country_code": "FI"}]
    places = outcome("verda", types, availability, locations, columns="instance_type region available")
    assert places[:4] == [
        ("1H100.80S.30V", None, False),
        ("1H100.80S.30V", None, None),
        ("2A6000.20V", "FIN-01", True),
        ("2A6000.20V", None, None),
    ]
    unreadable = [{"location_code": None, "availabilities": []}]
    assert outcome("verda", types, unreadable) == ["changed: a location's availability cannot be read"]


def test_an_api_price_that_the_page_repeats_or_contradicts_stands() -> None:
    h100 = OFFER | {
        "name": "8x H100 SXM5 80GB on-demand",
        "description": ON_DEMAND,
        "priceSpecification": None,
    }
    cases = [(26, "duplicate"), (27.2, "conflicting_prices")]
    for price, reason in cases:
        found = outcome("verda", [TYPE], jsonld([h100 | {"price": price}]))
        assert found == [("8x H100 SXM5 80GB", "26"), ("8x H100 SXM5 80GB", "13"), reason]


def test_a_page_without_offers_has_changed_though_the_api_answers() -> None:
    for document in ({"@graph": []}, {"@type": "Product", "offers": [OFFER]}, []):
        assert outcome("verda", [TYPE], jsonld(document)) == ["changed: the page's JSON-LD has no offer"]
    assert outcome("verda", [TYPE], "<html></html>") == ["changed: the page has no JSON-LD"]
    cut = jsonld({}).replace("{}", '{"@graph": [{"@type": "Of')
    assert outcome("verda", cut)[0].startswith("changed: the page's JSON-LD cannot be read")
    assert outcome("verda", jsonld(OFFER)) == [("1x B200 SXM6 180GB", "3.055")]  # the whole document


def test_a_list_of_an_earlier_version_of_the_api_is_asked_instead() -> None:
    config = source_config("verda")
    earlier = config.settings["earlier_urls"]
    for url in (*earlier, "https://verda.com/pricing"):
        asked = [request.url for request in retry_requests(answer("", url), config)]
        assert asked == [each_url for each_url in [earlier.get(url)] if each_url]
