"""Which of a reading's prices are believed at once, and which are held.

A price is compared with the same offer's last accepted price; where the source had no such offer, with what
was seen of that card before. A held price is a reject that says so. It is released when the market moves with
it, when it has been read for HELD_DAYS, or by a person's line in the source's yaml (``reviewed_prices``): a
defect of a reader repeats every day, so that being read again proves nothing.
"""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import islice
from typing import Any

from pipeline.catalog.source_config import ReviewedPrice, SourceConfig, configs
from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.price_bounds import figures_seen_at, plausible_prices, prices_seen_at
from pipeline.gpus.catalogue import Card, cards

HELD_DAYS = 5
MIN_HELD_READINGS = 3
"""A price that was held on so many days, the first of them so many days ago, is believed. A week's working
days are time for a person to look at what the morning's report names, and most sources' last prices stay in
the rankings for seven days, so a source that changed all its prices is not lost meanwhile."""

SAME_PRICE_TOLERANCE = Decimal("0.05")
"""Prices that differ by at most this share are taken for the same."""

SAME_TO_THE_CENT = Decimal("0.001")
"""Prices that differ by less than this share are the same figure, give or take its rounding."""

MIN_COMPARED_PRICES = 2
MAX_HELD_SHARE = 0.5
"""Of at least so many compared prices, when more than this share must be held at once, the page was misread:
the source fails. Exactly this share passes."""

MIN_MOVED_PRICES = 3
MIN_MOVED_SHARE = 0.5
"""At least so many prices, and at least this share of those compared, are most of the source's prices."""

MOVED_TOGETHER = Decimal("0.05")
MOVED_APART = Decimal("0.1")
"""Most prices moving by one factor at once, by at least the first share, are a unit or a currency misread
(the euro is 17% from the dollar); a smaller one hardly changes a ranking. By different factors, at least the
second, they are another page, such as an old one. A source that really changes all its prices is late by
HELD_DAYS or until a person has looked."""

SAME_FACTOR = 0.01
"""Factors whose logarithms differ by at most this are one factor: it leaves room for rounded cents."""

MOVES_WITH_IT = (0.5, 2.0)
"""Another source confirms a jump when its price of that card moved the same way, by at least and at most so
many times as far (in logarithms)."""

PriceKey = tuple[Any, ...]

Moves = Callable[[str, str, date], Iterable[float]]
"""By a card, a price kind and the day of the earlier price: the logarithm of each other source's change."""


@dataclass(frozen=True, slots=True)
class Before:
    """An earlier accepted price of an offer."""

    native_price: Decimal
    native_currency: str
    usd_per_gpu_hour: Decimal | None
    day: date


