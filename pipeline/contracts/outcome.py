"""Outcomes of requests and of attempts to read a source: their codes, and the rows stored in the record."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import auto

from pipeline.contracts.codes import CodeWithSentence


class SourceResult(CodeWithSentence):
    """The result of an attempt to read a source, for people. Reports list results in the order given here."""

    FRESH = auto(), "fresh prices"
    PARTIAL = auto(), "fresh prices, but some requests failed"
    DOUBTED = auto(), "read, but not believed"
    CHANGED = auto(), "the page or the API has changed"
    REFUSED_BY_HOST = auto(), "refused by the host"
    REFUSED_BY_US = auto(), "refused by gpufare's own rules"
    UNREACHABLE = auto(), "the host was not reached or did not answer"
    FAILED_HERE = auto(), "failed on this machine"
    NEEDS_KEY = auto(), "not asked: needs a key"
    NEEDS_PERMISSION = auto(), "not asked: needs your permission"
    RETIRED = auto(), "not asked: retired"

    @property
    def asked(self) -> bool:
        """True if the source was to be asked, whether or not a request was sent."""
        return self not in (SourceResult.NEEDS_KEY, SourceResult.NEEDS_PERMISSION, SourceResult.RETIRED)


_RETRYABLE = True


class OutcomeCode(CodeWithSentence):
    """The outcome of one request: a code for SQL, a sentence for people, and the result for its source.

    ``retryable`` is True if asking again may help: after transport errors, 429 and 5xx, but not after a bad
    certificate, a limit or a refusal."""

    OK = auto(), "answered", SourceResult.FRESH
    CONNECTION_REFUSED = auto(), "the host refused the connection", SourceResult.UNREACHABLE, _RETRYABLE
    CONNECTION_FAILED = auto(), "the connection failed or was cut", SourceResult.UNREACHABLE, _RETRYABLE
    DNS_ERROR = auto(), "the host's name could not be resolved", SourceResult.UNREACHABLE, _RETRYABLE
    PROXY_FAILED = auto(), "the proxy could not be used", SourceResult.UNREACHABLE, _RETRYABLE
    PROXY_REFUSED = auto(), "the proxy refuses the request", SourceResult.UNREACHABLE
    TLS_ERROR = auto(), "the host could not be verified over TLS", SourceResult.UNREACHABLE
    CONNECT_TIMEOUT = auto(), "no connection within the time limit", SourceResult.UNREACHABLE, _RETRYABLE
    READ_TIMEOUT = auto(), "the host stopped sending", SourceResult.UNREACHABLE, _RETRYABLE
    RESPONSE_TIMEOUT = auto(), "the answer took longer than one answer may take", SourceResult.UNREACHABLE
    SOURCE_TIMEOUT = auto(), "the time for this source was used up", SourceResult.UNREACHABLE
    INCOMPLETE_BODY = auto(), "the answer broke off before its end", SourceResult.UNREACHABLE, _RETRYABLE
    PROTOCOL_ERROR = auto(), "the host did not answer in proper HTTP", SourceResult.UNREACHABLE, _RETRYABLE
    HTTP_403 = auto(), "the host forbids the request (403)", SourceResult.REFUSED_BY_HOST
    HTTP_404 = auto(), "there is nothing at this address (404)", SourceResult.CHANGED
    HTTP_429 = auto(), "the host limits the rate of requests (429)", SourceResult.REFUSED_BY_HOST, _RETRYABLE
    HTTP_4XX = auto(), "the host rejects the request", SourceResult.REFUSED_BY_HOST
    HTTP_5XX = auto(), "the host has an internal error", SourceResult.UNREACHABLE, _RETRYABLE
    HTTP_OTHER = auto(), "the host answered with a status that carries no page", SourceResult.CHANGED
    HOST_REFUSED = auto(), "the address is not one that this source may ask", SourceResult.REFUSED_BY_US
    ADDRESS_REFUSED = (
        auto(),
        "the host's name resolves to a loopback, private or reserved address",
        SourceResult.REFUSED_BY_US,
    )
    REDIRECT_REFUSED = (
        auto(),
        "the host redirects to where this source may not go",
        SourceResult.REFUSED_BY_US,
    )
    TOO_MANY_REDIRECTS = auto(), "the host redirects too many times", SourceResult.REFUSED_BY_US
    WRONG_CONTENT_TYPE = auto(), "the answer is not of the expected content type", SourceResult.REFUSED_BY_US
    EMPTY_BODY = auto(), "the answer is empty", SourceResult.CHANGED
    TOO_LARGE = auto(), "the answer exceeds this source's limit, packed or not", SourceResult.REFUSED_BY_US
    BAD_ENCODING = auto(), "the answer cannot be decompressed", SourceResult.REFUSED_BY_US
    ROBOTS_DISALLOWED = auto(), "the host's robots.txt disallows this address", SourceResult.REFUSED_BY_HOST
    NEEDS_KEY = auto(), "needs a key", SourceResult.NEEDS_KEY
    REQUEST_LIMIT = auto(), "the source needs more requests than it may make", SourceResult.REFUSED_BY_US
    GIVEN_UP = auto(), "not asked, because the requests before it failed", SourceResult.UNREACHABLE
    REDACTION_FAILED = auto(), "the answer could not be redacted, so it was not stored", SourceResult.CHANGED

    def __init__(self, code: str, sentence: str, result: SourceResult, retryable: bool = False) -> None:
        self.result = result
        self.retryable = retryable

    @classmethod
    def of_status(cls, status: int) -> "OutcomeCode":
        """Return the code for an HTTP status other than 200."""
        exact = {403: cls.HTTP_403, 404: cls.HTTP_404, 429: cls.HTTP_429}
        if status in exact:
            return exact[status]
        if 400 <= status < 500:
            return cls.HTTP_4XX
        return cls.HTTP_5XX if status >= 500 else cls.HTTP_OTHER


NOT_ASKED: Mapping[str, SourceResult] = {
    "disabled": SourceResult.RETIRED,
    "needs_key": SourceResult.NEEDS_KEY,
    "needs_permission": SourceResult.NEEDS_PERMISSION,
}
"""The results of captures that requested nothing, keyed by status; none of these results is a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one attempt to read a source, from the first request to acceptance: a row of
    capture_outcomes.

    ``attempt`` is the capture's id, the UTC time at which the capture began. ``code`` is the code of the
    deciding failed request, if there is one. ``lost`` says what the reading lacks of the source's usual list.
    ``regions`` counts the distinct regions of the offers. ``replayed`` is True if the answers were replayed
    from saved pages.
    """

    day: date
    source: str
    attempt: str = ""
    status: str
    result: SourceResult
    accepted: bool
    reason: str | None
    warnings: tuple[str, ...] = ()
    lost: str | None = None
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
    code: OutcomeCode | None = None
    regions: int = 0
    replayed: bool | None = None

    @property
    def preference(self) -> tuple[bool, int, str]:
        """The key by which a day's accepted attempts are sorted: the attempt with the greatest key gives the
        day's offers (see attempt_preference)."""
        return attempt_preference(self.status, self.rows, self.failed_requests, self.attempt)


def attempt_preference(status: str, rows: int, failed_requests: int, attempt: str) -> tuple[bool, int, str]:
    """Return the sort key of a row of capture_outcomes: complete attempts are preferred to partial ones, then
    complete attempts with fewer failed requests, or partial attempts with more offers, then newer
    attempts."""
    complete = status == "captured"
    return complete, -failed_requests if complete else rows, attempt
