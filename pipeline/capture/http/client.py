"""A polite HTTP client for other people's price pages, and a wary one: what answers may be hostile.

One request at a time per host, spaced; retries with back-off on transport errors, 429 and 5xx only; an
explicit User-Agent. Every answer is bounded in bytes, in unpacked bytes, in time and in redirects, and goes
only where its source may go.
"""

import logging
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import DefaultCookiePolicy
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Self

import httpx
import stamina

from pipeline.capture.http.decode import BoundedDecoder, DecodeError, TooMuchError
from pipeline.capture.http.network import AddressRefusedError, GuardedTransport, reading_until
from pipeline.capture.http.secrets import Secrets
from pipeline.capture.outcome import RETRYABLE, OutcomeCode, code_of_status
from pipeline.contracts.listing import Request

CONTACT = "https://github.com/gpufare/gpufare"
CONTACT_VARIABLE = "GPUFARE_CONTACT"
ROBOT_NAME = "gpufare"

OBSERVED_AT_HEADER = "x-gpufare-observed-at"
SOURCE_HEADER = "x-gpufare-source"

_REDIRECTS = (301, 302, 303, 307, 308)
_LONGEST_ERROR = 1000
_KEPT_ACROSS_HOSTS = ("accept", "content-type")

# These log whole URLs and headers, in which keys may stand.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.ERROR)
# Retries are counted in the outcome; where structlog is installed, stamina would print each on stdout.
stamina.instrumentation.set_on_retry_hooks([])


