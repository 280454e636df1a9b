"""Does a day's reading of a source deserve to be published?

Acceptance is data: the answer is a verdict with a reason, kept in the outcome row. A source that fails
here keeps its last good offers; no stored price ever stands in.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.contracts.reject_reasons import RejectReason

COLLAPSE_SHARE = 0.5
"""Fewer rows than this share of the last accepted reading fail the source."""

SOURCE_JUMP_SHARE = 0.5
"""When more than this share of a source's known prices jump at once, its page was misread: it fails."""

OUT_OF_BOUNDS_SHARE = 0.2
"""More than one price and more than this share out of the yaml's bounds: a unit or a column was misread."""

SAME_PRICE_TOLERANCE = Decimal("0.05")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a reading is accepted; ``reason`` says why not, ``warnings`` what is odd but let through."""

    accepted: bool
    reason: str | None = None
    warnings: tuple[str, ...] = ()


def judge(
    offers: Sequence[Offer],
    config: SourceConfig,
    last_accepted_rows: int | None,
    rejects: Sequence[RejectedRow] = (),
) -> Verdict:
    """Hold a reading against the expectations of the source's yaml and its own last accepted size."""
    expect = config.expect
    outside = sum(reject.reason is RejectReason.PRICE_OUT_OF_BOUNDS for reject in rejects)
    if outside > 1 and outside > OUT_OF_BOUNDS_SHARE * (len(offers) + outside):
        low, high = expect.usd_per_gpu_hour
        return Verdict(
            False,
            f"{outside} of {len(offers) + outside} prices are not between the {low} and {high} USD per "
            "GPU-hour that this source is expected to ask",
        )
    if not offers:
        return Verdict(False, "no offers were read")
    if len(offers) < expect.rows_min:
        return Verdict(False, f"{len(offers)} offers, fewer than the {expect.rows_min} expected")
    missing = sorted(set(expect.must_have) - {offer.gpu_id for offer in offers})
    if missing:
        return Verdict(False, f"missing what this source always has: {', '.join(missing)}")
    if last_accepted_rows and len(offers) < COLLAPSE_SHARE * last_accepted_rows:
        return Verdict(
            False, f"{len(offers)} offers where the last accepted reading had {last_accepted_rows}"
        )
    for column, least in expect.fill_min.items():
        share = sum(getattr(offer, column) is not None for offer in offers) / len(offers)
        if share < least:
            return Verdict(False, f"{column} is filled in {share:.0%} of the offers, expected {least:.0%}")
    warnings = []
    if expect.rows_max is not None and len(offers) > expect.rows_max:
        warnings.append(f"{len(offers)} offers, more than the {expect.rows_max} expected")
    return Verdict(True, warnings=tuple(warnings))


def price_key(offer: Offer) -> tuple[Any, ...]:
    """What makes two offers of different days the same offer."""
    return (
        offer.raw_label,
        offer.instance_type,
        offer.gpu_count,
        offer.price_kind,
        offer.term_days,
        offer.region,
        offer.tier,
        offer.native_currency,
        offer.native_unit,
        offer.effective_from,
    )


@dataclass(frozen=True, slots=True)
class Quarantine:
    """A day's offers split by how far each price moved. ``failure`` is set when too many moved at once."""

    offers: list[Offer]
    rejects: list[RejectedRow]
    failure: str | None = None


def quarantine_jumps(
    offers: Sequence[Offer],
    last: Sequence[Offer],
    seen_yesterday: Mapping[tuple[Any, ...], Decimal],
    config: SourceConfig,
) -> Quarantine:
    """Hold back prices that moved more than the yaml allows since ``last``, the last accepted reading.

    A price is compared with that of the same offer; where there is none (a page with new names), with the
    range of the source's prices for the same GPU. A jump that was already held back in the reading before
    (``seen_yesterday``, native prices by ``price_key``) and still stands is believed.
    """
    kept: list[Offer] = []
    held: list[RejectedRow] = []
    compared = 0
    prices, ranges = unique_prices(last), _ranges(last)
    known = {price_key(offer) for offer in last}
    for offer in offers:
        key = price_key(offer)
        if key in prices:
            before, moved = str(prices[key]), _moved(prices[key], offer.native_price)
        elif key not in known and (around := _range_of(offer, ranges)) is not None:
            low, high, usd = around
            before = f"{low.normalize():f} to {high.normalize():f} USD per GPU-hour for that GPU"
            moved = _moved(min(max(usd, low), high), usd)
        else:
            kept.append(offer)
            continue
        compared += 1
        if moved <= config.expect.max_day_change or _stands(seen_yesterday.get(key), offer.native_price):
            kept.append(offer)
        else:
            held.append(_held_back(offer, before))
    failure = None
    if compared >= 2 and len(held) > SOURCE_JUMP_SHARE * compared:
        failure = (
            f"{len(held)} of {compared} known prices moved by more than {config.expect.max_day_change:.0%}"
        )
    return Quarantine(kept, held, failure)


def _ranges(offers: Iterable[Offer]) -> dict[tuple[Any, ...], tuple[Decimal, Decimal]]:
    """The lowest and the highest price per GPU-hour of each GPU, price kind and term, in dollars."""
    prices: dict[tuple[Any, ...], list[Decimal]] = defaultdict(list)
    for offer in offers:
        if offer.gpu_id is not None and offer.usd_per_gpu_hour is not None:
            prices[offer.gpu_id, offer.price_kind, offer.term_days].append(offer.usd_per_gpu_hour)
    return {key: (min(found), max(found)) for key, found in prices.items()}


def _range_of(
    offer: Offer, ranges: Mapping[tuple[Any, ...], tuple[Decimal, Decimal]]
) -> tuple[Decimal, Decimal, Decimal] | None:
    """The known range for the offer's GPU and its own price in the same unit; None on marketplaces, where
    each host has its own price."""
    around = ranges.get((offer.gpu_id, offer.price_kind, offer.term_days))
    if around is None or offer.usd_per_gpu_hour is None or offer.is_marketplace:
        return None
    return *around, offer.usd_per_gpu_hour


def _moved(before: Decimal, now: Decimal) -> Decimal:
    """The change as a share of the smaller price: the same for up and down."""
    return abs(now - before) / min(now, before)


def _stands(yesterday: Decimal | None, now: Decimal) -> bool:
    return yesterday is not None and _moved(yesterday, now) <= SAME_PRICE_TOLERANCE


def _held_back(offer: Offer, before: str) -> RejectedRow:
    return RejectedRow(
        source=offer.source,
        reason=RejectReason.PRICE_JUMP,
        detail=(
            f"{offer.raw_label!r} went from {before} to {offer.native_price} {offer.native_currency}; "
            "held back until a second reading shows it"
        ),
        raw={"price_key": list(price_key(offer)), "native_price": str(offer.native_price)},
        observed_at=offer.observed_at,
        source_url=offer.source_url,
        capture_sha256=offer.capture_sha256,
    )


def unique_prices(offers: Iterable[Offer]) -> dict[tuple[Any, ...], Decimal]:
    """Native prices by ``price_key``, without keys that stand for more than one offer."""
    offers = list(offers)
    counts = Counter(price_key(offer) for offer in offers)
    return {price_key(o): o.native_price for o in offers if counts[price_key(o)] == 1}
