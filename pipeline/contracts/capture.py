"""One visit to a source: the entries for its requests, and the facts derived from those entries.

The record of a capture is derived from its archived entries and status alone, so reading a day again from the
archive gives the same record.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from pipeline.contracts.outcome import NOT_ASKED, OutcomeCode, SourceResult
from pipeline.contracts.request import Entry

CaptureStatus = Literal["captured", "partial", "failed", "needs_key", "needs_permission", "disabled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One visit to a source on a day (UTC).

    ``status`` is ``captured`` if every request was answered, apart from optional requests; ``partial`` if
    only some were; ``failed`` if none was; ``needs_permission`` if the source was not asked, because of its
    terms or the user's choice; None if the visit was interrupted. ``capture_id`` is the UTC time at which the
    capture began, and is the name of its folder; None if the archive could not be written. ``replayed_from``
    is None for live answers. ``damaged`` is True if the capture's index in the archive cannot be read.
    """

    source: str
    day: date
    capture_id: str | None
    status: CaptureStatus | None
    entries: tuple[Entry, ...] = ()
    error: str | None = None
    duration_seconds: float = 0.0
    replayed_from: str | None = None
    damaged: bool = False

    @property
    def requests(self) -> int:
        """The number of requests, including those never sent."""
        return _number_of_requests(self.entries)

    @property
    def failed_requests(self) -> int:
        """The number of requests without a usable answer, including those never sent."""
        return _number_of_requests([entry for entry in self.entries if not entry.usable])

    @property
    def code(self) -> OutcomeCode | None:
        """The outcome of the failed request that decides the result; None if no failed request counts."""
        return next((entry.outcome for entry in _failures(self.entries)), None)

    @property
    def lacks_answers(self) -> bool:
        """True if a request that could be sent has no usable answer, even if the request was optional or
        another replaced it: in that case, fewer offers than usual do not suggest a misreading."""
        return any(not entry.usable and entry.outcome is not OutcomeCode.NEEDS_KEY for entry in self.entries)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about optional requests that failed, failures that other requests made up for, and odd
        answers."""
        return request_warnings(self.entries)

    @property
    def bytes(self) -> int:
        """The total size of all stored bodies, in bytes."""
        return sum(entry.bytes for entry in self.entries)

    @property
    def retries(self) -> int:
        """The number of retries, over all requests."""
        return sum(entry.retries for entry in self.entries)

    @property
    def sha256(self) -> str | None:
        """The hash of the first usable answer."""
        return next((entry.sha256 for entry in self.entries if entry.usable), None)

    @property
    def observed_at(self) -> datetime | None:
        """The time (UTC) at which the last usable answer arrived."""
        moments = [entry.observed_at for entry in self.entries if entry.usable and entry.observed_at]
        return max(moments, default=None)


def _number_of_requests(entries: Sequence[Entry]) -> int:
    """Return the number of requests that the entries stand for."""
    return sum(1 + entry.more_unsent for entry in entries)


def _unanswered(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return the requests without a usable answer, in two lists: requests whose replacements were all
    answered, and all other requests."""
    failed = [entry for entry in entries if not entry.usable]
    answered = {entry.key for entry in entries if entry.usable}
    while more := {e.key for e in failed if e.instead and answered.issuperset(e.instead)} - answered:
        answered |= more  # a replacement may have been replaced in turn
    made_up_for = [entry for entry in failed if entry.instead and entry.key in answered]
    return made_up_for, [entry for entry in failed if not entry.instead or entry.key not in answered]


def _is_counted(entry: Entry) -> bool:
    """True if a capture is incomplete without an answer to this request."""
    return not entry.optional and entry.outcome is not OutcomeCode.NEEDS_KEY


def capture_status(entries: Sequence[Entry]) -> CaptureStatus:
    """Return the status of a capture with these entries. Requests that lack their key, and optional requests
    without an answer, do not count."""
    if any(entry.usable for entry in entries):
        return "partial" if _failures(entries) else "captured"
    lacks_key = any(entry.outcome is OutcomeCode.NEEDS_KEY for entry in entries)
    return "needs_key" if lacks_key and not any(map(_is_counted, entries)) else "failed"


def _failures(entries: Sequence[Entry]) -> list[Entry]:
    """Return the failed requests that count, starting with the deciding one. If any request was answered,
    optional requests and requests that lack their key do not count."""
    failed = _unanswered(entries)[1]
    if any(entry.usable for entry in entries):
        return [entry for entry in failed if _is_counted(entry)]
    failed = [entry for entry in failed if not entry.optional] or failed
    return sorted(
        failed, key=lambda entry: entry.outcome is OutcomeCode.NEEDS_KEY
    )  # a missing key is the least informative reason


def first_error(entries: Sequence[Entry]) -> str | None:
    """Return the error of the deciding failed request and the number of other failed requests; None if no
    failed request counts."""
    failed = _failures(entries)
    if not failed:
        return None
    others = _number_of_requests(failed) - 1
    more = f" (and {others} more requests failed)" if others else ""
    return f"{failed[0].outcome}: {failed[0].error or failed[0].outcome.sentence}{more}"


def request_warnings(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the warnings that the status does not show, each with the number of cases and the first case:
    optional requests without an answer, failed requests that others made up for, and odd answers."""
    made_up_for, failed = _unanswered(entries)
    optional, missing = (
        [entry for entry in some if entry.optional and entry.outcome is not OutcomeCode.NEEDS_KEY]
        for some in (entries, failed)
    )
    odd = [entry for entry in entries if entry.warning]
    return (
        *_counted(missing, f"of {_number_of_requests(optional)} optional requests failed"),
        *_counted(made_up_for, "failed requests were made up for by others"),
        *_counted(odd, f"of {len(entries)} answers were odd"),
    )


def _counted(entries: Sequence[Entry], what: str) -> list[str]:
    """Return a warning with the number of requests and the first of them, if there are any."""
    if not entries:
        return []
    first = entries[0]
    reason = first.warning or f"{first.outcome}, {first.outcome.sentence}"
    return [f"{_number_of_requests(entries)} {what}, the first: {reason} ({first.url})"]


def source_result(capture: Capture, *, accepted: bool, changed: bool) -> SourceResult:
    """Return the result of an attempt. ``changed`` is True if the answers lack the structure that the reader
    expects, or nothing was found in them. A failed request explains the result better than the answers do."""
    if (not_asked := NOT_ASKED.get(capture.status or "")) is not None:
        return not_asked
    if accepted:
        return SourceResult.PARTIAL if capture.status == "partial" else SourceResult.FRESH
    if capture.status != "captured" and capture.code is not None:
        return capture.code.result
    if changed:
        return SourceResult.CHANGED
    has_answer = any(entry.usable for entry in capture.entries)
    return SourceResult.DOUBTED if has_answer else SourceResult.FAILED_HERE
