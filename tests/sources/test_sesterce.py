"""Sesterce: machines of the console per region, floors of the home page, and an advertisement."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.captures import capture
from tests.sources.helpers import answer, page, read

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


def console(*offers: Any, piece: int = 90) -> str:
    text = '1b:["$",{"filteredOffers":' + json.dumps(offers) + ',"x":"$1b:1:props:filteredOffers:0"}]\n'
    pieces = [text[at : at + piece] for at in range(0, len(text), piece)]
    return "".join(f"<script>self.__next_f.push([1,{json.dumps(part)}])</script>" for part in pieces)


def home(old: str = "", new: str = "") -> str:
    text = page("sesterce", "home.html")
    assert not old or old in text
    return text.replace(old, new) if old else text


def test_a_machine_is_listed_in_each_of_its_regions() -> None:
    listings, rejects = read("sesterce", answer(console(OFFER)))
    assert [(row.region, row.country, row.available) for row in listings] == [
        ("AMS", None, True),
        ("NOR-Oslo-1", "NO", False),
    ]
    assert {(row.gpu_count, row.native_price, row.native_unit, row.price_kind) for row in listings} == {
        (2, Decimal("4.378"), "instance_hour", "on_demand")
    }
    assert listings[0].context == {"vram_total_gb": 160, "form_factor": "pcie"}
    assert rejects == []


def test_a_spot_price_is_read_where_it_is_offered() -> None:
    listings, _ = read(
        "sesterce", answer(console(OFFER | {"spotOfferAvailable": True, "hourlySpotPrice": 2.5}))
    )
    assert {(row.price_kind, row.native_price) for row in listings} == {
        ("on_demand", Decimal("4.378")),
        ("spot", Decimal("2.5")),
    }


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"hourlyPrice": 0}, "zero_price"),
        ({"hourlyPrice": None}, "not_offered"),
        ({"hourlyPrice": "4.378$5"}, "unreadable_price"),
        ({"gpuCount": "two"}, "unknown_gpu_count"),
        ({"gpuCount": None}, "unknown_gpu_count"),
        ({"gpuName": None}, "missing_field"),
        ({"instanceId": ""}, "missing_field"),
        ({"availability": []}, "not_offered"),
    ],
)
def test_an_offer_that_is_not_certain_is_rejected(change: dict[str, Any], reason: str) -> None:
    listings, rejects = read("sesterce", answer(console(OFFER | change)))
    assert listings == []
    assert {reject.reason for reject in rejects} == {reason}


def test_machines_without_gpus_are_skipped() -> None:
    cpu = OFFER | {"gpuName": "CPU", "gpuCount": 0, "instanceId": "cpu_small"}
    listings, rejects = read("sesterce", answer(console(OFFER, cpu)))
    assert {row.instance_type for row in listings} == {"H100x2"}
    assert rejects == []


def test_the_captured_table_has_floors_which_are_flagged() -> None:
    listings, rejects = read("sesterce", answer(capture("sesterce_homepage_table_2026-08-22.html")))
    assert [(row.raw_label, row.native_price) for row in listings] == [
        ("B300", Decimal("8.48")),
        ("B200", Decimal("4.11")),
        ("H200", Decimal("2.48")),
        ("H100", Decimal("1.83")),
        ("A100", Decimal("1.49")),
        ("L40S", Decimal("0.76")),
    ]
    assert {(row.flag_reason, row.tier) for row in listings} == {("starting_price", "lowest")}
    assert [row.context.get("form_factor") for row in listings] == [
        "SXM6",
        "SXM6",
        "SXM5",
        None,
        None,
        "PCIe",
    ]
    assert rejects == []


def test_the_advertisement_and_the_ticker_are_not_prices() -> None:
    listings, _ = read("sesterce", answer(home()))
    assert len(listings) == 6
    assert {Decimal("4.50"), Decimal("2.25"), Decimal("1.66"), Decimal("1.24")}.isdisjoint(
        row.native_price for row in listings
    )


@pytest.mark.parametrize(
    ("price", "reason"),
    [
        ("$2.4O", "unreadable_price"),
        ("$2.48$3", "unreadable_price"),
        ("€2.30", None),
        ("Contact us", "not_offered"),
        ("Sold out", "not_offered"),
        ("$0.00", "zero_price"),
    ],
)
def test_an_uncertain_floor_is_not_a_floor_in_dollars(price: str, reason: str | None) -> None:
    listings, rejects = read("sesterce", answer(home('bbg-price">$2.48', f'bbg-price">{price}')))
    dollars = [row for row in listings if row.native_currency == "USD"]
    assert len(dollars) == 5
    assert [reject.reason for reject in rejects] == ([reason] if reason else [])


def test_one_page_that_changed_does_not_stop_the_other() -> None:
    listings, rejects = read("sesterce", answer(console(OFFER)), answer("<html><body>moved</body></html>"))
    assert {row.instance_type for row in listings} == {"H100x2"}
    assert [reject.reason for reject in rejects] == ["unreadable_answer"]


@pytest.mark.parametrize(
    "body",
    [
        console(),
        console(OFFER) + console(OFFER),
        console(OFFER)[:-200] + "</script>",
        home("USD", "EUR"),
        home("From / GPU / hr", "GPU / hr"),
    ],
)
def test_pages_that_changed_are_not_guessed_at(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("sesterce", answer(body))
