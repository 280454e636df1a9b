"""Finds the offers that a source usually lists and a reading lacks."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from statistics import median
from typing import Any

from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.record.records import Records

Part = tuple[str, Any]
"""A part of a source's list: its sort (kind, card, region or table) and its value."""


@dataclass(frozen=True, slots=True)
class Losses:
    """The lost parts of a list in words, and why so large a loss refuses the reading, if it does."""

    texts: tuple[str, ...] = ()
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Usual:
    """The median number of offers in the last growth_days accepted readings: in all, and by part."""

    offers: float = 0
    parts: Mapping[Part, float] = field(default_factory=dict)


def read_usual(records: Records, source: str, day: date, since: date = date.min) -> Usual:
    """Return what a source's list usually had from ``since`` to before ``day``. Raises RecordError."""
    days = [each for each in records.accepted_days(source) if since <= each < day][-THRESHOLDS.growth_days :]
    return usual_of([records.offers(source, each) for each in days])


def usual_of(readings: Sequence[Sequence[Offer]]) -> Usual:
    """Return the median number of offers in some readings."""
    if not readings:
        return Usual()
    counts = [_parts(offers) for offers in readings]
    parts = {part for each in counts for part in each}
    medians = {part: median(each[part] for each in counts) for part in parts}
    return Usual(median(map(len, readings)), medians)


_PART_OF: Sequence[tuple[str, Callable[[Offer], Any]]] = (
    ("kind", lambda offer: offer.price_kind),
    ("card", lambda offer: offer.gpu_id),
    ("region", lambda offer: offer.region),
    ("table", lambda offer: (offer.source_url, offer.tier, offer.price_kind)),
)


def _parts(offers: Iterable[Offer]) -> Counter[Part]:
    """Count offers by part. Which hosts rent out on a marketplace changes daily, so only its kinds count."""
    return Counter(
        (name, part)
        for offer in offers
        for name, part_of in _PART_OF
        if (part := part_of(offer)) is not None and (name == "kind" or not offer.is_marketplace)
    )


def losses(offers: Sequence[Offer], rejects: Sequence[RejectedRow], usual: Usual) -> Losses:
    """Compare a reading with what its source's list usually has. A row without a price is a lost offer."""
    if not usual.offers:
        return Losses()
    gone = usual.offers - len(offers)
    unpriced = sum(reject.reason == RejectReason.NOT_OFFERED for reject in rejects)
    text = f"{len(offers)} offers, where {usual.offers:g} are usual"
    if unpriced:
        text += f"; {unpriced} rows have no price"
    if gone >= THRESHOLDS.refused_loss * usual.offers:
        return Losses((text,), text)
    found = [text] if gone >= THRESHOLDS.warned_loss * usual.offers else []
    now = _parts(offers)
    lost = ((part, count) for part, count in usual.parts.items() if _is_lost(part, now, count))
    found += (_lost(part, now[part], count) for part, count in lost)
    return Losses(tuple(sorted(found)))


def _is_lost(part: Part, now: Counter[Part], usual: float) -> bool:
    """True if a kind, a card or a region has no offer left, or a table has lost half of its offers."""
    name, _ = part
    if name != "table":
        return usual >= 1 and not now[part]
    return usual >= THRESHOLDS.min_table_rows and usual - now[part] >= THRESHOLDS.refused_loss * usual


def _lost(part: Part, now: int, usual: float) -> str:
    name, value = part
    if name == "table":
        url, tier, kind = value
        value = f"{url} ({', '.join(filter(None, (tier, kind)))})"
    where = f"region {value}" if name == "region" else value
    return f"{where}: {now} offers, where {usual:g} are usual"
