"""OVHcloud: scaled integers, two currencies, Windows and per-minute look-alikes."""

import json
from decimal import Decimal

import pytest

from pipeline.contracts.listing import SourceChangedError

from .helpers import answer, page, read


def addon(
    code="h100-380.consumption", price=280000000, shown="2.80 €", brick="gpu", os="linux", per=None, **gpu
):
    per = per or ("month" if "monthly" in str(code) else "hour")
    return {
        "planCode": code,
        "pricings": [{"price": price, "formattedPrice": shown, "intervalUnit": per, "tax": 56000000}],
        "blobs": {
            "commercial": {"brick": brick},
            "technical": {
                "gpu": {"model": "H100", "number": 1, "memory": {"size": 80}} | gpu,
                "os": {"family": os},
            },
        },
    }


def catalogue(*addons, currency="EUR"):
    return {"locale": {"currencyCode": currency, "subsidiary": "FR"}, "addons": list(addons)}


def prices(listings):
    return {(r.instance_type, r.price_kind): (r.native_price, r.native_currency) for r in listings}


def test_both_catalogues():
    listings, rejects = read(
        "ovh", answer(page("ovh", "catalogue_fr.json")), answer(page("ovh", "catalogue_us.json"))
    )
    found = prices(listings)
    assert len(listings) == 23
    assert found["h100-380", "on_demand"] == (Decimal("2.8"), "EUR")
    assert found["h200-1920", "on_demand"] == (Decimal("42"), "EUR")
    assert found["l40s-90", "on_demand"] == (Decimal("1.8"), "USD")
    assert [r.reason for r in rejects] == ["not_linux"] * 3


def test_monthly_prices_are_a_month_of_commitment():
    (listing,), _ = read(
        "ovh", answer(catalogue(addon("h100-380.monthly.postpaid", 194000000000, "1940.00 €")))
    )
    assert (listing.price_kind, listing.term_days, listing.native_unit, listing.native_price) == (
        "reserved",
        30,
        "instance_month",
        Decimal("1940"),
    )


def test_a_plan_of_one_zone_names_it_in_its_code():
    listings, _ = read("ovh", answer(catalogue(addon(), addon("h100-380.consumption.LZ.EU"))))
    assert [(row.instance_type, row.region) for row in listings] == [
        ("h100-380", None),
        ("h100-380", "LZ.EU"),
    ]


def test_the_european_company_charges_by_the_second_and_the_us_one_by_the_hour():
    (european,), _ = read("ovh", answer(catalogue(addon())))
    assert (european.billing_increment_seconds, european.minimum_seconds) == (1, 60)
    (american,), _ = read("ovh", answer(catalogue(addon(shown="$2.80"), currency="USD")))
    assert (american.billing_increment_seconds, american.minimum_seconds) == (3600, None)
    (monthly,), _ = read(
        "ovh", answer(catalogue(addon("h100-380.monthly.postpaid", 194000000000, "1940.00 €")))
    )
    assert monthly.billing_increment_seconds is None


def test_a_plan_that_is_coming_soon_is_flagged():
    soon = addon()
    soon["blobs"]["tags"] = ["coming_soon"]
    (listing,), _ = read("ovh", answer(catalogue(soon)))
    assert (listing.available, listing.flag_reason) == (False, "coming_soon")


def test_per_minute_managed_services_are_not_machines():
    minute = addon("ai-app.h100-1-gpu.minute.consumption", 5000000, "0.05 €", brick="ai-serving")
    listings, rejects = read("ovh", answer(catalogue(addon(), minute)))
    assert (len(listings), rejects) == (1, [])


def test_bare_list_takes_its_currency_from_the_shown_prices():
    listings, rejects = read("ovh", answer([addon(), addon("l4-90.consumption", 103000000, "$1.03 USD")]))
    assert prices(listings) == {
        ("h100-380", "on_demand"): (Decimal("2.8"), "EUR"),
        ("l4-90", "on_demand"): (Decimal("1.03"), "USD"),
    }
    _, rejects = read("ovh", answer([addon(shown="2.80")]))
    assert [r.reason for r in rejects] == ["unknown_currency"]


