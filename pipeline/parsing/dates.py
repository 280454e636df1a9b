"""Dates on price pages, and the validity of prices: "effective January 1, 2027", "before 1 January"."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from pipeline.contracts.listing import Answer
from pipeline.parsing.text import UnreadableError

_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ].{0,40})?")
_FORMATS = ("%B %d, %Y", "%B %d %Y", "%b %d, %Y", "%b %d %Y", "%d %B %Y", "%d %b %Y")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b", re.IGNORECASE)
_DAY = rf"20\d\d-\d\d-\d\d|{_MONTH} \d{{1,2}}(?:,? 20\d\d)?|\d{{1,2}} {_MONTH}(?:,? 20\d\d)?"
_STATED = re.compile(
    r"\b(?P<word>effective|starting|starts|from|since|as of|valid|before|until|through)\b"
    rf"(?: (?:from|on|as of|until|before))?:? ?(?P<day>{_DAY})(?!\w)",
    re.IGNORECASE,
)
_DATED = re.compile(rf"\b20\d\d\b|\beffective\b|\b\d{{1,2}} {_MONTH}|{_MONTH} \d{{1,2}}\b", re.IGNORECASE)
_BEFORE = re.compile(r"\bbefore\b", re.IGNORECASE)
_LAST = re.compile(r"\b(?:until|through)\b", re.IGNORECASE)


def date_of(text: str) -> date | None:
    """Return the date in a string such as ``2026-10-01`` (with or without a time), ``October 1, 2026`` or ``1
    Oct 2026``; None for any other string."""
    text = text.strip()
    iso = _ISO.fullmatch(text)
    for form in ("%Y-%m-%d",) if iso else _FORMATS:
        try:
            return datetime.strptime(iso[1] if iso else text, form).replace(tzinfo=UTC).date()
        except ValueError:
            continue
    return None


def day_of(answer: Answer) -> date:
    """Return the day (UTC) on which the answer was observed."""
    return answer.observed_at.astimezone(UTC).date()


def effective_from(day: date | None, answer: Answer) -> date | None:
    """Return the first day of a price announced in advance; None for a price that is already valid."""
    return day if day is not None and day > day_of(answer) else None


@dataclass(frozen=True, slots=True)
class Validity:
    """Validity of prices: from ``first_day`` to the day before ``ended_on``; None if a day is not stated."""

    first_day: date | None = None
    ended_on: date | None = None


def validity(header: str, answer: Answer) -> Validity:
    """Return the period in which a column's prices are valid, according to its header.

    A date without a year is taken to be the nearest such date, because price pages announce changes weeks
    ahead. Raises UnreadableError for a date, or a phrase with "effective", in an unknown form.
    """
    text = _ORDINAL.sub("", header)
    found = list(_STATED.finditer(text))
    if len(found) != 1 or len(_DATED.findall(_STATED.sub("", text))):
        if not found and not _DATED.search(text):
            return Validity()
        raise UnreadableError(f"the date in the column {header!r} cannot be read")
    day = _day(found[0]["day"], day_of(answer))
    if day is None:
        raise UnreadableError(f"the date in the column {header!r} is not a day")
    if _BEFORE.search(found[0][0]):
        return Validity(ended_on=day)
    return Validity(ended_on=day + timedelta(days=1)) if _LAST.search(found[0][0]) else Validity(day)


def is_superseded(own: Validity, others: Iterable[Validity], answer: Answer) -> bool:
    """True if prices are no longer valid on the answer's day: their last day has passed, or another column's
    prices for the same thing have taken effect since."""
    today = day_of(answer)
    return (own.ended_on is not None and own.ended_on <= today) or any(
        (own.first_day or date.min) < (other.first_day or date.min) <= today for other in others
    )


def _day(text: str, today: date) -> date | None:
    text = re.sub(r"\bsept\b", "Sep", re.sub(r"[.,]", "", text), flags=re.IGNORECASE)
    if re.search(r"20\d\d", text):
        return date_of(text)
    near = (_day(f"{text} {year}", today) for year in (today.year - 1, today.year, today.year + 1))
    days = [day for day in near if day is not None]
    return min(days, key=lambda day: abs(day - today), default=None)
