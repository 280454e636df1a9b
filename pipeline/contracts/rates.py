"""Exchange rates as published, and as used to convert prices."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class ExchangeRates:
    """One day's reference rates: US dollars for one unit of each currency (ISO 4217)."""

    date: date
    usd_per_unit: Mapping[str, Decimal]


@dataclass(frozen=True, slots=True)
class Rate:
    """The price of a unit of a currency in US dollars, and the day it was published (None if set by hand)."""

    usd: Decimal
    day: date | None = None


ONE_DOLLAR = Rate(Decimal(1))
