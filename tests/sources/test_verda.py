"""Verda: API types, where they are free, and the page's JSON-LD, distinguished by what they contain."""

import json
from decimal import Decimal

import pytest

from pipeline.contracts.listing import SourceChangedError

from .helpers import answer, page, read, sample


def instance_type(**changes):
    return {
        "instance_type": "8H100.80S.176V",
        "price_per_hour": "26.00",
        "spot_price": "13.00",
        "currency": "usd",
        "gpu": {"description": "8x H100 SXM5 80GB", "number_of_gpus": 8},
        "gpu_memory": {"size_in_gigabytes": 640},
    } | changes


def offer(name="1x B200 SXM6 180GB spot", description="Hourly spot instance price", price=3.055, **changes):
    return {
        "@type": "Offer",
        "name": name,
        "description": description,
        "price": price,
        "priceCurrency": "USD",
        "priceSpecification": {"price": price, "priceCurrency": "USD", "unitText": "hour"},
    } | changes


def jsonld(*offers):
    graph = json.dumps({"@context": "https://schema.org", "@graph": list(offers)})
    return f'<html><script type="application/ld+json">{graph}</script></html>'


def prices(listings):
    return {(r.raw_label, r.price_kind, r.tier): (r.gpu_count, r.native_price) for r in listings}


def test_instance_types_of_the_api():
    listings, rejects = read("verda", answer(sample("verda_instance_types_2026-08.json")))
    assert {(r.instance_type, r.price_kind): (r.gpu_count, r.native_price) for r in listings} == {
        ("1H100.80S.30V", "on_demand"): (1, Decimal("3.95")),
        ("1H100.80S.30V", "spot"): (1, Decimal("1.70")),
        ("2A6000.20V", "on_demand"): (2, Decimal("1.98")),
        ("2A6000.20V", "spot"): (2, Decimal("0.70")),
        ("1V100.6V", "on_demand"): (1, Decimal("0.89")),
        ("1V100.6V", "spot"): (1, Decimal("0.25")),
    }
    assert len(listings) == 6
    assert rejects == []
    assert {(r.region, r.available, r.native_unit) for r in listings} == {(None, None, "instance_hour")}


def test_availability_places_the_types():
    availability = [
        {"location_code": "FIN-01", "availabilities": ["1A100.22V", "2A6000.20V", "1V100.6V", "CPU.4V.16G"]},
        {"location_code": "ICE-01", "availabilities": ["CPU.4V.16G", "CPU.120V.480G"]},
    ]
    locations = [{"code": "FIN-01", "name": "Finland 1", "country_code": "FI"}]
    types = sample("verda_instance_types_2026-08.json")
    listings, _ = read("verda", answer(types), answer(availability), answer(locations))
    places = {(r.instance_type, r.price_kind): (r.region, r.available) for r in listings}
    assert len(listings) == 6
    assert places["2A6000.20V", "on_demand"] == ("FIN-01", True)
    assert places["1H100.80S.30V", "on_demand"] == (None, False)
    assert places["2A6000.20V", "spot"] == (None, None)


def test_page_alone_keeps_the_machines_that_the_api_would_name():
    listings, rejects = read("verda", answer(page("verda", "pricing.html")))
    assert len(listings) == 14
    expected = {
        ("1x GB300 SXM6 288GB", "on_demand", None): (1, Decimal("8.62")),
        ("1x GB300 SXM6 288GB", "spot", None): (1, Decimal("4.31")),
        ("1x B300 SXM6 268GB", "on_demand", None): (1, Decimal("7.5")),
        ("1x B300 SXM6 268GB", "spot", None): (1, Decimal("3.75")),
        ("1x B200 SXM6 180GB", "on_demand", None): (1, Decimal("6.11")),
        ("104x B300 SXM6 268GB", "on_demand", "cluster"): (104, Decimal("780.0")),
    }
    assert expected.items() <= prices(listings).items()
    assert rejects == []


def test_an_api_price_that_the_page_contradicts_stands_and_the_page_is_rejected():
    listings, rejects = read(
        "verda",
        answer([instance_type()]),
        answer(jsonld(offer("8x H100 SXM5 80GB on-demand", "Hourly on-demand instance price", 27.2))),
    )
    assert prices(listings)["8x H100 SXM5 80GB", "on_demand", None] == (8, Decimal("26.00"))
    assert [r.reason for r in rejects] == ["conflicting_prices"]


