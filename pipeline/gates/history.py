"""The record before a reading: the source's last accepted offers, the prices held since, and price moves at
other sources."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from statistics import median
from typing import Any

from pydantic import TypeAdapter

from pipeline.catalog.source_config import asked_configs
from pipeline.contracts.offer import Offer
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.prices import PriceKey, is_same_price, price_key
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.record.damage import RecordError
from pipeline.record.records import Records


@dataclass(frozen=True, slots=True)
class Before:
    """An earlier accepted price of an offer."""

    native_price: Decimal
    native_currency: str
    usd_per_gpu_hour: Decimal | None
    day: date


@dataclass(frozen=True, slots=True)
class HeldPrice:
    """A price held by earlier readings: on how many days, since when, and the accepted price before it."""

    reason: RejectReason
    native_price: Decimal
    since: date
    readings: int
    before: Before | None = None


@dataclass(frozen=True, slots=True)
class History:
    """The last accepted reading of a source, and the prices that readings held."""

    last: Sequence[Offer] = ()
    last_day: date | None = None
    held: Mapping[PriceKey, HeldPrice] = field(default_factory=dict)


_BEFORE = TypeAdapter(Before | None)
_HELD_REASONS = {reason.value: reason for reason in RejectReason if reason.held}


def held_as_json(offer: Offer, before: Before | None) -> dict[str, Any]:
    """Return the part of a held price's reject that read_history needs."""
    return {
        "price_key": list(price_key(offer)),
        "native_price": str(offer.native_price),
        "native_currency": offer.native_currency,
        "before": _BEFORE.dump_python(before, mode="json"),
    }


def read_history(records: Records, source: str, day: date) -> History:
    """Return a source's history before ``day``. Raises RecordError."""
    last_day, offers = records.last_accepted(source, before=day) or (None, [])
    accepted = {price_key(offer) for offer in offers}
    held: dict[PriceKey, HeldPrice] = {}
    earlier = [each for each in records.rejected_days(source) if each < day]
    for each in earlier[-THRESHOLDS.history_readings :]:
        for row in records.rejects(source, each):
            if row["reason"] in _HELD_REASONS:
                key = tuple(row["raw"]["price_key"])
                # An offer that is held and accepted on one day shares its key with another.
                if key not in accepted or (last_day and each >= last_day):
                    held[key] = _held_again(row, each, held.get(key))
    return History(offers, last_day, held)


def _held_again(row: Mapping[str, Any], day: date, earlier: HeldPrice | None) -> HeldPrice:
    reason, price = _HELD_REASONS[row["reason"]], Decimal(row["raw"]["native_price"])
    before = _BEFORE.validate_python(row["raw"]["before"]) or (earlier.before if earlier else None)
    if earlier and is_same_price(earlier.native_price, price):
        return HeldPrice(reason, price, earlier.since, earlier.readings + 1, before)
    return HeldPrice(reason, price, day, 1, before)


def accepted_counts(records: Records, source: str, day: date) -> list[int]:
    """Return the number of offers of the best accepted attempt on each of the last growth_days accepted days
    before ``day``. Raises RecordError."""
    days = [each for each in records.accepted_days(source) if each < day]
    counts = (
        [row["rows"] for row in records.outcomes(source, each) if row["accepted"] and row["rows"]]
        for each in days[-THRESHOLDS.growth_days :]
    )
    return [max(rows) for rows in counts if rows]


def moves_at_other_sources(
    records: Records, own: str, day: date, gpu_id: str, price_kind: str, since: date
) -> Iterator[float]:
    """Yield the logarithm of each other source's change of a card's median USD per GPU-hour, from its last
    accepted reading up to ``since`` to its newest one up to ``day``.

    Marketplaces do not count, since a few hosts make their median.
    """
    for source in asked_configs():
        days = [each for each in records.accepted_days(source) if each <= day]
        before = [each for each in days if each <= since]
        if source != own and before and days[-1] > since:
            then, now = (
                _median_price(records, source, each, gpu_id, price_kind) for each in (before[-1], days[-1])
            )
            if then and now:
                yield math.log(now / then)


def _median_price(records: Records, source: str, day: date, gpu_id: str, price_kind: str) -> float | None:
    try:
        offers = records.offers(source, day)
    except RecordError:  # reported and repaired when that source is read: until then it confirms nothing
        return None
    prices = [
        float(offer.usd_per_gpu_hour)
        for offer in offers
        if (offer.gpu_id, offer.price_kind) == (gpu_id, price_kind)
        and offer.usd_per_gpu_hour
        and not offer.is_marketplace
    ]
    return median(prices) if prices else None
