"""The outcome of a request: a response, or the code and the reason for the failure."""

import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import httpx

from pipeline.contracts.outcome import OutcomeCode

LONGEST_ERROR = 1000
"""Maximum length of an error or warning, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The outcome of a request, whether or not it was sent. ``body`` is unpacked, and cut to a bounded
    excerpt if the status is an error. ``warning`` describes anything unexpected about a usable answer. A
    response from ``Client.fetch`` contains no key in ``headers``, ``error``, ``warning`` or ``final_url``,
    but its body is as it arrived."""

    observed_at: datetime
    sent: bool = True
    code: OutcomeCode = OutcomeCode.OK
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    final_url: str | None = None
    error: str | None = None
    warning: str | None = None
    duration_seconds: float = 0.0
    retries: int = 0


class RequestFailedError(Exception):
    """A request ended without a complete answer; ``response`` is the part that arrived, if any."""

    def __init__(self, code: OutcomeCode, detail: str, response: Response | None = None) -> None:
        super().__init__(f"{code.sentence}: {detail}")
        self.code = code
        self.response = response


def transport_failure(
    error: httpx.HTTPError, url: httpx.URL, begun: bool, deadline: float, source_deadline: float
) -> RequestFailedError:
    """Return the failure that a transport error amounts to. ``begun`` is True if the headers had arrived.

    Both deadlines are in time.monotonic seconds. If a deadline has passed, the failure is a timeout.
    """
    if time.monotonic() >= deadline:
        timeout = OutcomeCode.SOURCE_TIMEOUT if deadline >= source_deadline else OutcomeCode.RESPONSE_TIMEOUT
        return RequestFailedError(timeout, str(url))
    causes = list(causes_of(error))
    codes = [code for kind, code in _CODES_BY_CAUSE if any(isinstance(cause, kind) for cause in causes)]
    code = codes[0] if codes else OutcomeCode.CONNECTION_FAILED
    if begun and code in (OutcomeCode.CONNECTION_FAILED, OutcomeCode.PROTOCOL_ERROR):
        code = OutcomeCode.INCOMPLETE_BODY
    return RequestFailedError(code, f"{url} ({causes[-1]})")


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, the root cause last."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


_CODES_BY_CAUSE: tuple[tuple[type[BaseException], OutcomeCode], ...] = (
    (httpx.ConnectTimeout, OutcomeCode.CONNECT_TIMEOUT),
    (httpx.TimeoutException, OutcomeCode.READ_TIMEOUT),
    (ssl.SSLError, OutcomeCode.TLS_ERROR),
    (socket.gaierror, OutcomeCode.DNS_ERROR),
    (ConnectionRefusedError, OutcomeCode.CONNECTION_REFUSED),
    (httpx.RemoteProtocolError, OutcomeCode.PROTOCOL_ERROR),
)
