"""The user's proxy: who is asked through it, and what goes wrong at it rather than at the host.

The proxy resolves the names, since behind many proxies nothing else can, so their addresses cannot be checked
here. Only declared hosts are asked, and of the proxy only names of the public DNS.
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # requests uses it, too

import httpcore
import httpx

from pipeline.capture.http.network import (
    KEPT_SECONDS,
    GuardedBackend,
    GuardedTransport,
    seconds_left,
    trusted_certificates,
)
from pipeline.capture.http.response import RequestFailedError, causes_of
from pipeline.capture.http.user_network import Proxy
from pipeline.contracts.outcome import OutcomeCode

_NAMES_INSIDE = ("localhost", "local", "internal", "home.arpa")
_ADDRESS_LABEL = re.compile(r"\d+|0x[0-9a-f]*", re.IGNORECASE)


def is_name_of_the_internet(host: str) -> bool:
    """True if a host is a name that only the public DNS knows: no address in any spelling (``127.1``,
    ``0x7f000001``, ``::1``) and no name that is reserved for the inside of a network.

    None of the catalogue's hosts is such a name: this is a second guard, for a yaml that declares one.
    """
    name = host.rstrip(".").lower()
    labels = name.split(".")
    if ":" in host or len(labels) < 2 or _ADDRESS_LABEL.fullmatch(labels[-1]):
        return False
    return not any(name.endswith(f".{inside}") for inside in _NAMES_INSIDE)


class ProxyTransport(httpx.HTTPTransport):
    """httpx's transport through a proxy, which gets a CONNECT for each host; TLS is with the host, and
    verified. The hosts that ``no_proxy`` names are asked over ``direct``."""

    def __init__(self, proxy: Proxy, no_proxy: str, direct: GuardedTransport) -> None:
        context = trusted_certificates()
        super().__init__(verify=context, trust_env=False)
        # httpx has no argument for the network backend; its pool is replaced by one that has it.
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
        self._no_proxy = {"no": no_proxy}
        self._direct = direct
        self._door = ProxyDoor()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request. Raises RequestFailedError for what goes wrong at the proxy, httpx.TransportError
        for what goes wrong at the host."""
        if proxy_bypass_environment(f"{request.url.host}:{request.url.port or 443}", self._no_proxy):
            return self._direct.handle_request(request)
        if not is_name_of_the_internet(request.url.host):
            detail = f"{request.url} is not on a public name, which is all that a proxy is asked for"
            raise RequestFailedError(OutcomeCode.HOST_REFUSED, detail)
        try:
            with self._door.opened(seconds_left()) as tunnel_is_there:
                return self._tunnelled(request, tunnel_is_there)
        except TimeoutError:
            detail = f"{self._proxy} has not opened its first tunnel yet, which the others wait for"
            raise RequestFailedError(OutcomeCode.PROXY_FAILED, detail) from None

    def close(self) -> None:
        """Close all connections."""
        super().close()
        self._direct.close()

    def _tunnelled(self, request: httpx.Request, tunnel_is_there: Callable[[], None]) -> httpx.Response:
        if self._door.refusal is not None:
            raise RequestFailedError(OutcomeCode.PROXY_REFUSED, self._door.refusal)
        is_at_proxy = False

        def note(event: str, info: Mapping[str, object]) -> None:
            """Take one of httpcore's trace events. A connection that is used again gives none of these."""
            nonlocal is_at_proxy
            if event == "connection.connect_tcp.started":
                is_at_proxy = True
            elif event == "proxy.start_tls.started":  # with the host, through the proxy
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
        """Return the outcome of a request that did not get past the proxy. The proxy's own words are not
        used: they may repeat a password."""
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
    """Lets requests through to the proxy. The first one opens its tunnel alone, and after a refused password
    (407) none follows: a wrong one that is tried for each of thirty sources locks an account."""

    def __init__(self) -> None:
        self._first = threading.Lock()
        self._is_open = False
        self.refusal: str | None = None

    @contextmanager
    def opened(self, seconds: float) -> Iterator[Callable[[], None]]:
        """Within, the proxy may be asked, unless there is a ``refusal``. Call what it gives once the tunnel
        is there: the others then need not wait for the host's answer. Raises TimeoutError when the first
        request's tunnel takes more than ``seconds``."""
        with ExitStack() as held:
            if not self._is_open:
                if not self._first.acquire(timeout=max(0.0, min(seconds, threading.TIMEOUT_MAX))):
                    raise TimeoutError
                held.callback(self._open)
            if self._is_open:  # since this one began to wait
                held.close()
            yield held.close

    def _open(self) -> None:
        self._is_open = self.refusal is None
        self._first.release()