@dataclass(frozen=True, slots=True)
class HeldPrice:
    """A price that earlier readings held: on how many days, since when, and what was accepted before it."""

    reason: RejectReason
    native_price: Decimal
    since: date
    readings: int
    before: Before | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What the record knows of a source before a reading: the last accepted one, and what was held since."""

    last: Sequence[Offer] = ()
    last_day: date | None = None
    held: Mapping[PriceKey, HeldPrice] = field(default_factory=dict)


@dataclass(frozen=True)
class Sifted:
    """A reading's offers without those that are held. ``failure`` is set when it is too many of them."""

    offers: list[Offer]
    rejects: list[RejectedRow]
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a price is not believed at once, in words, and the earlier price that it was compared with."""

    reason: RejectReason
    detail: str
    before: Before | None = None


def price_key(offer: Offer) -> PriceKey:
    """What identifies an offer across days. Prices that differ in their term, or in the day from which they
    apply, are different offers; the same price in another currency is not. A machine that its source resells
    also has its owner in the key. All parts survive JSON: rejects keep the key of a held price."""
    source = configs().get(offer.source)
    owner = () if source is None or source.provider == offer.provider else (offer.provider,)
    return (
        offer.raw_label,
        offer.instance_type,
        offer.gpu_count,
        offer.price_kind,
        offer.term_days,
        offer.region,
        offer.tier,
        offer.native_unit,
        offer.effective_from and offer.effective_from.isoformat(),
        *owner,
    )


def sift(
    offers: Sequence[Offer],
    history: History,
    config: SourceConfig,
    day: date,
    moves_elsewhere: Moves = lambda *_: (),
) -> Sifted:
    """Split a day's offers into those whose prices are believed, and rejects that are held.

    ``moves_elsewhere`` gives the changes of a card's price at other sources since a day.
    """
    earlier = _Earlier(history)
    doubts: dict[int, Doubt] = {}
    compared = 0
    now = _Now(offers)
    for place, offer in enumerate(offers):
        is_compared, doubt = _doubt(offer, earlier, now, config)
        compared += is_compared
        if doubt:
            doubts[place] = doubt
    doubts = _most_moved(offers, earlier) | doubts
    held = {
        place: doubt
        for place, doubt in doubts.items()
        if not _is_released(offers[place], doubt, history.held, config, day, moves_elsewhere)
    }
    rejects = [_held(offers[place], doubt, day) for place, doubt in held.items()]
    kept = [offer for place, offer in enumerate(offers) if place not in held]
    return Sifted(kept, rejects, _why_too_many(held, compared))


def _why_too_many(held: Mapping[int, Doubt], compared: int) -> str | None:
    if compared < MIN_COMPARED_PRICES or len(held) <= MAX_HELD_SHARE * compared:
        return None
    ((reason, _),) = Counter(doubt.reason for doubt in held.values()).most_common(1)
    return f"{len(held)} of {compared} compared prices are not believed ({reason}): {reason.sentence}"


def _doubt(offer: Offer, earlier: "_Earlier", now: "_Now", config: SourceConfig) -> tuple[bool, Doubt | None]:
    """Whether there is anything to compare a price with, and why it is in doubt."""
    key = price_key(offer)
    if offer.is_marketplace:
        before = earlier.only_price(key, offer.native_currency)
        return before is not None, _jump(offer, before, config) if before else None
    before = earlier.price(key, offer)
    if before is not None:
        return True, _moved_doubt(offer, before, earlier, config) or earlier.still_held(key, offer)
    if doubt := earlier.still_held(key, offer) or earlier.mixed_up(offer, now.keys):
        return True, doubt
    if offer.gpu_id is None or offer.usd_per_gpu_hour is None or offer.flag_reason:
        return False, None
    near = earlier.of_card(offer)
    if near:
        return True, _far_from_card(offer, near, config)
    is_compared, doubt = _out_of_line(offer)
    return is_compared, doubt or _figure_of_another(offer, now)


def _moved_doubt(offer: Offer, before: Before, earlier: "_Earlier", config: SourceConfig) -> Doubt | None:
    if before.native_currency != offer.native_currency:
        detail = (
            f"{offer.raw_label!r} was {before.native_price} {before.native_currency} and is "
            f"{offer.native_price} {offer.native_currency}: {_usd(before.usd_per_gpu_hour)} and "
            f"{_usd(offer.usd_per_gpu_hour)} per GPU-hour"
        )
        return Doubt(RejectReason.CURRENCY_CHANGED, detail, before)
    if doubt := _jump(offer, before, config):
        return doubt
    if is_same_price(before.native_price, offer.native_price):
        return None
    other = earlier.same_figure(offer)
    return Doubt(RejectReason.PRICE_OF_ANOTHER_OFFER, _mixed_up(offer, other), before) if other else None


def _jump(offer: Offer, before: Before, config: SourceConfig) -> Doubt | None:
    """The yaml's ``max_day_change`` is a share of the smaller price; exactly as much passes."""
    if _change(before.native_price, offer.native_price) <= config.expect.max_day_change:
        return None
    detail = (
        f"{offer.raw_label!r} went from {before.native_price} to {offer.native_price} {offer.native_currency}"
    )
    return Doubt(RejectReason.PRICE_JUMP, detail, before)


def _far_from_card(offer: Offer, near: tuple[Decimal, Decimal], config: SourceConfig) -> Doubt | None:
    low, high = near
    usd = offer.usd_per_gpu_hour or Decimal(0)
    if _change(min(max(usd, low), high), usd) <= config.expect.max_day_change:
        return None
    detail = (
        f"{offer.raw_label!r} is new at {_usd(usd)} per GPU-hour; before, that card cost "
        f"{low.normalize():f} to {high.normalize():f}"
    )
    return Doubt(RejectReason.PRICE_JUMP, detail)


