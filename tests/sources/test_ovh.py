"""OVHcloud: scaled integers, two currencies, Windows and per-minute look-alikes."""

from typing import Any

from tests.sources.edited_pages import changed, outcome, sample_row

H100 = sample_row("ovh", "catalogue_fr.json", "addons", 1)
RUNNING = H100["pricings"][0]
MONTHLY = {"planCode": "h100-380.monthly.postpaid"}


def catalogue(change: dict[str, Any], currency: str | None = "EUR") -> dict[str, Any]:
    """A catalogue with the H100's plan; fields of its running price stand first in the change."""
    price = {name: change.pop(name) for name in list(change) if name in RUNNING}
    addon = changed(H100, {"pricings": [changed(RUNNING, price)]} | change)
    return {"locale": {"currencyCode": currency, "subsidiary": "FR"}, "addons": [addon]}


def test_the_us_company_charges_by_the_hour() -> None:
    american = catalogue({"formattedPrice": "$2.80"}, currency="USD")
    columns = "native_currency billing_increment_seconds minimum_seconds"
    assert outcome("ovh", american, columns=columns) == [("USD", 3600, None)]


def test_a_catalogue_states_its_currency() -> None:
    unstated = catalogue({}, currency=None)
    assert outcome("ovh", unstated) == ["changed: the catalogue does not state its currency"]
