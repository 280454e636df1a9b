"""What the record knows of a source's prices before a reading, and how prices moved at other sources."""

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from statistics import median
from typing import Any

from pipeline.catalog.source_config import asked_configs
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.price_moves import (
    Before,
    HeldPrice,
    History,
    PriceKey,
    is_same_price,
    price_key,
)
from pipeline.record.records import RecordError, Records

HISTORY_READINGS = 30
"""In how many of the last readings held prices are looked for: of days, a source that is read twice a month
would never have enough to release one."""

_HELD_REASONS = {reason.value: reason for reason in RejectReason if reason.held}


def read_history(records: Records, source: str, day: date) -> History:
    """The last accepted reading of a source before ``day``, and what readings held since."""
    last = records.last_accepted(source, before=day)
    last_day, offers = last or (None, [])
    accepted = {price_key(offer) for offer in offers}
    held: dict[PriceKey, HeldPrice] = {}
    for at in [each for each in records.rejected_days(source) if each < day][-HISTORY_READINGS:]:
        for row in records.rejects(source, at):
            if row["reason"] in _HELD_REASONS:
                key = tuple(row["raw"]["price_key"])
                # One that was accepted on the same day, too, shares its key with a held one.
                if key not in accepted or (last_day and at >= last_day):
                    held[key] = _held_again(row, at, held.get(key))
    return History(offers, last_day, held)


def _held_again(row: Mapping[str, Any], day: date, earlier: HeldPrice | None) -> HeldPrice:
    reason, price = _HELD_REASONS[row["reason"]], Decimal(row["raw"]["native_price"])
    before = _before(row["raw"].get("before"))
    if earlier and is_same_price(earlier.native_price, price):
        readings = earlier.readings + 1
        return HeldPrice(reason, price, earlier.since, readings, before or earlier.before)
    return HeldPrice(reason, price, day, 1, before or (earlier.before if earlier else None))


def _before(raw: Mapping[str, Any] | None) -> Before | None:
    if raw is None:
        return None
    usd = raw["usd_per_gpu_hour"]
    return Before(
        Decimal(raw["native_price"]),
        raw["native_currency"],
        None if usd is None else Decimal(usd),
        date.fromisoformat(raw["day"]),
    )


class OtherSources:
    """How a card's price moved at the sources other than one, up to a day; read when it is asked for."""

    def __init__(self, records: Records, source: str, day: date) -> None:
        self._records, self._source, self._day = records, source, day

    def moves(self, gpu_id: str, price_kind: str, since: date) -> Iterator[float]:
        """The logarithm of each source's change of its median USD per GPU-hour, from its last accepted
        reading up to ``since`` to its newest one. Marketplaces do not count: a few hosts make their
        median."""
        for source in asked_configs():
            days = [day for day in self._records.accepted_days(source) if day <= self._day]
            before = [day for day in days if day <= since]
            if source != self._source and before and days[-1] > since:
                then = self._price(source, before[-1], gpu_id, price_kind)
                now = self._price(source, days[-1], gpu_id, price_kind)
                if then and now:
                    yield math.log(now / then)

    def _price(self, source: str, day: date, gpu_id: str, price_kind: str) -> float | None:
        try:
            offers = self._records.offers(source, day)
        except RecordError:  # named and mended when that source is read: until then it confirms nothing
            return None
        prices: Iterable[float] = [
            float(offer.usd_per_gpu_hour)
            for offer in offers
            if (offer.gpu_id, offer.price_kind) == (gpu_id, price_kind)
            and offer.usd_per_gpu_hour
            and not offer.is_marketplace
        ]
        return median(prices) if prices else None
