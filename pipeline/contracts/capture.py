"""One visit to a source: its entries, and the facts derived from them.

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

    ``captured``: every request was answered, except optional ones; ``partial``: some were; ``failed``: none
    was; ``needs_permission``: the source was not asked, because of its terms or the user's choice; None: the
    visit was interrupted. ``capture_id`` is the UTC time at which the capture began and names its folder;
    None if the archive could not be written. ``replayed_from`` is None for live answers. ``damaged``: the
    capture's index in the archive cannot be read.
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
        """The outcome of the failed request that decides; None if none failed or there were no requests."""
        return next((entry.outcome for entry in _failures(self.entries)), None)

    @property
    def lacks_answers(self) -> bool:
        """True if a request that could be sent has no usable answer, even if it was optional or replaced by
        another: fewer offers than usual are then no misreading."""
        return any(not entry.usable and entry.outcome is not OutcomeCode.NEEDS_KEY for entry in self.entries)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about optional requests that failed, failures that other requests made up for, and odd
        answers."""
        return request_warnings(self.entries)

    @property
    def bytes(self) -> int:
        """Bytes of all stored bodies."""
        return sum(entry.bytes for entry in self.entries)

    @property
    def retries(self) -> int:
        """Retries of all requests."""
        return sum(entry.retries for entry in self.entries)

    @property
    def sha256(self) -> str | None:
        """The hash of the first usable answer."""
        return next((entry.sha256 for entry in self.entries if entry.usable), None)

    @property
    def observed_at(self) -> datetime | None:
        """When the last usable answer arrived (UTC)."""
        moments = [entry.observed_at for entry in self.entries if entry.usable and entry.observed_at]
        return max(moments, default=None)


def _number_of_requests(entries: Sequence[Entry]) -> int:
    """Return the number of requests that the entries stand for."""
    return sum(1 + entry.more_unsent for entry in entries)


def _unanswered(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return the requests without a usable answer, in two lists: those whose replacements were all answered,
    and the others."""
    failed = [entry for entry in entries if not entry.usable]
    answered = {entry.key for entry in entries if entry.usable}
    while more := {e.key for e in failed if e.instead and answered.issuperset(e.instead)} - answered:
        answered |= more  # a replacement may be replaced in turn
    made_up_for = [entry for entry in failed if entry.instead and entry.key in answered]
    return made_up_for, [entry for entry in failed if not entry.instead or entry.key not in answered]


def _is_counted(entry: Entry) -> bool:
    """True if a capture is incomplete without an answer to this request."""
    return not entry.optional and entry.outcome is not OutcomeCode.NEEDS_KEY


def capture_status(entries: Sequence[Entry]) -> CaptureStatus:
    """Return the status of a capture with these entries. Requests that lack their key, and optional ones
    without an answer, are not counted."""
    if any(entry.usable for entry in entries):
        return "partial" if _failures(entries) else "captured"
    lacks_key = any(entry.outcome is OutcomeCode.NEEDS_KEY for entry in entries)
    return "needs_key" if lacks_key and not any(map(_is_counted, entries)) else "failed"


def _failures(entries: Sequence[Entry]) -> list[Entry]:
    """Return the failed requests, the deciding one first. Optional requests and those that lack their key are
    skipped unless no request was answered."""
    failed = _unanswered(entries)[1]
    if any(entry.usable for entry in entries):
        return [entry for entry in failed if _is_counted(entry)]
    failed = [entry for entry in failed if not entry.optional] or failed
    return sorted(
        failed, key=lambda entry: entry.outcome is OutcomeCode.NEEDS_KEY
    )  # a missing key is the least informative


def first_error(entries: Sequence[Entry]) -> str | None:
    """Return the error of the deciding failed request and the number of others; None if only optional
    requests and those without their key failed."""
    failed = _failures(entries)
    if not failed:
        return None
    others = _number_of_requests(failed) - 1
    more = f" (and {others} more requests failed)" if others else ""
    return f"{failed[0].outcome}: {failed[0].error or failed[0].outcome.sentence}{more}"


def request_warnings(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return warnings that the status does not show, one for each kind with the number and the first:
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
    """Return a warning with the number of requests and the first of them."""
    if not entries:
        return []
    first = entries[0]
    reason = first.warning or f"{first.outcome}, {first.outcome.sentence}"
    return [f"{_number_of_requests(entries)} {what}, the first: {reason} ({first.url})"]


def source_result(capture: Capture, *, accepted: bool, changed: bool) -> SourceResult:
    """Return how an attempt ended. ``changed``: its answers do not have the shape that the reader knows, or
    nothing was found in them. A failed request explains more than the reader's result on the rest."""
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
