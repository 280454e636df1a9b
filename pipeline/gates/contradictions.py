"""Prices of one provider that contradict each other. Spot must be cheaper than on-demand, flex-start no
dearer, a commitment cheaper, and a longer commitment no dearer than a shorter one; an older card must not be
dearer than its successor; and a card must cost about the same in every machine.

If it is unknown which of two prices is wrong, both are flagged, published with the reason, and not ranked.
Marketplace prices are not compared: offers that look alike belong to different hosts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import permutations, product
from statistics import median
from typing import Any

from pipeline.catalog.tables import catalog_rows
from pipeline.contracts.offer import Offer
from pipeline.contracts.reject_reasons import FlagReason
from pipeline.gates.price_bounds import prices_seen_at
from pipeline.gates.prices import price_key, usd_of
from pipeline.gates.reviews import Reviews
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.gpus.catalogue import card_by_id
from pipeline.parsing.prices import spot_flag

Found = Iterator[tuple[Offer, FlagReason]]


def flag_contradictions(offers: Sequence[Offer], reviews: Reviews) -> list[Offer]:
    """Return a source's offers, with a reason on each offer that contradicts another; earlier reasons remain.

    A price that a person has confirmed is neither flagged nor compared with others.
    Raises CatalogError.
    """
    compared = [
        offer
        for offer in offers
        if not offer.is_marketplace and not offer.flag_reason and reviews.of_price(offer) != "believed"
    ]
    conflicting = [offer for offer in offers if offer.flag_reason == FlagReason.CONFLICTING_PRICES]
    flags: dict[int, FlagReason] = {}
    for check in (partial(_spot, conflicting), _kinds, _one_price_for_all, _spread, _successors):
        sound = [offer for offer in compared if id(offer) not in flags]
        flags |= {id(offer): flag for offer, flag in check(sound)}
    return _flagged(offers, flags)


def flag_conflicting_prices(offers: Sequence[Offer], columns: set[str]) -> list[Offer]:
    """Flag offers that differ only in their price and in ``columns``: at least one price is wrong, but it is
    unknown which. Cards listed without a machine or a region are compared by their label alone, since CPU and
    memory do not explain a second price."""

    def key(offer: Offer) -> tuple[Any, ...]:
        if offer.instance_type is None and offer.region is None:
            return (*price_key(offer), offer.provider, offer.gpu_id, offer.native_currency)
        return tuple(offer.model_dump(exclude=columns).values())

    flags = {
        id(offer): FlagReason.CONFLICTING_PRICES
        for same in _groups(offers, key)
        if len({offer.native_price for offer in same}) > 1
        for offer in same
        if not offer.flag_reason and not offer.is_marketplace
    }
    return _flagged(offers, flags)


def _flagged(offers: Sequence[Offer], flags: Mapping[int, FlagReason]) -> list[Offer]:
    """Return the offers with their flags; ``flags`` maps the ``id`` of an offer to its flag."""
    return [
        offer.model_copy(update={"flag_reason": flags[id(offer)]}) if id(offer) in flags else offer
        for offer in offers
    ]


def _groups(offers: Iterable[Offer], key: Callable[[Offer], Any]) -> list[list[Offer]]:
    groups: dict[Any, list[Offer]] = defaultdict(list)
    for offer in offers:
        groups[key(offer)].append(offer)
    return list(groups.values())


def _machine(offer: Offer) -> tuple[Any, ...]:
    return (offer.provider, offer.raw_label, offer.instance_type, offer.gpu_count, offer.region)


def _spot(conflicting: Sequence[Offer], offers: Sequence[Offer]) -> Found:
    """Flag spot prices that are not below the machine's dearest on-demand price: a source without spot prices
    may repeat on-demand prices."""
    for machine in _groups((*offers, *conflicting), lambda offer: (*_machine(offer), offer.tier)):
        on_demand = [offer.native_price for offer in machine if offer.price_kind == "on_demand"]
        for offer in machine:
            flag = spot_flag(offer.native_price, max(on_demand, default=None))
            if flag and offer.price_kind == "spot" and not offer.flag_reason:
                yield offer, flag


def _kinds(offers: Sequence[Offer]) -> Found:
    """Flag both prices of one machine if a commitment is not cheaper than on-demand, a longer commitment is
    dearer than a shorter one, or flex-start is dearer than on-demand."""
    priced = [offer for offer in offers if offer.usd_per_gpu_hour is not None]
    for machine in _groups(priced, _machine):
        on_demand, reserved, queued = (
            [offer for offer in machine if offer.price_kind == kind]
            for kind in ("on_demand", "reserved", "flex_start")
        )
        for now, later in product(on_demand, reserved):
            if now.tier in (None, later.tier) and usd_of(later) >= usd_of(now):
                yield from _both(now, later, FlagReason.RESERVED_NOT_BELOW_ON_DEMAND)
        for short, long in permutations(reserved, 2):
            in_order = 0 < (short.term_days or 0) < (long.term_days or 0)
            if in_order and short.tier == long.tier and usd_of(long) > usd_of(short):
                yield from _both(short, long, FlagReason.LONGER_TERM_DEARER)
        for now, later in product(on_demand, queued):
            if now.tier in (None, later.tier) and usd_of(later) > usd_of(now):
                yield from _both(now, later, FlagReason.FLEX_START_ABOVE_ON_DEMAND)


def _both(one: Offer, other: Offer, flag: FlagReason) -> Found:
    yield one, flag
    yield other, flag


def _like(offer: Offer) -> tuple[Any, ...]:
    return (offer.provider, offer.price_kind, offer.term_days, offer.tier, offer.region)


def _known(offers: Sequence[Offer]) -> list[Offer]:
    """Return the offers of whole cards whose model and price in dollars are known."""
    return [offer for offer in offers if offer.gpu_id and offer.usd_per_gpu_hour and offer.gpu_count >= 1]


def _one_price_for_all(offers: Sequence[Offer]) -> Found:
    """Flag a price that most of the source's models share."""
    for group in _groups(_known(offers), _like):
        models = {_model(offer) for offer in group}
        for same in _groups(group, usd_of):
            alike = {_model(offer) for offer in same}
            if len(alike) >= THRESHOLDS.min_gpus_at_one_price and 2 * len(alike) > len(models):
                yield from ((offer, FlagReason.ONE_PRICE_FOR_ALL) for offer in same)


