"""What a capture leaves: an entry per request, the capture as a whole, and the day's outcome row.

Everything that the record says of a capture is derived from its archived entries and status, so a day that is
read again from the archive gives the same record as the day it was captured.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from pipeline.contracts.codes import CodeWithSentence

NO_PAGE_HEADER = "x-gpufare-no-page"
"""A server of saved pages says with it that it has none for the request."""


class OutcomeCode(CodeWithSentence):
    """How one request ended: a code for SQL, and its sentence without the details of the case."""

    OK = "ok", "answered"
    NOT_MODIFIED = "not_modified", "not modified since the last capture, whose body is used again"
    CONNECTION_REFUSED = "connection_refused", "the host refused the connection"
    CONNECTION_FAILED = "connection_failed", "the connection failed or was cut"
    DNS_ERROR = "dns_error", "the host's name could not be resolved"
    PROXY_FAILED = "proxy_failed", "the proxy could not be used"
    PROXY_REFUSED = "proxy_refused", "the proxy refuses the request"
    TLS_ERROR = "tls_error", "the host could not be verified over TLS"
    CONNECT_TIMEOUT = "connect_timeout", "no connection within the time limit"
    READ_TIMEOUT = "read_timeout", "the host stopped sending"
    RESPONSE_TIMEOUT = "response_timeout", "the answer took longer than one answer may take"
    SOURCE_TIMEOUT = "source_timeout", "the time for this source was used up"
    INCOMPLETE_BODY = "incomplete_body", "the answer broke off before its end"
    PROTOCOL_ERROR = "protocol_error", "the host did not answer in proper HTTP"
    HTTP_403 = "http_403", "the host forbids the request (403)"
    HTTP_404 = "http_404", "there is nothing at this address (404)"
    HTTP_429 = "http_429", "the host limits the rate of requests (429)"
    HTTP_4XX = "http_4xx", "the host rejects the request"
    HTTP_5XX = "http_5xx", "the host has an internal error"
    HTTP_OTHER = "http_other", "the host answered with a status that carries no page"
    HOST_REFUSED = "host_refused", "the address is not one that this source may ask"
    ADDRESS_REFUSED = "address_refused", "the host's name resolves to a loopback, private or reserved address"
    FAKE_ADDRESS_REFUSED = "fake_address_refused", "the host's name resolves to an address in 198.18.0.0/15"
    SHARED_ADDRESS_REFUSED = (
        "shared_address_refused",
        "the host's name resolves to an address in 100.64.0.0/10",
    )
    REDIRECT_REFUSED = "redirect_refused", "the host redirects to where this source may not go"
    TOO_MANY_REDIRECTS = "too_many_redirects", "the host redirects too many times"
    WRONG_CONTENT_TYPE = "wrong_content_type", "the answer is not of the expected content type"
    EMPTY_BODY = "empty_body", "the answer is empty"
    TOO_LARGE = "too_large", "the answer is larger than this source's limit"
    DECOMPRESSION_BOMB = "decompression_bomb", "the answer unpacks to more than this source's limit"
    BAD_ENCODING = "bad_encoding", "the answer cannot be decompressed"
    ROBOTS_DISALLOWED = "robots_disallowed", "the host's robots.txt disallows this address"
    NEEDS_KEY = "needs_key", "needs a key"
    REQUEST_LIMIT = "request_limit", "the source needs more requests than it may make"
    GIVEN_UP = "given_up", "not asked, because the requests before it failed"
    REDACTION_FAILED = "redaction_failed", "the answer could not be redacted, so it was not stored"

    @classmethod
    def of_status(cls, status: int) -> "OutcomeCode":
        """The code of an HTTP status other than 200."""
        exact = {403: cls.HTTP_403, 404: cls.HTTP_404, 429: cls.HTTP_429}
        if status in exact:
            return exact[status]
        if 400 <= status < 500:
            return cls.HTTP_4XX
        return cls.HTTP_5XX if status >= 500 else cls.HTTP_OTHER

    @property
    def usable(self) -> bool:
        """Whether the request ended with a body that a reader may read."""
        return self in (OutcomeCode.OK, OutcomeCode.NOT_MODIFIED)

    @property
    def retryable(self) -> bool:
        """Whether asking again may help: transport errors, 429 and 5xx; not a bad certificate, a limit or a
        refusal."""
        return self in _RETRYABLE


_RETRYABLE = frozenset(
    {
        OutcomeCode.CONNECTION_REFUSED,
        OutcomeCode.CONNECTION_FAILED,
        OutcomeCode.DNS_ERROR,
        OutcomeCode.PROXY_FAILED,
        OutcomeCode.CONNECT_TIMEOUT,
        OutcomeCode.READ_TIMEOUT,
        OutcomeCode.INCOMPLETE_BODY,
        OutcomeCode.PROTOCOL_ERROR,
        OutcomeCode.HTTP_429,
        OutcomeCode.HTTP_5XX,
    }
)


class SourceResult(CodeWithSentence):
    """How an attempt at a source ended, for the person who reads of it. The order is that of reports."""

    FRESH = "fresh", "fresh prices"
    PARTIAL = "partial", "fresh prices, but some requests failed"
    DOUBTED = "doubted", "read, but not believed: the last accepted prices stay"
    CHANGED = "changed", "the page or the API has another shape than its reader knows"
    REFUSED_BY_HOST = "refused_by_host", "refused by the host"
    REFUSED_BY_US = "refused_by_us", "refused by gpufare's own rules"
    UNREACHABLE = "unreachable", "the host was not reached or did not answer"
    FAILED_HERE = "failed_here", "failed on this machine"
    NEEDS_KEY = "needs_key", "not asked: needs a key"
    NEEDS_PERMISSION = "needs_permission", "not asked: needs your permission"
    RETIRED = "retired", "not asked: retired"

    @property
    def asked(self) -> bool:
        """Whether the source was asked, or would have been."""
        return self not in (SourceResult.NEEDS_KEY, SourceResult.NEEDS_PERMISSION, SourceResult.RETIRED)


_CODES: Mapping[SourceResult, tuple[OutcomeCode, ...]] = {
    SourceResult.FRESH: (OutcomeCode.OK, OutcomeCode.NOT_MODIFIED),
    SourceResult.CHANGED: (
        OutcomeCode.HTTP_404,
        OutcomeCode.HTTP_OTHER,
        OutcomeCode.EMPTY_BODY,
        OutcomeCode.REDACTION_FAILED,
    ),
    SourceResult.REFUSED_BY_HOST: (
        OutcomeCode.HTTP_403,
        OutcomeCode.HTTP_429,
        OutcomeCode.HTTP_4XX,
        OutcomeCode.ROBOTS_DISALLOWED,
    ),
    SourceResult.REFUSED_BY_US: (
        OutcomeCode.HOST_REFUSED,
        OutcomeCode.ADDRESS_REFUSED,
        OutcomeCode.FAKE_ADDRESS_REFUSED,
        OutcomeCode.SHARED_ADDRESS_REFUSED,
        OutcomeCode.REDIRECT_REFUSED,
        OutcomeCode.TOO_MANY_REDIRECTS,
        OutcomeCode.WRONG_CONTENT_TYPE,
        OutcomeCode.TOO_LARGE,
        OutcomeCode.DECOMPRESSION_BOMB,
        OutcomeCode.BAD_ENCODING,
        OutcomeCode.REQUEST_LIMIT,
    ),
    SourceResult.UNREACHABLE: (
        OutcomeCode.CONNECTION_REFUSED,
        OutcomeCode.CONNECTION_FAILED,
        OutcomeCode.PROXY_FAILED,
        OutcomeCode.PROXY_REFUSED,
        OutcomeCode.DNS_ERROR,
        OutcomeCode.TLS_ERROR,
        OutcomeCode.CONNECT_TIMEOUT,
        OutcomeCode.READ_TIMEOUT,
        OutcomeCode.RESPONSE_TIMEOUT,
        OutcomeCode.SOURCE_TIMEOUT,
        OutcomeCode.INCOMPLETE_BODY,
        OutcomeCode.PROTOCOL_ERROR,
        OutcomeCode.HTTP_5XX,
        OutcomeCode.GIVEN_UP,
    ),
    SourceResult.NEEDS_KEY: (OutcomeCode.NEEDS_KEY,),
}
RESULT_OF_CODE: Mapping[OutcomeCode, SourceResult] = {
    code: result for result, codes in _CODES.items() for code in codes
}
"""What a source's result is when a request that it cannot do without ended so."""


