"""Checks a price against its source's earlier prices: the same offer's last accepted price, its card's
price, and other offers' prices."""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from datetime import date
from decimal import Decimal

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.offer import Offer
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.gates.held import Before, Doubt
from pipeline.gates.history import History
from pipeline.gates.prices import (
    PriceKey,
    is_same_figure,
    is_same_price,
    price_key,
    relative_change,
    usd_of,
    usd_text,
)
from pipeline.gates.thresholds import THRESHOLDS


class EarlierPrices:
    """The prices of the last accepted reading, except conflicting prices, and the prices accepted before the
    prices that are now held."""

    def __init__(self, history: History) -> None:
        self._held = history.held
        self._prices: dict[PriceKey, list[Before]] = defaultdict(list)
        self._by_card: dict[PriceKey, list[Decimal]] = defaultdict(list)
        last = [each for each in history.last if each.flag_reason != FlagReason.CONFLICTING_PRICES]
        for offer in last:
            usd, day = offer.usd_per_gpu_hour, history.last_day or date.min
            before = Before(offer.native_price, offer.native_currency, usd, day)
            self._prices[price_key(offer)].append(before)
        listed = [each for each in last if each.gpu_id and each.usd_per_gpu_hour]
        self._listed = sorted((each for each in listed if not each.is_marketplace), key=usd_of)
        for offer in self._listed:
            self._by_card[_card(offer)].append(usd_of(offer))

    def price(self, offer: Offer) -> Before | None:
        """Return the accepted price of the same offer: the nearest price in the same currency, or else in
        another. None if several asks on a marketplace share a key, since they belong to several hosts."""
        found = self._prices.get(price_key(offer), [])
        same = [each for each in found if each.native_currency == offer.native_currency]
        if offer.is_marketplace:
            return same[0] if len(found) == 1 and same else None
        if not found:
            held = self._held.get(price_key(offer))
            return held.before if held else None
        return min(same or found, key=lambda each: relative_change(each.native_price, offer.native_price))

    def range_of_card(self, offer: Offer) -> tuple[Decimal, Decimal] | None:
        """Return the lowest and highest USD per GPU-hour for the offer's card, price kind and term."""
        found = self._by_card.get(_card(offer))
        return (found[0], found[-1]) if found else None

    def still_held(self, offer: Offer) -> Doubt | None:
        """Return an earlier reading's doubt about the same price: the prices with which it was compared may
        be gone by now. A price held as out of line is compared again instead."""
        held = self._held.get(price_key(offer))
        if held is None or held.reason == RejectReason.PRICE_OUT_OF_LINE:
            return None
        if not is_same_price(held.native_price, offer.native_price):
            return None
        if held.before and is_same_figure(held.before.native_price, offer.native_price):
            return None
        detail = (
            f"{offer.raw_label!r} at {offer.native_price} {offer.native_currency} is held since {held.since}"
        )
        return Doubt(held.reason, detail, held.before)

    def mixed_up(
        self, offer: Offer, before: Before | None = None, now: Container[PriceKey] = ()
    ) -> Doubt | None:
        """Return a doubt if this offer now has the earlier price of another card, kind or term. If ``now``
        gives the reading's keys, other offers count only if they are missing from the reading."""
        usd, factor = offer.usd_per_gpu_hour, 1 + THRESHOLDS.same_figure_tolerance
        if usd is None:
            return None
        first = bisect_left(self._listed, usd / factor, key=usd_of)
        after = bisect_right(self._listed, usd * factor, key=usd_of)
        for other in self._listed[first:after]:
            if _card(other) != _card(offer) and price_key(other) not in now:
                detail = (
                    f"{offer.raw_label!r} ({offer.price_kind}) is at {offer.native_price} "
                    f"{offer.native_currency}, before the price of {other.raw_label!r} ({other.price_kind})"
                )
                return Doubt(RejectReason.PRICE_OF_ANOTHER_OFFER, detail, before)
        return None


def doubt_move(offer: Offer, before: Before, earlier: EarlierPrices, config: SourceConfig) -> Doubt | None:
    """Return the doubt about a price, if any, after comparing it with the same offer's earlier price."""
    if before.native_currency != offer.native_currency:
        detail = (
            f"{offer.raw_label!r} was {before.native_price} {before.native_currency} and is "
            f"{offer.native_price} {offer.native_currency}: {usd_text(before.usd_per_gpu_hour)} and "
            f"{usd_text(offer.usd_per_gpu_hour)} per GPU-hour"
        )
        return Doubt(RejectReason.CURRENCY_CHANGED, detail, before)
    if _is_jump(before.native_price, offer.native_price, config):
        return Doubt(RejectReason.PRICE_JUMP, _from_to(offer, before), before)
    if offer.is_marketplace:
        return None
    is_same = is_same_price(before.native_price, offer.native_price)
    return (None if is_same else earlier.mixed_up(offer, before)) or earlier.still_held(offer)


def doubt_new_offer(offer: Offer, near: tuple[Decimal, Decimal], config: SourceConfig) -> Doubt | None:
    """Return the doubt about a new offer's price, if any, after comparing it with the range of the card's
    earlier prices, in USD per GPU-hour."""
    (low, high), usd = near, usd_of(offer)
    if not _is_jump(min(max(usd, low), high), usd, config):
        return None
    detail = (
        f"{offer.raw_label!r} is new at {usd_text(usd)} per GPU-hour; before, that card cost "
        f"{low.normalize():f} to {high.normalize():f}"
    )
    return Doubt(RejectReason.PRICE_JUMP, detail)


def doubt_most_moved(offers: Sequence[Offer], earlier: EarlierPrices) -> dict[int, Doubt]:
    """Return doubts about all prices that moved, keyed by index in ``offers``, if most prices moved.

    Spot prices follow demand: they are suspicious only if most prices moved by the same factor.
    """
    befores: dict[int, Before] = {}
    changes: dict[int, float] = {}
    for place, offer in enumerate(offers):
        before = None if offer.is_marketplace else earlier.price(offer)
        if before and before.native_currency == offer.native_currency:
            befores[place] = before
            changes[place] = math.log(offer.native_price / before.native_price)
    listed = {place: each for place, each in changes.items() if offers[place].price_kind != "spot"}
    most = _if_most(listed, THRESHOLDS.moved_apart)
    together = _if_most(changes, THRESHOLDS.moved_together)
    if together and max(together.values()) - min(together.values()) <= THRESHOLDS.same_factor:
        most = together
    return {
        place: Doubt(
            RejectReason.MOST_PRICES_MOVED,
            f"{_from_to(offers[place], befores[place])} on a day when {len(most)} of {len(changes)} "
            "prices moved",
            befores[place],
        )
        for place in most
    }


def _if_most(changes: Mapping[int, float], share: Decimal) -> dict[int, float]:
    """Return the changes of at least ``share`` of the price if most are that large; otherwise, none."""
    least = math.log1p(float(share))
    moved = {place: change for place, change in changes.items() if abs(change) >= least}
    fewest = max(THRESHOLDS.min_moved_prices, THRESHOLDS.min_moved_share * len(changes))
    return moved if len(moved) >= fewest else {}


def _card(offer: Offer) -> PriceKey:
    return (offer.gpu_id, offer.price_kind, offer.term_days)


def _is_jump(before: Decimal, now: Decimal, config: SourceConfig) -> bool:
    return relative_change(before, now) > (config.expect.max_day_change or THRESHOLDS.max_day_change)


def _from_to(offer: Offer, before: Before) -> str:
    prices = f"{before.native_price} to {offer.native_price} {offer.native_currency}"
    return f"{offer.raw_label!r} went from {prices}"