@pytest.mark.parametrize(
    ("changes", "offers", "reasons"),
    [
        ({"spot_price": "0"}, 1, ["not_offered"]),
        ({"spot_price": None}, 1, ["not_offered"]),
        ({"price_per_hour": "0"}, 1, ["zero_price"]),
        ({"price_per_hour": 26.5, "spot_price": 13}, 2, []),
        ({"price_per_hour": "26,00"}, 1, ["unreadable_price"]),
        ({"currency": None}, 0, ["missing_field"]),
        ({"gpu": {"description": "4x H100 SXM5 80GB", "number_of_gpus": 8}}, 0, ["unknown_gpu_count"]),
        ({"gpu": {"description": "8x H100 SXM5 80GB"}}, 0, ["unknown_gpu_count"]),
        ({"instance_type": None}, 0, ["missing_field"]),
        ({"serverless_price": "26.00", "serverless_spot_price": "0", "new_field": [1]}, 3, []),
    ],
)
def test_variants_of_an_instance_type(changes, offers, reasons):
    listings, rejects = read("verda", answer([instance_type(**changes)]))
    assert len(listings) == offers
    assert [r.reason for r in rejects] == reasons


def test_serverless_spot_is_spot_of_containers_and_not_of_instances():
    item = instance_type(serverless_price="28.00", serverless_spot_price="14.00")
    free = [{"location_code": "FIN-02", "availabilities": ["8H100.80S.176V"]}]
    listings, _ = read("verda", answer([item]), answer(free))
    found = [(r.price_kind, r.tier, str(r.native_price), r.region, r.flag_reason) for r in listings]
    assert found == [
        ("on_demand", None, item["price_per_hour"], "FIN-02", None),
        ("spot", None, item["spot_price"], None, None),
        ("serverless", None, "28.00", None, None),
        ("spot", "serverless", "14.00", None, None),
    ]
    dear = instance_type(serverless_price="14.00", serverless_spot_price="14.00")
    (*_, serverless_spot), _ = read("verda", answer([dear]))
    assert serverless_spot.flag_reason == "spot_not_below_on_demand"


@pytest.mark.parametrize(("gpu", "gpu_count"), [({"description": "", "number_of_gpus": 8}, 8), (None, None)])
def test_without_a_description_the_instance_type_is_the_label(gpu, gpu_count):
    trimmed = {
        name: value
        for name, value in instance_type(gpu=gpu).items()
        if name not in ("currency", "gpu_memory")
    }
    cpu = {"instance_type": "CPU.4V.16G", "price_per_hour": "0.0279"}
    listings, rejects = read("verda", answer([trimmed, cpu]))
    assert {(r.raw_label, r.label_kind, r.gpu_count, r.native_currency) for r in listings} == {
        ("8H100.80S.176V", "instance_type", gpu_count, "USD")
    }
    assert rejects == []


@pytest.mark.parametrize("spot_price", ["30", instance_type()["price_per_hour"]])
def test_euros_and_a_spot_price_not_below_on_demand(spot_price):
    listings, _ = read("verda", answer([instance_type(currency="eur", spot_price=spot_price)]))
    assert {r.native_currency for r in listings} == {"EUR"}
    assert [r.flag_reason for r in listings] == [None, "spot_not_below_on_demand"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (offer(description="Hourly on-demand instance price"), "unknown_price_kind"),
        (offer(description="Weekly spot instance price"), "unknown_price_kind"),
        (offer(name="B200 SXM6 180GB spot"), "unknown_gpu_count"),
        (offer(name="0x B200 SXM6 180GB spot"), "unknown_gpu_count"),
        (offer(price=0), "zero_price"),
        (offer(price=None), "not_offered"),
        (offer(priceSpecification={"price": 3.05, "priceCurrency": "USD"}), "conflicting_prices"),
        (offer(priceSpecification={"price": 3.055, "priceCurrency": "EUR"}), "conflicting_prices"),
        (offer(priceCurrency="", priceSpecification=None), "conflicting_prices"),
        (offer(priceSpecification={"price": 3.055, "unitText": "month"}), "unknown_unit"),
    ],
)
def test_doubtful_offers_of_the_page_are_rejects(bad, reason):
    good = offer("1x L40S 48GB on-demand", "Hourly on-demand instance price", "1.37")
    listings, rejects = read("verda", answer(jsonld(bad, good)))
    assert prices(listings) == {("1x L40S 48GB", "on_demand", None): (1, Decimal("1.37"))}
    assert [r.reason for r in rejects] == [reason]