def _out_of_line(offer: Offer) -> tuple[bool, Doubt | None]:
    plausible = plausible_prices(offer.source, offer.gpu_id or "", offer.price_kind)
    if plausible is None or offer.gpu_count < 1:
        return False, None
    if plausible.contains(offer.usd_per_gpu_hour or Decimal(0)):
        return True, None
    detail = (
        f"{offer.raw_label!r} ({offer.price_kind}) is new at {_usd(offer.usd_per_gpu_hour)} per GPU-hour; "
        f"{plausible.basis}"
    )
    return True, Doubt(RejectReason.PRICE_OUT_OF_LINE, detail)


def _figure_of_another(offer: Offer, now: "_Now") -> Doubt | None:
    """A price that the source was seen to ask for something else, and not for this: for another price kind of
    the card, or, where the card's own price is known, for another card.

    Equal prices are common, so that the reading itself must agree: a price that was read in the wrong place
    is missing in its own.
    """
    usd, own = offer.usd_per_gpu_hour or Decimal(0), (offer.gpu_id or "", offer.price_kind)
    seen = prices_seen_at(offer.source, *own)
    if offer.gpu_count < 1 or offer.price_kind == "serverless" or (seen and seen.contains(usd)):
        return None
    for other, figures in figures_seen_at(offer.source).items():
        if "serverless" in other or not any(_change(figure, usd) < SAME_TO_THE_CENT for figure in figures):
            continue
        is_mixed_up = (
            now.lacks_kind(*other, beside=offer)
            if other[0] == own[0]
            else seen is not None and other[1] == own[1] and now.lacks_card(*other, beside=offer)
        )
        if other != own and is_mixed_up:
            detail = (
                f"{offer.raw_label!r} ({offer.price_kind}) is new at {_usd(usd)} per GPU-hour, which was "
                f"the price of {other[0]} ({other[1]})" + (f"; {seen.basis}" if seen else "")
            )
            return Doubt(RejectReason.PRICE_OF_ANOTHER_OFFER, detail)
    return None


def _most_moved(offers: Sequence[Offer], earlier: "_Earlier") -> dict[int, Doubt]:
    """The prices that moved on a day on which most did. Spot prices follow demand: only one factor for all of
    them is odd."""
    changes: dict[int, tuple[Before, float]] = {}
    for place, offer in enumerate(offers):
        before = None if offer.is_marketplace else earlier.price(price_key(offer), offer)
        if before and before.native_currency == offer.native_currency:
            changes[place] = (before, math.log(offer.native_price / before.native_price))
    listed = {place: each for place, each in changes.items() if offers[place].price_kind != "spot"}
    apart = _moved(listed, MOVED_APART)
    together = _moved(changes, MOVED_TOGETHER)
    factors = sorted(change for _, change in together.values())
    most = apart if _are_most(apart, listed) else {}
    if _are_most(together, changes) and factors[-1] - factors[0] <= SAME_FACTOR:
        most = together
    return {
        place: Doubt(
            RejectReason.MOST_PRICES_MOVED,
            f"{offers[place].raw_label!r} went from {before.native_price} to {offers[place].native_price} "
            f"{before.native_currency} on a day on which {len(most)} of {len(changes)} prices moved",
            before,
        )
        for place, (before, _) in most.items()
    }


def _moved(changes: Mapping[int, tuple[Before, float]], share: Decimal) -> dict[int, tuple[Before, float]]:
    least = math.log1p(float(share))
    return {place: each for place, each in changes.items() if abs(each[1]) >= least}


def _are_most(moved: Mapping[int, Any], compared: Mapping[int, Any]) -> bool:
    return len(moved) >= MIN_MOVED_PRICES and len(moved) >= MIN_MOVED_SHARE * len(compared)


