"""Checks that compare a source's first prices for a card and price kind with dated prices from public files.

catalog/gpu_price_bounds.csv gives the lowest and the highest price of a month for each card and price kind:
at one source (``source``), and over all sources with list prices (``source`` empty). A price is compared only
with prices at least min_fact_age_days older.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from typing import Annotated

from pydantic import Field

from pipeline.catalog.tables import catalog_table
from pipeline.contracts.offer import Offer
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.held import Doubt
from pipeline.gates.prices import is_same_figure, price_key, usd_of, usd_text
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.gpus.catalogue import card_by_id


@dataclass(frozen=True, slots=True)
class PriceBounds:
    """The range in which a price is plausible, in USD per GPU-hour, and its basis in words."""

    low: Decimal
    high: Decimal
    basis: str

    def contains(self, usd_per_gpu_hour: Decimal) -> bool:
        """True if a price is in the range, ends included."""
        return self.low <= usd_per_gpu_hour <= self.high


@dataclass(frozen=True, slots=True)
class Seen:
    """A row of gpu_price_bounds.csv: the prices seen for a card and price kind."""

    gpu_id: str
    price_kind: str
    low_usd_per_gpu_hour: Annotated[Decimal, Field(gt=0)]
    high_usd_per_gpu_hour: Decimal
    sources: str
    first_day: date
    last_day: date
    source: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The sources that asked these prices."""
        return frozenset(self.sources.split(" | "))

    def __or__(self, other: "Seen") -> "Seen":
        """Return the prices of both periods."""
        return replace(
            self,
            low_usd_per_gpu_hour=min(self.low_usd_per_gpu_hour, other.low_usd_per_gpu_hour),
            high_usd_per_gpu_hour=max(self.high_usd_per_gpu_hour, other.high_usd_per_gpu_hour),
            sources=" | ".join(sorted(self.names | other.names)),
            first_day=min(self.first_day, other.first_day),
            last_day=max(self.last_day, other.last_day),
        )

    def widened(self, margin: Decimal, discount: Decimal = Decimal(1)) -> PriceBounds:
        """Return the range, widened by ``margin`` at both ends and also by ``discount`` at the low end."""
        low, high = self.low_usd_per_gpu_hour, self.high_usd_per_gpu_hour
        who = self.source or f"{len(self.names)} sources"
        basis = (
            f"{who} asked {low:f} to {high:f} USD per GPU-hour ({self.price_kind}) from {self.first_day} to "
            f"{self.last_day}"
        )
        return PriceBounds(low / margin / discount, high * margin, basis)


@cache
def _rows() -> Sequence[Seen]:
    return catalog_table("gpu_price_bounds.csv", Seen)


@lru_cache(maxsize=4)
def _seen(day: date) -> Mapping[tuple[str, str, str], Seen]:
    """Return the prices that count on a day, by source, card and price kind."""
    newest = day - timedelta(days=THRESHOLDS.min_fact_age_days)
    found: dict[tuple[str, str, str], Seen] = {}
    for row in _rows():
        if row.last_day <= newest:
            key = (row.source, row.gpu_id, row.price_kind)
            found[key] = found[key] | row if key in found else row
    return found


