"""Whether a day's reading of a source may be published.

The decision is data, kept with its reason in the outcome row. A source that fails keeps its last accepted
offers; no stored price list replaces them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from statistics import median

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer
from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.price_moves import HELD_DAYS

MIN_SHARE_OF_LAST_ROWS = 0.5
"""A reading with fewer offers than this share of the last accepted one fails; exactly this share passes."""

MAX_OUT_OF_BOUNDS_ROWS = 1
MAX_OUT_OF_BOUNDS_SHARE = 0.2
"""With more prices than both of these out of the yaml's bounds, a unit or a column was misread: the source
fails. Exactly this share passes."""

MAX_GROWTH = 3
MIN_GROWTH = 50
"""A reading with more than so many times the usual offers, and more than so many more, fails. A small list
may grow as it likes."""

MIN_FOREIGN_MARKS = 3
"""With fewer amounts in another currency, a page may quote somebody."""

_SIGNS = {
    "USD": r"(?<!\")\$\s?\d|\$\s?\d+[.,]\d",
    "EUR": r"€\s?\d|\d\s?€|&euro;",
    "GBP": r"£\s?\d|&pound;",
    "INR": "₹",
    "JPY": r"¥\s?\d",
}
_MARKS = {
    code: re.compile(rf'{sign}|"{code}"|\({code}\)|\b{code}\s?\d|\d\s?{code}\b'.encode())
    for code, sign in _SIGNS.items()
}
"""How pages mark amounts of money. A quoted ``"$1"`` is a reference in the data of Next.js pages."""

_HINTS = {
    code: [text.encode() for text in (*re.findall(r"[$€£₹¥]|&[a-z]+;", sign), code)]
    for code, sign in _SIGNS.items()
}
"""Each mark contains one of these."""


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
    if missing := missing_cards(offers, config):
        return f"missing what this source always has: {', '.join(missing)}"
    for column, min_share in config.expect.fill_min.items():
        share = sum(getattr(offer, column) is not None for offer in offers) / len(offers)
        if share < min_share:
            return f"{column} is filled in {share:.0%} of the offers, expected {min_share:.0%}"
    return None


def missing_cards(offers: Sequence[Offer], config: SourceConfig) -> list[str]:
    """What of the yaml's ``must_have`` is not among the offers."""
    return sorted(set(config.expect.must_have) - {offer.gpu_id for offer in offers})


def why_in_another_currency(answers: Sequence[Answer], config: SourceConfig) -> str | None:
    """Why the page is not in the yaml's currency, by the money marks in each answer's text; None if it is, or
    if too few marks say so. A reader that ignores the mark reads such a page without noticing."""
    for answer in answers:
        own = config.currencies_of(answer.url)
        foreign, count = max(
            ((currency, _marks(answer.body, currency)) for currency in _MARKS if currency not in own),
            key=lambda pair: pair[1],
        )
        if count < MIN_FOREIGN_MARKS:
            continue
        expected = sum(_marks(answer.body, currency) for currency in own if currency in _MARKS)
        if count > expected:
            return (
                f"{answer.url} shows {count} amounts in {foreign} and {expected} in "
                f"{' or '.join(sorted(own))}, the currency of {config.name}"
            )
    return None


def _marks(body: bytes, currency: str) -> int:
    """How often a currency is marked in a body; the slow search is left out where it would find nothing."""
    hinted = any(hint in body for hint in _HINTS[currency])
    return len(_MARKS[currency].findall(body)) if hinted else 0


def why_grown(rows: int, earlier: Sequence[int], last_day: date | None, day: date) -> str | None:
    """Why a reading has too many offers for what the source had on its last accepted days (``earlier``); None
    if it has not. Not for ever: a source that was refused for HELD_DAYS may have grown."""
    if not earlier or last_day is None or (day - last_day).days >= HELD_DAYS:
        return None
    usual = median(earlier)
    if rows <= MAX_GROWTH * usual or rows <= usual + MIN_GROWTH:
        return None
    return f"{rows} offers where the last {len(earlier)} accepted readings had {usual:g}"
