"""The prices of rows: read with their currency and flag, or refused with a reason."""

from decimal import Decimal
from typing import Any

from pipeline.contracts.listing import Listing, Reject
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing.prices import (
    CellPrice,
    agreed,
    cell_price,
    gpu_hour_row,
    spot_flag,
)
from tests.parsing.cases import outcome, wrong
from tests.sources.helpers import answer

PAGE = answer("{}")


def test_units_and_currencies_are_chosen_by_the_reader() -> None:
    assert cell_price("€2/sec", {"sec"}, ["EUR"]) == (2, "EUR", None)
    assert outcome(cell_price, "€2", currencies=["USD"]) == "unreadable_price: '€2' is not one USD price"
    assert outcome(cell_price, "$2", {"sec"}, ["USD"]) == "unreadable_price: '$2' is a price per ''"


def listing(**columns: Any) -> Listing:
    usual: dict[str, Any] = {
        "raw_label": "H100",
        "gpu_count": 1,
        "price_kind": "on_demand",
        "native_price": Decimal(2),
        "native_currency": "EUR",
        "native_unit": "instance_hour",
        "answer": PAGE,
    }
    return Listing(**usual | columns)


def test_a_price_is_a_listing_on_demand_per_machine_hour_unless_said_otherwise() -> None:
    price = CellPrice(Decimal(2), "EUR")
    assert price.listing("H100", 1, PAGE) == listing()
    others: dict[str, Any] = {"price_kind": "spot", "native_unit": "gpu_hour", "native_currency": "USD"}
    assert price.listing("H100", 1, PAGE, region="x", **others) == listing(region="x", **others)


def test_a_listing_has_the_flag_of_its_price_or_one_that_is_given() -> None:
    price = CellPrice(Decimal(2), "EUR", FlagReason.STARTING_PRICE)
    assert price.listing("H100", 1, PAGE, flag_reason=None).flag_reason == "starting_price"
    superseded = price.listing("H100", 1, PAGE, flag_reason=FlagReason.SUPERSEDED)
    assert superseded.flag_reason == "superseded"


def test_a_price_per_gpu_hour_is_a_listing_of_one_gpu() -> None:
    row = gpu_hour_row("H100", "reserved", "from €2 /s", {}, PAGE, {"s"}, term_days=30)
    assert row == listing(
        native_unit="gpu_hour", price_kind="reserved", term_days=30, flag_reason=FlagReason.STARTING_PRICE
    )


def test_a_row_without_a_price_says_what_it_is_for() -> None:
    for days, term in ((30, " for 30 days"), (None, "")):
        row = gpu_hour_row("H100", "reserved", "Contact us", ["x"], PAGE, term_days=days)
        detail = f"H100, reserved{term}: no price is given: 'Contact us'"
        assert row == Reject(RejectReason.NOT_OFFERED, detail, ["x"], PAGE)


def test_prices_stated_twice_must_agree() -> None:
    assert agreed([Decimal("2.0"), Decimal("2.00")]) == 2
    differ = "conflicting_prices: several prices for the same thing: "
    cases = [([Decimal(2), Decimal("2.01")], f"{differ}['2', '2.01']"), ([], f"{differ}[]")]
    assert wrong(agreed, cases) == []


def test_spot_must_be_below_on_demand() -> None:
    flag = FlagReason.SPOT_NOT_BELOW_ON_DEMAND
    for spot, on_demand, expected in (
        ("1.99", Decimal(2), None),
        ("2", Decimal("2.00"), flag),
        ("2.01", Decimal(2), flag),
        ("2", None, None),
    ):
        assert spot_flag(Decimal(spot), on_demand) == expected