class _Now:
    """What else the reading has."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        self.keys = {price_key(offer) for offer in offers}
        self._prices: dict[tuple[str, str], list[Decimal]] = defaultdict(list)
        for offer in offers:
            if offer.gpu_id and offer.usd_per_gpu_hour is not None and offer.gpu_count >= 1:
                self._prices[offer.gpu_id, offer.price_kind].append(offer.usd_per_gpu_hour)

    def lacks_kind(self, gpu_id: str, kind: str, beside: Offer) -> bool:
        """Whether a card's other price kind is missing, or not on its side of this price: on-demand above."""
        usd, prices = beside.usd_per_gpu_hour or Decimal(0), self._prices.get((gpu_id, kind), [])
        if beside.price_kind == "on_demand":
            return not prices or max(prices) >= usd
        return not prices or (kind == "on_demand" and min(prices) <= usd)

    def lacks_card(self, gpu_id: str, kind: str, beside: Offer) -> bool:
        """Whether a card is missing at this price where the reading should have it: it has the card at other
        prices only, or not at all, and the two are of one model, so that their labels are easily confused."""
        other, own = _cards().get(gpu_id), _cards().get(beside.gpu_id or "")
        if other is None or own is None or _may_be_one_card(other, own):
            return False
        usd, prices = beside.usd_per_gpu_hour or Decimal(0), self._prices.get((gpu_id, kind))
        if not prices:
            return other.model == own.model
        return all(_change(price, usd) >= SAME_TO_THE_CENT for price in prices)


class _Earlier:
    """The prices of the last accepted reading, and those that were accepted before what is held now."""

    def __init__(self, history: History) -> None:
        self._held = history.held
        self._prices: dict[PriceKey, list[Before]] = defaultdict(list)
        self._of_card: dict[PriceKey, list[Decimal]] = defaultdict(list)
        self._figures: list[tuple[Decimal, PriceKey, Offer]] = []
        for offer in history.last:
            usd, day = offer.usd_per_gpu_hour, history.last_day or date.min
            key = price_key(offer)
            self._prices[key].append(Before(offer.native_price, offer.native_currency, usd, day))
            if offer.gpu_id is not None and usd is not None and not offer.is_marketplace:
                self._of_card[_card(offer)].append(usd)
                self._figures.append((usd, key, offer))
        self._figures.sort(key=_figure)

    def price(self, key: PriceKey, offer: Offer) -> Before | None:
        """The accepted price of the same offer, where several share its key the nearest. In another currency
        only where there is none in its own."""
        found = self._prices.get(key)
        if not found:
            held = self._held.get(key)
            return held.before if held else None
        same = [each for each in found if each.native_currency == offer.native_currency]
        return min(same or found, key=lambda each: _change(each.native_price, offer.native_price))

    def only_price(self, key: PriceKey, currency: str) -> Before | None:
        """The accepted price of an offer whose key no other has."""
        found = self._prices.get(key, [])
        return found[0] if len(found) == 1 and found[0].native_currency == currency else None

    def of_card(self, offer: Offer) -> tuple[Decimal, Decimal] | None:
        """The lowest and highest USD per GPU-hour of its card, price kind and term."""
        found = self._of_card.get(_card(offer))
        return (min(found), max(found)) if found else None

    def still_held(self, key: PriceKey, offer: Offer) -> Doubt | None:
        """A price that was in doubt because of what the source asked before stays in doubt: what it was
        compared with may be gone. One that lies too far from what was seen is compared with that again."""
        held = self._held.get(key)
        if held is None or held.reason == RejectReason.PRICE_OUT_OF_LINE:
            return None
        if not is_same_price(held.native_price, offer.native_price):
            return None
        if held.before and _change(held.before.native_price, offer.native_price) <= SAME_TO_THE_CENT:
            return None
        detail = (
            f"{offer.raw_label!r} at {offer.native_price} {offer.native_currency} is held since {held.since}"
        )
        return Doubt(held.reason, detail, held.before)

    def same_figure(self, offer: Offer) -> Offer | None:
        """An offer of another card, kind or term that cost then what this one costs now."""
        return next((other for _, other in self._at_the_figure_of(offer)), None)

    def mixed_up(self, offer: Offer, now: set[PriceKey]) -> Doubt | None:
        """A new offer at the figure of one that is gone: the same, read as another card, kind or term."""
        if offer.gpu_id is None:
            return None
        gone = (other for key, other in self._at_the_figure_of(offer) if key not in now)
        other = next(gone, None)
        return Doubt(RejectReason.PRICE_OF_ANOTHER_OFFER, _mixed_up(offer, other)) if other else None

    def _at_the_figure_of(self, offer: Offer) -> Iterator[tuple[PriceKey, Offer]]:
        usd = offer.usd_per_gpu_hour
        if usd is None:
            return
        first = bisect_left(self._figures, usd / (1 + SAME_TO_THE_CENT), key=_figure)
        for figure, key, other in islice(self._figures, first, None):
            if figure > usd * (1 + SAME_TO_THE_CENT):
                return
            if _card(other) != _card(offer):
                yield key, other


