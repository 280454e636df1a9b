"""A polite and wary HTTP client for other people's price pages: a server may be hostile.

The client sends one request at a time per host, with pauses and an explicit User-Agent, and retries with
back-off on transport errors, 429 and 5xx only. Every answer is limited in size (before and after unpacking),
time and redirects, and comes only from hosts that its source declares.
"""

import ipaddress
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import DefaultCookiePolicy
from importlib.metadata import version
from typing import Self

import httpx
import stamina

from pipeline.capture.http.content import judged
from pipeline.capture.http.decode import BoundedDecoder
from pipeline.capture.http.network import GuardedTransport, reading_until
from pipeline.capture.http.proxy import ProxyTransport
from pipeline.capture.http.proxy_settings import proxy_in
from pipeline.capture.http.response import LONGEST_ERROR, RequestFailedError, Response, transport_failure
from pipeline.capture.http.secrets import Secrets
from pipeline.contracts.hosts import host_with_port, without_www
from pipeline.contracts.listing import Request
from pipeline.contracts.outcome import OutcomeCode

CONTACT = "https://github.com/gpufare/gpufare"
CONTACT_VARIABLE = "GPUFARE_CONTACT"
ROBOT_NAME = "gpufare"

OBSERVED_AT_HEADER = "x-gpufare-observed-at"
SOURCE_HEADER = "x-gpufare-source"
NO_PAGE_HEADER = "x-gpufare-no-page"
"""Header sent by a replay server that has no saved page for the request."""

_REDIRECTS = (301, 302, 303, 307, 308)
_KEPT_ACROSS_HOSTS = ("accept", "content-type")

# The logs of httpx and httpcore include whole URLs and headers, which may contain keys.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.ERROR)
# The outcome counts the retries; by default, stamina prints each to stdout if structlog is installed.
stamina.instrumentation.set_on_retry_hooks([])


def user_agent() -> str:
    """Return the User-Agent: program, version, and a contact for complaints ($GPUFARE_CONTACT or CONTACT)."""
    return f"{ROBOT_NAME}/{version('gpufare')} (+{os.environ.get(CONTACT_VARIABLE) or CONTACT})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits for every source, in seconds and bytes. If a source's yaml also limits body size or time, the
    lower of the two limits applies."""

    connect_seconds: float = 30.0
    read_seconds: float = 30.0
    response_seconds: float = 60.0
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
"""Limits for a replay server, which is nearby and can be retried quickly."""


@dataclass(frozen=True, slots=True)
class ReplayServer:
    """A single server (http or https) that receives every request in place of the providers. The path and
    query are unchanged; the ``Host`` header names the original host, and X-Gpufare-Source names the source.

    Raises ValueError when base_url is not of the form ``http://host:port``.
    """

    base_url: str

    def __post_init__(self) -> None:
        url = httpx.URL(self.base_url)
        if url.scheme not in ("http", "https") or not url.host or url.path not in ("", "/") or url.query:
            raise ValueError(f"a replay server must be http://host:port, not {self.base_url!r}")

    @property
    def may_have_keys(self) -> bool:
        """True if requests may carry keys, because the requests are encrypted or stay on this machine."""
        url = httpx.URL(self.base_url)
        return url.scheme == "https" or _is_loopback(url.host)

    @property
    def endpoint(self) -> tuple[str, int]:
        """Host and port to which requests are sent."""
        return _endpoint(httpx.URL(self.base_url))

    def address_of(self, url: httpx.URL) -> httpx.URL:
        """Return the URL to which a request for ``url`` is sent."""
        if _endpoint(url) == self.endpoint:
            return url
        base = httpx.URL(self.base_url)
        return url.copy_with(scheme=base.scheme, host=base.host, port=base.port)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules for one request: which hosts it may reach, how large its answer may be, and the deadline.

    ``allowed_hosts`` are spelled as ``host_of`` returns them. ``deadline`` is the source's deadline, in
    time.monotonic seconds. With ``truncate`` (for robots.txt), a body over the limit is cut rather than
    refused. If a host asks for a wait longer than ``longest_wait_seconds``, the request is not retried.
    """

    source: str
    allowed_hosts: frozenset[str]
    secrets: Secrets
    deadline: float
    body_bytes: int
    content_types: tuple[str, ...] = ()
    spacing_seconds: float = 0.0
    truncate: bool = False
    longest_wait_seconds: float = float("inf")


