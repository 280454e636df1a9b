"""The kind and committed term of a price, as stated in a header, title or label."""

import re

from pipeline.contracts.listing import PriceKind

ON_DEMAND = r"on[ -]?demand|pay as you go"

DAYS_PER = {"day": 1, "week": 7, "month": 30, "year": 365}
"""Length of each unit of a term, in days."""

_TERM = re.compile(
    r"(?<![\w.,])(?<!\w-)(?P<count>\d{1,4})(?: ?- ?\d{1,4}| ?\+)?[ -]?(?P<unit>day|week|month|year)",
    re.IGNORECASE,
)
_KINDS: tuple[tuple[re.Pattern[str], PriceKind], ...] = (
    (re.compile(r"\bspot\b|pre-?emptible", re.IGNORECASE), "spot"),
    (re.compile(r"reserv|commit|\bCUDs?\b", re.IGNORECASE), "reserved"),
    (re.compile(ON_DEMAND, re.IGNORECASE), "on_demand"),
)


def price_kind(text: str) -> PriceKind | None:
    """Return the kind of price that the text names; None if it names none."""
    return next((kind for pattern, kind in _KINDS if pattern.search(text)), None)


def term_days(text: str) -> int | None:
    """Return the first term in the text ("12-month commitment"), in days; None if there is none.

    For a range ("7-30 days", "2 weeks - 1 year"), this is the shortest term. The end of a word or of another
    number ("7O-30 days", "1.5 years") is no term.
    """
    found = _TERM.search(text)
    return int(found["count"]) * DAYS_PER[found["unit"].lower()] if found else None
