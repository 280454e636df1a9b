"""Sesterce: machines of the console per region, floors of the home page, and an advertisement."""

import json
from typing import Any

from tests.sources.edited_pages import changed, each, edited, flight, misread, outcome

OFFER: dict[str, Any] = {
    "gpuName": "H100",
    "gpuCount": 2,
    "spotOfferAvailable": False,
    "hourlySpotPrice": 0,
    "hourlyPrice": 4.378,
    "configuration": {"ramGB": 384, "storageGB": 7600, "vCpu": 32, "vRamGB": 160, "interconnect": "pcie"},
    "availability": [
        {"name": "AMS", "countryCode": None, "available": True},
        {"name": "NOR-Oslo-1", "countryCode": "NO", "available": False},
    ],
    "deploymentType": "vm",
    "instanceId": "H100x2",
}


def console(*changes: dict[str, Any]) -> str:
    offers = json.dumps([changed(OFFER, change) for change in changes])
    return flight('1b:["$",{"filteredOffers":' + offers + ',"x":"$1b:1:props:filteredOffers:0"}]\n')


def test_a_machine_is_listed_in_each_of_its_regions() -> None:
    ams, oslo = ("AMS", None, True), ("NOR-Oslo-1", "NO", False)
    on_demand = [(*place, "on_demand", "4.378") for place in (ams, oslo)]
    spot = {"spotOfferAvailable": True, "hourlySpotPrice": 2.5}
    odd = {"availability": [{"name": "AMS", "countryCode": 7, "available": "yes"}]}
    cases = [
        ({}, on_demand),
        (spot, [*on_demand, *((*place, "spot", "2.5") for place in (ams, oslo))]),
        (spot | {"hourlySpotPrice": 0}, [*on_demand, "zero_price"]),
        (spot | {"spotOfferAvailable": "yes"}, on_demand),
        (odd, [("AMS", None, None, "on_demand", "4.378")]),
        ({"availability": []}, ["not_offered"]),
        ({"hourlyPrice": "4.378$5"}, ["unreadable_price"]),
        *each([{"gpuCount": "two"}, {"gpuCount": None}], "unknown_gpu_count"),
        ({"instanceId": ""}, ["missing_field"]),
        ({"gpuCount": 0}, ["changed: neither machines nor a table of prices"]),
    ]
    assert not misread("sesterce", console, cases, "region country available price_kind native_price")


def test_one_page_that_changed_does_not_stop_the_other() -> None:
    found = outcome("sesterce", console({}), "<html><body>moved</body></html>")
    assert found == [("H100", "4.378")] * 2 + ["unreadable_answer"]


def test_pages_that_changed_are_not_guessed_at() -> None:
    bodies = {
        "1 lists of offers, or an empty one": console(),
        "2 lists of offers, or an empty one": console({}) + console({}),
        "the table's footer does not state on-demand prices in USD": edited(
            "sesterce", "home.html", ("USD", "EUR")
        ),
        "0 tables of prices per GPU-hour": edited("sesterce", "home.html", ("From / GPU / hr", "GPU / hr")),
    }
    assert {outcome("sesterce", body)[0] for body in bodies.values()} == {
        f"changed: {text}" for text in bodies
    }