def _spread(offers: Sequence[Offer]) -> Found:
    """Flag prices that are far from the same card's other prices, except prices seen at the source before."""
    for group in _groups(_known(offers), lambda offer: (offer.gpu_id, *_like(offer))):
        prices = [usd_of(offer) for offer in group]
        middle = median(prices)
        for offer in group:
            # If there are only two prices, each is compared with the other.
            ratio = usd_of(offer) / (sum(prices) - usd_of(offer) if len(prices) == 2 else middle)
            if max(ratio, 1 / ratio) >= THRESHOLDS.max_spread and not _was_seen(offer):
                yield offer, FlagReason.UNEVEN_PRICES


def _successors(offers: Sequence[Offer]) -> Found:
    """Flag the prices of a card and of its successor if the card's median price is the higher one, except
    prices seen at the source before. Spot prices follow demand and are not compared."""
    listed = [offer for offer in _known(offers) if offer.price_kind != "spot"]
    for group in _groups(listed, _like):
        cards = [(median(map(usd_of, same)), same) for same in _groups(group, lambda offer: offer.gpu_id)]
        for (price, older), (later_price, successor) in permutations(cards, 2):
            is_dearer = price > THRESHOLDS.max_inversion * later_price
            if is_dearer and succeeds(successor[0].gpu_id or "", older[0].gpu_id or ""):
                for offer in (*older, *successor):
                    if not _was_seen(offer):
                        yield offer, FlagReason.OLDER_GPU_DEARER


def succeeds(successor: str, older: str) -> bool:
    """True if a card is the successor of another card according to catalog/gpu_order.csv.

    Cards on boards of eight (SXM) cost more than single cards, so an older SXM card is compared only with a
    successor on such boards; an aftermarket board with more memory is not compared at all.
    """
    one, other = card_by_id().get(older), card_by_id().get(successor)
    if one is None or other is None or (one.model, other.model) not in _order():
        return False
    if one.is_modified or other.is_modified:
        return False
    return one.form_factor != "SXM" or other.form_factor in ("SXM", "")


def are_successive(one: str | None, other: str | None) -> bool:
    """True if either of two cards is the successor of the other one's model."""
    models = [card.model if (card := card_by_id().get(each or "")) else "" for each in (one, other)]
    return (models[0], models[1]) in _order() or (models[1], models[0]) in _order()


def _was_seen(offer: Offer) -> bool:
    day = offer.observed_at.date()
    seen = prices_seen_at(offer.source, offer.gpu_id or "", offer.price_kind, day)
    return seen is not None and seen.contains(usd_of(offer))


def _model(offer: Offer) -> str:
    card = card_by_id().get(offer.gpu_id or "")
    return card.model if card else ""


@cache
def _order() -> frozenset[tuple[str, str]]:
    return frozenset((row["older"], row["successor"]) for row in catalog_rows("gpu_order.csv"))
