"""A first price against what was ever seen: dated facts of public files, for cards and price kinds that the
source has no accepted price of.

catalog/gpu_price_bounds.csv has the lowest and the highest price of each card and price kind: of one source
(``source``), and over all sources with list prices (``source`` empty).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache

from pipeline.catalog.source_config import CatalogError
from pipeline.catalog.tables import catalog_rows
from pipeline.contracts.offer import Offer
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates import thresholds
from pipeline.gates.prices import price_key, relative_change, usd_of, usd_text
from pipeline.gates.release import Doubt
from pipeline.gpus.catalogue import Card, card_by_id


@dataclass(frozen=True, slots=True)
class PriceBounds:
    """The range in which a price is plausible, in USD per GPU-hour, and its basis in words."""

    low: Decimal
    high: Decimal
    basis: str

    def contains(self, usd_per_gpu_hour: Decimal) -> bool:
        """True if a price is within; both ends are."""
        return self.low <= usd_per_gpu_hour <= self.high


class OtherPrices:
    """The offers beside an offer in its reading."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        self.keys = {price_key(offer) for offer in offers}
        self._prices: dict[tuple[str, str], list[Decimal]] = defaultdict(list)
        for offer in offers:
            if offer.gpu_id and offer.usd_per_gpu_hour is not None and offer.gpu_count >= 1:
                self._prices[offer.gpu_id, offer.price_kind].append(offer.usd_per_gpu_hour)

    def lack_kind(self, gpu_id: str, kind: str, beside: Offer) -> bool:
        """True if a card's other price kind is missing, or not on its side of this price: on-demand above."""
        usd, prices = usd_of(beside), self._prices.get((gpu_id, kind), [])
        if beside.price_kind == "on_demand":
            return not prices or max(prices) >= usd
        return not prices or (kind == "on_demand" and min(prices) <= usd)

    def lack_card(self, gpu_id: str, kind: str, beside: Offer) -> bool:
        """True if a card is missing at this price where the reading should have it: the reading has it at
        other prices only, or lacks it, and both cards are of one model, so that their labels are easily
        confused."""
        other, own = card_by_id().get(gpu_id), card_by_id().get(beside.gpu_id or "")
        if other is None or own is None or _may_be_one_card(other, own):
            return False
        prices = self._prices.get((gpu_id, kind))
        if not prices:
            return other.model == own.model
        return not any(_is_figure(price, usd_of(beside)) for price in prices)


def doubt_first_price(offer: Offer, beside: OtherPrices) -> tuple[bool, Doubt | None]:
    """Return whether anything was seen that a first price can be compared with, and why it is in doubt.
    Raises CatalogError."""
    if offer.gpu_count < 1:
        return False, None
    usd = usd_of(offer)
    plausible = plausible_prices(offer.source, offer.gpu_id or "", offer.price_kind)
    if plausible is None or plausible.contains(usd):
        return plausible is not None, _figure_of_another(offer, beside)
    detail = f"{_is_new(offer)}; {plausible.basis}"
    return True, Doubt(RejectReason.PRICE_OUT_OF_LINE, detail)


def plausible_prices(source: str, gpu_id: str, price_kind: str) -> PriceBounds | None:
    """Return what a card may cost at a source, by what was seen there, else by what several others ask; None
    if too little was seen. Raises CatalogError."""
    kinds = (price_kind,) if price_kind == "serverless" else (price_kind, "on_demand")
    for kind in dict.fromkeys(kinds):
        discount = thresholds.DISCOUNT.value if kind != price_kind else Decimal(1)
        if own := _seen().get((source, gpu_id, kind)):
            return _widened(
                own, _margin(kind, thresholds.OWN_MARGIN.value), f"{source} asked", kind, discount
            )
        market = _seen().get(("", gpu_id, kind))
        if market and kind != "serverless" and _is_market(market):
            who = f"{market['sources']} sources asked"
            return _widened(market, _margin(kind, thresholds.MARKET_MARGIN.value), who, kind, discount)
    return None


