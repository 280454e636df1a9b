"""Native prices in dollars per hour of the whole offer, unrounded, and as text."""

from decimal import Decimal
from typing import Any

import pytest

from pipeline.offers.money import usd_per_hour

ONE = Decimal(1)


def test_every_unit_becomes_dollars_per_hour_of_the_whole_offer() -> None:
    expected: dict[tuple[str, Any, float, int | None], str] = {
        ("3.49", "gpu_hour", 8, None): "27.92",
        ("0.001", "gpu_second", 2, None): "7.2",
        ("0.05", "gpu_minute", 1, None): "3",
        ("730", "gpu_month", 4, None): "4",
        ("55.04", "instance_hour", 8, None): "55.04",
        ("0.01", "instance_second", 8, None): "36",
        ("0.5", "instance_minute", 8, None): "30",
        ("1460", "instance_month", 8, None): "2",
        ("876000", "instance_term", 8, 365): "100",
        ("48", "instance_term", 8, 1): "2",
        ("0.59", "gpu_hour", 0.25, None): "0.1475",
    }
    found = {case: usd_per_hour(Decimal(case[0]), *case[1:], ONE) for case in expected}
    assert found == {case: Decimal(usd) for case, usd in expected.items()}


def test_nothing_is_rounded_and_each_unit_is_converted() -> None:
    assert usd_per_hour(Decimal(1000), "instance_month", 8, None, ONE) == Decimal(1000) / Decimal(730)
    rate = Decimal("1.1699")
    assert usd_per_hour(Decimal("18.96"), "instance_hour", 2, None, rate) == Decimal("22.181304")
    assert usd_per_hour(Decimal(730), "gpu_month", 2, None, rate) == 2 * rate
    assert usd_per_hour(Decimal(240), "instance_term", 2, 10, rate) == rate


def test_a_term_price_needs_its_term() -> None:
    for days in (None, 0, -365):
        with pytest.raises(
            ValueError, match=rf"a price for a whole term needs term_days above 0, not {days}$"
        ):
            usd_per_hour(Decimal(100), "instance_term", 1, days, ONE)