@pytest.mark.parametrize(
    ("shown", "price", "expected"),
    [
        ("$1.56 USD", 155819000, Decimal("1.55819")),
        ("$1,387.00 USD", 138700000000, Decimal("1387")),
        ("1 940,00 $", 194000000000, Decimal("1940")),
        ("$3", 300000000, Decimal("3")),
        ("$0.880 USD", 88000000, Decimal("0.88")),
        (None, 280000000, Decimal("2.8")),
        ("$2.80", "280000000", Decimal("2.8")),
    ],
)
def test_shown_prices_that_agree(shown, price, expected):
    (listing,), _ = read("ovh", answer(catalogue(addon(price=price, shown=shown), currency="USD")))
    assert listing.native_price == expected


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"shown": "3.80 €"}, "conflicting_prices"),
        ({"price": 28000000000}, "conflicting_prices"),
        ({"price": 0, "shown": "0.00 €"}, "zero_price"),
        ({"price": None}, "not_offered"),
        ({"shown": "$2.80 USD"}, "unknown_currency"),
        ({"code": "h100-380.hourly.prepaid"}, "unknown_terms"),
        ({"code": None}, "unknown_terms"),
        ({"code": "win-h100-380.consumption"}, "not_linux"),
        ({"os": "windows"}, "not_linux"),
        ({"per": "minute"}, "unknown_unit"),
        ({"per": "month"}, "unknown_unit"),
        ({"per": 60}, "unknown_unit"),
        ({"code": "h100-380.monthly.postpaid", "per": "hour"}, "unknown_unit"),
        ({"number": 0}, "unknown_gpu_count"),
        ({"number": "0.5"}, "unknown_gpu_count"),
        ({"number": None}, "unknown_gpu_count"),
        ({"model": ""}, "missing_field"),
    ],
)
def test_doubtful_plans_are_rejects(changes, reason):
    listings, rejects = read("ovh", answer(catalogue(addon("l4-90.consumption"), addon(**changes))))
    assert [r.instance_type for r in listings] == ["l4-90"]
    assert [r.reason for r in rejects] == [reason]


def test_an_interval_that_says_nothing_leaves_the_unit_to_the_plan_code():
    (listing,), rejects = read("ovh", answer(catalogue(addon(per="none"))))
    assert (listing.native_unit, rejects) == ("instance_hour", [])


def test_several_running_prices_are_not_chosen_between():
    two = addon()
    two["pricings"].append({"price": 250000000, "formattedPrice": "2.50 €", "capacities": ["renew"]})
    setup = addon("l4-90.consumption")
    setup["pricings"].append({"price": 100000000, "formattedPrice": "1.00 €", "capacities": ["installation"]})
    none = addon("l4-180.consumption")
    none["pricings"] = []
    listings, rejects = read("ovh", answer(catalogue(two, setup, none)))
    assert [r.instance_type for r in listings] == ["l4-90"]
    assert [r.reason for r in rejects] == ["conflicting_prices", "not_offered"]


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(catalogue()),
        json.dumps(catalogue(addon(brick="instance"))),
        json.dumps({"addons": [addon()]}),
        json.dumps({"locale": {"currencyCode": "EUR"}, "plans": []}),
        json.dumps(catalogue(addon()))[:-20],
        "[]",
    ],
)
def test_another_shape_fails_the_source(body):
    with pytest.raises(SourceChangedError):
        read("ovh", answer(body))


def test_odd_tags_cost_no_offer() -> None:
    addon = json.loads(page("ovh", "catalogue_fr.json"))["addons"]
    gpu = next(a for a in addon if a["planCode"] == "h100-380.consumption")
    odd = gpu | {"blobs": gpu["blobs"] | {"tags": 5}}
    listings, _ = read("ovh", answer({"locale": {"currencyCode": "EUR"}, "addons": [odd]}))
    assert [row.instance_type for row in listings] == ["h100-380"]
