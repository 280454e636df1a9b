from urllib.parse import unquote

import pytest

from pipeline.catalog.places import place_of
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import SourceChangedError
from pipeline.sources.aws import requests, retry_requests
from tests.sources.helpers import answer, page, read

VIRGINIA = "US East (N. Virginia)"


def row(**fields):
    usual = {"Instance Type": "p5.48xlarge", "price": "55.04", "Location": VIRGINIA}
    return {**usual, "Operating System": "Linux", **fields}


def on_demand(*rows):
    return answer({"regions": {VIRGINIA: {str(at): r for at, r in enumerate(rows)}}})


def short(listings):
    return [(r.raw_label, r.price_kind, r.region, str(r.native_price.normalize())) for r in listings]


def test_on_demand_in_us_east_1():
    listings, rejects = read("aws", answer(page("aws", "on_demand_us-east-1.json")))
    assert rejects == []
    assert {r.instance_type: str(r.native_price) for r in listings} == {
        "g6e.48xlarge": "30.1311800000",
        "p4de.24xlarge": "27.4470500000",
        "p5.48xlarge": "55.0400000000",
        "g6e.12xlarge": "10.4926400000",
        "p5en.48xlarge": "63.2960000000",
        "p6-b300.48xlarge": "142.4160000000",
        "p4d.24xlarge": "21.9576420000",
        "g6e.xlarge": "1.8610000000",
        "p5.4xlarge": "6.8800000000",
        "p6-b200.48xlarge": "113.9328000000",
    }
    assert {(r.region, r.label_kind, r.native_unit, r.gpu_count) for r in listings} == {
        ("us-east-1", "instance_type", "instance_hour", None)
    }


def test_machines_of_other_kinds_are_skipped():
    types = (
        "c7i.large",
        "trn1.32xlarge",
        "inf2.xlarge",
        "f2.48xlarge",
        "dl1.24xlarge",
        "vt1.3xlarge",
        "m5.metal",
    )
    listings, rejects = read("aws", on_demand(row(), *(row(**{"Instance Type": t}) for t in types)))
    assert len(listings) == 1
    assert rejects == []


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"Operating System": "Windows"}, "not_linux"),
        ({"Operating System": "RHEL"}, "not_linux"),
        ({"Pre Installed S/W": "SQL Std"}, "software_included"),
        ({"price": "0.0000000000"}, "zero_price"),
        ({"price": "N/A"}, "not_offered"),
        ({"price": None}, "not_offered"),
        ({"price": "55,04 USD"}, "unreadable_price"),
        ({"price": "-1"}, "zero_price"),
        ({"Location": None}, "missing_field"),
        ({"Operating System": None}, "missing_field"),
    ],
)
def test_prices_that_are_not_plain_linux_are_refused(fields, reason):
    listings, rejects = read("aws", on_demand(row(), row(**fields)))
    assert len(listings) == 1
    assert [r.reason for r in rejects] == [reason]


def test_numbers_and_texts_and_unknown_regions():
    listings, _ = read("aws", on_demand(row(price=55.04, Location="Europe (Vienna)", vCPU="192", extra=[1])))
    assert short(listings) == [("p5.48xlarge", "on_demand", "Europe (Vienna)", "55.04")]
    assert listings[0].vcpus == 192


def test_a_government_region_is_flagged():
    listings, _ = read("aws", on_demand(row(Location="AWS GovCloud (US-West)")))
    assert (listings[0].region, listings[0].flag_reason) == ("us-gov-west-1", "restricted_region")


def test_spot_prices_of_a_region():
    listings, rejects = read("aws", answer(page("aws", "spot.json")))
    assert ("p5.48xlarge", "spot", "us-east-1", "15.6472") in short(listings)
    assert [r.reason for r in rejects] == ["not_offered"] * 3


def test_windows_only_spot_is_refused():
    size = {"size": "p5.48xlarge", "valueColumns": [{"name": "mswin", "prices": {"USD": "20"}}]}
    region = {"region": "us-east-1", "instanceTypes": [{"type": "gpu", "sizes": [size]}]}
    listings, rejects = read("aws", answer({"config": {"regions": [region]}}))
    assert listings == []
    assert [r.reason for r in rejects] == ["missing_field"]


@pytest.mark.parametrize(
    "body",
    [
        '{"regions": {"US East (N. Virginia)": {"p5',
        {"regions": {}},
        {"regions": []},
        {"regions": {VIRGINIA: {"a": row(**{"Instance Type": "m5.large"})}}},
        {"config": {"regions": [{"region": "us-east-1", "types": []}]}},
        {"config": {"regions": [{"instanceTypes": []}]}},
        '"FormatVersion","v1.0"\n"SKU","OfferTermCode","TermType"\n"x","y","z"\n',
        "[]",
    ],
)
def test_another_shape_is_a_clear_failure(body):
    with pytest.raises(SourceChangedError):
        read("aws", answer(body))


def test_rows_without_their_envelope_are_read_too():
    oregon = row(Location="US West (Oregon)")
    renamed = {"Type": "p5.48xlarge", "price": "55.04", "Operating System": "Linux"}
    keyed = {"p5 48xlarge US West Oregon Linux": oregon, "lastUpdated": "2026-10-01", "p5": renamed}
    listings, rejects = read("aws", answer(keyed))
    assert short(listings) == [("p5.48xlarge", "on_demand", "us-west-2", "55.04")]
    assert [reject.reason for reject in rejects] == ["unreadable_row", "missing_field"]
    assert short(read("aws", answer([oregon]))[0]) == short(listings)


def test_software_left_open_is_none():
    assert len(read("aws", on_demand(row(**{"Pre Installed S/W": None})))[0]) == 1


def test_one_region_that_answers_something_else_does_not_take_the_others_along():
    listings, rejects = read("aws", answer("<html>busy</html>"), answer({"p5 48xlarge Linux": row()}))
    assert [row.region for row in listings] == ["us-east-1"]
    assert [reject.reason for reject in rejects] == ["unreadable_answer"]


AWS = source_config("aws")


def test_every_region_that_is_open_to_everybody_is_asked_once() -> None:
    first, *further = requests(AWS, {})
    on_demand = [region_of(request.url) for request in (first, *further[:-1])]
    open_to_all = {code for code in AWS.settings["regions"].values() if not code.startswith("us-gov-")}
    assert sorted(on_demand) == sorted(open_to_all)
    assert (region_of(first.url), first.optional) == ("us-east-1", False)
    assert all(request.optional for request in further)
    assert further[-1].url.endswith("/spot.json")
    assert all(place_of("aws", region).country for region in open_to_all)


def region_of(url: str) -> str:
    return AWS.settings["regions"][unquote(url).split("/")[-3]]


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
    assert {region for region, names in spelled.items() if len(names) > 1} == {
        region for region in spelled if region.startswith("eu-")
    }
    assert retry_requests(answer("", AWS.requests[-1].url), AWS) == []
