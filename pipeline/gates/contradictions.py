"""Prices of one provider that contradict each other: spot is below on-demand, flex-start not above it, a
commitment is cheaper, a longer term too, an older card is not dearer than its successor, and one card costs
about the same in every machine.

Which of two prices is wrong is seldom known: then both are flagged, published with the reason and not ranked.
Marketplace prices are not compared: offers that look alike are of different hosts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from itertools import combinations, permutations, product
from statistics import median
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.catalog.tables import catalog_rows
from pipeline.contracts.offer import Offer
from pipeline.contracts.reject_reasons import FlagReason
from pipeline.gates import thresholds
from pipeline.gates.price_bounds import prices_seen_at
from pipeline.gates.prices import price_key, usd_of
from pipeline.gates.release import is_reviewed
from pipeline.gpus.catalogue import card_by_id
from pipeline.parsing.prices import spot_flag

Found = Iterator[tuple[int, FlagReason]]
"""The place of an offer in the list, and why it is flagged."""


def flag_contradictions(offers: Sequence[Offer], config: SourceConfig) -> list[Offer]:
    """Return the offers of one source, with a reason on each that contradicts another; earlier reasons stay.

    A price that a person has confirmed (``reviewed_prices``) is neither flagged nor held against another.
    Raises CatalogError.
    """
    compared = {
        place: offer
        for place, offer in enumerate(offers)
        if not offer.is_marketplace and not offer.flag_reason and not is_reviewed(offer, config)
    }
    limits = _on_demand_prices(
        offer
        for place, offer in enumerate(offers)
        if place in compared or offer.flag_reason == FlagReason.CONFLICTING_PRICES
    )
    flags = dict(_spot(compared, limits))
    for check in (_kinds, _one_price_for_all, _spread, _successors):
        sound = {place: offer for place, offer in compared.items() if place not in flags}
        flags |= dict(check(sound))
    return [
        offer.model_copy(update={"flag_reason": flags[place]}) if place in flags else offer
        for place, offer in enumerate(offers)
    ]


def _machine(offer: Offer) -> tuple[Any, ...]:
    return (offer.provider, offer.raw_label, offer.instance_type, offer.gpu_count, offer.region)


def _grouped(offers: Mapping[int, Offer], key: Callable[[Offer], Any]) -> dict[Any, dict[int, Offer]]:
    groups: dict[Any, dict[int, Offer]] = defaultdict(dict)
    for place, offer in offers.items():
        groups[key(offer)][place] = offer
    return groups


def _on_demand_prices(offers: Iterable[Offer]) -> dict[tuple[Any, ...], Decimal]:
    """The dearest on-demand price of each machine in each tier."""
    dearest: dict[tuple[Any, ...], Decimal] = {}
    for offer in offers:
        if offer.price_kind == "on_demand":
            key = (*_machine(offer), offer.tier)
            dearest[key] = max(offer.native_price, dearest.get(key, offer.native_price))
    return dearest


def _spot(offers: Mapping[int, Offer], on_demand: Mapping[tuple[Any, ...], Decimal]) -> Found:
    """Flag spot prices that are not below on-demand: a source without spot repeats its on-demand price."""
    for place, offer in offers.items():
        flag = spot_flag(offer.native_price, on_demand.get((*_machine(offer), offer.tier)))
        if offer.price_kind == "spot" and flag:
            yield place, flag


def _kinds(offers: Mapping[int, Offer]) -> Found:
    """Flag both prices of one machine if a commitment does not cost less than none, a longer one costs more
    than a shorter one, or waiting for capacity costs more than having it at once."""
    priced = {place: offer for place, offer in offers.items() if offer.usd_per_gpu_hour is not None}
    for machine in _grouped(priced, _machine).values():
        on_demand, reserved, queued = (
            [(place, offer) for place, offer in machine.items() if offer.price_kind == kind]
            for kind in ("on_demand", "reserved", "flex_start")
        )
        for (one, now), (other, later) in product(on_demand, reserved):
            if now.tier in (None, later.tier) and usd_of(later) >= usd_of(now):
                yield from _both(one, other, FlagReason.RESERVED_NOT_BELOW_ON_DEMAND)
        for (one, first), (other, second) in combinations(reserved, 2):
            short, long = sorted((first, second), key=lambda offer: offer.term_days or 0)
            in_order = 0 < (short.term_days or 0) < (long.term_days or 0)
            if first.tier == second.tier and in_order and usd_of(long) > usd_of(short):
                yield from _both(one, other, FlagReason.LONGER_TERM_DEARER)
        for (one, now), (other, later) in product(on_demand, queued):
            if now.tier in (None, later.tier) and usd_of(later) > usd_of(now):
                yield from _both(one, other, FlagReason.FLEX_START_ABOVE_ON_DEMAND)


def _both(one: int, other: int, flag: FlagReason) -> Found:
    yield one, flag
    yield other, flag


def _like(offer: Offer) -> tuple[Any, ...]:
    return (offer.provider, offer.price_kind, offer.term_days, offer.tier, offer.region)


def _known(offers: Mapping[int, Offer]) -> dict[int, Offer]:
    """Whole cards whose model and price in dollars are known."""
    return {
        place: offer
        for place, offer in offers.items()
        if offer.gpu_id and offer.usd_per_gpu_hour and offer.gpu_count >= 1
    }


def _one_price_for_all(offers: Mapping[int, Offer]) -> Found:
    """Flag the prices of cards that share one with most of the source's models."""
    for group in _grouped(_known(offers), _like).values():
        models = {_model(offer) for offer in group.values()}
        for same in _grouped(group, usd_of).values():
            alike = {_model(offer) for offer in same.values()}
            if len(alike) >= thresholds.MIN_GPUS_AT_ONE_PRICE.value and 2 * len(alike) > len(models):
                yield from ((place, FlagReason.ONE_PRICE_FOR_ALL) for place in same)


