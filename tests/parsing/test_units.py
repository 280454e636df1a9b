"""Units of price pages: gigabytes, and prices of storage."""

from decimal import Decimal

from pipeline.parsing.units import GB_PER_GIB, gb_from_gib, gigabytes, usd_per_gb_month
from tests.parsing.cases import wrong


def test_gigabytes() -> None:
    amounts = {"80 GB": 80, "80GB": 80, "80g": 80, "80 GiB": 80, "1.5 GiB": 1.5, "9999 GB": 9999}
    none = ["10000 GB", "1.55 GB", "80", "80 TB", "", "x80 GB", None]
    assert wrong(gigabytes, [*amounts.items(), *((text, None) for text in none)]) == []


def test_a_price_per_gib_and_hour_is_less_per_gb_and_more_per_month() -> None:
    assert usd_per_gb_month("0.0001") == Decimal("0.073")
    assert usd_per_gb_month("0.0001", GB_PER_GIB) == Decimal("0.067987")  # of 0.06798657...
    assert wrong(usd_per_gb_month, [(None, None), ("free", None), (0, None)]) == []


def test_a_gib_is_more_than_a_gb() -> None:
    assert gb_from_gib(2) == 2.147483648
