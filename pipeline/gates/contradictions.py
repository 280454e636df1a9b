"""Prices of one provider that contradict each other: spot is below on-demand, flex-start not above it, a
commitment is cheaper, a longer term too, an older card is not dearer than its successor, and one card costs
about the same in every machine.

Which of two prices is wrong is seldom known: then both are flagged, published with the reason and not ranked.
Marketplace prices are not compared: offers that look alike are of different hosts.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from itertools import combinations, permutations, product
from statistics import median
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.catalog.tables import catalog_rows
from pipeline.contracts.offer import Offer
from pipeline.contracts.reject_reasons import FlagReason
from pipeline.gates.price_bounds import prices_seen_at
from pipeline.gates.price_moves import is_reviewed, price_key
from pipeline.gpus.catalogue import Card, cards
from pipeline.parsing.prices import spot_flag

MAX_SPREAD = Decimal(4)
"""One card at one source, in one region and tier and of one price kind, differs by less than this factor from
its median, or from the only other price. The largest that was seen is 2.9: Linode's RTX 4000 Ada in plans
with more or less of CPU, memory and disk."""

MIN_GPUS_AT_ONE_PRICE = 3
"""So many card models at the very same price, and more than half of the source's models: the reader took one
price, such as a "from" price, for all. Oracle asks the same for two (H100 and H200)."""

MAX_INVERSION = Decimal("1.2")
"""An older card may be dearer than its successor by this factor. Sources do ask more for an H100 than for an
H200, which is easier to have: in the dated facts 11 of 96 times, by up to 1.16; three other pairs were seen
inverted, by up to 1.08. Cards that were taken for each other are further apart."""

Flags = dict[int, FlagReason]
"""By an offer's place in the list."""


