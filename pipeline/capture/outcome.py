"""What can become of a request and of a source's capture, in codes for SQL and sentences for people."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from pipeline.capture.index import Entry

if TYPE_CHECKING:
    from pipeline.capture.archive import Capture


class OutcomeCode(StrEnum):
    """What became of one request. ``sentence`` says it to a person."""

    OK = "ok"
    NOT_MODIFIED = "not_modified"
    CONNECTION_REFUSED = "connection_refused"
    CONNECTION_FAILED = "connection_failed"
    DNS_ERROR = "dns_error"
    TLS_ERROR = "tls_error"
    CONNECT_TIMEOUT = "connect_timeout"
    READ_TIMEOUT = "read_timeout"
    RESPONSE_TIMEOUT = "response_timeout"
    SOURCE_TIMEOUT = "source_timeout"
    INCOMPLETE_BODY = "incomplete_body"
    PROTOCOL_ERROR = "protocol_error"
    HTTP_403 = "http_403"
    HTTP_404 = "http_404"
    HTTP_429 = "http_429"
    HTTP_4XX = "http_4xx"
    HTTP_5XX = "http_5xx"
    HTTP_OTHER = "http_other"
    HOST_REFUSED = "host_refused"
    ADDRESS_REFUSED = "address_refused"
    REDIRECT_REFUSED = "redirect_refused"
    TOO_MANY_REDIRECTS = "too_many_redirects"
    WRONG_CONTENT_TYPE = "wrong_content_type"
    EMPTY_BODY = "empty_body"
    TOO_LARGE = "too_large"
    DECOMPRESSION_BOMB = "decompression_bomb"
    BAD_ENCODING = "bad_encoding"
    ROBOTS_DISALLOWED = "robots_disallowed"
    NEEDS_KEY = "needs_key"
    REQUEST_LIMIT = "request_limit"
    GIVEN_UP = "given_up"
    REDACTION_FAILED = "redaction_failed"

    @property
    def sentence(self) -> str:
        """One sentence without the details of the case."""
        return _SENTENCES[self]

    @property
    def usable(self) -> bool:
        """Whether the request ended with a body that a reader may read."""
        return self in (OutcomeCode.OK, OutcomeCode.NOT_MODIFIED)


_SENTENCES = {
    OutcomeCode.OK: "answered",
    OutcomeCode.NOT_MODIFIED: "not modified since the last capture, whose body stands",
    OutcomeCode.CONNECTION_REFUSED: "the host refused the connection",
    OutcomeCode.CONNECTION_FAILED: "the connection failed or was cut",
    OutcomeCode.DNS_ERROR: "the host's name could not be resolved",
    OutcomeCode.TLS_ERROR: "the host could not be verified over TLS",
    OutcomeCode.CONNECT_TIMEOUT: "no connection within the time limit",
    OutcomeCode.READ_TIMEOUT: "the host stopped sending",
    OutcomeCode.RESPONSE_TIMEOUT: "the answer took longer than one answer may take",
    OutcomeCode.SOURCE_TIMEOUT: "the time for this source was used up",
    OutcomeCode.INCOMPLETE_BODY: "the answer broke off before its end",
    OutcomeCode.PROTOCOL_ERROR: "the host did not answer in proper HTTP",
    OutcomeCode.HTTP_403: "the host forbids the request (403)",
    OutcomeCode.HTTP_404: "there is nothing at this address (404)",
    OutcomeCode.HTTP_429: "the host asks to be asked less often (429)",
    OutcomeCode.HTTP_4XX: "the host rejects the request",
    OutcomeCode.HTTP_5XX: "the host has an error of its own",
    OutcomeCode.HTTP_OTHER: "the host answered with a status that carries no page",
    OutcomeCode.HOST_REFUSED: "the address is not one that this source may ask",
    OutcomeCode.ADDRESS_REFUSED: "the host's name leads to a loopback, private or reserved address",
    OutcomeCode.REDIRECT_REFUSED: "the host redirects to where this source may not go",
    OutcomeCode.TOO_MANY_REDIRECTS: "the host redirects too many times",
    OutcomeCode.WRONG_CONTENT_TYPE: "the answer is not of the expected content type",
    OutcomeCode.EMPTY_BODY: "the answer is empty",
    OutcomeCode.TOO_LARGE: "the answer is larger than this source's may be",
    OutcomeCode.DECOMPRESSION_BOMB: "the answer unpacks to more than this source's may be",
    OutcomeCode.BAD_ENCODING: "the answer's compression cannot be undone",
    OutcomeCode.ROBOTS_DISALLOWED: "the host's robots.txt asks not to be asked this",
    OutcomeCode.NEEDS_KEY: "needs a key",
    OutcomeCode.REQUEST_LIMIT: "the source needs more requests than it may make",
    OutcomeCode.GIVEN_UP: "not asked, because the requests before it failed",
    OutcomeCode.REDACTION_FAILED: "what must not be stored could not be taken out of the answer",
}

RETRYABLE = frozenset(
    {
        OutcomeCode.CONNECTION_REFUSED,
        OutcomeCode.CONNECTION_FAILED,
        OutcomeCode.DNS_ERROR,
        OutcomeCode.CONNECT_TIMEOUT,
        OutcomeCode.READ_TIMEOUT,
        OutcomeCode.INCOMPLETE_BODY,
        OutcomeCode.PROTOCOL_ERROR,
        OutcomeCode.HTTP_429,
        OutcomeCode.HTTP_5XX,
    }
)
"""Transport errors, 429 and 5xx. A bad certificate, a limit or a refusal stays what it is."""


def code_of_status(status: int) -> OutcomeCode:
    """The code of an HTTP status other than 200."""
    exact = {403: OutcomeCode.HTTP_403, 404: OutcomeCode.HTTP_404, 429: OutcomeCode.HTTP_429}
    if status in exact:
        return exact[status]
    if 400 <= status < 500:
        return OutcomeCode.HTTP_4XX
    return OutcomeCode.HTTP_5XX if status >= 500 else OutcomeCode.HTTP_OTHER


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOutcome:
    """What became of one request. ``bytes`` and ``sha256`` are of the archived body; ``url`` and ``error``
    hold no keys."""

    url: str
    method: str
    outcome: OutcomeCode
    status_code: int | None = None
    bytes: int = 0
    sha256: str | None = None
    duration_seconds: float = 0.0
    retries: int = 0
    error: str | None = None


def request_outcome(entry: Entry, code: OutcomeCode) -> RequestOutcome:
    """What became of a request whose answer is kept as ``entry``."""
    return RequestOutcome(
        url=entry.url,
        method=entry.method,
        outcome=code,
        status_code=entry.status,
        bytes=entry.bytes,
        sha256=entry.sha256,
        duration_seconds=entry.duration_seconds,
        retries=entry.retries,
        error=entry.error,
    )


CaptureStatus = Literal["captured", "partial", "failed", "needs_key", "disabled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOutcome:
    """What became of one source's capture. ``capture`` is where the answers lie, None when nothing was asked.

    ``captured``: every request was answered; ``partial``: some were; ``failed``: none was.
    """

    source: str
    status: CaptureStatus
    requests: tuple[RequestOutcome, ...] = ()
    error: str | None = None
    capture: "Capture | None" = None
    duration_seconds: float = 0.0

    @property
    def bytes(self) -> int:
        """Bytes of all archived bodies."""
        return sum(request.bytes for request in self.requests)

    @property
    def retries(self) -> int:
        """Retries of all requests."""
        return sum(request.retries for request in self.requests)


def capture_status(codes: Iterable[OutcomeCode]) -> CaptureStatus:
    """The status of a capture whose requests ended so. One that lacks its key is not counted."""
    seen = list(codes)
    asked = [code for code in seen if code is not OutcomeCode.NEEDS_KEY]
    usable = sum(code.usable for code in asked)
    if not asked:
        return "needs_key" if seen else "failed"
    if usable == len(asked):
        return "captured"
    return "partial" if usable else "failed"


def first_error(requests: Iterable[RequestOutcome]) -> str | None:
    """The first request's error, with how many more failed; None when all were answered."""
    failed = [request for request in requests if not request.outcome.usable]
    failed.sort(key=lambda request: request.outcome is OutcomeCode.NEEDS_KEY)  # a missing key says least
    if not failed:
        return None
    more = f" (and {len(failed) - 1} more requests failed)" if len(failed) > 1 else ""
    return f"{failed[0].outcome}: {failed[0].error or failed[0].outcome.sentence}{more}"
