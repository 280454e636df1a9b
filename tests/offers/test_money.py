from decimal import Decimal

import pytest

from pipeline.offers.money import usd_per_hour


@pytest.mark.parametrize(
    ("price", "unit", "gpus", "term_days", "expected"),
    [
        ("3.49", "gpu_hour", 8, None, "27.92"),
        ("0.001", "gpu_second", 2, None, "7.2"),
        ("0.05", "gpu_minute", 1, None, "3.0"),
        ("730", "gpu_month", 4, None, "4"),
        ("55.04", "instance_hour", 8, None, "55.04"),
        ("0.01", "instance_second", 8, None, "36.00"),
        ("0.5", "instance_minute", 8, None, "30.0"),
        ("1460", "instance_month", 8, None, "2"),
        ("876000", "instance_term", 8, 365, "100"),
        ("2628000", "instance_term", 8, 1095, "100"),
        ("0.59", "gpu_hour", 0.25, None, "0.1475"),
    ],
)
def test_every_unit_becomes_dollars_per_hour_of_the_whole_offer(price, unit, gpus, term_days, expected):
    assert usd_per_hour(Decimal(price), unit, gpus, term_days, Decimal(1)) == Decimal(expected)


def test_nothing_is_rounded():
    assert usd_per_hour(Decimal("1000"), "instance_month", 8, None, Decimal(1)) == Decimal(1000) / Decimal(
        730
    )
    assert usd_per_hour(Decimal("18.96"), "instance_hour", 2, None, Decimal("1.1699")) == Decimal("22.181304")


@pytest.mark.parametrize("term_days", [None, 0, -365])
def test_a_term_price_needs_its_term(term_days):
    with pytest.raises(ValueError, match="term_days"):
        usd_per_hour(Decimal(100), "instance_term", 1, term_days, Decimal(1))