@pytest.mark.parametrize(
    "body",
    [
        '<html><script type="application/ld+json">{"@graph": [{"@type": "Of</script></html>',
        jsonld(),
        jsonld(offer(name=" spot")),
        json.dumps([instance_type(gpu={"description": "", "number_of_gpus": 0})]),
        json.dumps([instance_type()])[:100],
        '{"code": "unauthorized", "message": "Unauthorized"}',
        "[]",
    ],
)
def test_another_shape_fails_the_source(body):
    with pytest.raises(SourceChangedError):
        read("verda", answer(body))


@pytest.mark.parametrize("document", [{"@graph": []}, {"@type": "Product", "offers": [offer()]}, []])
def test_a_page_without_offers_has_changed_though_the_api_answers(document):
    changed = f'<html><script type="application/ld+json">{json.dumps(document)}</script></html>'
    with pytest.raises(SourceChangedError, match="no offer"):
        read("verda", answer([instance_type()]), answer(changed))


def test_an_offer_may_be_the_whole_document():
    alone = f'<html><script type="application/ld+json">{json.dumps(offer())}</script></html>'
    listings, rejects = read("verda", answer(alone))
    assert [row.raw_label for row in listings] == ["1x B200 SXM6 180GB"]
    assert rejects == []


def test_a_machine_without_a_price_does_not_take_the_others_along():
    one = {"instance_type": "1L40S.20V", "gpu": {"description": "1x L40S 48GB", "number_of_gpus": 1}}
    two = one | {"instance_type": "1L40S.22V", "price_per_hour": "1.10"}
    listings, rejects = read("verda", answer([one, two]))
    assert [row.instance_type for row in listings] == ["1L40S.22V"]
    assert {reject.reason for reject in rejects} == {"not_offered"}


@pytest.mark.parametrize("name", ["1x L40S 48GB", "1x L40S 48GB spot"])
def test_an_offers_name_ends_with_the_words_of_its_description(name: str) -> None:
    other = offer(name, "Hourly on-demand instance price", "2")
    listings, rejects = read("verda", answer(jsonld(offer(), other)))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == ["unknown_price_kind"]


def period(**changes):
    return {
        "code": "2_YEARS",
        "name": "2 years",
        "is_enabled": True,
        "unit_name": "year",
        "unit_value": 2,
        "discount_percentage": 25,
    } | changes


def test_a_long_term_period_lowers_the_hourly_price_of_an_instance():
    types = [instance_type(serverless_price="30.00", serverless_spot_price="15.00")]
    places = [{"location_code": "FIN-03", "availabilities": ["8H100.80S.176V"]}]
    url = "https://api.verda.com/v1/instance-availability"
    listings, rejects = read("verda", answer(types), answer([period()]), answer(places, url))
    assert rejects == []
    assert [
        (row.term_days, row.native_price, row.region, row.tier, row.flag_reason)
        for row in listings
        if row.price_kind == "reserved"
    ] == [(730, Decimal("19.5"), "FIN-03", None, "custom_quote")]


@pytest.mark.parametrize(
    ("changes", "days", "price"),
    [
        ({"unit_name": "month", "unit_value": 3.0, "discount_percentage": 3.5}, 90, "25.09"),
        ({"unit_name": "Weeks", "unit_value": 2, "discount_percentage": "1"}, 14, "25.74"),
        ({"discount_percentage": 0}, 730, "26"),
    ],
)
def test_the_length_of_a_period(changes, days, price):
    listings, _ = read("verda", answer([instance_type()]), answer([period(**changes)]))
    (row,) = (row for row in listings if row.price_kind == "reserved")
    assert (row.term_days, row.native_price) == (days, Decimal(price))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"is_enabled": False}, "not_offered"),
        ({"is_enabled": None}, "not_offered"),
        ({"unit_name": "sprint"}, "unknown_term_length"),
        ({"unit_value": 1.5}, "missing_field"),
        ({"unit_value": None}, "missing_field"),
        ({"discount_percentage": 100}, "unreadable_price"),
        ({"discount_percentage": -2}, "unreadable_price"),
        ({"discount_percentage": "much"}, "missing_field"),
    ],
)
def test_a_period_that_is_unclear_gives_no_price(changes, reason):
    listings, rejects = read("verda", answer([instance_type()]), answer([period(**changes)]))
    assert {row.price_kind for row in listings} == {"on_demand", "spot"}
    assert [row.reason for row in rejects] == [reason]
