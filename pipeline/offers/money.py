"""Exchange rates, and native prices as US dollars per hour. Everything stays an unrounded Decimal."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from pipeline.sources.base import NativeUnit
from pipeline.sources.units import HOURS_PER_MONTH

HOURS_PER_DAY = 24

_PERIODS_PER_HOUR = {
    "second": Decimal(3600),
    "minute": Decimal(60),
    "hour": Decimal(1),
}


class NoExchangeRateError(LookupError):
    """The rates of that day do not hold this currency."""


@dataclass(frozen=True, slots=True)
class ExchangeRates:
    """One day's reference rates: ``rates`` says how much of each currency one euro buys."""

    date: date
    rates: Mapping[str, Decimal]

    def usd_per(self, currency: str) -> Decimal:
        """US dollars for one unit of a currency (ISO 4217). Raises NoExchangeRateError."""
        if currency == "USD":
            return Decimal(1)
        if "USD" not in self.rates or (currency != "EUR" and currency not in self.rates):
            raise NoExchangeRateError(f"the rates of {self.date} hold no way from {currency} to USD")
        per_euro = Decimal(1) if currency == "EUR" else self.rates[currency]
        return self.rates["USD"] / per_euro


def usd_per_hour(
    native_price: Decimal,
    native_unit: NativeUnit,
    gpu_count: float,
    term_days: int | None,
    fx: Decimal,
) -> Decimal:
    """US dollars for one hour of the whole offer.

    ``gpu_*`` prices count once per GPU, ``instance_*`` prices for the offer as it is; a month is 730 hours;
    ``instance_term`` is the total of ``term_days`` days of 24 hours. ``fx`` is the dollars that one unit of
    the native currency costs. Raises ValueError for a term price without its term.
    """
    if native_unit == "instance_term":
        if not term_days or term_days < 0:
            raise ValueError(f"a price for a whole term needs term_days above 0, not {term_days!r}")
        return native_price / (term_days * HOURS_PER_DAY) * fx
    thing, period = native_unit.split("_")
    things = Decimal(str(gpu_count)) if thing == "gpu" else Decimal(1)
    if period == "month":
        return native_price * things / HOURS_PER_MONTH * fx
    return native_price * things * _PERIODS_PER_HOUR[period] * fx
