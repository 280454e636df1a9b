"""OVHcloud: scaled integers, two currencies, Windows and per-minute look-alikes."""

from typing import Any

from tests.sources.edited_pages import GONE, changed, each, misread, outcome, sample_row

H100 = sample_row("ovh", "catalogue_fr.json", "addons", 1)
RUNNING = H100["pricings"][0]
MONTHLY = {"planCode": "h100-380.monthly.postpaid"}


def catalogue(change: dict[str, Any], currency: str | None = "EUR") -> dict[str, Any]:
    """A catalogue with the H100's plan; fields of its running price stand first in the change."""
    price = {name: change.pop(name) for name in list(change) if name in RUNNING}
    addon = changed(H100, {"pricings": [changed(RUNNING, price)]} | change)
    return {"locale": {"currencyCode": currency, "subsidiary": "FR"}, "addons": [addon]}


def test_a_plan_code_says_the_terms_and_the_zone() -> None:
    by_second = ("h100-380", None, "2.8", "on_demand", None, "instance_hour", 1, 60)
    month = ("h100-380", None, "1940", "reserved", 30, "instance_month", None, None)
    a_month = MONTHLY | {"price": 194000000000, "formattedPrice": "1940.00 €", "intervalUnit": "month"}
    cases = [
        ({}, [by_second]),
        ({"planCode": "h100-380.consumption.LZ.EU"}, [("h100-380", "LZ.EU", *by_second[2:])]),
        (a_month, [month]),
        (a_month | {"intervalUnit": "hour"}, ["unknown_unit"]),
        *each([{"planCode": "h100-380.hourly.prepaid"}, {"planCode": None}], "unknown_terms"),
        *each(
            [{"planCode": "win-h100-380.consumption"}, {"blobs.technical.os.family": "windows"}], "not_linux"
        ),
        *each([{"intervalUnit": per} for per in ("minute", "month", 60)], "unknown_unit"),
        *each([{"intervalUnit": per} for per in ("none", None, GONE)], by_second),
        (
            {"blobs.commercial.brick": "ai-serving"},
            ["changed: the catalogue has no add-on of the brick 'gpu'"],
        ),
    ]
    columns = "instance_type region native_price price_kind term_days native_unit"
    assert not misread("ovh", catalogue, cases, f"{columns} billing_increment_seconds minimum_seconds")


def test_the_us_company_charges_by_the_hour() -> None:
    american = catalogue({"formattedPrice": "$2.80"}, currency="USD")
    columns = "native_currency billing_increment_seconds minimum_seconds"
    assert outcome("ovh", american, columns=columns) == [("USD", 3600, None)]


def test_a_price_agrees_with_the_text_that_is_shown() -> None:
    def dollars(text_and_price: tuple[str | None, Any]) -> dict[str, Any]:
        shown, price = text_and_price
        return catalogue({"formattedPrice": shown, "price": price}, currency="USD")

    cases = [
        (("$1.56 USD", 155819000), ["1.55819"]),
        (("$1,387.00 USD", 138700000000), ["1387"]),
        (("1 940,00 $", 194000000000), ["1940"]),
        (("$3", 300000000), ["3"]),
        (("$0.880 USD", 88000000), ["0.88"]),  # thousands or a fraction: not compared
        ((None, 280000000), ["2.8"]),
        (("$2.80", "280000000"), ["2.8"]),
        (("$2.80", 280500000), ["2.805"]),
        (("$2.80", 280500001), ["conflicting_prices"]),
        (("$3.80", 280000000), ["conflicting_prices"]),
        (("$2.80", 28000000000), ["conflicting_prices"]),
        (("2.80 €", 280000000), ["unknown_currency"]),
        (("£2.80", 280000000), ["unknown_currency"]),
        (("$2.80", None), ["not_offered"]),
    ]
    assert not misread("ovh", dollars, cases, "native_price")


def test_a_bare_list_takes_its_currency_from_the_shown_prices() -> None:
    def bare(shown: str) -> list[Any]:
        return catalogue({"formattedPrice": shown})["addons"]

    cases = [("2.80 €", ["EUR"]), ("$2.80 USD", ["USD"]), ("£2.80", ["GBP"]), ("2.80", ["unknown_currency"])]
    assert not misread("ovh", bare, cases, "native_currency")
    unstated = catalogue({}, currency=None)
    assert outcome("ovh", unstated) == ["changed: the catalogue does not state its currency"]


def test_several_running_prices_are_not_chosen_between() -> None:
    cheaper = changed(RUNNING, {"price": 250000000, "formattedPrice": "2.50 €"})
    setup = changed(cheaper, {"capacities": ["installation"]})
    cases = [
        ({"pricings": [RUNNING, cheaper]}, ["conflicting_prices"]),
        ({"pricings": [RUNNING, RUNNING, setup]}, [("H100", "2.8")]),
        *each([{"pricings": []}, {"pricings": [setup]}], "not_offered"),
    ]
    assert not misread("ovh", catalogue, cases)


def test_a_plan_that_is_coming_soon_is_flagged() -> None:
    cases = [
        ({}, [(None, None)]),
        ({"blobs.tags": ["coming_soon"]}, [(False, "coming_soon")]),
        *each([{"blobs.tags": 5}, {"blobs.tags": GONE}], (None, None)),
    ]
    assert not misread("ovh", catalogue, cases, "available flag_reason")
