"""Compares the clock of this machine with the dates that other machines put on the day's answers.

With a clock that is wrong, prices are filed under a wrong day, and what is published hides what comes after.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from statistics import median

from pipeline.capture.archive import Archive
from pipeline.contracts.capture import Capture
from pipeline.contracts.request import Entry
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.home.paths import Home

MAX_ERROR = timedelta(minutes=THRESHOLDS.max_clock_error_minutes)

REMEDY = "set the clock of this machine, then run `gpufare refresh`"


def clock_problem(home: Home, day: date) -> str | None:
    """Return how far this machine's clock was off, by the newest finished capture of each source on a day, if
    it was off by more than MAX_ERROR; the median counts, since a host's own clock may be wrong. A capture
    that another process is making does not say yet whether its answers are replayed."""
    archive = Archive(home.archive)
    errors = [
        error
        for source in archive.sources()
        for capture in [each for each in archive.captures(source, day) if each.status is not None][-1:]
        if (error := _error(capture)) is not None
    ]
    if len(errors) < THRESHOLDS.min_clock_sources:
        return None
    error = timedelta(seconds=median(each.total_seconds() for each in errors))
    if abs(error) <= MAX_ERROR:
        return None
    off = f"{_length(abs(error))} {'ahead' if error > timedelta() else 'behind'}"
    return (
        f"the clock of this machine was {off} on {day}, by the dates in the answers of {len(errors)} sources"
    )


def _error(capture: Capture) -> timedelta | None:
    """Return how far the clock was ahead when a capture was made; None if its answers do not say."""
    entries = capture.entries if capture.replayed_from is None else ()
    errors = [
        entry.observed_at - sent
        for entry in entries
        if entry.observed_at is not None and (sent := _sent_at(entry)) is not None
    ]
    return min(errors, key=abs, default=None)


def _sent_at(entry: Entry) -> datetime | None:
    """Return when a host sent an answer, by its headers: a cache keeps the date and adds an age."""
    headers: Mapping[str, str] = entry.headers
    try:
        date_sent = parsedate_to_datetime(headers.get("date", ""))
        sent = date_sent.replace(tzinfo=UTC) if date_sent.tzinfo is None else date_sent
        return sent + timedelta(seconds=int(headers.get("age") or 0))
    except (ValueError, TypeError, OverflowError):
        return None


def _length(time: timedelta) -> str:
    hours = time / timedelta(hours=1)
    return f"{hours:.1f} hours" if hours < 48 else f"{time.days} days"