class Client:
    """Fetches the pages of all sources in one refresh. Threads may share a client if each contacts different
    hosts, so that a host gets one request at a time. As a context manager, it closes its connections.

    Providers are reached through the proxy that ``environment`` sets, if any; pass the same environment to
    ``capture_all``, so that the proxy's password stays out of the captures. A replay server is reached
    directly. Raises GpufareError when the environment's settings cannot be used.
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
        proxy = proxy_in(environment) if replay is None else None
        endpoint = replay.endpoint if replay else None
        self._http = httpx.Client(
            transport=ProxyTransport(proxy) if proxy else GuardedTransport(endpoint),
            trust_env=False,
            follow_redirects=False,
            headers={
                "User-Agent": user_agent(),
                "Accept": "*/*",
                "Accept-Language": "en-US,en;q=0.9",
                "Accept-Encoding": "gzip",
            },
        )
        self._http.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))  # no cookies are stored
        self._free_at: dict[str, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def fetch(self, request: Request, rules: Rules) -> Response:
        """Send a request, with retries. Failures of the network or the host are reported in the response."""
        began = time.monotonic()
        retries = 0
        try:
            url = self.check(request.url, rules)
            with self._spaced(without_www(url.host), rules):
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
                        response = self._attempt(url, request, rules)
        except RequestFailedError as failure:
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

    def check(self, url: str, rules: Rules) -> httpx.URL:
        """Return the parsed URL. Raises RequestFailedError if the source may not request it."""
        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, ValueError) as error:
            detail = f"{url!r} is not an address ({error})"
            raise RequestFailedError(OutcomeCode.HOST_REFUSED, detail) from None
        if refusal := self._refusal(parsed, rules):
            raise RequestFailedError(OutcomeCode.HOST_REFUSED, refusal)
        return parsed

    def _observed_at(self, response: httpx.Response) -> datetime:
        """Return the current time, or the time that a replay server states for its answer."""
        stated = response.headers.get(OBSERVED_AT_HEADER) if self.replay else None
        try:
            return datetime.fromisoformat(stated).astimezone(UTC) if stated else datetime.now(UTC)
        except ValueError:
            raise RequestFailedError(
                OutcomeCode.PROTOCOL_ERROR, f"{OBSERVED_AT_HEADER} {stated!r} is not a time"
            ) from None

    @contextmanager
    def _spaced(self, host: str, rules: Rules) -> Iterator[None]:
        """Wait until ``spacing_seconds`` have passed since the last request to the host ended."""
        wait = self._free_at.get(host, 0.0) - time.monotonic()
        if wait > 0 and time.monotonic() + wait >= rules.deadline:
            raise RequestFailedError(OutcomeCode.SOURCE_TIMEOUT, f"no time left to wait for {host}")
        time.sleep(max(0.0, wait))
        try:
            yield
        finally:
            self._free_at[host] = time.monotonic() + (0.0 if self.replay else rules.spacing_seconds)

    def _retry(self, error: Exception, rules: Rules) -> bool | float:
        """Return whether to retry, or, if the host states a wait, how many seconds to wait first."""
        if not isinstance(error, RequestFailedError) or not error.code.retryable:
            return False
        left = min(rules.deadline - time.monotonic(), rules.longest_wait_seconds)
        asked_wait = _retry_after_seconds(error.response.headers) if error.response else None
        if asked_wait is not None:
            return asked_wait if asked_wait < left else False
        longest_wait = self.limits.backoff_seconds * (2.0 ** (self.limits.retries - 1) + 1)
        return min(longest_wait, self.limits.backoff_max_seconds) < left

    def _attempt(self, url: httpx.URL, request: Request, rules: Rules) -> Response:
        """Send the request and follow its redirects. Raises RequestFailedError unless the answer is
        complete."""
        deadline = min(time.monotonic() + self.limits.response_seconds, rules.deadline)
        method, content = str(request.method), request.body
        headers = {name.lower(): value for name, value in request.headers.items()}
        for _ in range(self.limits.redirects + 1):
            response = self._exchange(url, method, headers, content, rules, deadline)
            if response.status not in _REDIRECTS:
                return self._checked(response, rules)
            target = self._redirect_target(url, response, rules, content)
            if response.status == 303 or (response.status in (301, 302) and method == "POST"):
                method, content = "GET", None
                headers.pop("content-type", None)
            if _origin(target) != _origin(url):
                headers = {name: value for name, value in headers.items() if name in _KEPT_ACROSS_HOSTS}
            url = target
        raise RequestFailedError(
            OutcomeCode.TOO_MANY_REDIRECTS, f"more than {self.limits.redirects}, the last to {url}"
        )

    def _refusal(self, url: httpx.URL, rules: Rules) -> str | None:
        """Return the reason why a source may not send requests to a URL, or None if it may."""
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
        return None

    def _redirect_target(
        self, url: httpx.URL, response: Response, rules: Rules, content: bytes | None
    ) -> httpx.URL:
        """Return the target of a redirect. Raises RequestFailedError for a target that is not allowed."""

        def refused(detail: str) -> RequestFailedError:
            return RequestFailedError(OutcomeCode.REDIRECT_REFUSED, detail, response)

        location = response.headers.get("location", "")
        if not location:
            raise refused(f"{url} redirects to nowhere")
        try:
            target = url.join(location)
        except (httpx.InvalidURL, ValueError):
            raise refused("its target is not an address") from None
        if refusal := self._refusal(target, rules):
            raise refused(refusal)
        carried = (str(target), content or b"") if response.status in (307, 308) else (str(target),)
        if _origin(target) != _origin(url) and rules.secrets.contains_secret(*carried):
            raise refused(f"a key would go to {target.host}")
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
        """Send one request and return its complete answer, which must arrive before the deadline."""
        timeout = httpx.Timeout(self.limits.read_seconds, connect=self.limits.connect_seconds)
        address, sent = url, dict(headers)
        if self.replay is not None:
            address = self.replay.address_of(url)
            sent |= {"host": url.netloc.decode("ascii"), SOURCE_HEADER: rules.source}
        http_request = self._http.build_request(
            method, address, headers=sent, content=content, timeout=timeout
        )
        begun = False
        try:
            with reading_until(deadline):
                response = self._http.send(http_request, stream=True, auth=None)
                begun = True
                try:
                    body = self._body(response, rules)
                finally:
                    response.close()
        except httpx.HTTPError as error:
            raise transport_failure(error, url, begun, deadline, rules.deadline) from None
        return Response(
            observed_at=self._observed_at(response),
            status=response.status_code,
            headers=response.headers,
            body=body,
            final_url=str(url),
        )

    def _body(self, response: httpx.Response, rules: Rules) -> bytes:
        """Return the unpacked body. An error page is cut short; any other body over the limit is refused."""
        truncate = rules.truncate or response.status_code != 200
        limit = self.limits.error_body_bytes if response.status_code != 200 else rules.body_bytes
        announced = response.headers.get("content-length", "")
        if not truncate and _is_number(announced) and int(announced) > limit:
            detail = f"it announces {int(announced)} bytes, but only {limit} are allowed"
            raise RequestFailedError(OutcomeCode.TOO_LARGE, detail)
        decoder = BoundedDecoder(response.headers.get("content-encoding", ""), limit)
        try:
            for chunk in response.iter_raw():
                decoder.feed(chunk)
            decoder.finish()
        except RequestFailedError:
            if not truncate:
                raise
        return bytes(decoder.body)

    def _checked(self, response: Response, rules: Rules) -> Response:
        """Return the response if a reader may use it; otherwise, raise RequestFailedError with it."""
        if response.status != 200:
            code = OutcomeCode.of_status(response.status or 0)
            detail = f"{response.final_url} answered {response.status}{_wait_note(response.headers)}"
            raise RequestFailedError(code, detail, response)
        if not response.body and not rules.truncate:
            raise RequestFailedError(OutcomeCode.EMPTY_BODY, str(response.final_url), response)
        stated = response.headers.get("content-type", "").split(";")[0].strip().lower()
        wrong, odd = judged(response.body or b"", stated, rules.content_types)
        if wrong:
            detail = f"{response.final_url} {wrong}"
            raise RequestFailedError(OutcomeCode.WRONG_CONTENT_TYPE, detail, response)
        return replace(response, warning=f"{response.final_url} {odd}" if odd else None)


def _endpoint(url: httpx.URL) -> tuple[str, int]:
    return url.host, url.port or (443 if url.scheme == "https" else 80)


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return (url.scheme, *_endpoint(url))


def _retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds that a host asks for (a number or an HTTP date, RFC 9110 10.2.3), or None.

    Any other header whose name ends in -retry-after, such as Azure's
    ``x-ms-ratelimit-retailprices-retry-after``, counts as well.
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