def user_agent() -> str:
    """How the client names itself: program, version, and where to complain ($GPUFARE_CONTACT or CONTACT)."""
    try:
        number = version("gpufare")
    except PackageNotFoundError:
        number = "dev"
    return f"{ROBOT_NAME}/{number} (+{os.environ.get(CONTACT_VARIABLE) or CONTACT})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds that hold for every source. Seconds and bytes; a source's yaml may set its own body and time
    limits, and the lower one holds."""

    connect_seconds: float = 30.0
    read_seconds: float = 30.0
    response_seconds: float = 60.0
    source_seconds: float = float("inf")
    body_bytes: int = 2**30
    error_body_bytes: int = 64 * 2**10
    robots_bytes: int = 512 * 2**10
    redirects: int = 5
    retries: int = 2
    backoff_seconds: float = 1.0
    backoff_max_seconds: float = 30.0
    requests_per_source: int = 1000


REPLAY_LIMITS = Limits(
    connect_seconds=5, read_seconds=10, response_seconds=20, backoff_seconds=0.05, backoff_max_seconds=1
)
"""For a replay server, which is near and has nothing to be spared."""


@dataclass(frozen=True, slots=True)
class ReplayServer:
    """The explicit switch that sends every request to one other server, http or https, instead of to the
    providers. Path and query stay; ``Host`` names the host that was meant, X-Gpufare-Source the source.

    Raises ValueError when base_url is not of the form ``http://host:port``.
    """

    base_url: str

    def __post_init__(self) -> None:
        url = httpx.URL(self.base_url)
        if url.scheme not in ("http", "https") or not url.host or url.path not in ("", "/") or url.query:
            raise ValueError(f"a replay server is given as http://host:port, not as {self.base_url!r}")

    @property
    def endpoint(self) -> tuple[str, int]:
        """The host and port that requests go to."""
        return _endpoint(httpx.URL(self.base_url))

    def address_of(self, url: httpx.URL) -> httpx.URL:
        """Where a request for ``url`` goes."""
        if _endpoint(url) == self.endpoint:
            return url
        base = httpx.URL(self.base_url)
        return url.copy_with(scheme=base.scheme, host=base.host, port=base.port)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What holds for one request: where it may go, how much may come back and until when.

    ``deadline`` is the source's, in time.monotonic seconds. ``truncate``: a body over the limit is cut, not
    refused (robots.txt). ``validators`` are the conditional headers of the last capture.
    """

    source: str
    allowed_hosts: frozenset[str]
    secrets: Secrets
    deadline: float
    body_bytes: int
    content_types: tuple[str, ...] = ()
    spacing_seconds: float = 0.0
    truncate: bool = False
    validators: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What came of a request. ``body`` is unpacked; with an error status it is cut to a bounded excerpt.
    ``error`` and ``final_url`` hold no keys."""

    code: OutcomeCode
    observed_at: datetime
    duration_seconds: float
    retries: int
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    error: str | None = None
    final_url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answered:
    status: int
    headers: httpx.Headers
    body: bytes
    url: httpx.URL
    observed_at: datetime


class _Failure(Exception):
    """An outcome other than a whole answer, on its way up to fetch()."""

    def __init__(self, code: OutcomeCode, detail: str, answered: _Answered | None = None) -> None:
        super().__init__(f"{code.sentence}: {detail}")
        self.code = code
        self.answered = answered


class Client:
    """Fetches for all sources of one refresh; may be used by several threads. Close it, or use ``with``."""

    def __init__(self, *, limits: Limits | None = None, replay: ReplayServer | None = None) -> None:
        self.limits = limits or (Limits() if replay is None else REPLAY_LIMITS)
        self.replay = replay
        self._http = httpx.Client(
            transport=GuardedTransport(only=replay.endpoint if replay else None),
            trust_env=False,
            follow_redirects=False,
            headers={
                "User-Agent": user_agent(),
                "Accept": "*/*",
                "Accept-Language": "en-US,en;q=0.9",
                "Accept-Encoding": "gzip, deflate",
            },
        )
        self._http.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))  # no cookie is kept
        self._turns: dict[str, _Turn] = {}
        self._turns_lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def fetch(self, request: Request, rules: Rules) -> Fetched:
        """Ask, with retries; never raises for what the network or the host does: that is the outcome."""
        began = time.monotonic()
        retries = 0
        failure: _Failure | None = None
        answered: _Answered | None = None
        try:
            with self._turn(_parsed(request.url).host, rules):
                for attempt in stamina.retry_context(
                    on=lambda error: self._retry(error, rules),
                    attempts=self.limits.retries + 1,
                    timeout=None,
                    wait_initial=self.limits.backoff_seconds,
                    wait_max=self.limits.backoff_max_seconds,
                    wait_jitter=self.limits.backoff_seconds,
                ):
                    with attempt:
                        retries = attempt.num - 1
                        answered = self._attempt(request, rules)
        except _Failure as error:
            failure, answered = error, error.answered
        return self._fetched(answered, failure, rules, began, retries)

    def refusal(self, url: str, rules: Rules) -> str | None:
        """Why the source may not ask this address; None when it may."""
        try:
            return self._refusal(_parsed(url), rules)
        except _Failure as failure:
            return str(failure)

    def _fetched(
        self, answered: _Answered | None, failure: _Failure | None, rules: Rules, began: float, retries: int
    ) -> Fetched:
        code = OutcomeCode.OK if failure is None else failure.code
        if failure is None and answered is not None and answered.status == 304:
            code = OutcomeCode.NOT_MODIFIED
        return Fetched(
            code=code,
            observed_at=answered.observed_at if answered else datetime.now(UTC),
            duration_seconds=round(time.monotonic() - began, 3),
            retries=retries,
            status=answered.status if answered else None,
            headers=rules.secrets.redact_headers(answered.headers) if answered else {},
            body=answered.body if answered else None,
            error=rules.secrets.redact(str(failure))[:_LONGEST_ERROR] if failure else None,
            final_url=rules.secrets.redact(str(answered.url)) if answered else None,
        )

    def _observed_at(self, response: httpx.Response) -> datetime:
        """Now; in a replay, the time at which the replayed answer was observed, where the server says it."""
        said = response.headers.get(OBSERVED_AT_HEADER) if self.replay else None
        try:
            return datetime.fromisoformat(said).astimezone(UTC) if said else datetime.now(UTC)
        except ValueError:
            raise _Failure(OutcomeCode.PROTOCOL_ERROR, f"{OBSERVED_AT_HEADER} {said!r} is no time") from None

    @contextmanager
    def _turn(self, host: str, rules: Rules) -> Iterator[None]:
        """One request at a time per host, ``spacing_seconds`` after the one before it ended."""
        with self._turns_lock:
            turn = self._turns.setdefault(host, _Turn())
        if not turn.lock.acquire(
            timeout=max(0.0, min(rules.deadline - time.monotonic(), threading.TIMEOUT_MAX))
        ):
            raise _Failure(OutcomeCode.SOURCE_TIMEOUT, f"other requests to {host} took it all")
        try:
            wait = turn.free_at - time.monotonic()
            if wait > 0 and time.monotonic() + wait >= rules.deadline:
                raise _Failure(OutcomeCode.SOURCE_TIMEOUT, f"no time is left to wait for {host}")
            time.sleep(max(0.0, wait))
            yield
        finally:
            turn.free_at = time.monotonic() + (0.0 if self.replay else rules.spacing_seconds)
            turn.lock.release()

    def _retry(self, error: Exception, rules: Rules) -> bool | float:
        """Whether to ask again, and after how many seconds where the host says so."""
        if not isinstance(error, _Failure) or error.code not in RETRYABLE:
            return False
        left = rules.deadline - time.monotonic()
        asked_wait = _retry_after_seconds(error.answered.headers) if error.answered else None
        if asked_wait is not None:
            return asked_wait if asked_wait < left else False
        longest_wait = self.limits.backoff_seconds * (2.0 ** (self.limits.retries - 1) + 1)
        return min(longest_wait, self.limits.backoff_max_seconds) < left

    def _attempt(self, request: Request, rules: Rules) -> _Answered:
        """One try: the request and the redirects it leads to. Raises _Failure for all but a whole answer."""
        deadline = min(time.monotonic() + self.limits.response_seconds, rules.deadline)
        url, method, content = _parsed(request.url), str(request.method), request.body
        headers = {**{k.lower(): v for k, v in request.headers.items()}, **rules.validators}
        if refusal := self._refusal(url, rules):
            raise _Failure(OutcomeCode.HOST_REFUSED, refusal)
        for _ in range(self.limits.redirects + 1):
            answered = self._exchange(url, method, headers, content, rules, deadline)
            if answered.status not in _REDIRECTS:
                return self._judged(answered, rules, conditional=bool(rules.validators))
            target = self._redirect_target(answered, rules, content)
            if answered.status == 303 or (answered.status in (301, 302) and method == "POST"):
                method, content = "GET", None
                headers.pop("content-type", None)
            if _origin(target) != _origin(url):
                headers = {name: value for name, value in headers.items() if name in _KEPT_ACROSS_HOSTS}
            url = target
        raise _Failure(
            OutcomeCode.TOO_MANY_REDIRECTS, f"more than {self.limits.redirects}, the last to {url}"
        )

    def _refusal(self, url: httpx.URL, rules: Rules) -> str | None:
        if url.userinfo:
            return f"{url.copy_with(userinfo=b'')} carries a user name or password"
        if (
            self.replay is not None
            and url.scheme in ("http", "https")
            and _endpoint(url) == self.replay.endpoint
        ):
            return None
        if url.host not in rules.allowed_hosts:
            hosts = ", ".join(sorted(rules.allowed_hosts))
            return f"{url} is not on one of the hosts that {rules.source} declares ({hosts})"
        if url.scheme != "https" and not (self.replay and url.scheme == "http"):
            return f"{url} is not https"
        if url.port not in (None, 443, 80 if self.replay else 443):
            return f"{url} is not on the usual port"
        return None

    def _redirect_target(self, answered: _Answered, rules: Rules, content: bytes | None) -> httpx.URL:
        location = answered.headers.get("location", "")
        if not location:
            raise _Failure(OutcomeCode.REDIRECT_REFUSED, f"{answered.url} does not say where to", answered)
        try:
            target = answered.url.join(location)
        except (httpx.InvalidURL, ValueError):
            raise _Failure(OutcomeCode.REDIRECT_REFUSED, "its target is not an address", answered) from None
        if refusal := self._refusal(target, rules):
            raise _Failure(OutcomeCode.REDIRECT_REFUSED, refusal, answered)
        carried = (str(target), content or b"") if answered.status in (307, 308) else (str(target),)
        if _origin(target) != _origin(answered.url) and rules.secrets.holds_secret(*carried):
            raise _Failure(OutcomeCode.REDIRECT_REFUSED, f"a key would go to {target.host}", answered)
        return target

    def _exchange(
        self,
        url: httpx.URL,
        method: str,
        headers: Mapping[str, str],
        content: bytes | None,
        rules: Rules,
        deadline: float,
    ) -> _Answered:
        """One request and its whole answer, bounded by the deadline."""
        timeout = httpx.Timeout(self.limits.read_seconds, connect=self.limits.connect_seconds)
        address, sent = url, dict(headers)
        if self.replay is not None:
            address = self.replay.address_of(url)
            sent |= {"host": url.netloc.decode("ascii"), SOURCE_HEADER: rules.source}
        response: httpx.Response | None = None
        http_request = self._http.build_request(
            method, address, headers=sent, content=content, timeout=timeout
        )
        try:
            with reading_until(deadline):
                response = self._http.send(http_request, stream=True, auth=None)
                try:
                    body = self._body(response, rules)
                finally:
                    response.close()
        except _Failure:
            raise
        except AddressRefusedError as error:
            raise _Failure(OutcomeCode.ADDRESS_REFUSED, str(error)) from None
        except httpx.HTTPError as error:
            begun = response is not None
            raise _transport_failure(error, url, begun, deadline, rules.deadline) from None
        return _Answered(
            status=response.status_code,
            headers=response.headers,
            body=body,
            url=url,
            observed_at=self._observed_at(response),
        )

    def _body(self, response: httpx.Response, rules: Rules) -> bytes:
        """The unpacked body. An error's body is cut to an excerpt; any other over its limit is a failure."""
        truncate = rules.truncate or response.status_code != 200
        limit = self.limits.error_body_bytes if response.status_code != 200 else rules.body_bytes
        said = response.headers.get("content-length", "")
        if not truncate and _is_number(said) and int(said) > limit:
            raise _Failure(OutcomeCode.TOO_LARGE, f"it announces {int(said)} bytes, {limit} are allowed")
        arrived = 0
        try:
            decoder = BoundedDecoder(response.headers.get("content-encoding", ""), limit)
        except DecodeError as error:
            raise _Failure(OutcomeCode.BAD_ENCODING, str(error)) from None
        try:
            for chunk in response.iter_raw():
                arrived += len(chunk)
                decoder.feed(chunk)
                if arrived > limit:
                    raise TooMuchError
            decoder.finish()
        except (TooMuchError, DecodeError) as error:
            if not truncate:
                raise self._unpacking_failure(error, arrived, limit) from None
        return bytes(decoder.body)

    def _unpacking_failure(self, error: Exception, arrived: int, limit: int) -> _Failure:
        if isinstance(error, DecodeError):
            return _Failure(OutcomeCode.BAD_ENCODING, str(error))
        if arrived > limit:
            return _Failure(OutcomeCode.TOO_LARGE, f"more than {limit} bytes")
        return _Failure(OutcomeCode.DECOMPRESSION_BOMB, f"{arrived} bytes unpack to more than {limit}")

    def _judged(self, answered: _Answered, rules: Rules, *, conditional: bool) -> _Answered:
        """The answer, when it is one that a reader may read. Raises _Failure with it otherwise."""
        if answered.status == 304 and conditional:
            return answered
        if answered.status != 200:
            detail = f"{answered.url} answered {answered.status}{_wait_note(answered.headers)}"
            raise _Failure(code_of_status(answered.status), detail, answered)
        if not answered.body and not rules.truncate:
            raise _Failure(OutcomeCode.EMPTY_BODY, str(answered.url), answered)
        kind = answered.headers.get("content-type", "").split(";")[0].strip().lower()
        if rules.content_types and kind not in rules.content_types:
            expected = " or ".join(rules.content_types)
            detail = f"{answered.url} sent {kind or 'no content type'}, expected {expected}"
            raise _Failure(OutcomeCode.WRONG_CONTENT_TYPE, detail, answered)
        return answered


