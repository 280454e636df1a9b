"""A polite HTTP client for other people's price pages, and a wary one: a server may be hostile.

One request at a time per host, spaced; retries with back-off on transport errors, 429 and 5xx only; an
explicit User-Agent. Every answer is bounded in bytes, in unpacked bytes, in time and in redirects, and goes
only where its source may go.
"""

import ipaddress
import logging
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import DefaultCookiePolicy
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Self

import httpx
import stamina

from pipeline.capture.http.content import type_warning, wrong_content
from pipeline.capture.http.decode import BoundedDecoder, DecodeError, TooMuchError
from pipeline.capture.http.network import (
    AddressRefusedError,
    GuardedTransport,
    UserNetworkTransport,
    reading_until,
)
from pipeline.capture.http.secrets import Secrets
from pipeline.capture.http.user_network import (
    Proxy,
    ProxyDoor,
    UserNetwork,
    is_name_of_the_internet,
    user_network,
)
from pipeline.contracts.capture import OutcomeCode
from pipeline.contracts.hosts import host_with_port, without_www
from pipeline.contracts.listing import Request

CONTACT = "https://github.com/gpufare/gpufare"
CONTACT_VARIABLE = "GPUFARE_CONTACT"
ROBOT_NAME = "gpufare"

OBSERVED_AT_HEADER = "x-gpufare-observed-at"
SOURCE_HEADER = "x-gpufare-source"

_REDIRECTS = (301, 302, 303, 307, 308)
LONGEST_ERROR = 1000
"""Of an error or a warning, in characters."""

_KEPT_ACROSS_HOSTS = ("accept", "content-type")

# These log whole URLs and headers, which may contain keys.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.ERROR)
# Retries are counted in the outcome; where structlog is installed, stamina would print each on stdout.
stamina.instrumentation.set_on_retry_hooks([])


