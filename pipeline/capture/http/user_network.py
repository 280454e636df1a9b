"""The network that the user is in, as the environment describes it: a proxy, and addresses that stand for
public ones.

``GPUFARE_PROXY`` is an ``http://`` or ``https://`` proxy, or the word ``environment`` for the usual
variables. ``GPUFARE_ALLOW_NETWORKS`` opens the two blocks that VPNs and providers put in place of public
addresses, or parts of them; nothing else can be opened.
"""

import base64
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from urllib.parse import SplitResult, unquote, urlsplit

from pipeline.contracts.capture import OutcomeCode
from pipeline.contracts.errors import GpufareError

PROXY_VARIABLE = "GPUFARE_PROXY"
FROM_ENVIRONMENT = "environment"
USUAL_VARIABLES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "http_proxy", "HTTP_PROXY")
NO_PROXY_VARIABLES = ("no_proxy", "NO_PROXY")

ALLOW_VARIABLE = "GPUFARE_ALLOW_NETWORKS"
OPENABLE_NETWORKS: Mapping[IPv4Network, str] = {
    IPv4Network("198.18.0.0/15"): "a VPN with fake addresses",
    IPv4Network("100.64.0.0/10"): "a provider's NAT",
}
"""Blocks that the user may open, and who gives their addresses. Price pages are not in them, but what is in
their place leads to the price pages. No services of a network belong in 198.18.0.0/15. In 100.64.0.0/10 there
may be some: peers of Tailscale, pods of managed Kubernetes and services inside Alibaba Cloud have addresses
there, so that whoever opens it, or the part of it that the names resolve to, opens those, too."""
NETWORKS_OF_CODES: Mapping[OutcomeCode, IPv4Network] = dict(
    zip(
        (OutcomeCode.FAKE_ADDRESS_REFUSED, OutcomeCode.SHARED_ADDRESS_REFUSED), OPENABLE_NETWORKS, strict=True
    )
)
"""How a request ends whose host has an address in a block that the user could open, but did not."""

DOCUMENT = "docs/how-to/networks.md"

_EXAMPLE = "http://proxy.example:3128"
_NAMES_INSIDE = ("localhost", "local", "internal", "home.arpa")
_WITH_PORT = re.compile(r":\d+$")
_ADDRESS_LABEL = re.compile(r"\d+|0x[0-9a-f]*", re.IGNORECASE)