@dataclass(slots=True)
class _Turn:
    lock: threading.Lock = field(default_factory=threading.Lock)
    free_at: float = 0.0


def _parsed(url: str) -> httpx.URL:
    try:
        return httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise _Failure(OutcomeCode.HOST_REFUSED, f"{url!r} is not an address ({error})") from None


def _endpoint(url: httpx.URL) -> tuple[str, int]:
    return url.host, url.port or (443 if url.scheme == "https" else 80)


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return (url.scheme, *_endpoint(url))


def _retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds that a host asks to wait (a number or an HTTP date, RFC 9110 10.2.3); None when it does not."""
    said = headers.get("retry-after", "").strip()
    if _is_number(said):
        return float(said)
    try:
        moment = parsedate_to_datetime(said)
    except (ValueError, TypeError, OverflowError):
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _wait_note(headers: Mapping[str, str]) -> str:
    wait = _retry_after_seconds(headers)
    return "" if wait is None else f" and asks to wait {wait:.0f} s"


def _transport_failure(
    error: httpx.HTTPError, url: httpx.URL, begun: bool, deadline: float, source_deadline: float
) -> _Failure:
    """The outcome that a transport error stands for, told from what caused it; ``begun``: in the body."""
    if time.monotonic() >= deadline:
        timeout = OutcomeCode.SOURCE_TIMEOUT if deadline >= source_deadline else OutcomeCode.RESPONSE_TIMEOUT
        return _Failure(timeout, str(url))
    causes = list(_causes(error))
    codes = [code for kind, code in _CODES_BY_CAUSE if any(isinstance(cause, kind) for cause in causes)]
    code = codes[0] if codes else OutcomeCode.CONNECTION_FAILED
    if begun and code in (OutcomeCode.CONNECTION_FAILED, OutcomeCode.PROTOCOL_ERROR):
        code = OutcomeCode.INCOMPLETE_BODY
    return _Failure(code, f"{url} ({causes[-1]})")


_CODES_BY_CAUSE: tuple[tuple[type[BaseException], OutcomeCode], ...] = (
    (httpx.ConnectTimeout, OutcomeCode.CONNECT_TIMEOUT),
    (httpx.TimeoutException, OutcomeCode.READ_TIMEOUT),
    (ssl.SSLError, OutcomeCode.TLS_ERROR),
    (socket.gaierror, OutcomeCode.DNS_ERROR),
    (ConnectionRefusedError, OutcomeCode.CONNECTION_REFUSED),
    (httpx.RemoteProtocolError, OutcomeCode.PROTOCOL_ERROR),
)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