def prices_seen_at(source: str, gpu_id: str, price_kind: str) -> PriceBounds | None:
    """Return what a source was seen to ask for a card; None if it never was. Raises CatalogError."""
    own = _seen().get((source, gpu_id, price_kind))
    return _widened(own, thresholds.SEEN_MARGIN.value, f"{source} asked", price_kind) if own else None


def _figure_of_another(offer: Offer, beside: OtherPrices) -> Doubt | None:
    """Return a doubt about a price that the source was seen to ask for something else, and not for this: for
    another price kind of the card, or, if the card's own price is known, for another card.

    Equal prices are common, so the reading itself must agree: a price that was read in the wrong place is
    missing in its own.
    """
    usd, gpu_id, kind = usd_of(offer), offer.gpu_id or "", offer.price_kind
    seen = prices_seen_at(offer.source, gpu_id, kind)
    if kind == "serverless" or (seen and seen.contains(usd)):
        return None
    for (source, other_id, other_kind), row in _seen().items():
        if source != offer.source or other_kind == "serverless" or (other_id, other_kind) == (gpu_id, kind):
            continue
        if not any(_is_figure(figure, usd) for figure in _ends(row)):
            continue
        if (
            beside.lack_kind(other_id, other_kind, offer)
            if other_id == gpu_id
            else seen and other_kind == kind and beside.lack_card(other_id, other_kind, offer)
        ):
            detail = f"{_is_new(offer)}, which was the price of {other_id} ({other_kind})"
            return Doubt(RejectReason.PRICE_OF_ANOTHER_OFFER, detail + (f"; {seen.basis}" if seen else ""))
    return None


def _is_new(offer: Offer) -> str:
    usd = usd_text(offer.usd_per_gpu_hour)
    return f"{offer.raw_label!r} ({offer.price_kind}) is new at {usd} per GPU-hour"


def _is_figure(one: Decimal, other: Decimal) -> bool:
    return relative_change(one, other) < thresholds.SAME_FIGURE_TOLERANCE.value


def _may_be_one_card(one: Card, other: Card) -> bool:
    """True if one is the other without its form factor."""
    is_open = one.generic or other.generic
    return is_open and (one.model, one.memory_gb) == (other.model, other.memory_gb)


def _margin(kind: str, usual: Decimal) -> Decimal:
    return thresholds.SPOT_MARGIN.value if kind == "spot" else usual


def _is_market(seen: Mapping[str, str]) -> bool:
    return int(seen["sources"]) >= thresholds.MIN_SOURCES.value and seen["first_day"] < seen["last_day"]


def _ends(seen: Mapping[str, str]) -> tuple[Decimal, Decimal]:
    return Decimal(seen["low_usd_per_gpu_hour"]), Decimal(seen["high_usd_per_gpu_hour"])


def _widened(
    seen: Mapping[str, str], margin: Decimal, who: str, kind: str, discount: Decimal = Decimal(1)
) -> PriceBounds:
    low, high = _ends(seen)
    dates = f"from {seen['first_day']} to {seen['last_day']}"
    basis = f"{who} {low:f} to {high:f} USD per GPU-hour ({kind}) {dates}"
    return PriceBounds(low / margin / discount, high * margin, basis)


@cache
def _seen() -> Mapping[tuple[str, str, str], Mapping[str, str]]:
    found = list(catalog_rows("gpu_price_bounds.csv"))
    for number, row in enumerate(found, start=2):
        try:
            low, high = _ends(row)
            fits = 0 < low <= high
        except (InvalidOperation, KeyError, TypeError):
            fits = False
        if not fits:
            raise CatalogError(f"catalog/gpu_price_bounds.csv, line {number}: low and high are not a range")
    return {(row["source"], row["gpu_id"], row["price_kind"]): row for row in found}
