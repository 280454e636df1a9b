"""Held prices: why one is in doubt, the reject that keeps it, and what releases it.

A defect of a reader repeats every day, so reading a price again does not confirm it. A held price is released
when the market moves with it, after held_days, or by a person's line in the source's yaml
(``reviewed_prices``).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date

from pipeline.catalog.source_config import ReviewedPrice, SourceConfig
from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.history import Before, HeldPrice, held_as_json
from pipeline.gates.prices import is_same_figure, is_same_price
from pipeline.gates.thresholds import THRESHOLDS

Moves = Callable[[str, str, date], Iterable[float]]
"""From a card, a price kind and an earlier day to the logarithm of each other source's price change."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason not to believe a price at once, and the earlier price it was compared with."""

    reason: RejectReason
    detail: str
    before: Before | None = None


def held_reject(offer: Offer, doubt: Doubt) -> RejectedRow:
    """Return the reject that keeps a held price."""
    is_jump = doubt.reason == RejectReason.PRICE_JUMP and doubt.before is not None
    until_the_market = "until the market moves with it, " if is_jump else ""
    return RejectedRow(
        source=offer.source,
        reason=doubt.reason,
        detail=f"{doubt.detail}; held {until_the_market}until it has been read for "
        f"{THRESHOLDS.held_days} days, or until a person confirms it under reviewed_prices in "
        f"catalog/sources/{offer.source}.yaml",
        raw=held_as_json(offer, doubt.before),
        observed_at=offer.observed_at,
        source_url=offer.source_url,
        capture_sha256=offer.capture_sha256,
    )


def is_released(
    offer: Offer,
    doubt: Doubt,
    held: HeldPrice | None,
    config: SourceConfig,
    day: date,
    moves_elsewhere: Moves,
) -> bool:
    """True if a price in doubt is believed: a person confirmed it, it was ``held`` for long enough, or the
    market moved with it."""
    if is_reviewed(offer, config) or (held and _was_held_long_enough(offer, held, day)):
        return True
    return doubt.reason == RejectReason.PRICE_JUMP and _market_moved(offer, doubt.before, moves_elsewhere)


def is_reviewed(offer: Offer, config: SourceConfig) -> bool:
    """True if a person has confirmed this price of this offer in the source's yaml."""
    return any(_confirms(reviewed, offer) for reviewed in config.reviewed_prices)


def _confirms(reviewed: ReviewedPrice, offer: Offer) -> bool:
    return (
        all(getattr(offer, name) == value for name, value in reviewed.offer.items())
        and reviewed.currency == offer.native_currency
        and is_same_figure(reviewed.price, offer.native_price)
    )


def _was_held_long_enough(offer: Offer, held: HeldPrice, day: date) -> bool:
    return (
        is_same_price(held.native_price, offer.native_price)
        and (day - held.since).days >= THRESHOLDS.held_days
        and held.readings >= THRESHOLDS.min_held_readings
    )


def _market_moved(offer: Offer, before: Before | None, moves_elsewhere: Moves) -> bool:
    if before is None or offer.gpu_id is None:
        return False
    own = math.log(offer.native_price / before.native_price)
    most = THRESHOLDS.max_move_ratio
    moves = moves_elsewhere(offer.gpu_id, offer.price_kind, before.day)
    return any(1 / most <= move / own <= most for move in moves)
