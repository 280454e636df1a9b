"""Checks on a whole reading: its size, its completeness and its currency.

The decision is recorded with its reason in the outcome row. A source that fails keeps its last accepted
offers, which are never replaced by a stored price list.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import median

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer
from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.gates.prices import bounds_of
from pipeline.gates.thresholds import THRESHOLDS

_SIGNS = {
    "USD": r"(?<!\")\$\s?\d|\$\s?\d+[.,]\d",
    "EUR": r"€\s?\d|\d\s?€|&euro;",
    "GBP": r"£\s?\d|&pound;",
    "INR": "₹",
    "JPY": r"¥\s?\d",
}
_OF_COLUMNS = (FlagReason.OLDER_GPU_DEARER, FlagReason.ONE_PRICE_FOR_ALL)

_MARKS = {
    code: re.compile(rf'{sign}|"{code}"|\({code}\)|\b{code}\s?\d|\d\s?{code}\b'.encode())
    for code, sign in _SIGNS.items()
}
"""Marks of monetary amounts on pages. A quoted ``"$1"`` is a reference in the data of Next.js pages."""

_HINTS = {
    code: [text.encode() for text in (*re.findall(r"[$€£₹¥]|&[a-z]+;", sign), code)]
    for code, sign in _SIGNS.items()
}
"""Every mark contains one of these strings, which can be found faster than the mark itself."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A decision on a reading, with the ``reason`` for refusing it, and ``warnings`` about oddities."""

    accepted: bool
    reason: str | None = None
    warnings: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    """The parts of the source's usual list that the reading lacks, in words."""
    changed: bool = False
    """True if no price was read at all, not even a price in doubt."""


def check_reading(
    offers: Sequence[Offer], config: SourceConfig, rejects: Sequence[RejectedRow] = ()
) -> Acceptance:
    """Compare a reading with the expectations in the source's yaml.

    Every bound is inclusive: ``rows_min`` offers and the least share of filled values pass, and ``rows_max``
    offers cause no warning.
    """
    expect = config.expect
    reason = (
        _why_out_of_bounds(len(offers), rejects, config)
        or _why_too_few(len(offers), rejects, expect.rows_min)
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
    if outside <= THRESHOLDS.max_out_of_bounds_rows or outside <= THRESHOLDS.max_out_of_bounds_share * priced:
        return None
    low, high = bounds_of(config)
    return (
        f"{outside} of {priced} prices are not between {low} and {high} USD per GPU-hour, as "
        "expected of this source"
    )


def _why_too_few(rows: int, rejects: Sequence[RejectedRow], rows_min: int) -> str | None:
    if rows:
        return f"{rows} offers, fewer than the {rows_min} expected" if rows < rows_min else None
    if not rejects:
        return "no offers were read"
    reason, count = Counter(reject.reason for reject in rejects).most_common(1)[0]
    example = next(reject.detail for reject in rejects if reject.reason == reason)
    return f"no offers were read; rejects: {len(rejects)}, {reason.value}: {count}, for example: {example}"


def _why_incomplete(offers: Sequence[Offer], config: SourceConfig) -> str | None:
    if missing := missing_cards(offers, config):
        return f"missing cards that this source always has: {', '.join(missing)}"
    for column, min_share in config.expect.fill_min.items():
        share = sum(getattr(offer, column) is not None for offer in offers) / len(offers)
        if share < min_share:
            return f"{column} is filled in {share:.0%} of the offers, expected {min_share:.0%}"
    return None


def missing_cards(offers: Sequence[Offer], config: SourceConfig) -> list[str]:
    """Return the cards in the yaml's ``must_have`` that have no offer."""
    return sorted(set(config.expect.must_have) - {offer.gpu_id for offer in offers})


def why_contradictory(offers: Sequence[Offer]) -> str | None:
    """Return why a source's first reading is refused, or None. A card that is dearer than its successor, or
    one price for all cards, shows that a column was misread; without earlier prices, nothing tells which of
    the others are right."""
    found = Counter(offer.flag_reason for offer in offers if offer.flag_reason in _OF_COLUMNS)
    if not found:
        return None
    ((flag, count),) = found.most_common(1)
    return f"the first reading contradicts itself ({count} {flag}): a column was probably misread"


def why_in_another_currency(
    answers: Sequence[Answer], config: SourceConfig, read: Collection[str] = ()
) -> str | None:
    """Return why a page seems to be in a currency other than the yaml's, judging by the marks in its text;
    None if it does not. A reader that ignores currency marks would read such a page without noticing;
    ``read`` are the currencies in which prices were read and believed."""
    for answer in answers:
        own = config.currencies_of(answer.url) | set(read)
        foreign, count = max(
            ((currency, _marks(answer.body, currency)) for currency in _MARKS if currency not in own),
            key=lambda pair: pair[1],
        )
        if count < THRESHOLDS.min_foreign_marks:
            continue
        expected = sum(_marks(answer.body, currency) for currency in own if currency in _MARKS)
        if count > expected:
            return (
                f"{answer.url} shows {count} amounts in {foreign} and {expected} in "
                f"{' or '.join(sorted(own))}, the currency of {config.name}"
            )
    return None


def _marks(body: bytes, currency: str) -> int:
    """Count the marks of a currency in a body, searching only if the body contains one of the hints."""
    hinted = any(hint in body for hint in _HINTS[currency])
    return len(_MARKS[currency].findall(body)) if hinted else 0


def why_grown(rows: int, accepted: Sequence[int], refused: Sequence[int]) -> str | None:
    """Return why a reading has too many offers compared with the last accepted readings, or None. A list that
    was as long on an earlier day, on which it was ``refused``, has grown."""
    if not accepted or any(_is_as_long(rows, each) for each in refused):
        return None
    usual = median(accepted)
    if rows <= THRESHOLDS.max_growth * usual or rows <= usual + THRESHOLDS.min_growth:
        return None
    return f"{rows} offers, where {usual:g} are usual"


def _is_as_long(rows: int, earlier: int) -> bool:
    return abs(rows - earlier) <= THRESHOLDS.same_length * rows
