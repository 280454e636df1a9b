"""Exchange rates: as their source publishes them, and as prices are converted."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal


class NoExchangeRateError(LookupError):
    """The rates of that day lack this currency."""


@dataclass(frozen=True, slots=True)
class ExchangeRates:
    """One day's reference rates: units of each currency per euro."""

    date: date
    rates: Mapping[str, Decimal]

    def usd_per(self, currency: str) -> Decimal:
        """US dollars for one unit of a currency (ISO 4217). Raises NoExchangeRateError."""
        if currency == "USD":
            return Decimal(1)
        if "USD" not in self.rates or (currency != "EUR" and currency not in self.rates):
            raise NoExchangeRateError(f"the rates of {self.date} do not convert {currency} to USD")
        per_euro = Decimal(1) if currency == "EUR" else self.rates[currency]
        return self.rates["USD"] / per_euro


@dataclass(frozen=True, slots=True)
class Rate:
    """US dollars for one unit of a currency, and the day it was published (None: given by hand)."""

    usd: Decimal
    day: date | None = None


ONE_DOLLAR = Rate(Decimal(1))
