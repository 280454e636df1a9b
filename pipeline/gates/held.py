"""Held prices: the doubt about a price, the reject that stores the price, and its release.

A defect in a reader repeats every day, so reading a price again does not confirm it. A held price is released
when the market moves with it, after held_days, or when a person adds it to ``reviewed_prices`` in the
source's yaml.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from pydantic import TypeAdapter

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.prices import is_same_figure, is_same_price, price_key
from pipeline.gates.thresholds import THRESHOLDS

Moves = Callable[[str, str, date], Iterable[float]]
"""Maps a card, a price kind and an earlier day to the logarithms of price changes elsewhere since then."""


@dataclass(frozen=True, slots=True)
class Before:
    """An earlier accepted price of an offer."""

    native_price: Decimal
    native_currency: str
    usd_per_gpu_hour: Decimal | None
    day: date


@dataclass(frozen=True, slots=True)
class HeldPrice:
    """A price held by earlier readings: how often, since when, and the price accepted before it."""

    reason: RejectReason
    native_price: Decimal
    since: date
    readings: int
    before: Before | None = None


_BEFORE = TypeAdapter(Before | None)
HELD_REASONS = {reason.value: reason for reason in RejectReason if reason.held}


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason not to believe a price at once, and the earlier price with which it was compared."""

    reason: RejectReason
    detail: str
    before: Before | None = None


def held_reject(offer: Offer, doubt: Doubt) -> RejectedRow:
    """Return the reject that stores a held price."""
    is_jump = doubt.reason == RejectReason.PRICE_JUMP and doubt.before is not None
    until_the_market = "until the market moves with it, " if is_jump else ""
    return RejectedRow(
        source=offer.source,
        reason=doubt.reason,
        detail=f"{doubt.detail}; held {until_the_market}until it has been read for "
        f"{THRESHOLDS.held_days} days, or until a person confirms it under reviewed_prices in "
        f"catalog/sources/{offer.source}.yaml",
        raw={
            "price_key": list(price_key(offer)),
            "native_price": str(offer.native_price),
            "native_currency": offer.native_currency,
            "before": _BEFORE.dump_python(doubt.before, mode="json"),
        },
        observed_at=offer.observed_at,
        source_url=offer.source_url,
        capture_sha256=offer.capture_sha256,
    )


def held_again(row: Mapping[str, Any], day: date, earlier: HeldPrice | None) -> HeldPrice:
    """Return the held price in a reject on ``day``, given the ``earlier`` held price of the same offer."""
    reason, price = HELD_REASONS[row["reason"]], Decimal(row["raw"]["native_price"])
    before = _BEFORE.validate_python(row["raw"]["before"]) or (earlier.before if earlier else None)
    if earlier and is_same_price(earlier.native_price, price):
        return HeldPrice(reason, price, earlier.since, earlier.readings + 1, before)
    return HeldPrice(reason, price, day, 1, before)


def is_released(
    offer: Offer,
    doubt: Doubt,
    held: HeldPrice | None,
    config: SourceConfig,
    day: date,
    moves_elsewhere: Moves,
) -> bool:
    """True if a price in doubt is believed because a person confirmed it, it was ``held`` for long enough, or
    the market moved with it."""
    if is_reviewed(offer, config) or (held and _was_held_long_enough(offer, held, day)):
        return True
    return doubt.reason == RejectReason.PRICE_JUMP and _market_moved(offer, doubt.before, moves_elsewhere)


def is_reviewed(offer: Offer, config: SourceConfig) -> bool:
    """True if a person has confirmed this price of this offer in the source's yaml."""
    return any(
        all(getattr(offer, name) == value for name, value in reviewed.offer.items())
        and reviewed.currency == offer.native_currency
        and is_same_figure(reviewed.price, offer.native_price)
        for reviewed in config.reviewed_prices
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
