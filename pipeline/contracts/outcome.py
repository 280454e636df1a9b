"""How a request and an attempt at a source ended: their codes, and the row that the record keeps."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from pipeline.contracts.codes import CodeWithSentence


class OutcomeCode(CodeWithSentence):
    """How one request ended: a code for SQL, and a sentence for people."""

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
        """True if the request ended with a body that a reader may read."""
        return self in (OutcomeCode.OK, OutcomeCode.NOT_MODIFIED)

    @property
    def retryable(self) -> bool:
        """True if asking again may help: transport errors, 429 and 5xx; not a bad certificate, a limit or a
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
    """How an attempt at a source ended, for people. Reports list the results in this order."""

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
        """True if the source was asked, or would have been."""
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
"""The result of a source by the code of the request that decided."""

NOT_ASKED: Mapping[str, SourceResult] = {
    "disabled": SourceResult.RETIRED,
    "needs_key": SourceResult.NEEDS_KEY,
    "needs_permission": SourceResult.NEEDS_PERMISSION,
}
"""The results by the statuses of captures for which nothing was requested; none of them is a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one attempt at a source, from the first request to acceptance: a row of
    capture_outcomes.

    ``attempt`` is the capture's id, the UTC time at which it began. ``code`` says how the request that
    decided ended, where one failed. ``regions`` counts the different regions of the offers. ``replayed``: the
    answers are saved ones.
    """

    day: date
    source: str
    attempt: str = ""
    status: str
    result: SourceResult
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
    code: OutcomeCode | None = None
    regions: int = 0
    replayed: bool | None = None

    @property
    def preference(self) -> tuple[bool, int, str]:
        """Where the attempt stands among the accepted ones of its day, the greatest of which gives the day's
        offers (see attempt_preference)."""
        return attempt_preference(self.status, self.rows, self.failed_requests, self.attempt)


def attempt_preference(status: str, rows: int, failed_requests: int, attempt: str) -> tuple[bool, int, str]:
    """Return the sort key of a row of capture_outcomes: a complete attempt is preferred to a partial one, of
    complete ones the one that lacks fewer optional answers, of partial ones the one with more offers, then
    the newest."""
    complete = status == "captured"
    return complete, -failed_requests if complete else rows, attempt