class Entry(BaseModel):
    """One request and how it ended, as archived. ``url`` and ``error`` contain no keys.

    ``file`` is relative to the capture's folder, None when no body was stored; ``sha256`` and ``bytes`` are
    of the stored body, ``body_sha256`` is of the request's body. ``sent`` is False for a request that was
    never sent: disallowed by robots.txt, refused, without its key, given up.

    ``not_modified_since`` names the capture whose body is used again because the host answered 304;
    ``status`` and ``headers`` are then those of that body.

    Without the answer to an ``optional`` request the others can still be read. ``instead`` has the keys of
    the requests that were made because this one failed; answers to all of them make up for it. ``warning`` is
    what was odd about a usable answer. ``keyed``: a key was sent with it. ``more_unsent`` further requests
    were not sent for the same reason, and have no entry of their own.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    method: str = "GET"
    url: str
    body_sha256: str | None = None
    sent: bool = True
    status: int | None = 200
    headers: Mapping[str, str] = Field(default_factory=dict)
    file: str | None = None
    sha256: str | None = None
    bytes: int = 0
    observed_at: datetime | None = None
    duration_seconds: float = 0.0
    retries: int = 0
    outcome: OutcomeCode = Field(default=None, validate_default=True)
    error: str | None = None
    final_url: str | None = None
    redacted: bool = False
    not_modified_since: str | None = None
    optional: bool = False
    instead: tuple[str, ...] = ()
    warning: str | None = None
    keyed: bool = False
    more_unsent: int = 0

    @field_validator("method")
    @classmethod
    def _upper(cls, method: str) -> str:
        return method.upper()

    @field_validator("headers", mode="before")
    @classmethod
    def _lower_names(cls, headers: Any) -> Any:
        if headers is None:
            return {}
        return (
            {str(k).lower(): str(v) for k, v in headers.items()} if isinstance(headers, Mapping) else headers
        )

    @field_validator("observed_at")
    @classmethod
    def _utc(cls, moment: datetime | None) -> datetime | None:
        if moment is None:
            return None
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

    @field_validator("outcome", mode="before")
    @classmethod
    def _from_status(cls, outcome: Any, info: ValidationInfo) -> Any:
        """A page saved by hand gives no outcome, or one in other words: its status and file do."""
        if outcome in list(OutcomeCode):
            return outcome
        status = info.data.get("status")
        if status is None:
            return OutcomeCode.CONNECTION_FAILED
        if status != 200:
            return OutcomeCode.of_status(status)
        return OutcomeCode.OK if info.data.get("file") else OutcomeCode.EMPTY_BODY

    @property
    def usable(self) -> bool:
        """Whether a reader may read the answer: a stored body with status 200 and no error."""
        return self.file is not None and self.status == 200 and self.outcome.usable

    @property
    def key(self) -> str:
        """What tells the request from the others of its capture."""
        return request_key(self.method, self.url, self.body_sha256)


def request_key(method: str, url: str, body_sha256: str | None) -> str:
    """What tells a request from others: method, address without keys, and the hash of the body it sends."""
    return " ".join(filter(None, (method, url, body_sha256)))


CaptureStatus = Literal["captured", "partial", "failed", "needs_key", "needs_permission", "disabled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One visit to a source on a day (UTC).

    ``captured``: every request was answered, but for optional ones; ``partial``: some were; ``failed``: none
    was; ``needs_permission``: it was not asked, by its terms or by the user's choice; None: the visit was
    interrupted. ``capture_id`` is the UTC time at which the capture began and names its folder; None when the
    archive could not be written. ``replayed_from`` is None for live answers. ``damaged``: the archive's index
    of it cannot be read.
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
        """All requests, those never sent included."""
        return sum(1 + entry.more_unsent for entry in self.entries)

    @property
    def failed_requests(self) -> int:
        """Requests without a usable answer, those never sent included."""
        return sum(1 + entry.more_unsent for entry in self.entries if not entry.usable)

    @property
    def code(self) -> OutcomeCode | None:
        """How the request that decided ended, where one failed; None also of a capture without requests."""
        return next((entry.outcome for entry in _failures(self.entries)), None)

    @property
    def lacks_answers(self) -> bool:
        """Whether a request that could be sent has no usable answer, even if it was optional or another one
        made up for it: fewer offers than usual are then no misreading."""
        return any(not entry.usable and entry.outcome is not OutcomeCode.NEEDS_KEY for entry in self.entries)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a complete capture lacks, where another request made up for a failure, and odd answers."""
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


