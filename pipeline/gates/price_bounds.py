"""Prices that were seen before: dated facts that a source's first reading is compared with.

catalog/gpu_price_bounds.csv has, for each card and price kind, the lowest and the highest price that public
files stated: of one source (``source``), and over all sources with list prices (``source`` empty).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache

from pipeline.catalog.source_config import CatalogError
from pipeline.catalog.tables import catalog_rows

BOUNDS_COLUMNS = (
    "source",
    "gpu_id",
    "price_kind",
    "low_usd_per_gpu_hour",
    "high_usd_per_gpu_hour",
    "prices",
    "sources",
    "first_day",
    "last_day",
    "evidence",
)

MIN_SOURCES = 3
"""The prices of fewer sources, or of a single day, say too little of what others may ask: a list of one day
has the sources that its author chose."""

OWN_MARGIN = {
    "on_demand": Decimal("1.9"),
    "flex_start": Decimal("1.9"),
    "reserved": Decimal("1.9"),
    "serverless": Decimal("1.9"),
    "spot": Decimal(3),
}
MARKET_MARGIN = {
    "on_demand": Decimal("2.5"),
    "flex_start": Decimal("2.5"),
    "reserved": Decimal("2.5"),
    "spot": Decimal(3),
}
"""A price may lie outside of what was seen by this factor. docs/explanation/price-gates.md has the false
alarms from which the factors were chosen: of prices of one day against those of all others."""


@dataclass(frozen=True, slots=True)
class PriceBounds:
    """The range in which a price is plausible, in USD per GPU-hour, and what it rests on, in words."""

    low: Decimal
    high: Decimal
    basis: str

    def contains(self, usd_per_gpu_hour: Decimal) -> bool:
        """Whether a price is within; both ends are."""
        return self.low <= usd_per_gpu_hour <= self.high


DISCOUNT = Decimal(5)
"""Where only on-demand prices of a card were seen, flex-start, spot and reserved prices may be lower by this
factor, and are not above the dearest. The largest discount in the facts is Azure's MI300X, 6.5; the margin
covers the rest."""


def plausible_prices(source: str, gpu_id: str, price_kind: str) -> PriceBounds | None:
    """What a card may cost at a source, by what was seen there, else by what several others ask; None where
    too little was seen. Raises CatalogError."""
    kinds = (price_kind,) if price_kind == "serverless" else (price_kind, "on_demand")
    for kind in dict.fromkeys(kinds):
        discount = DISCOUNT if kind != price_kind else Decimal(1)
        own = _seen().get((source, gpu_id, kind))
        if own:
            return _widened(own, OWN_MARGIN[kind], f"{source} asked", kind, discount)
        market = _seen().get(("", gpu_id, kind))
        if market and kind in MARKET_MARGIN and _says_enough(market):
            who = f"{market['sources']} sources asked"
            return _widened(market, MARKET_MARGIN[kind], who, kind, discount)
    return None


SEEN_MARGIN = Decimal("1.1")
"""Within this factor of what was seen at a source, a price is the one that was seen there."""


def prices_seen_at(source: str, gpu_id: str, price_kind: str) -> PriceBounds | None:
    """What a source was seen to ask for a card; None where it never was. Raises CatalogError."""
    own = _seen().get((source, gpu_id, price_kind))
    return _widened(own, SEEN_MARGIN, f"{source} asked", price_kind) if own else None


def figures_seen_at(source: str) -> Mapping[tuple[str, str], frozenset[Decimal]]:
    """The lowest and the highest price that was seen of each card and price kind at a source."""
    return {
        (gpu_id, kind): frozenset(Decimal(row[name]) for name in BOUNDS_COLUMNS[3:5])
        for (at, gpu_id, kind), row in _seen().items()
        if at == source
    }


def _says_enough(market: Mapping[str, str]) -> bool:
    return int(market["sources"]) >= MIN_SOURCES and market["first_day"] < market["last_day"]


def _widened(
    seen: Mapping[str, str], margin: Decimal, who: str, kind: str, discount: Decimal = Decimal(1)
) -> PriceBounds:
    low, high = Decimal(seen["low_usd_per_gpu_hour"]), Decimal(seen["high_usd_per_gpu_hour"])
    dates = f"from {seen['first_day']} to {seen['last_day']}"
    basis = f"{who} {low:f} to {high:f} USD per GPU-hour ({kind}) {dates}"
    return PriceBounds(low / margin / discount, high * margin, basis)


@cache
def _seen() -> Mapping[tuple[str, str, str], Mapping[str, str]]:
    rows = catalog_rows("gpu_price_bounds.csv")
    for number, row in enumerate(rows, start=2):
        try:
            fits = 0 < Decimal(row["low_usd_per_gpu_hour"]) <= Decimal(row["high_usd_per_gpu_hour"])
        except (InvalidOperation, KeyError, TypeError):
            fits = False
        if not fits:
            raise CatalogError(f"catalog/gpu_price_bounds.csv, line {number}: low and high are not a range")
    return {(row["source"], row["gpu_id"], row["price_kind"]): row for row in rows}
