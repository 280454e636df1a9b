"""AWS: on-demand lists by region, spot prices of all regions, and the spellings of a region's address."""

from typing import Any
from urllib.parse import unquote

import pytest

from pipeline.catalog.places import place_of
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer, Listing, SourceChangedError
from pipeline.sources.aws import requests, retry_requests
from tests.sources.helpers import answer, read

AWS = source_config("aws")
VIRGINIA = "US East (N. Virginia)"


def row(**fields: Any) -> dict[str, Any]:
    usual = {"Instance Type": "p5.48xlarge", "price": "55.04", "Location": VIRGINIA}
    return {**usual, "Operating System": "Linux", **fields}


def on_demand(*rows: Any) -> Answer:
    return answer({"regions": {VIRGINIA: {str(at): each for at, each in enumerate(rows)}}})


def short(listings: list[Listing]) -> list[tuple[str, str, str | None, str]]:
    return [(r.raw_label, r.price_kind, r.region, str(r.native_price.normalize())) for r in listings]


def test_machines_of_other_kinds_are_skipped() -> None:
    types = [
        "c7i.large",
        "trn1.32xlarge",
        "inf2.xlarge",
        "f2.48xlarge",
        "dl1.24xlarge",
        "vt1.3xlarge",
        "m5.metal",
    ]
    listings, rejects = read("aws", on_demand(row(), *(row(**{"Instance Type": name}) for name in types)))
    assert (len(listings), rejects) == (1, [])


def test_prices_that_are_not_plain_linux_are_refused() -> None:
    for fields, reason in (
        ({"Operating System": "Windows"}, "not_linux"),
        ({"Operating System": "RHEL"}, "not_linux"),
        ({"Operating System": None}, "missing_field"),
        ({"Pre Installed S/W": "SQL Std"}, "software_included"),
        ({"price": "N/A"}, "not_offered"),
        ({"price": "55,04 USD"}, "unreadable_price"),
        ({"price": "-1"}, "zero_price"),
        ({"Location": None}, "missing_field"),
    ):
        listings, rejects = read("aws", on_demand(row(), row(**fields)))
        assert (len(listings), [reject.reason for reject in rejects]) == (1, [reason])
    plain = [row(**{"Pre Installed S/W": software}) for software in (None, "NA", "N/A", "")]
    assert len(read("aws", on_demand(*plain))[0]) == 4


def test_parts_of_a_machine_are_read_where_they_are_clear() -> None:
    parts = {"vCPU": "192", "Memory": "2,048 GiB", "Storage": "8 x 3840 GB SSD", "extra": [1]}
    (clear, unclear), _ = read(
        "aws",
        on_demand(
            row(price=55.04, Location="Europe (Vienna)", **parts, **{"Network Performance": "3200 Gigabit"}),
            row(Memory="much", Storage="EBS only", **{"Network Performance": "Up to 20 Gigabit"}),
        ),
    )
    assert short([clear]) == [("p5.48xlarge", "on_demand", "Europe (Vienna)", "55.04")]
    sizes = [(r.vcpus, r.ram_gib, r.local_disk_gb, r.node_network_gbps) for r in (clear, unclear)]
    assert sizes == [(192, 2048, 30720, 3200), (None, None, None, None)]


def test_a_government_region_is_flagged() -> None:
    (listing,), _ = read("aws", on_demand(row(Location="AWS GovCloud (US-West)")))
    assert (listing.region, listing.flag_reason) == ("us-gov-west-1", "restricted_region")


def spot(*columns: Any) -> Answer:
    sizes = [{"size": "p5.48xlarge", "valueColumns": list(columns)}, {"size": "m5.large", "valueColumns": []}]
    region = {"region": "us-east-1", "instanceTypes": [{"type": "gpu", "sizes": sizes}]}
    return answer({"config": {"regions": [region]}})


def test_only_the_one_linux_price_in_dollars_is_a_spot_price() -> None:
    linux, windows = ({"name": name, "prices": {"USD": "20"}} for name in ("linux", "mswin"))
    listings, rejects = read("aws", spot(windows, linux))
    assert (short(listings), rejects) == ([("p5.48xlarge", "spot", "us-east-1", "2E+1")], [])
    for columns in ([windows], [linux, linux], [{"name": "linux", "prices": {"EUR": "20"}}], []):
        listings, (reject,) = read("aws", spot(*columns))
        assert (listings, reject.reason) == ([], "missing_field")
        assert reject.detail == "p5.48xlarge: no single Linux column with a price in USD"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('{"regions": {"US East (N. Virginia)": {"p5', "is not JSON"),
        ({"regions": {}}, "no GPU instance type"),
        ({"regions": []}, "neither an on-demand list"),
        ({"regions": {VIRGINIA: {"a": row(**{"Instance Type": "m5.large"})}}}, "no GPU instance type"),
        ({"config": {"regions": [{"region": "us-east-1", "types": []}]}}, "has no list of instanceTypes"),
        ({"config": {"regions": [{"instanceTypes": []}]}}, "a region without a name"),
        ('"FormatVersion","v1.0"\n"SKU","OfferTermCode"\n', "is not JSON"),
    ],
)
def test_another_shape_is_a_clear_failure(body: Any, problem: str) -> None:
    with pytest.raises(SourceChangedError, match=problem):
        read("aws", answer(body))


def test_rows_without_their_envelope_are_read_too() -> None:
    oregon = row(Location="US West (Oregon)")
    renamed = {"Type": "p5.48xlarge", "price": "55.04", "Operating System": "Linux"}
    keyed = {"p5 48xlarge US West Oregon Linux": oregon, "lastUpdated": "2026-10-01", "p5": renamed}
    listings, rejects = read("aws", answer(keyed))
    assert short(listings) == [("p5.48xlarge", "on_demand", "us-west-2", "55.04")]
    assert [reject.reason for reject in rejects] == ["unreadable_row", "missing_field"]
    assert short(read("aws", answer([oregon]))[0]) == short(listings)


def test_one_region_that_answers_something_else_does_not_take_the_others_along() -> None:
    listings, rejects = read("aws", answer("<html>busy</html>"), answer({"p5 48xlarge Linux": row()}))
    assert [listing.region for listing in listings] == ["us-east-1"]
    assert [reject.reason for reject in rejects] == ["unreadable_answer"]


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