def _spread(offers: Mapping[int, Offer]) -> Found:
    """Flag prices of a card that are far from its others, but for one that the source was seen to ask."""
    for group in _grouped(_known(offers), lambda offer: (offer.gpu_id, *_like(offer))).values():
        prices = [usd_of(offer) for offer in group.values()]
        middle = median(prices)
        for place, offer in group.items():
            # Of two prices, each is compared with the other.
            ratio = usd_of(offer) / (sum(prices) - usd_of(offer) if len(prices) == 2 else middle)
            if max(ratio, 1 / ratio) >= thresholds.MAX_SPREAD.value and not _was_seen(offer):
                yield place, FlagReason.UNEVEN_PRICES


def _successors(offers: Mapping[int, Offer]) -> Found:
    """Flag a card whose median is above its successor's, and the successor, but for prices that the source
    was seen to ask. Spot prices follow demand and are not compared."""
    listed = {place: offer for place, offer in _known(offers).items() if offer.price_kind != "spot"}
    for group in _grouped(listed, _like).values():
        by_card = _grouped(group, lambda offer: offer.gpu_id)
        middle = {gpu_id: median(map(usd_of, same.values())) for gpu_id, same in by_card.items()}
        for older, successor in permutations(by_card, 2):
            is_dearer = middle[older] > thresholds.MAX_INVERSION.value * middle[successor]
            if is_dearer and succeeds(successor, older):
                for place, offer in (by_card[older] | by_card[successor]).items():
                    if not _was_seen(offer):
                        yield place, FlagReason.OLDER_GPU_DEARER


def succeeds(successor: str, older: str) -> bool:
    """True if a card is the successor of another by catalog/gpu_order.csv.

    Cards on boards of eight (SXM) cost more than single ones, so an older SXM card is compared with its
    successor on boards only; an aftermarket board with more memory is neither card.
    """
    one, other = card_by_id().get(older), card_by_id().get(successor)
    if one is None or other is None or (one.model, other.model) not in _order():
        return False
    if one.is_modified or other.is_modified:
        return False
    return one.form_factor != "SXM" or other.form_factor in ("SXM", "")


def _was_seen(offer: Offer) -> bool:
    seen = prices_seen_at(offer.source, offer.gpu_id or "", offer.price_kind)
    return seen is not None and seen.contains(usd_of(offer))


def _model(offer: Offer) -> str:
    card = card_by_id().get(offer.gpu_id or "")
    return card.model if card else ""


@cache
def _order() -> frozenset[tuple[str, str]]:
    return frozenset((row["older"], row["successor"]) for row in catalog_rows("gpu_order.csv"))


def flag_conflicting_prices(offers: Sequence[Offer], columns: set[str]) -> list[Offer]:
    """Of two prices for offers that are equal otherwise (but for ``columns``), one is wrong, and nothing says
    which. Where cards are listed without a machine or a region, CPU and memory beside the card explain no
    second price."""

    def key(offer: Offer) -> tuple[Any, ...]:
        if offer.instance_type is None and offer.region is None:
            return (*price_key(offer), offer.provider, offer.gpu_id, offer.native_currency)
        return tuple(offer.model_dump(exclude=columns).values())

    keys = [key(offer) for offer in offers]
    prices: dict[tuple[Any, ...], set[Decimal]] = defaultdict(set)
    for place, offer in enumerate(offers):
        prices[keys[place]].add(offer.native_price)
    return [
        offer.model_copy(update={"flag_reason": FlagReason.CONFLICTING_PRICES})
        if len(prices[key]) > 1 and not offer.flag_reason and not offer.is_marketplace
        else offer
        for offer, key in zip(offers, keys, strict=True)
    ]