def flag_contradictions(offers: Sequence[Offer], config: SourceConfig) -> list[Offer]:
    """The offers of one source, with a reason on each that contradicts another; earlier reasons stay.

    A price that a person has confirmed (``reviewed_prices``) is neither flagged nor held against another.
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
    flags: Flags = dict(_spot(compared, limits))
    for check in (_kinds, _one_price_for_all, _spread, _successors):
        sound = {place: offer for place, offer in compared.items() if place not in flags}
        flags |= dict(check(sound))
    return [
        offer.model_copy(update={"flag_reason": flags[place]}) if place in flags else offer
        for place, offer in enumerate(offers)
    ]


Found = Iterator[tuple[int, FlagReason]]


def _machine(offer: Offer) -> tuple[Any, ...]:
    return (offer.provider, offer.raw_label, offer.instance_type, offer.gpu_count, offer.region)


def _grouped(offers: Mapping[int, Offer], key: Any) -> Iterable[dict[int, Offer]]:
    groups: dict[Any, dict[int, Offer]] = defaultdict(dict)
    for place, offer in offers.items():
        groups[key(offer)][place] = offer
    return groups.values()


def _on_demand_prices(offers: Iterable[Offer]) -> dict[tuple[Any, ...], Decimal]:
    """The dearest on-demand price of each machine in each tier."""
    dearest: dict[tuple[Any, ...], Decimal] = {}
    for offer in offers:
        if offer.price_kind == "on_demand":
            key = (*_machine(offer), offer.tier)
            dearest[key] = max(offer.native_price, dearest.get(key, offer.native_price))
    return dearest


def _spot(offers: Mapping[int, Offer], on_demand: Mapping[tuple[Any, ...], Decimal]) -> Found:
    """An equal spot price is flagged, too: the source repeats the on-demand price where it has no spot."""
    for place, offer in offers.items():
        flag = spot_flag(offer.native_price, on_demand.get((*_machine(offer), offer.tier)))
        if offer.price_kind == "spot" and flag:
            yield place, flag


def _flex_start(offers: Mapping[int, Offer]) -> Found:
    """Who waits for capacity, or books it ahead, pays no more than who has it at once."""
    priced = {place: offer for place, offer in offers.items() if offer.usd_per_gpu_hour is not None}
    for machine in _grouped(priced, _machine):
        on_demand = {p: o for p, o in machine.items() if o.price_kind == "on_demand"}
        queued = {p: o for p, o in machine.items() if o.price_kind == "flex_start"}
        for (one, now), (other, later) in product(on_demand.items(), queued.items()):
            if now.tier in (None, later.tier) and _usd(later) > _usd(now):
                yield one, FlagReason.FLEX_START_ABOVE_ON_DEMAND
                yield other, FlagReason.FLEX_START_ABOVE_ON_DEMAND


def _kinds(offers: Mapping[int, Offer]) -> Found:
    """An on-demand price that is doubtful for its flex-start price is held against the commitments, too."""
    yield from _terms(offers)
    yield from _flex_start(offers)


def _terms(offers: Mapping[int, Offer]) -> Found:
    """Of the same machine, a commitment costs less than none, and a longer one no more than a shorter one."""
    priced = {place: offer for place, offer in offers.items() if offer.usd_per_gpu_hour is not None}
    for machine in _grouped(priced, _machine):
        on_demand = {p: o for p, o in machine.items() if o.price_kind == "on_demand"}
        reserved = {p: o for p, o in machine.items() if o.price_kind == "reserved"}
        for (one, now), (other, later) in product(on_demand.items(), reserved.items()):
            if now.tier in (None, later.tier) and _usd(later) >= _usd(now):
                yield one, FlagReason.RESERVED_NOT_BELOW_ON_DEMAND
                yield other, FlagReason.RESERVED_NOT_BELOW_ON_DEMAND
        for (one, first), (other, second) in combinations(reserved.items(), 2):
            short, long = sorted((first, second), key=lambda offer: offer.term_days or 0)
            in_order = 0 < (short.term_days or 0) < (long.term_days or 0)
            if first.tier == second.tier and in_order and _usd(long) > _usd(short):
                yield one, FlagReason.LONGER_TERM_DEARER
                yield other, FlagReason.LONGER_TERM_DEARER


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
    for group in _grouped(_known(offers), _like):
        models = {_model(offer) for offer in group.values()}
        for same in _grouped(group, _usd):
            alike = {_model(offer) for offer in same.values()}
            if len(alike) >= MIN_GPUS_AT_ONE_PRICE and 2 * len(alike) > len(models):
                yield from ((place, FlagReason.ONE_PRICE_FOR_ALL) for place in same)


def _successors(offers: Mapping[int, Offer]) -> Found:
    """By each card's median. Spot prices follow demand and are not compared. Of the two cards, one that the
    source was seen to ask about this price for is not the wrong one; if both were, neither is."""
    listed = {place: offer for place, offer in _known(offers).items() if offer.price_kind != "spot"}
    for group in _grouped(listed, _like):
        by_card = {next(iter(same.values())).gpu_id or "": same for same in _grouped(group, _gpu_id)}
        middle = {gpu_id: median(map(_usd, same.values())) for gpu_id, same in by_card.items()}
        for older, successor in permutations(by_card, 2):
            if succeeds(successor, older) and middle[older] > MAX_INVERSION * middle[successor]:
                for place, offer in (by_card[older] | by_card[successor]).items():
                    if not _was_seen(offer):
                        yield place, FlagReason.OLDER_GPU_DEARER


def _gpu_id(offer: Offer) -> str | None:
    return offer.gpu_id


def succeeds(successor: str, older: str) -> bool:
    """Whether a card is the successor of another by catalog/gpu_order.csv.

    Cards on boards of eight (SXM) cost more than single ones, so an older SXM card is compared with its
    successor on boards only; an aftermarket board with more memory is neither card.
    """
    one, other = _cards().get(older), _cards().get(successor)
    if one is None or other is None or (one.model, other.model) not in _order():
        return False
    if one.is_modified or other.is_modified:
        return False
    return one.form_factor != "SXM" or other.form_factor in ("SXM", "")


def _was_seen(offer: Offer) -> bool:
    seen = prices_seen_at(offer.source, offer.gpu_id or "", offer.price_kind)
    return seen is not None and seen.contains(_usd(offer))


def _spread(offers: Mapping[int, Offer]) -> Found:
    """A price that the source was seen to ask for the card is not the wrong one."""
    for group in _grouped(_known(offers), lambda offer: (offer.gpu_id, *_like(offer))):
        prices = sorted(map(_usd, group.values()))
        # Of two prices, each is compared with the other.
        middle = {place: median(prices) for place in group}
        if len(group) == 2:
            middle = {place: sum(prices) - _usd(offer) for place, offer in group.items()}
        for place, offer in group.items():
            ratio = _usd(offer) / middle[place]
            if max(ratio, 1 / ratio) >= MAX_SPREAD and not _was_seen(offer):
                yield place, FlagReason.UNEVEN_PRICES


def _usd(offer: Offer) -> Decimal:
    return offer.usd_per_gpu_hour or Decimal(0)


def _model(offer: Offer) -> str:
    card = _cards().get(offer.gpu_id or "")
    return card.model if card else ""


@cache
def _cards() -> Mapping[str, Card]:
    return {card.gpu_id: card for card in cards()}


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