def _is_answered(entries: Sequence[Entry]) -> list[bool]:
    """For each entry whether it was answered: by itself, or by all of the requests made instead of it."""
    keys = {entry.key for entry in entries if entry.usable}
    waiting = [entry for entry in reversed(entries) if entry.instead and not entry.usable]
    grown = True
    while grown:  # once for a chain: what was asked instead comes later, and is looked at first
        before = len(keys)
        for entry in waiting:
            if keys.issuperset(entry.instead):
                keys.add(entry.key)
        grown = len(keys) > before
    return [entry.usable or (bool(entry.instead) and entry.key in keys) for entry in entries]


def capture_status(entries: Iterable[Entry]) -> CaptureStatus:
    """The status of a capture with these entries. Requests that lack their key, and optional ones without an
    answer, are not counted."""
    all_entries = list(entries)
    counted = [
        answered
        for entry, answered in zip(all_entries, _is_answered(all_entries), strict=True)
        if entry.outcome is not OutcomeCode.NEEDS_KEY and (answered or not entry.optional)
    ]
    if not counted:
        lacks_key = any(entry.outcome is OutcomeCode.NEEDS_KEY for entry in all_entries)
        return "needs_key" if lacks_key else "failed"
    if all(counted):
        return "captured"
    return "partial" if any(counted) else "failed"


