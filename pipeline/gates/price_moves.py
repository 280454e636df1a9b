"""Checks one price against its source's earlier prices: the same offer's last accepted price, its card's
prices, and other offers' prices."""

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.offer import Offer
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.gates.contradictions import are_successive
from pipeline.gates.factors import is_unit
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
from pipeline.gpus.catalogue import card_by_id

NowPrices = Mapping[PriceKey, Sequence[Decimal]]
"""A reading's prices in USD per GPU-hour by offer."""


class EarlierPrices:
    """The prices of the last accepted reading, except conflicting prices."""

    def __init__(self, history: History) -> None:
        self._held = history.held
        self._prices: dict[PriceKey, list[Before]] = defaultdict(list)
        self._by_card: dict[PriceKey, list[Decimal]] = defaultdict(list)
        last = [each for each in history.last if each.flag_reason != FlagReason.CONFLICTING_PRICES]
        for offer in last:
            usd, day = offer.usd_per_gpu_hour, offer.believed_on or history.last_day or date.min
            before = Before(offer.native_price, offer.native_currency, usd, day, offer.capture_sha256)
            self._prices[price_key(offer)].append(before)
        listed = [each for each in last if each.gpu_id and each.usd_per_gpu_hour]
        self._listed = sorted((each for each in listed if not each.is_marketplace), key=usd_of)
        self._by_machine: dict[PriceKey, list[Offer]] = defaultdict(list)
        for offer in self._listed:
            self._by_card[_card(offer)].append(usd_of(offer))
            self._by_machine[_machine(offer)].append(offer)
        columns: dict[PriceKey, int] = Counter()
        self._places: dict[PriceKey, int] = {}
        for offer in last:
            column = (offer.price_kind, offer.term_days, offer.tier, offer.region)
            columns[column] += 1
            self._places[price_key(offer)] = columns[column]

    def price(self, offer: Offer) -> Before | None:
        """Return the accepted price of the same offer: the nearest price in the same currency, or else in
        another. None if several asks on a marketplace share a key, since they belong to several hosts."""
        found = self._prices.get(price_key(offer), [])
        same = [each for each in found if each.native_currency == offer.native_currency]
        if offer.is_marketplace:
            return same[0] if len(found) == 1 and same else None
        return min(
            same or found,
            key=lambda each: relative_change(each.native_price, offer.native_price),
            default=None,
        )

    def range_of_card(self, offer: Offer) -> tuple[Decimal, Decimal] | None:
        """Return the lowest and highest USD per GPU-hour for the offer's card, price kind and term."""
        found = self._by_card.get(_card(offer))
        return (found[0], found[-1]) if found else None

    def range_of_machine(self, offer: Offer, now: Container[PriceKey]) -> tuple[Decimal, Decimal] | None:
        """Return the lowest and highest USD per GPU-hour of the machines that differ from a new offer only in
        their names or the unit of their price, and are missing from the reading, whose keys are ``now``."""
        found = [usd_of(each) for each in self._by_machine[_machine(offer)] if price_key(each) not in now]
        return (min(found), max(found)) if found else None

    def still_held(self, offer: Offer) -> Doubt | None:
        """Return an earlier reading's doubt about the same price: the prices with which it was compared may
        be gone by now. A price held as out of line is compared again instead."""
        held = self._held.get(price_key(offer))
        if held is None or held.reason == RejectReason.PRICE_OUT_OF_LINE:
            return None
        if not is_same_price(held.native_price, offer.native_price):
            return None
        detail = (
            f"{offer.raw_label!r} at {offer.native_price} {offer.native_currency} is held since {held.since}"
        )
        return Doubt(held.reason, detail, self.price(offer))

    def taken_from_another(self, offer: Offer, before: Before, now: NowPrices) -> Doubt | None:
        """Return a doubt if a price that moved is now the earlier price of the same machine in another tier
        or region, or of another card, kind or term. A price that another size of the card had is none, nor is
        the price of an unrelated card that still has it or that moved by the same factor."""
        usd = offer.usd_per_gpu_hour
        if usd is None or before.usd_per_gpu_hour is None:
            return None
        others = [other for other in self._at(usd) if price_key(other) != price_key(offer)]
        own = [other for other in others if _card(other) == _card(offer)]
        if column := next((other for other in own if _is_other_column(other, offer)), None):
            return _price_of(column, RejectReason.COLUMN_OF_ANOTHER_KIND, offer, before)
        taken = None
        for other in () if own else others:
            prices = now.get(price_key(other), ())
            factor = usd / before.usd_per_gpu_hour
            if any(relative_change(price, usd * factor) <= THRESHOLDS.same_factor for price in prices):
                continue
            is_there = any(is_same_figure(usd, price) for price in prices)
            if not is_there and any(self._was_asked_for_another(price, other) for price in prices):
                return _price_of(other, RejectReason.PRICES_EXCHANGED, offer, before)
            if not is_there or self._are_related(other, offer):
                taken = taken or _price_of(other, _mistaken_for(other, offer), offer, before)
        return taken

    def taken_from_a_missing_one(self, offer: Offer, now: Container[PriceKey]) -> Doubt | None:
        """Return a doubt if a new offer has the earlier price of another card, kind or term that is missing
        from the reading, whose keys are ``now``, and its own card had no such price."""
        alike = [] if offer.usd_per_gpu_hour is None else self._at(offer.usd_per_gpu_hour)
        if any(_card(other) == _card(offer) for other in alike):
            return None
        missing = (other for other in alike if price_key(other) not in now)
        return next((_price_of(other, _mistaken_for(other, offer), offer) for other in missing), None)

    def _was_asked_for_another(self, usd: Decimal, offer: Offer) -> bool:
        return any(price_key(other) != price_key(offer) for other in self._at(usd))

    def _at(self, usd: Decimal) -> Sequence[Offer]:
        """Return the offers that cost so much before."""
        factor = 1 + THRESHOLDS.same_figure_tolerance
        first = bisect_left(self._listed, usd / factor, key=usd_of)
        return self._listed[first : bisect_right(self._listed, usd * factor, key=usd_of)]

    def _are_related(self, one: Offer, other: Offer) -> bool:
        """True if two prices are easily mistaken for each other: of one card, or, if they are of one kind, of
        a model or its successor, of a label that contains the other, or in neighbouring rows."""
        cards = [card_by_id().get(each.gpu_id or "") for each in (one, other)]
        is_model = all(cards) and len({card.model for card in cards if card}) == 1
        labels = sorted((one.raw_label.casefold(), other.raw_label.casefold()), key=len)
        places = [self._places.get(price_key(each)) for each in (one, other)]
        is_next = None not in places and abs((places[0] or 0) - (places[1] or 0)) == 1
        is_like = is_model or are_successive(one.gpu_id, other.gpu_id) or labels[0] in labels[1] or is_next
        return one.gpu_id == other.gpu_id or (is_like and one.price_kind == other.price_kind)


