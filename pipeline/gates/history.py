"""The record before a reading: the source's last accepted offers, its earlier prices, the prices held since,
and price moves at other sources."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache, partial
from statistics import median

from pipeline.catalog.source_config import asked_configs
from pipeline.contracts.offer import Offer
from pipeline.contracts.rates import Rate
from pipeline.gates.held import HELD_REASONS, HeldPrice, Moves, held_again
from pipeline.gates.prices import PriceKey, price_key
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.record.damage import RecordError
from pipeline.record.records import Records

DaysOfPrice = Mapping[PriceKey, Sequence[date]]
"""The days on which an offer had a price, by ``dated_price``."""


@dataclass(frozen=True, slots=True)
class History:
    """The last accepted reading of a source, the prices held since, the dollars per unit of each currency,
    and, read only if it is needed, the prices of the readings before the last one."""

    last: Sequence[Offer] = ()
    last_day: date | None = None
    held: Mapping[PriceKey, HeldPrice] = field(default_factory=dict)
    rates: Mapping[str, Rate] = field(default_factory=dict)
    earlier: Callable[[], DaysOfPrice] = dict


def read_history(records: Records, source: str, day: date) -> History:
    """Return a source's history before ``day``. Raises RecordError."""
    days = [each for each in records.accepted_days(source) if each < day]
    last_day, offers = (days[-1], records.offers(source, days[-1])) if days else (None, [])
    accepted = {price_key(offer) for offer in offers if not offer.doubt}
    held: dict[PriceKey, HeldPrice] = {}
    rejected = [each for each in records.rejected_days(source) if each < day]
    for each in rejected[-THRESHOLDS.history_readings :]:
        for row in records.rejects(source, each):
            if row["reason"] in HELD_REASONS:
                key = tuple(row["raw"]["price_key"])
                # If a key is held and accepted on the same day, two offers share it.
                if key not in accepted or (last_day and each >= last_day):
                    held[key] = held_again(row, each, held.get(key))
    before_last = days[-1 - THRESHOLDS.history_readings : -1]
    earlier = cache(partial(_days_of_price, records, source, before_last))
    return History(offers, last_day, held, records.usd_rates(day), earlier)


def _days_of_price(records: Records, source: str, days: Sequence[date]) -> DaysOfPrice:
    found: dict[PriceKey, list[date]] = defaultdict(list)
    for day in days:
        for offer in records.offers(source, day):
            found[dated_price(offer)].append(day)
    return found


def dated_price(offer: Offer) -> PriceKey:
    """Return the key of an offer at its present price."""
    return (*price_key(offer), offer.native_currency, offer.native_price)


def accepted_counts(records: Records, source: str, day: date, since: date = date.min) -> list[int]:
    """Return the number of offers in the best accepted attempt on each of the last growth_days accepted days
    from ``since`` to before ``day``. Raises RecordError."""
    days = [each for each in records.accepted_days(source) if since <= each < day]
    counts = (
        [row["rows"] for row in records.outcomes(source, each) if row["accepted"] and row["rows"]]
        for each in days[-THRESHOLDS.growth_days :]
    )
    return [max(rows) for rows in counts if rows]


def refused_counts(records: Records, source: str, day: date) -> list[int]:
    """Return the number of offers in each attempt that was refused on a day after the last accepted day and
    before ``day``. Raises RecordError."""
    last = max((each for each in records.accepted_days(source) if each < day), default=date.min)
    days = [each for each in records.outcome_days(source) if last < each < day]
    return [row["rows"] for each in days for row in records.outcomes(source, each) if not row["accepted"]]


def moves_at_other_sources(records: Records, own: str, day: date) -> Moves:
    """Return a function that gives, for each other source, the logarithm of the change in a card's median USD
    per GPU-hour between the last reading accepted up to an earlier day and the last accepted up to ``day``.

    Marketplaces do not count, since a few hosts determine the median there.
    """
    days = cache(lambda source: [each for each in records.accepted_days(source) if each <= day])
    medians = cache(partial(_median_prices, records))

    @cache
    def moves(gpu_id: str, price_kind: str, since: date) -> Sequence[float]:
        found = []
        for source in asked_configs().keys() - {own}:
            before = [each for each in days(source) if each <= since]
            if before and days(source)[-1] > since:
                then, now = (
                    medians(source, each).get((gpu_id, price_kind)) for each in (before[-1], days(source)[-1])
                )
                found += [math.log(now / then)] if then and now else []
        return sorted(found)

    return moves


def _median_prices(records: Records, source: str, day: date) -> Mapping[tuple[str, str], float]:
    """Return a source's median USD per GPU-hour by card and price kind, without prices that only stayed."""
    try:
        offers = records.offers(source, day)
    except RecordError:  # the file is mended when that source is read; until then it confirms nothing
        return {}
    prices: dict[tuple[str, str], list[float]] = defaultdict(list)
    for offer in offers:
        if offer.gpu_id and offer.usd_per_gpu_hour and not offer.is_marketplace and not offer.doubt:
            prices[offer.gpu_id, offer.price_kind].append(float(offer.usd_per_gpu_hour))
    return {key: median(found) for key, found in prices.items()}
