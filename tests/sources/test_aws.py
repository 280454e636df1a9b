"""AWS's regions: each is asked once, under each spelling of its name."""

from urllib.parse import unquote

from pipeline.catalog.places import place_of
from pipeline.catalog.source_config import source_config
from pipeline.sources.aws import requests, retry_requests
from tests.sources.helpers import answer

AWS = source_config("aws")


def region_of(url: str) -> str:
    return AWS.settings["regions"][unquote(url).split("/")[-3]]


def test_every_region_that_is_open_to_everybody_is_asked_once() -> None:
    first, *further = requests(AWS, {})
    asked = [region_of(request.url) for request in (first, *further[:-1])]
    open_to_all = {code for code in AWS.settings["regions"].values() if not code.startswith("us-gov-")}
    assert sorted(asked) == sorted(open_to_all)
    assert (region_of(first.url), first.optional) == ("us-east-1", False)
    assert all(request.optional for request in further)
    assert further[-1].url.endswith("/spot.json")
    assert all(place_of("aws", region).country for region in open_to_all)


def test_a_region_is_asked_under_each_spelling_of_its_name() -> None:
    """Some addresses have EU where others have Europe."""
    spelled = {}
    for request in requests(AWS, {})[:-1]:
        chain = [request.url]
        while following := retry_requests(answer("", chain[-1]), AWS):
            chain += [each.url for each in following]
        spelled[region_of(request.url)] = [unquote(url).split("/")[-3] for url in chain]
    assert spelled["eu-central-1"] == ["EU (Frankfurt)", "Europe (Frankfurt)"]
    assert spelled["eu-south-2"] == ["Europe (Spain)", "EU (Spain)"]
    several = {region for region, names in spelled.items() if len(names) > 1}
    assert several == {region for region in spelled if region.startswith("eu-")}
    assert retry_requests(answer("", AWS.requests[-1].url), AWS) == []
