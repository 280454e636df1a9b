"""The record before a reading: the source's last accepted offers, the prices held since, and price moves at
other sources."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from statistics import median

from pipeline.catalog.source_config import asked_configs
from pipeline.contracts.offer import Offer
from pipeline.gates.held import HELD_REASONS, HeldPrice, held_again
from pipeline.gates.prices import PriceKey, price_key
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.record.damage import RecordError
from pipeline.record.records import Records


@dataclass(frozen=True, slots=True)
class History:
    """The last accepted reading of a source, and the prices that earlier readings held."""

    last: Sequence[Offer] = ()
    last_day: date | None = None
    held: Mapping[PriceKey, HeldPrice] = field(default_factory=dict)


def read_history(records: Records, source: str, day: date) -> History:
    """Return a source's history before ``day``. Raises RecordError."""
    last_day, offers = records.last_accepted(source, before=day) or (None, [])
    accepted = {price_key(offer) for offer in offers}
    held: dict[PriceKey, HeldPrice] = {}
    earlier = [each for each in records.rejected_days(source) if each < day]
    for each in earlier[-THRESHOLDS.history_readings :]:
        for row in records.rejects(source, each):
            if row["reason"] in HELD_REASONS:
                key = tuple(row["raw"]["price_key"])
                # If a key is held and accepted on the same day, two offers share it.
                if key not in accepted or (last_day and each >= last_day):
                    held[key] = held_again(row, each, held.get(key))
    return History(offers, last_day, held)


def accepted_counts(records: Records, source: str, day: date) -> list[int]:
    """Return the number of offers in the best accepted attempt on each of the last growth_days accepted days
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
    """Yield, for each other source, the logarithm of the change in a card's median USD per GPU-hour between
    the last reading accepted up to ``since`` and the last reading accepted up to ``day``.

    Marketplaces do not count, since a few hosts determine the median there.
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
    except RecordError:  # the file is mended when that source is read; until then it confirms nothing
        return None
    prices = [
        float(offer.usd_per_gpu_hour)
        for offer in offers
        if (offer.gpu_id, offer.price_kind) == (gpu_id, price_kind)
        and offer.usd_per_gpu_hour
        and not offer.is_marketplace
    ]
    return median(prices) if prices else None
