"""How the gates compare prices, and the one table of their thresholds."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from pipeline.gates import prices
from pipeline.gates.prices import is_product, price_key, relative_change, usd_of, usd_text
from tests.gates.screening import H100, offers_in
from tests.offers.builders import config, offer


def test_the_parts_of_the_key_that_tells_offers_apart() -> None:
    changes: dict[str, Any] = {
        "raw_label": "H100",
        "instance_type": "h100.1",
        "gpu_count": 2,
        "price_kind": "spot",
        "term_days": 365,
        "region": "eu",
        "tier": "secure",
        "native_unit": "instance_hour",
        "effective_from": date(2026, 9, 1),
    }
    label, *others = list(changes.values())[:-1]
    assert price_key(offer(**changes)) == (label, H100, *others, "2026-09-01")
    same = ("H100 SXM", H100, None, 1, "on_demand", None, None, None, "gpu_hour", None)
    alike = offers_in("3 | 2 flag_reason=coming_soon | 2 native_currency=EUR usd=-")
    assert {price_key(each) for each in alike} == {same}
    owned = [offer(source="lambda", provider=name) for name in ("Lambda", "Another")]
    assert [price_key(each) for each in owned] == [same, (*same, "Another")]


def test_how_far_apart_prices_are_the_same_up_and_down() -> None:
    asked = {
        ("2.00", "2.10"): (True, False),
        ("2.00", "2.11"): (False, False),
        ("2.000", "2.002"): (True, True),
        ("2.000", "2.003"): (True, False),
    }
    for (low, high), same in asked.items():
        for one, other in ((Decimal(low), Decimal(high)), (Decimal(high), Decimal(low))):
            found = (prices.is_same_price(one, other), prices.is_same_figure(one, other))
            assert found == same, (one, other)
    two, three = Decimal(2), Decimal(3)
    assert relative_change(two, three) == relative_change(three, two) == Decimal("0.5")


def test_dollars_and_their_bounds() -> None:
    assert usd_of(offer("2.50")) == Decimal("2.50")
    texts = [usd_text(each) for each in (Decimal("2.50"), Decimal(100), None)]
    assert texts == ["2.5 USD", "100 USD", "unknown USD"]
    with pytest.raises(ValueError, match="'H100 SXM' has no price in dollars"):
        usd_of(offer(usd_per_gpu_hour=None))
    own = (Decimal("0.5"), Decimal(8))
    assert prices.bounds_of(config(usd_per_gpu_hour=own)) == own
    assert prices.bounds_of(config()) == (Decimal("0.01"), Decimal(40))


def test_a_product_is_rounded_to_cents_or_to_its_last_decimal() -> None:
    """Up to six thousandths for cents, and to six tenths of the last decimal of a finer price."""
    products = {
        ("0.51", "1.008", "0.5"): True,  # six thousandths off
        ("0.51", "1.006", "0.5"): False,
        ("1", "1.988", "0.5"): True,
        ("0.001562", "0.001736", "0.9"): True,
        ("0.0015630", "0.001736", "0.9"): False,
        ("0.00156", "0.001736", "0.9"): True,
        ("0.0010", "0.0012", "1"): False,
    }
    found = {each: is_product(*map(Decimal, each), Decimal(0)) for each in products}
    assert found == products