def user_agent() -> str:
    """The User-Agent: program, version, and a contact for complaints ($GPUFARE_CONTACT or CONTACT)."""
    try:
        number = version("gpufare")
    except PackageNotFoundError:
        number = "dev"
    return f"{ROBOT_NAME}/{number} (+{os.environ.get(CONTACT_VARIABLE) or CONTACT})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds for every source, in seconds and bytes. A source's yaml may set its own body and time limits;
    the lower one applies."""

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
"""For a replay server, which is near and needs no sparing."""


@dataclass(frozen=True, slots=True)
class ReplayServer:
    """Sends every request to one other server, http or https, instead of to the providers. Path and query
    are unchanged; ``Host`` names the original host, X-Gpufare-Source the source.

    Raises ValueError when base_url is not of the form ``http://host:port``.
    """

    base_url: str

    def __post_init__(self) -> None:
        url = httpx.URL(self.base_url)
        if url.scheme not in ("http", "https") or not url.host or url.path not in ("", "/") or url.query:
            raise ValueError(f"a replay server must be http://host:port, not {self.base_url!r}")

    @property
    def may_have_keys(self) -> bool:
        """Whether requests may carry keys: nobody on the way can read https or what stays on this machine."""
        url = httpx.URL(self.base_url)
        return url.scheme == "https" or _is_loopback(url.host)

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
    """The rules for one request: where it may go, how much may come back and until when.

    ``allowed_hosts`` are spelled as by ``host_of``. ``deadline`` is the source's, in time.monotonic seconds.
    ``truncate``: a body over the limit is cut, not refused (robots.txt). ``validators`` are the conditional
    headers from the last capture. A host that asks for a wait of more than ``longest_wait_seconds`` is not
    asked again.
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
    longest_wait_seconds: float = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The outcome of a request. ``body`` is unpacked; with an error status it is cut to a bounded excerpt.
    ``warning`` says what was unexpected about an answer that may be read all the same. What fetch() returns
    has no key in ``headers``, ``error``, ``warning`` or ``final_url``; the body is as it arrived."""

    observed_at: datetime
    code: OutcomeCode = OutcomeCode.OK
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    final_url: str | None = None
    error: str | None = None
    warning: str | None = None
    duration_seconds: float = 0.0
    retries: int = 0


class _Failure(Exception):
    """An outcome other than a complete answer, on its way up to fetch()."""

    def __init__(self, code: OutcomeCode, detail: str, response: Response | None = None) -> None:
        super().__init__(f"{code.sentence}: {detail}")
        self.code = code
        self.response = response


class Client:
    """Fetches for all sources of one refresh; may be used by several threads. Close it, or use ``with``.

    The providers are reached as ``environment`` says (user_network.py), which is to be the one that captures
    are made with, so that its proxy's password is kept out of them; a replay server always directly. Raises
    UserNetworkError when the environment's settings cannot be used.
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        replay: ReplayServer | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.limits = limits or (Limits() if replay is None else REPLAY_LIMITS)
        self.replay = replay
        self._network = UserNetwork() if replay else user_network(environment)
        self._proxy_door = ProxyDoor()
        self._http = httpx.Client(
            transport=GuardedTransport(replay.endpoint) if replay else UserNetworkTransport(self._network),
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

    def fetch(self, request: Request, rules: Rules) -> Response:
        """Ask, with retries; never raises for what the network or the host does: that is the outcome."""
        began = time.monotonic()
        retries = 0
        try:
            host = _parsed(request.url).host
            if self._proxy_door.refusal is not None and self._network.proxy_for(host):
                raise _Failure(OutcomeCode.PROXY_REFUSED, self._proxy_door.refusal)
            with self._turn(without_www(host), rules):
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
                        response = self._attempt(request, rules)
        except _Failure as failure:
            response = replace(
                failure.response or Response(observed_at=datetime.now(UTC)),
                code=failure.code,
                error=rules.secrets.redact(str(failure))[:LONGEST_ERROR],
            )
        return replace(
            response,
            headers=rules.secrets.redact_headers(response.headers),
            final_url=rules.secrets.redact(response.final_url) if response.final_url else None,
            warning=rules.secrets.redact(response.warning)[:LONGEST_ERROR] if response.warning else None,
            duration_seconds=round(time.monotonic() - began, 3),
            retries=retries,
        )

    def refusal(self, url: str, rules: Rules) -> str | None:
        """Why the source may not send requests to this address; None when it may."""
        try:
            return self._refusal(_parsed(url), rules)
        except _Failure as failure:
            return str(failure)

    def _observed_at(self, response: httpx.Response) -> datetime:
        """Now; in a replay, the time at which the replayed answer was observed, where the server gives it."""
        stated = response.headers.get(OBSERVED_AT_HEADER) if self.replay else None
        try:
            return datetime.fromisoformat(stated).astimezone(UTC) if stated else datetime.now(UTC)
        except ValueError:
            raise _Failure(
                OutcomeCode.PROTOCOL_ERROR, f"{OBSERVED_AT_HEADER} {stated!r} is no time"
            ) from None

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
        if not isinstance(error, _Failure) or not error.code.retryable:
            return False
        left = min(rules.deadline - time.monotonic(), rules.longest_wait_seconds)
        asked_wait = _retry_after_seconds(error.response.headers) if error.response else None
        if asked_wait is not None:
            return asked_wait if asked_wait < left else False
        longest_wait = self.limits.backoff_seconds * (2.0 ** (self.limits.retries - 1) + 1)
        return min(longest_wait, self.limits.backoff_max_seconds) < left

    def _attempt(self, request: Request, rules: Rules) -> Response:
        """One try: the request and its redirects. Raises _Failure unless the answer is complete."""
        deadline = min(time.monotonic() + self.limits.response_seconds, rules.deadline)
        url, method, content = _parsed(request.url), str(request.method), request.body
        headers = {**{k.lower(): v for k, v in request.headers.items()}, **rules.validators}
        if refusal := self._refusal(url, rules):
            raise _Failure(OutcomeCode.HOST_REFUSED, refusal)
        for _ in range(self.limits.redirects + 1):
            response = self._exchange(url, method, headers, content, rules, deadline)
            if response.status not in _REDIRECTS:
                return self._checked(
                    response, rules, conditional=bool(rules.validators.keys() & headers.keys())
                )
            target = self._redirect_target(url, response, rules, content)
            if response.status == 303 or (response.status in (301, 302) and method == "POST"):
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
        if url.scheme != "https" and not (self.replay and url.scheme == "http"):
            return f"{url} is not https"
        if host_with_port(url.host, url.port, url.scheme) not in rules.allowed_hosts:
            hosts = ", ".join(sorted(rules.allowed_hosts))
            return f"{url} is not on one of the hosts and ports that {rules.source} declares ({hosts})"
        if self._network.proxy_for(url.host) and not is_name_of_the_internet(url.host):
            return f"{url} is not on a public name, which is all that a proxy is asked for"
        return None

    def _redirect_target(
        self, url: httpx.URL, response: Response, rules: Rules, content: bytes | None
    ) -> httpx.URL:
        location = response.headers.get("location", "")
        if not location:
            raise _Failure(OutcomeCode.REDIRECT_REFUSED, f"{url} names no target", response)
        try:
            target = url.join(location)
        except (httpx.InvalidURL, ValueError):
            raise _Failure(OutcomeCode.REDIRECT_REFUSED, "its target is not an address", response) from None
        if refusal := self._refusal(target, rules):
            raise _Failure(OutcomeCode.REDIRECT_REFUSED, refusal, response)
        carried = (str(target), content or b"") if response.status in (307, 308) else (str(target),)
        if _origin(target) != _origin(url) and rules.secrets.contains_secret(*carried):
            raise _Failure(OutcomeCode.REDIRECT_REFUSED, f"a key would go to {target.host}", response)
        return target

    def _exchange(
        self,
        url: httpx.URL,
        method: str,
        headers: Mapping[str, str],
        content: bytes | None,
        rules: Rules,
        deadline: float,
    ) -> Response:
        """One request and its complete answer, bounded by the deadline."""
        timeout = httpx.Timeout(self.limits.read_seconds, connect=self.limits.connect_seconds)
        address, sent = url, dict(headers)
        if self.replay is not None:
            address = self.replay.address_of(url)
            sent |= {"host": url.netloc.decode("ascii"), SOURCE_HEADER: rules.source}
        proxy, way = self._network.proxy_for(url.host), _Way()
        response: httpx.Response | None = None
        http_request = self._http.build_request(
            method, address, headers=sent, content=content, timeout=timeout, extensions={"trace": way.note}
        )
        try:
            with reading_until(deadline):
                response = self._sent(http_request, proxy, way, deadline)
                try:
                    body = self._body(response, rules)
                finally:
                    response.close()
        except _Failure:
            raise
        except AddressRefusedError as error:
            raise _Failure(error.code, str(error)) from None
        except httpx.HTTPError as error:
            if proxy is not None and way.ends_at_proxy and time.monotonic() < deadline:
                raise _proxy_failure(error, url, proxy) from None
            begun = response is not None
            raise _transport_failure(error, url, begun, deadline, rules.deadline) from None
        return Response(
            observed_at=self._observed_at(response),
            status=response.status_code,
            headers=response.headers,
            body=body,
            final_url=str(url),
        )

    def _sent(
        self, request: httpx.Request, proxy: Proxy | None, way: "_Way", deadline: float
    ) -> httpx.Response:
        """The answer as far as its headers. Raises what httpx does, and _Failure for a closed proxy."""
        if proxy is None:
            return self._http.send(request, stream=True, auth=None)
        try:
            with self._proxy_door.opened(deadline - time.monotonic()) as way.on_tunnel:
                if self._proxy_door.refusal is not None:
                    raise _Failure(OutcomeCode.PROXY_REFUSED, self._proxy_door.refusal)
                return self._through_proxy(request, proxy)
        except TimeoutError:
            detail = f"{proxy} has not opened its first tunnel yet, which the others wait for"
            raise _Failure(OutcomeCode.PROXY_FAILED, detail) from None

    def _through_proxy(self, request: httpx.Request, proxy: Proxy) -> httpx.Response:
        try:
            return self._http.send(request, stream=True, auth=None)
        except httpx.ProxyError as error:
            if _status_of(error) == 407:
                self._proxy_door.refusal = _password_refused(proxy)
            raise

    def _body(self, response: httpx.Response, rules: Rules) -> bytes:
        """The unpacked body. An error's body is cut to an excerpt; any other over its limit is a failure."""
        truncate = rules.truncate or response.status_code != 200
        limit = self.limits.error_body_bytes if response.status_code != 200 else rules.body_bytes
        announced = response.headers.get("content-length", "")
        if not truncate and _is_number(announced) and int(announced) > limit:
            raise _Failure(OutcomeCode.TOO_LARGE, f"it announces {int(announced)} bytes, {limit} are allowed")
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

    def _checked(self, response: Response, rules: Rules, *, conditional: bool) -> Response:
        """The response, when it is one that a reader may read. Raises _Failure with it otherwise."""
        if response.status == 304 and conditional:
            return replace(response, code=OutcomeCode.NOT_MODIFIED)
        if response.status != 200:
            code = OutcomeCode.of_status(response.status or 0)
            detail = f"{response.final_url} answered {response.status}{_wait_note(response.headers)}"
            raise _Failure(code, detail, response)
        if not response.body and not rules.truncate:
            raise _Failure(OutcomeCode.EMPTY_BODY, str(response.final_url), response)
        stated = response.headers.get("content-type", "").split(";")[0].strip().lower()
        if wrong := wrong_content(response.body or b"", stated, rules.content_types):
            raise _Failure(OutcomeCode.WRONG_CONTENT_TYPE, f"{response.final_url} {wrong}", response)
        if warning := type_warning(stated, rules.content_types):
            return replace(response, warning=f"{response.final_url} {warning}")
        return response


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
    """Seconds that a host asks to wait (a number or an HTTP date, RFC 9110 10.2.3); None when it does not.

    Without the header itself, one that ends like it counts, such as Azure's
    ``x-ms-ratelimit-retailprices-retry-after``.
    """
    names = ["retry-after", *(name for name in headers if name.endswith("-retry-after"))]
    wait = next((headers[name] for name in names if name in headers), "").strip()
    if _is_number(wait):
        return float(wait)
    try:
        moment = parsedate_to_datetime(wait)
    except (ValueError, TypeError, OverflowError):
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _wait_note(headers: Mapping[str, str]) -> str:
    wait = _retry_after_seconds(headers)
    return "" if wait is None else f" and asks to wait {wait:.0f} s"


def _transport_failure(
    error: httpx.HTTPError, url: httpx.URL, begun: bool, deadline: float, source_deadline: float
) -> _Failure:
    """The outcome of a transport error, from its causes; ``begun``: it happened in the body."""
    if time.monotonic() >= deadline:
        timeout = OutcomeCode.SOURCE_TIMEOUT if deadline >= source_deadline else OutcomeCode.RESPONSE_TIMEOUT
        return _Failure(timeout, str(url))
    causes = list(_causes(error))
    codes = [code for kind, code in _CODES_BY_CAUSE if any(isinstance(cause, kind) for cause in causes)]
    code = codes[0] if codes else OutcomeCode.CONNECTION_FAILED
    if begun and code in (OutcomeCode.CONNECTION_FAILED, OutcomeCode.PROTOCOL_ERROR):
        code = OutcomeCode.INCOMPLETE_BODY
    return _Failure(code, f"{url} ({causes[-1]})")


class _Way:
    """How far a request has come: whether what goes wrong now is the proxy's doing, or the host's."""

    def __init__(self) -> None:
        self.ends_at_proxy = False
        self.on_tunnel: Callable[[], None] = lambda: None

    def note(self, event: str, info: Mapping[str, object]) -> None:
        """One of httpcore's trace events. A connection that is used again gives none of these."""
        if event == "connection.connect_tcp.started":
            self.ends_at_proxy = True
        elif event == "proxy.start_tls.started":  # with the host, through the proxy
            self.ends_at_proxy = False
            self.on_tunnel()


def _status_of(error: httpx.HTTPError) -> int | None:
    """The status with which a proxy answered; its own words are not used, they may repeat a password."""
    status = str(error).partition(" ")[0] if isinstance(error, httpx.ProxyError) else ""
    return int(status) if _is_number(status) else None


def _password_refused(proxy: Proxy) -> str:
    said = "refuses the name and password" if proxy.credentials else "wants a name and a password"
    return f"{proxy} {said} (407): it is not asked again in this run"


def _proxy_failure(error: httpx.HTTPError, url: httpx.URL, proxy: Proxy) -> _Failure:
    """The outcome of a request that did not get past the proxy."""
    status, asked = _status_of(error), f"{url.host}:{url.port or 443}"
    if status == 407:
        return _Failure(OutcomeCode.PROXY_REFUSED, _password_refused(proxy))
    if status is not None and 400 <= status < 500:
        return _Failure(OutcomeCode.PROXY_REFUSED, f"{proxy} does not allow {asked} ({status})")
    if status is not None:
        return _Failure(OutcomeCode.PROXY_FAILED, f"{proxy} could not reach {asked} ({status})")
    cause = str(list(_causes(error))[-1]) or "it said nothing"
    return _Failure(OutcomeCode.PROXY_FAILED, f"{proxy}: {cause}")


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