class OtherPrices:
    """The prices of a reading, for comparing one offer with the others."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        self.keys = {price_key(offer) for offer in offers}
        self._prices: dict[tuple[str, str], list[Decimal]] = defaultdict(list)
        for offer in offers:
            if offer.gpu_id and offer.usd_per_gpu_hour is not None and offer.gpu_count >= 1:
                self._prices[offer.gpu_id, offer.price_kind].append(offer.usd_per_gpu_hour)

    def lack_kind(self, kind: str, beside: Offer) -> bool:
        """True if the card has no price of this kind, or has one out of order: on-demand must be dearer."""
        usd, prices = usd_of(beside), self._prices.get((beside.gpu_id or "", kind), [])
        if beside.price_kind == "on_demand":
            return not prices or max(prices) >= usd
        return not prices or (kind == "on_demand" and min(prices) <= usd)

    def lack_card(self, gpu_id: str, beside: Offer) -> bool:
        """True if another card, which had this price before, no longer has it: the reading gives only other
        prices for that card, or lacks that card and both cards are of one model, whose labels are easily
        confused. Cards that differ only in a missing form factor may be the same card."""
        other, own = card_by_id().get(gpu_id), card_by_id().get(beside.gpu_id or "")
        if other is None or own is None:
            return False
        if (other.generic or own.generic) and (other.model, other.memory_gb) == (own.model, own.memory_gb):
            return False
        prices = self._prices.get((gpu_id, beside.price_kind))
        if not prices:
            return other.model == own.model
        return not any(is_same_figure(price, usd_of(beside)) for price in prices)


def doubt_first_price(offer: Offer, beside: OtherPrices, day: date) -> tuple[bool, Doubt | None]:
    """Return whether a first price could be compared with prices seen before ``day``, and the doubt about the
    first price, if any. Raises CatalogError."""
    if offer.gpu_count < 1:
        return False, None
    plausible = plausible_prices(offer.source, offer.gpu_id or "", offer.price_kind, day)
    if plausible is None or plausible.contains(usd_of(offer)):
        return plausible is not None, _figure_of_another(offer, beside, day)
    detail = f"{_is_new(offer)}; {plausible.basis}"
    return True, Doubt(RejectReason.PRICE_OUT_OF_LINE, detail)


def plausible_prices(source: str, gpu_id: str, price_kind: str, day: date) -> PriceBounds | None:
    """Return the plausible range of a card's price at a source on a day, based on prices seen at that source,
    or else at several sources; None if too few prices were seen. Raises CatalogError."""
    kinds = (price_kind,) if price_kind == "serverless" else (price_kind, "on_demand")
    for kind in kinds:
        discount = Decimal(1) if kind == price_kind else THRESHOLDS.discount
        spot_margin = THRESHOLDS.spot_margin if kind == "spot" else None
        if own := _seen(day).get((source, gpu_id, kind)):
            return own.widened(spot_margin or THRESHOLDS.own_margin, discount)
        market = _seen(day).get(("", gpu_id, kind))
        if market and kind != "serverless" and _is_market(market):
            return market.widened(spot_margin or THRESHOLDS.market_margin, discount)
    return None


def _is_market(seen: Seen) -> bool:
    return len(seen.names) >= THRESHOLDS.min_sources and seen.first_day < seen.last_day


def prices_seen_at(source: str, gpu_id: str, price_kind: str, day: date) -> PriceBounds | None:
    """Return the range of prices seen for a card at a source before a day; None if none were seen. Raises
    CatalogError."""
    own = _seen(day).get((source, gpu_id, price_kind))
    return own.widened(THRESHOLDS.seen_margin) if own else None


def _figure_of_another(offer: Offer, beside: OtherPrices, day: date) -> Doubt | None:
    """Return a doubt about a price that was seen at the source, but for something else: for another price
    kind of the card, or for another card if this card's own price is known.

    Equal prices are common, so the reading itself must agree: a price read in the wrong place is missing from
    the right one.
    """
    usd, kind = usd_of(offer), offer.price_kind
    seen = prices_seen_at(offer.source, offer.gpu_id or "", kind, day)
    if kind == "serverless" or (seen and seen.contains(usd)):
        return None
    for other in _seen(day).values():
        if other.source != offer.source or other.price_kind == "serverless":
            continue
        is_kind, is_card = other.price_kind == kind, other.gpu_id == offer.gpu_id
        figures = (other.low_usd_per_gpu_hour, other.high_usd_per_gpu_hour)
        if is_kind == is_card or not any(is_same_figure(figure, usd) for figure in figures):
            continue
        if (is_card and beside.lack_kind(other.price_kind, offer)) or (
            is_kind and seen and beside.lack_card(other.gpu_id, offer)
        ):
            detail = f"{_is_new(offer)}, which was the price of {other.gpu_id} ({other.price_kind})"
            return Doubt(RejectReason.PRICE_OF_ANOTHER_OFFER, detail + (f"; {seen.basis}" if seen else ""))
    return None


def _is_new(offer: Offer) -> str:
    usd = usd_text(offer.usd_per_gpu_hour)
    return f"{offer.raw_label!r} ({offer.price_kind}) is new at {usd} per GPU-hour"
