"""Dates that price pages write, and from when a price is valid."""

import re
from datetime import UTC, date, datetime

from pipeline.contracts.listing import Answer

_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ].{0,40})?")
_FORMATS = ("%B %d, %Y", "%B %d %Y", "%b %d, %Y", "%b %d %Y", "%d %B %Y", "%d %b %Y")


def date_of(text: str) -> date | None:
    """The date that a text is: ``2026-10-01``, with or without a time, ``October 1, 2026`` or ``1 Oct 2026``.

    None where it is no date.
    """
    text = text.strip()
    iso = _ISO.fullmatch(text)
    for form in ("%Y-%m-%d",) if iso else _FORMATS:
        try:
            return datetime.strptime(iso[1] if iso else text, form).replace(tzinfo=UTC).date()
        except ValueError:
            continue
    return None


def day_of(answer: Answer) -> date:
    """The day (UTC) on which the answer was observed."""
    return answer.observed_at.astimezone(UTC).date()


def effective_from(day: date | None, answer: Answer) -> date | None:
    """The first day of a price announced ahead; None for a price valid on the answer's own day."""
    return day if day is not None and day > day_of(answer) else None
