"""The date that a page states of itself: "Last verified 18 May 2026", a timestamp in JSON, Last-Modified."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, timedelta
from email.utils import parsedate_to_datetime
from itertools import chain, islice

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.parsing.dates import date_of

MAX_DATES = 1_000
"""The most dates of a page that are looked at."""

OLDEST_PLAUSIBLE = date(2015, 1, 1)
"""No page with the price of a GPU was last changed before."""

AGE_DIGITS = 12

MAX_AGE_SECONDS = 10 * 366 * 86_400
"""Ages of more than ten years count as ten years."""

_MONTHS = b"jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE = rb"(20\d\d-\d\d-\d\d|\d{1,2} (?:%s)[a-z]{0,6}\.? 20\d\d|(?:%s)[a-z]{0,6}\.? \d{1,2},? 20\d\d)" % (
    _MONTHS,
    _MONTHS,
)
_TAG = rb"(?:\s|&nbsp;|<[^<>]{0,200}>|:){0,8}"
_IN_TEXT = re.compile(
    rb"\b(?:last (?:verified|updated|reviewed|modified)|prices? (?:verified|updated|as of))(?: on| at)?"
    + _TAG
    + _DATE,
    re.IGNORECASE,
)
_IN_JSON = re.compile(
    rb'"(?:last_?updated|last_?verified|generated_?at|updated_?at|last_?modified)"\s*:\s*"(20\d\d-\d\d-\d\d)',
    re.IGNORECASE,
)


def stated_days(answers: Sequence[Answer]) -> dict[str, date]:
    """Return the newest date that each answer's text states of itself, by the answer's hash."""
    newest = {answer.sha256: max(_stated(answer), default=None) for answer in answers}
    return {sha256: day for sha256, day in newest.items() if day is not None}


def why_out_of_date(
    answers: Sequence[Answer], stated: Mapping[str, date], config: SourceConfig, day: date
) -> str | None:
    """Return why a page was older than the yaml's max_page_age_days when it was observed, by the date that it
    states; None if no page was, or if none states a date. ``day`` is the day of the prices, which for saved
    pages may be later."""
    limit = config.expect.max_page_age_days or THRESHOLDS.max_page_age_days
    for answer in answers:
        says = stated.get(answer.sha256, day)
        seen = min(day, answer.observed_at.astimezone(UTC).date())
        if (seen - says).days > limit:
            ago = "ago" if seen == day else f"before {seen}"
            return (
                f"{answer.url} says that it is of {says}, more than {limit} days {ago}: an old page was "
                f"read, or max_page_age_days in catalog/sources/{config.name}.yaml is too low"
            )
    return None


def page_days(answers: Sequence[Answer], stated: Mapping[str, date]) -> dict[str, date]:
    """Return the newest date that each answer gives itself, in its text (``stated``) or its headers, by its
    hash. The file of a page that is right may be old; but its prices cannot be newer than it."""
    found = dict(stated)
    for answer in answers:
        for day in _in_headers(answer):
            found[answer.sha256] = max(day, found.get(answer.sha256, day))
    return found


def _stated(answer: Answer) -> Iterator[date]:
    found = chain(_IN_TEXT.finditer(answer.body), _IN_JSON.finditer(answer.body))
    for text in {match[1] for match in islice(found, MAX_DATES)}:
        if (stated := date_of(text.decode().replace(".", ""))) is not None:
            yield stated


def _in_headers(answer: Answer) -> Iterator[date]:
    """Yield the day of Last-Modified, and the day since which a cache has had the answer (Age)."""
    headers = {name.lower(): value for name, value in answer.headers.items()}
    age = headers.get("age", "")[:AGE_DIGITS]
    if age.isdecimal():
        yield (answer.observed_at - timedelta(seconds=min(int(age), MAX_AGE_SECONDS))).date()
    with suppress(ValueError, TypeError, OverflowError):
        modified = parsedate_to_datetime(headers.get("last-modified", "")).date()
        # Files of reproducible builds have a date of long ago.
        if modified >= OLDEST_PLAUSIBLE:
            yield modified
