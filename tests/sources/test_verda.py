"""Verda: the types of its API, where they are free, and the API's earlier addresses."""

from pipeline.catalog.source_config import source_config
from pipeline.sources.verda import retry_requests
from tests.sources.edited_pages import outcome
from tests.sources.helpers import answer, sample


def test_each_type_is_listed_where_it_is_free() -> None:
    types = sample("verda_instance_types_2026-08.json")
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


def test_a_list_of_an_earlier_version_of_the_api_is_asked_instead() -> None:
    config = source_config("verda")
    earlier = config.settings["earlier_urls"]
    for url in (*earlier, "https://verda.com/pricing"):
        asked = [request.url for request in retry_requests(answer("", url), config)]
        assert asked == [each_url for each_url in [earlier.get(url)] if each_url]