def _failures(entries: Iterable[Entry]) -> list[Entry]:
    """The failed requests, the one that decides first. Optional requests and those that lack their key are
    left out, unless no request was answered."""
    all_entries = list(entries)
    answered = _is_answered(all_entries)
    failed = [entry for entry, is_answered in zip(all_entries, answered, strict=True) if not is_answered]
    if any(answered):
        return [e for e in failed if not e.optional and e.outcome is not OutcomeCode.NEEDS_KEY]
    failed = [entry for entry in failed if not entry.optional] or failed
    return sorted(failed, key=lambda entry: entry.outcome is OutcomeCode.NEEDS_KEY)  # that says least


def first_error(entries: Iterable[Entry]) -> str | None:
    """The error of the failed request that decides, and how many more failed; None where the failures are no
    more than optional requests and those without their key."""
    failed = _failures(entries)
    if not failed:
        return None
    others = sum(1 + entry.more_unsent for entry in failed) - 1
    more = f" (and {others} more requests failed)" if others else ""
    return f"{failed[0].outcome}: {failed[0].error or failed[0].outcome.sentence}{more}"


MOST_WARNINGS = 3
"""More warnings of one kind than this are one that gives their number and the first."""

_LONGEST_URL = 150
"""Of an address in a warning, in characters."""