def _price_of(other: Offer, reason: RejectReason, offer: Offer, before: Before | None = None) -> Doubt:
    where = " ".join(part for part in (other.price_kind, other.tier, other.region) if part)
    detail = (
        f"{offer.raw_label!r} ({offer.price_kind}) is at {offer.native_price} {offer.native_currency}, "
        f"before the price of {other.raw_label!r} ({where})"
    )
    return Doubt(reason, detail, before)


def _mistaken_for(other: Offer, offer: Offer) -> RejectReason:
    is_same_machine = (other.gpu_id, other.gpu_count) == (offer.gpu_id, offer.gpu_count)
    return RejectReason.COLUMN_OF_ANOTHER_KIND if is_same_machine else RejectReason.PRICE_OF_ANOTHER_OFFER


def _is_other_column(other: Offer, offer: Offer) -> bool:
    """True if two offers of a card differ in their tier, or in their region alone."""
    return other.tier != offer.tier or (other.gpu_count == offer.gpu_count and other.region != offer.region)


@dataclass(frozen=True, slots=True)
class Move:
    """A price that could be compared with the same offer's earlier price in the same currency, and its index
    in the reading; it need not have moved."""

    index: int
    offer: Offer
    before: Before

    @property
    def card(self) -> str:
        """The card, or the label if the card is not known."""
        return self.offer.gpu_id or self.offer.raw_label

    @property
    def log(self) -> float:
        """The logarithm of the factor by which the price moved."""
        return math.log(self.offer.native_price / self.before.native_price)

    @property
    def has_moved(self) -> bool:
        """True if the price is another figure than before."""
        return not is_same_figure(self.before.native_price, self.offer.native_price)

    def doubt(self, reason: RejectReason, why: str) -> Doubt:
        """Return a doubt about the price."""
        return Doubt(reason, f"{from_to(self.offer, self.before)}; {why}", self.before)