def _figure(entry: tuple[Decimal, PriceKey, Offer]) -> Decimal:
    return entry[0]


def _card(offer: Offer) -> PriceKey:
    return (offer.gpu_id, offer.price_kind, offer.term_days)


def _may_be_one_card(one: Card, other: Card) -> bool:
    """Whether one is the other without its form factor."""
    is_open = one.generic or other.generic
    return is_open and (one.model, one.memory_gb) == (other.model, other.memory_gb)


@cache
def _cards() -> Mapping[str, Card]:
    return {card.gpu_id: card for card in cards()}


def _change(before: Decimal, now: Decimal) -> Decimal:
    """The change as a share of the smaller price: the same for up and down."""
    return abs(now - before) / min(now, before)


def is_same_price(one: Decimal, other: Decimal) -> bool:
    """Whether two prices differ by at most SAME_PRICE_TOLERANCE."""
    return _change(one, other) <= SAME_PRICE_TOLERANCE


def _mixed_up(offer: Offer, other: Offer) -> str:
    return (
        f"{offer.raw_label!r} ({offer.price_kind}) is at {offer.native_price} {offer.native_currency}, "
        f"before the price of {other.raw_label!r} ({other.price_kind})"
    )


def _usd(amount: Decimal | None) -> str:
    return "unknown USD" if amount is None else f"{amount.normalize():f} USD"


def _is_released(
    offer: Offer,
    doubt: Doubt,
    held: Mapping[PriceKey, HeldPrice],
    config: SourceConfig,
    day: date,
    moves_elsewhere: Moves,
) -> bool:
    if is_reviewed(offer, config):
        return True
    earlier = held.get(price_key(offer))
    if earlier and is_same_price(earlier.native_price, offer.native_price):
        held_long = (day - earlier.since).days >= HELD_DAYS and earlier.readings >= MIN_HELD_READINGS
        if held_long:
            return True
    return doubt.reason == RejectReason.PRICE_JUMP and _market_moved(offer, doubt.before, moves_elsewhere)


def is_reviewed(offer: Offer, config: SourceConfig) -> bool:
    """Whether a person has confirmed this price of this offer in the source's yaml."""
    return any(_is_of(reviewed, offer) for reviewed in config.reviewed_prices)


def _is_of(reviewed: ReviewedPrice, offer: Offer) -> bool:
    return (
        all(getattr(offer, name) == value for name, value in reviewed.offer.items())
        and reviewed.currency == offer.native_currency
        and _change(reviewed.price, offer.native_price) <= SAME_TO_THE_CENT
    )


def _market_moved(offer: Offer, before: Before | None, moves_elsewhere: Moves) -> bool:
    if before is None or offer.gpu_id is None:
        return False
    own = math.log(offer.native_price / before.native_price)
    least, most = MOVES_WITH_IT
    return any(
        least <= move / own <= most for move in moves_elsewhere(offer.gpu_id, offer.price_kind, before.day)
    )


def _held(offer: Offer, doubt: Doubt, day: date) -> RejectedRow:
    before = doubt.before
    is_jump = doubt.reason == RejectReason.PRICE_JUMP and before is not None
    until_the_market = "until the market moves with it, " if is_jump else ""
    return RejectedRow(
        source=offer.source,
        reason=doubt.reason,
        detail=f"{doubt.detail}; held {until_the_market}until it has been read for {HELD_DAYS} days, or "
        f"until a person confirms it under reviewed_prices in catalog/sources/{offer.source}.yaml",
        raw={
            "price_key": list(price_key(offer)),
            "native_price": str(offer.native_price),
            "native_currency": offer.native_currency,
            "before": before
            and {
                "native_price": str(before.native_price),
                "native_currency": before.native_currency,
                "usd_per_gpu_hour": before.usd_per_gpu_hour and str(before.usd_per_gpu_hour),
                "day": before.day.isoformat(),
            },
        },
        observed_at=offer.observed_at,
        source_url=offer.source_url,
        capture_sha256=offer.capture_sha256,
    )
