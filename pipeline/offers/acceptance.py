"""Whether a day's reading of a source may be published, and which of its prices are held back.

The decision is data, kept with its reason in the outcome row. A source that fails keeps its last accepted
offers; no stored price list replaces them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.contracts.reject_reasons import RejectReason

MIN_SHARE_OF_LAST_ROWS = 0.5
"""A reading with fewer offers than this share of the last accepted one fails; exactly this share passes."""

MAX_OUT_OF_BOUNDS_ROWS = 1
MAX_OUT_OF_BOUNDS_SHARE = 0.2
"""With more prices than both of these out of the yaml's bounds, a unit or a column was misread: the source
fails. Exactly this share passes."""

MIN_COMPARED_PRICES = 2
MAX_JUMP_SHARE = 0.5
"""Of at least so many compared prices, when more than this share jumps at once, the page was misread: the
source fails. Exactly this share passes."""

SAME_PRICE_TOLERANCE = Decimal("0.05")
"""A jump is confirmed by a second reading whose price differs by at most this share."""

PriceKey = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Whether a reading is accepted: ``reason`` if not, and ``warnings`` about what is odd but accepted."""

    accepted: bool
    reason: str | None = None
    warnings: tuple[str, ...] = ()


def judge(
    offers: Sequence[Offer],
    config: SourceConfig,
    last_accepted_rows: int | None,
    rejects: Sequence[RejectedRow] = (),
) -> Acceptance:
    """Compare a reading with the expectations of the source's yaml and with its last accepted size.

    Every bound is inclusive: exactly ``rows_min`` offers and exactly the least share of filled values pass,
    exactly ``rows_max`` offers give no warning.
    """
    expect = config.expect
    reason = (
        _why_out_of_bounds(len(offers), rejects, config)
        or _why_too_few(len(offers), expect.rows_min, last_accepted_rows)
        or _why_incomplete(offers, config)
    )
    if reason:
        return Acceptance(False, reason)
    if expect.rows_max is not None and len(offers) > expect.rows_max:
        return Acceptance(True, warnings=(f"{len(offers)} offers, more than the {expect.rows_max} expected",))
    return Acceptance(True)


def _why_out_of_bounds(rows: int, rejects: Sequence[RejectedRow], config: SourceConfig) -> str | None:
    outside = sum(reject.reason == RejectReason.PRICE_OUT_OF_BOUNDS for reject in rejects)
    priced = rows + outside
    if outside <= MAX_OUT_OF_BOUNDS_ROWS or outside <= MAX_OUT_OF_BOUNDS_SHARE * priced:
        return None
    low, high = config.expect.usd_per_gpu_hour
    return (
        f"{outside} of {priced} prices are not between {low} and {high} USD per GPU-hour, as is "
        "expected of this source"
    )


def _why_too_few(rows: int, rows_min: int, last_accepted_rows: int | None) -> str | None:
    if not rows:
        return "no offers were read"
    if rows < rows_min:
        return f"{rows} offers, fewer than the {rows_min} expected"
    if last_accepted_rows and rows < MIN_SHARE_OF_LAST_ROWS * last_accepted_rows:
        return f"{rows} offers where the last accepted reading had {last_accepted_rows}"
    return None


def _why_incomplete(offers: Sequence[Offer], config: SourceConfig) -> str | None:
    missing = sorted(set(config.expect.must_have) - {offer.gpu_id for offer in offers})
    if missing:
        return f"missing what this source always has: {', '.join(missing)}"
    for column, min_share in config.expect.fill_min.items():
        share = sum(getattr(offer, column) is not None for offer in offers) / len(offers)
        if share < min_share:
            return f"{column} is filled in {share:.0%} of the offers, expected {min_share:.0%}"
    return None


def price_key(offer: Offer) -> PriceKey:
    """What identifies an offer across days. Prices that differ in their term, or in the day from which they
    apply, are different offers. All parts survive JSON: rejects keep the key of a price held back."""
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
        offer.effective_from and offer.effective_from.isoformat(),
    )