def request_warnings(entries: Iterable[Entry]) -> tuple[str, ...]:
    """What the status does not say: optional requests without an answer, failed requests that others made up
    for, and what was odd about answers."""
    all_entries = list(entries)
    answered = _is_answered(all_entries)
    pairs = list(zip(all_entries, answered, strict=True))
    optional = [entry for entry, _ in pairs if entry.optional and entry.outcome is not OutcomeCode.NEEDS_KEY]
    missing = [
        _short(entry)
        for entry, is_answered in pairs
        if entry.optional and not is_answered and entry.outcome is not OutcomeCode.NEEDS_KEY
    ]
    made_up_for = [
        f"{_short(entry)}; asked instead: {len(entry.instead)} request{'s' * (len(entry.instead) > 1)}"
        for entry, is_answered in pairs
        if is_answered and not entry.usable
    ]
    odd = [entry.warning for entry in all_entries if entry.warning]
    return (
        *_grouped(missing, "optional request failed", f"of {len(optional)} optional requests failed"),
        *_grouped(made_up_for, "request failed", "failed requests were made up for by others"),
        *_grouped(odd, "odd answer", f"of {len(all_entries)} answers were odd"),
    )


def _short(entry: Entry) -> str:
    url = entry.url if len(entry.url) <= _LONGEST_URL else f"{entry.url[:_LONGEST_URL]}…"
    return f"{url}: {entry.outcome}, {entry.outcome.sentence}"


def _grouped(texts: Sequence[str], one: str, many: str) -> list[str]:
    if len(texts) > MOST_WARNINGS:
        return [f"{len(texts)} {many}, the first: {texts[0]}"]
    return [f"{one}: {text}" for text in texts]


NOT_ASKED: Mapping[str, SourceResult] = {
    "disabled": SourceResult.RETIRED,
    "needs_key": SourceResult.NEEDS_KEY,
    "needs_permission": SourceResult.NEEDS_PERMISSION,
}
"""The results by the statuses of captures for which nothing was requested; none of them is a failure."""


def source_result(capture: Capture, *, accepted: bool, changed: bool) -> SourceResult:
    """How an attempt ended. ``changed``: its answers are not in the shape that the reader knows, or nothing
    was found in them. A request that failed explains more than what the reader then says of the rest."""
    if (not_asked := NOT_ASKED.get(capture.status or "")) is not None:
        return not_asked
    if accepted:
        return SourceResult.PARTIAL if capture.status == "partial" else SourceResult.FRESH
    if capture.status != "captured" and capture.code is not None:
        return RESULT_OF_CODE[capture.code]
    if changed:
        return SourceResult.CHANGED
    has_answer = any(entry.usable for entry in capture.entries)
    return SourceResult.DOUBTED if has_answer else SourceResult.FAILED_HERE


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one attempt at a source, from the first request to acceptance: a row of
    capture_outcomes.

    ``attempt`` is the capture's id, the UTC time at which it began; '' in records of earlier versions, which
    kept one outcome per day. ``result`` and ``code`` (how the request that decided ended, where one failed)
    are None in records of earlier versions. ``regions`` counts the different regions of the offers.
    ``replayed``: the answers are saved ones; None in records of earlier versions.
    """

    day: date
    source: str
    attempt: str = ""
    status: str
    accepted: bool
    reason: str | None
    warnings: tuple[str, ...] = ()
    requests: int = 0
    failed_requests: int = 0
    bytes: int = 0
    sha256: str | None = None
    duration_seconds: float = 0.0
    retries: int = 0
    rows: int = 0
    rejects: int = 0
    matched: int = 0
    ambiguous: int = 0
    unknown: int = 0
    error: str | None = None
    observed_at: datetime | None = None
    result: SourceResult | None = None
    code: OutcomeCode | None = None
    regions: int = 0
    replayed: bool | None = None

    @property
    def merit(self) -> tuple[bool, int, str]:
        """Of a day's accepted attempts the greatest gives the day's offers: a complete one before a partial
        one, of complete ones the one that lacks fewer optional answers, of partial ones the one with more
        offers, then the newest."""
        return merit(self.status, self.rows, self.failed_requests, self.attempt)


def merit(status: str, rows: int, failed_requests: int, attempt: str) -> tuple[bool, int, str]:
    """What Outcome.merit is, of a row of capture_outcomes."""
    complete = status == "captured"
    return complete, -failed_requests if complete else rows, attempt