class UserNetworkError(GpufareError):
    """A variable that describes the network cannot be used: names it, never its value, which may contain a
    password."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy. ``variable`` is where it is set; the name and password are shown nowhere."""

    scheme: str
    host: str
    port: int
    variable: str
    credentials: tuple[bytes, bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Its address, without name and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def __str__(self) -> str:
        return f"the proxy {self.url} ({self.variable})"


@dataclass(frozen=True, slots=True)
class UserNetwork:
    """How to reach the providers: through ``proxy``, except for the hosts of ``no_proxy``, or directly, where
    addresses of ``allowed`` count as public."""

    proxy: Proxy | None = None
    no_proxy: str = ""
    allowed: tuple[IPv4Network, ...] = ()

    def proxy_for(self, host: str) -> Proxy | None:
        """The proxy that a host is asked through; None for a direct connection."""
        return None if _is_excepted(host.lower(), self.no_proxy.lower()) else self.proxy


def user_network(environment: Mapping[str, str]) -> UserNetwork:
    """The network that the environment describes. Raises UserNetworkError."""
    allowed = _allowed_networks(environment.get(ALLOW_VARIABLE, ""))
    setting = environment.get(PROXY_VARIABLE, "").strip()
    if not setting:
        return UserNetwork(allowed=allowed)
    if setting != FROM_ENVIRONMENT:
        return UserNetwork(_proxy(setting, PROXY_VARIABLE), allowed=allowed)
    usual = next((name for name in USUAL_VARIABLES if environment.get(name, "").strip()), None)
    if usual is None:
        raise UserNetworkError(
            f"{PROXY_VARIABLE}={FROM_ENVIRONMENT}, but none of HTTPS_PROXY, ALL_PROXY and HTTP_PROXY is set: "
            f"set one, or {PROXY_VARIABLE} itself to an address like {_EXAMPLE}"
        )
    address = environment[usual].strip()
    no_proxy = next((value for name in NO_PROXY_VARIABLES if (value := environment.get(name, ""))), "")
    return UserNetwork(_proxy(address if "://" in address else f"http://{address}", usual), no_proxy, allowed)


def secrets_of_proxies(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each password of a proxy in the environment, and name and password as they are sent, with the name of
    its variable: texts that may be kept nowhere."""
    for variable in (PROXY_VARIABLE, *USUAL_VARIABLES):
        if "@" not in (address := environment.get(variable, "")):
            continue
        userinfo = address.rpartition("@")[0].rpartition("//")[2]
        name, _, password = userinfo.partition(":")
        sent = f"{unquote(name)}:{unquote(password)}".encode()
        yield from (
            (text, variable)
            for text in (userinfo, password, unquote(password), base64.b64encode(sent).decode("ascii"))
        )


def is_name_of_the_internet(host: str) -> bool:
    """Whether a host is a name that only the public DNS knows: no address in any spelling (``127.1``,
    ``0x7f000001``, ``::1``) and no name that is reserved for the inside of a network.

    Only declared hosts are asked, and none of them is such a name: this is a second guard, for a yaml that
    declares one, since behind a proxy no address is checked here."""
    labels = host.rstrip(".").lower().split(".")
    if ":" in host or len(labels) < 2 or _ADDRESS_LABEL.fullmatch(labels[-1]):
        return False
    return not any(host.rstrip(".").lower().endswith(f".{name}") for name in _NAMES_INSIDE)


class ProxyDoor:
    """Whether the proxy may be asked. The first request opens its tunnel alone, and after a refused password
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


def _is_excepted(host: str, no_proxy: str) -> bool:
    """Whether NO_PROXY names the host: by its name or a domain around it, with or without a leading dot or
    ``*.``; ``*`` names every host. A dot at its end and a port are not looked at, and networks name no host:
    hosts are not resolved here."""
    host = host.rstrip(".")
    names = [_WITH_PORT.sub("", each.strip()).rstrip(".") for each in no_proxy.split(",")]
    return "*" in names or any(
        host == name or host.endswith(f".{name}")
        for each in names
        if (name := each.removeprefix("*").lstrip("."))
    )


def _proxy(address: str, variable: str) -> Proxy:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise UserNetworkError(_not_a_proxy(variable)) from None
    if parts.scheme.startswith("socks"):
        raise UserNetworkError(
            f"{variable} is a SOCKS proxy, which is not supported: most programs that offer one have an HTTP "
            f"port, too, for an address like {_EXAMPLE} ({DOCUMENT})"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not port or not _is_bare(parts):
        raise UserNetworkError(_not_a_proxy(variable))
    name, password = parts.username, parts.password
    has_credentials = name is not None or password is not None
    credentials = (
        (unquote(name or "").encode(), unquote(password or "").encode()) if has_credentials else None
    )
    return Proxy(parts.scheme, parts.hostname, port, variable, credentials)


def _is_bare(parts: SplitResult) -> bool:
    """Whether an address ends after its port: a password with ``/``, ``?`` or ``#`` ends it earlier."""
    return parts.path in ("", "/") and not parts.query and not parts.fragment


def _not_a_proxy(variable: str) -> str:
    word = f", or the word {FROM_ENVIRONMENT}" if variable == PROXY_VARIABLE else ""
    return (
        f"{variable} cannot be used: it must be like {_EXAMPLE} or http://name:password@proxy.example:3128 "
        f"(http or https, with the port; special characters of the password as %XX){word} ({DOCUMENT})"
    )


def _allowed_networks(text: str) -> tuple[IPv4Network, ...]:
    return tuple(_allowed_network(each.strip()) for each in text.split(",") if each.strip())


def _allowed_network(text: str) -> IPv4Network:
    openable = " and ".join(f"{block} ({whose})" for block, whose in OPENABLE_NETWORKS.items())
    try:
        network: IPv4Network | IPv6Network = ip_network(text)
    except ValueError as error:
        raise UserNetworkError(
            f"{ALLOW_VARIABLE}: {text!r} is no network ({error}); write "
            f"{','.join(map(str, OPENABLE_NETWORKS))}, or the one that you need"
        ) from None
    if not isinstance(network, IPv4Network) or not any(map(network.subnet_of, OPENABLE_NETWORKS)):
        raise UserNetworkError(
            f"{ALLOW_VARIABLE}: {network} cannot be allowed; only {openable} can, and parts of them: what is "
            f"inside your own network stays closed ({DOCUMENT})"
        )
    return network