def unique_prices(offers: Iterable[Offer]) -> dict[PriceKey, Decimal]:
    """Native prices by ``price_key``, without keys that several offers share."""
    offers = list(offers)
    counts = Counter(price_key(offer) for offer in offers)
    return {price_key(o): o.native_price for o in offers if counts[price_key(o)] == 1}


@dataclass(frozen=True, slots=True)
class Quarantine:
    """A day's offers split by how far each price moved. ``failure`` is set when too many moved at once."""

    offers: list[Offer]
    rejects: list[RejectedRow]
    failure: str | None = None


def quarantine_jumps(
    offers: Sequence[Offer],
    last: Sequence[Offer],
    held_back_before: Mapping[PriceKey, Decimal],
    config: SourceConfig,
) -> Quarantine:
    """Hold back prices that moved more than the yaml's ``max_day_change`` (a share of the smaller price;
    exactly as much passes) since ``last``, the last accepted reading.

    A price is compared with that of the same offer; where there is none (a page with new names), with the
    range of the source's prices for the same GPU. A jump that the reading before already held back
    (``held_back_before``, native prices) and that this one confirms is accepted.
    """
    kept: list[Offer] = []
    rejects: list[RejectedRow] = []
    compared = 0
    max_change = config.expect.max_day_change
    previous = _Previous(last)
    for offer in offers:
        change = previous.change_to(offer)
        if change is None:
            kept.append(offer)
            continue
        compared += 1
        before, moved = change
        if moved <= max_change or _is_confirmed(held_back_before.get(price_key(offer)), offer.native_price):
            kept.append(offer)
        else:
            rejects.append(_jump(offer, before))
    failure = None
    if compared >= MIN_COMPARED_PRICES and len(rejects) > MAX_JUMP_SHARE * compared:
        failure = f"{len(rejects)} of {compared} known prices moved by more than {max_change:.0%}"
    return Quarantine(kept, rejects, failure)


class _Previous:
    """The prices of the last accepted reading, by offer and by GPU."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        self._prices = unique_prices(offers)
        self._keys = {price_key(offer) for offer in offers}
        by_gpu: dict[PriceKey, list[Decimal]] = defaultdict(list)
        for offer in offers:
            if offer.gpu_id is not None and offer.usd_per_gpu_hour is not None:
                by_gpu[_gpu_key(offer)].append(offer.usd_per_gpu_hour)
        self._ranges = {key: (min(prices), max(prices)) for key, prices in by_gpu.items()}

    def change_to(self, offer: Offer) -> tuple[str, Decimal] | None:
        """The earlier price in words, and the change from it; None for an offer to compare with none.

        On a marketplace each host has its own price: a new offer there is not compared with others.
        """
        key = price_key(offer)
        if key in self._prices:
            return str(self._prices[key]), _change(self._prices[key], offer.native_price)
        range_of_gpu, usd = self._ranges.get(_gpu_key(offer)), offer.usd_per_gpu_hour
        if key in self._keys or range_of_gpu is None or usd is None or offer.is_marketplace:
            return None
        low, high = range_of_gpu
        before = f"{low.normalize():f} to {high.normalize():f} USD per GPU-hour for that GPU"
        return before, _change(min(max(usd, low), high), usd)


def _gpu_key(offer: Offer) -> PriceKey:
    return (offer.gpu_id, offer.price_kind, offer.term_days)


def _change(before: Decimal, now: Decimal) -> Decimal:
    """The change as a share of the smaller price: the same for up and down."""
    return abs(now - before) / min(now, before)


def _is_confirmed(held_back: Decimal | None, now: Decimal) -> bool:
    return held_back is not None and _change(held_back, now) <= SAME_PRICE_TOLERANCE


def _jump(offer: Offer, before: str) -> RejectedRow:
    return RejectedRow(
        source=offer.source,
        reason=RejectReason.PRICE_JUMP,
        detail=(
            f"{offer.raw_label!r} went from {before} to {offer.native_price} {offer.native_currency}; "
            "held back until a second reading confirms it"
        ),
        raw={"price_key": list(price_key(offer)), "native_price": str(offer.native_price)},
        observed_at=offer.observed_at,
        source_url=offer.source_url,
        capture_sha256=offer.capture_sha256,
    )
