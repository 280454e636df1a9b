"""Requests through the user's proxy, and failures of the proxy rather than of the host.

The proxy resolves host names (behind many proxies, nothing else can), so addresses cannot be checked here.
Requests go only to declared hosts, and the proxy is given only names in the public DNS.
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import httpcore
import httpx

from pipeline.capture.http.network import (
    KEPT_SECONDS,
    GuardedBackend,
    seconds_left,
    trusted_certificates,
)
from pipeline.capture.http.proxy_settings import Proxy
from pipeline.capture.http.response import RequestFailedError, causes_of
from pipeline.contracts.outcome import OutcomeCode

_NAMES_INSIDE = ("localhost", "local", "internal", "home.arpa")
_ADDRESS_LABEL = re.compile(r"\d+|0x[0-9a-f]*", re.IGNORECASE)


def is_name_of_the_internet(host: str) -> bool:
    """True if a host is a name in the public DNS: neither an address, however spelled (``127.1``,
    ``0x7f000001``, ``::1``) nor a name reserved for use inside a network.

    The catalogue declares only public names; this is a second check, in case a yaml file declares any other.
    """
    name = host.rstrip(".").lower()
    labels = name.split(".")
    if ":" in host or len(labels) < 2 or _ADDRESS_LABEL.fullmatch(labels[-1]):
        return False
    return not any(name.endswith(f".{inside}") for inside in _NAMES_INSIDE)


class ProxyTransport(httpx.HTTPTransport):
    """An httpx transport through a proxy, which receives a CONNECT for each host; TLS runs between the client
    and the host, and certificates are verified."""

    def __init__(self, proxy: Proxy) -> None:
        context = trusted_certificates()
        super().__init__(verify=context, trust_env=False)
        # httpx has no argument for the network backend, so its pool is replaced by one with this backend.
        self._pool = httpcore.HTTPProxy(
            proxy.url,
            proxy_auth=proxy.credentials,
            ssl_context=context,
            proxy_ssl_context=context if proxy.url.startswith("https:") else None,
            max_connections=None,
            keepalive_expiry=KEPT_SECONDS,
            network_backend=GuardedBackend((proxy.host, proxy.port)),
        )
        self._proxy = proxy
        self._door = ProxyDoor()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request. Raises RequestFailedError if the proxy fails, and httpx.TransportError if the
        host fails."""
        if not is_name_of_the_internet(request.url.host):
            detail = f"{request.url} has no public host name, and a proxy is asked only for public names"
            raise RequestFailedError(OutcomeCode.HOST_REFUSED, detail)
        try:
            with self._door.opened(seconds_left()) as tunnel_is_there:
                return self._tunnelled(request, tunnel_is_there)
        except TimeoutError:
            detail = f"{self._proxy} has not opened its first tunnel, which the other requests wait for"
            raise RequestFailedError(OutcomeCode.PROXY_FAILED, detail) from None

    def _tunnelled(self, request: httpx.Request, tunnel_is_there: Callable[[], None]) -> httpx.Response:
        if self._door.refusal is not None:
            raise RequestFailedError(OutcomeCode.PROXY_REFUSED, self._door.refusal)
        is_at_proxy = False

        def note(event: str, info: Mapping[str, object]) -> None:
            """Note httpcore's trace events for opening a connection; a reused connection has none."""
            nonlocal is_at_proxy
            if event == "connection.connect_tcp.started":
                is_at_proxy = True
            elif event == "proxy.start_tls.started":  # TLS with the host, through the proxy
                is_at_proxy = False
                tunnel_is_there()

        request.extensions["trace"] = note
        try:
            return super().handle_request(request)
        except httpx.HTTPError as error:
            if is_at_proxy and seconds_left() > 0:
                raise self._failure(error, request.url) from None
            raise

    def _failure(self, error: httpx.HTTPError, url: httpx.URL) -> RequestFailedError:
        """Return the failure of a request that did not get past the proxy. The failure does not quote the
        proxy's reply, which may repeat a password."""
        status = str(error).partition(" ")[0] if isinstance(error, httpx.ProxyError) else ""
        asked = f"{url.host}:{url.port or 443}"
        if status == "407":
            has_credentials = self._proxy.credentials is not None
            said = "refuses the name and password" if has_credentials else "wants a name and a password"
            self._door.refusal = f"{self._proxy} {said} (407): it is not asked again in this run"
            return RequestFailedError(OutcomeCode.PROXY_REFUSED, self._door.refusal)
        if status.startswith("4"):
            return RequestFailedError(
                OutcomeCode.PROXY_REFUSED, f"{self._proxy} does not allow {asked} ({status})"
            )
        if status.isdecimal():
            return RequestFailedError(
                OutcomeCode.PROXY_FAILED, f"{self._proxy} could not reach {asked} ({status})"
            )
        cause = str(list(causes_of(error))[-1]) or "it said nothing"
        return RequestFailedError(OutcomeCode.PROXY_FAILED, f"{self._proxy}: {cause}")


class ProxyDoor:
    """Lets requests through to the proxy. The first request opens its tunnel alone, and no request follows a
    refused password (407): a wrong password tried once for each of thirty sources can lock the account."""

    def __init__(self) -> None:
        self._first = threading.Lock()
        self._is_open = False
        self.refusal: str | None = None

    @contextmanager
    def opened(self, seconds: float) -> Iterator[Callable[[], None]]:
        """Let the caller use the proxy inside the ``with``, unless ``refusal`` is set. Call the yielded
        function once the tunnel is open, so that other requests need not wait for the host's answer. Raises
        TimeoutError when the first request's tunnel takes longer than ``seconds`` to open."""
        with ExitStack() as held:
            if not self._is_open:
                if not self._first.acquire(timeout=max(0.0, min(seconds, threading.TIMEOUT_MAX))):
                    raise TimeoutError
                held.callback(self._open)
            if self._is_open:  # the door was opened while this request waited
                held.close()
            yield held.close

    def _open(self) -> None:
        self._is_open = self.refusal is None
        self._first.release()
