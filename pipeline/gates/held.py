"""Held prices: the doubt about a price, the reject that stores it, and the evidence that releases it.

A defect in a reader repeats every day, so reading a price again confirms it only if the change does not have
the shape of a misread (``RejectReason.by_time``), or if the page shows it where the earlier price stood
(``page_places``). Any held price is released by other evidence: see ``Evidence``.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.contracts.reject_reasons import Evidence, RejectReason
from pipeline.gates.prices import is_same_price, price_key
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
    capture_sha256: str


@dataclass(frozen=True, slots=True)
class HeldPrice:
    """A price held by earlier readings, and the first of the consecutive days on which it was held."""

    reason: RejectReason
    native_price: Decimal
    since: date


_OF_SIZE = (RejectReason.PRICE_JUMP, RejectReason.PRICE_TOO_FAR)
"""Doubts only about how far a price moved."""

_RELEASED_IF_SHOWN = (
    RejectReason.PRICE_JUMP,
    RejectReason.PRICE_OF_ANOTHER_OFFER,
    RejectReason.LIST_MOVED,
    RejectReason.MOVED_BY_A_DISCOUNT,
    RejectReason.PAGE_CHANGED,
)

HELD_REASONS = {reason.value: reason for reason in RejectReason if reason.held}


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason not to believe a price at once, and the earlier price with which it was compared."""

    reason: RejectReason
    detail: str
    before: Before | None = None


def held_reject(offer: Offer, doubt: Doubt) -> RejectedRow:
    """Return the reject that stores a held price."""
    may_be_shown = doubt.before is not None and not offer.is_marketplace
    if doubt.reason.by_time:
        of_another_day = "it is read again on another day, "
    elif may_be_shown and doubt.reason in _RELEASED_IF_SHOWN:
        of_another_day = "the page of another day shows it where the earlier price stood, "
    else:
        of_another_day = ""
    waits = [
        of_another_day,
        "other sources' prices for the card move alike, " if _may_follow_the_market(doubt) else "",
    ]
    until = f"{''.join(waits)}or you confirm it" if any(waits) else "you confirm it"
    detail = f"{doubt.detail}; held until {until} with `gpufare confirm {offer.source}`"
    return reject_of(offer, doubt.reason, detail, price_key=list(price_key(offer)))


def reject_of(offer: Offer, reason: RejectReason, detail: str, **raw: Any) -> RejectedRow:
    """Return the reject of a price that became an offer; its ``raw`` has the native price, too."""
    return RejectedRow(
        source=offer.source,
        reason=reason,
        detail=detail,
        raw=raw | {"native_price": str(offer.native_price), "native_currency": offer.native_currency},
        observed_at=offer.observed_at,
        source_url=offer.source_url,
        capture_sha256=offer.capture_sha256,
    )


def _may_follow_the_market(doubt: Doubt) -> bool:
    of_one_currency = doubt.reason not in (RejectReason.CURRENCY_CHANGED, RejectReason.REFUSED_BY_A_PERSON)
    return doubt.before is not None and of_one_currency


def held_again(row: Mapping[str, Any], day: date, earlier: HeldPrice | None) -> HeldPrice:
    """Return the held price in a reject on ``day``, given the ``earlier`` held price of the same offer."""
    reason, price = HELD_REASONS[row["reason"]], Decimal(row["raw"]["native_price"])
    if earlier is None or not is_same_price(earlier.native_price, price):
        return HeldPrice(reason, price, day)
    # A shape of a misread remains one, even if what showed it is gone.
    return HeldPrice(reason if earlier.reason.by_time else earlier.reason, price, earlier.since)


def evidence_for(
    offer: Offer,
    doubt: Doubt,
    held: HeldPrice | None,
    day: date,
    last_day: date,
    moves_elsewhere: Moves,
    is_shown: bool = False,
) -> Evidence | None:
    """Return the evidence that releases a price in doubt, or None. ``held`` is the same offer's price as held
    by earlier readings, and ``last_day`` the day of the last accepted reading; ``is_shown`` tells that the
    page shows the new price in the place of the earlier one.

    A stated date makes a new offer, so a price with such a date has no ``before``.
    """
    if doubt.reason == RejectReason.CURRENCY_CHANGED:
        return Evidence.SAME_AMOUNT if _is_same_amount(offer, doubt.before) else None
    is_dated = offer.effective_from is not None and last_day < offer.effective_from <= day
    if is_dated and doubt.before is None and doubt.reason in _OF_SIZE:
        return Evidence.STATED_DATE
    if doubt.before and _market_moved(offer, doubt.before, moves_elsewhere):
        return Evidence.MARKET
    if not held or not _was_read_before(offer, held, day):
        return None
    if is_shown and doubt.reason in _RELEASED_IF_SHOWN:
        return Evidence.PAGE
    return Evidence.TIME if doubt.reason.by_time and held.reason.by_time else None


def _is_same_amount(offer: Offer, before: Before | None) -> bool:
    """True if an offer costs as many dollars as before, in another currency."""
    usd, earlier = offer.usd_per_gpu_hour, before and before.usd_per_gpu_hour
    return bool(usd and earlier and is_same_price(earlier, usd))


def _was_read_before(offer: Offer, held: HeldPrice, day: date) -> bool:
    is_same = is_same_price(held.native_price, offer.native_price)
    return is_same and (day - held.since).days >= THRESHOLDS.held_days


def _market_moved(offer: Offer, before: Before, moves_elsewhere: Moves) -> bool:
    """True if the card's price moved as far in the same direction at enough other sources."""
    if offer.gpu_id is None:
        return False
    own, most = math.log(offer.native_price / before.native_price), THRESHOLDS.max_move_ratio
    moves = moves_elsewhere(offer.gpu_id, offer.price_kind, before.day) if own else ()
    alike = sum(1 / most <= move / own <= most for move in moves)
    return alike >= THRESHOLDS.min_alike_sources
