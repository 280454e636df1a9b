"""Factors between a right price and a misread one: of units, taxes and discounts
(catalog/misread_factors.csv), and of currencies (the day's exchange rates)."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Literal

from pipeline.catalog.tables import catalog_table
from pipeline.contracts.rates import Rate
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.prices import is_product, relative_change
from pipeline.gates.thresholds import THRESHOLDS

_REASONS = {
    "unit": RejectReason.MOVED_BY_A_UNIT,
    "tax": RejectReason.MOVED_BY_A_TAX,
    "discount": RejectReason.MOVED_BY_A_DISCOUNT,
}


@dataclass(frozen=True, slots=True)
class _Factor:
    """A row of misread_factors.csv. ``sources`` are the sources whose prices may move by the factor; all if
    empty. A unit may be mistaken either way; taxes are added, and discounts subtracted."""

    shape: Literal["unit", "tax", "discount"]
    factor: Decimal
    what: str
    seen: str
    sources: str = ""

    def fits(self, moved_by: Decimal, source: str) -> bool:
        """True if a source's prices that moved by ``moved_by`` may have been misread by this factor."""
        if self.sources and source not in self.sources.split():
            return False
        tolerance = THRESHOLDS.factor_tolerance
        is_inverse = self.shape == "unit" and relative_change(moved_by, 1 / self.factor) <= tolerance
        return is_inverse or relative_change(moved_by, self.factor) <= tolerance


@cache
def _factors() -> tuple[_Factor, ...]:
    return tuple(catalog_table("misread_factors.csv", _Factor))


def is_unit(before: Decimal, now: Decimal) -> bool:
    """True if a price may have been read in another unit: ``now`` is ``before`` times a factor between units,
    or divided by it, rounded."""
    return any(
        is_product(now, before, factor, THRESHOLDS.factor_tolerance)
        for row in _factors()
        if row.shape == "unit"
        for factor in (row.factor, 1 / row.factor)
    )


def known_factor(
    moved_by: Decimal, source: str, rates: Mapping[str, Rate]
) -> tuple[RejectReason, str] | None:
    """Return the shape of a misread that a common factor of a source's prices has, and what it is in words;
    None if it has no such shape. ``rates`` gives dollars per unit of each currency."""
    for row in _factors():
        if row.fits(moved_by, source):
            return _REASONS[row.shape], row.what
    for currency, rate in rates.items():
        nearest = min(relative_change(moved_by, each) for each in (rate.usd, 1 / rate.usd))
        if currency != "USD" and nearest <= THRESHOLDS.rate_tolerance:
            return RejectReason.MOVED_BY_A_CURRENCY, f"the rate between {currency} and USD"
    return None