def moves_of(offers: Iterable[Offer], earlier: EarlierPrices) -> Iterator[Move]:
    """Yield the offers that had an earlier price in the same currency, with that price."""
    for index, offer in enumerate(offers):
        before = earlier.price(offer)
        if before and before.native_currency == offer.native_currency:
            yield Move(index, offer, before)


def doubt_move(
    offer: Offer, before: Before, earlier: EarlierPrices, now: NowPrices, config: SourceConfig
) -> Doubt | None:
    """Return the doubt about a price, if any, after comparing it with the same offer's earlier price."""
    if before.native_currency != offer.native_currency:
        detail = (
            f"{offer.raw_label!r} was {before.native_price} {before.native_currency} and is "
            f"{offer.native_price} {offer.native_currency}: {usd_text(before.usd_per_gpu_hour)} and "
            f"{usd_text(offer.usd_per_gpu_hour)} per GPU-hour"
        )
        return Doubt(RejectReason.CURRENCY_CHANGED, detail, before)
    still = None if offer.is_marketplace else earlier.still_held(offer)
    # Since a price was first held, others may have come to cost the same: that is no sign of a misread.
    is_new = not still and not is_same_price(before.native_price, offer.native_price)
    if is_new and not offer.is_marketplace and (doubt := earlier.taken_from_another(offer, before, now)):
        return doubt
    is_list_price = offer.price_kind != "spot" and not offer.is_marketplace
    most = THRESHOLDS.max_list_change if is_list_price else THRESHOLDS.max_day_change
    if reason := _jump(before.native_price, offer, offer.native_price, most, config):
        return Doubt(reason, from_to(offer, before), before)
    return still


def doubt_new_offer(offer: Offer, near: tuple[Decimal, Decimal], config: SourceConfig) -> Doubt | None:
    """Return the doubt about a new offer's price, if any, after comparing it with the range of the card's
    earlier prices, in USD per GPU-hour."""
    (low, high), usd = near, usd_of(offer)
    nearest, most = min(max(usd, low), high), THRESHOLDS.max_day_change
    if not (reason := _jump(nearest, offer, usd, most, config)):
        return None
    detail = (
        f"{offer.raw_label!r} is new at {usd_text(usd)} per GPU-hour; before, that card cost "
        f"{low.normalize():f} to {high.normalize():f}"
    )
    return Doubt(reason, detail)


def _card(offer: Offer) -> PriceKey:
    return (offer.gpu_id, offer.price_kind, offer.term_days)


def _machine(offer: Offer) -> PriceKey:
    return (*_card(offer), offer.gpu_count, offer.region, offer.tier)


def _jump(
    before: Decimal, offer: Offer, now: Decimal, most: Decimal, config: SourceConfig
) -> RejectReason | None:
    """Return the doubt about a price that moved from ``before`` to ``now``, if it moved further than
    ``most``, or than the yaml allows."""
    change, most = relative_change(before, now), config.expect.max_day_change or most
    if change <= most:
        return None
    # Spot prices follow demand: they double and halve.
    if is_unit(before, now) and offer.price_kind != "spot" and not offer.is_marketplace:
        return RejectReason.MOVED_BY_A_UNIT
    is_far = change > max(most, THRESHOLDS.max_timed_change)
    return RejectReason.PRICE_TOO_FAR if is_far else RejectReason.PRICE_JUMP


def from_to(offer: Offer, before: Before) -> str:
    """Return a price's move in words."""
    prices = f"{before.native_price} to {offer.native_price} {offer.native_currency}"
    return f"{offer.raw_label!r} went from {prices}"
