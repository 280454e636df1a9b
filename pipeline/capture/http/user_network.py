"""The user's network, as the environment describes it: a proxy, and addresses that stand for public ones.

``GPUFARE_PROXY`` is an ``http://`` or ``https://`` proxy, or the word ``environment`` for the usual
variables. ``GPUFARE_ALLOW_NETWORKS`` opens the two blocks that VPNs and providers put in place of public
addresses, or parts of them; nothing else can be opened.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from urllib.parse import unquote, urlsplit

from pipeline.contracts.errors import GpufareError
from pipeline.contracts.outcome import OutcomeCode

PROXY_VARIABLE = "GPUFARE_PROXY"
FROM_ENVIRONMENT = "environment"
USUAL_VARIABLES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "http_proxy", "HTTP_PROXY")

ALLOW_VARIABLE = "GPUFARE_ALLOW_NETWORKS"
DOCUMENT = "docs/how-to/networks.md"

_EXAMPLE = "http://proxy.example:3128"


@dataclass(frozen=True, slots=True)
class OpenableNetwork:
    """A block that the user may open, and who gives its addresses."""

    network: IPv4Network
    whose: str


OPENABLE_NETWORKS: Mapping[OutcomeCode, OpenableNetwork] = {
    OutcomeCode.FAKE_ADDRESS_REFUSED: OpenableNetwork(
        IPv4Network("198.18.0.0/15"), "a VPN with fake addresses"
    ),
    OutcomeCode.SHARED_ADDRESS_REFUSED: OpenableNetwork(IPv4Network("100.64.0.0/10"), "a provider's NAT"),
}
"""The blocks by how a request ends whose host has an address in one that is not opened. Price pages are not
in them, but what is in their place leads to the price pages. No services of a network belong in
198.18.0.0/15. In 100.64.0.0/10 there may be some: peers of Tailscale, pods of managed Kubernetes and services
inside Alibaba Cloud have addresses there; opening it, or the part of it that the names resolve to, opens
those, too."""


class UserNetworkError(GpufareError):
    """A variable that describes the network cannot be used: names it, never its value, which may contain a
    password."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy. ``url`` is its address without the name and password, which are shown nowhere;
    ``variable`` is where it is set."""

    url: str
    host: str
    port: int
    variable: str
    credentials: tuple[bytes, bytes] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"the proxy {self.url} ({self.variable})"


@dataclass(frozen=True, slots=True)
class UserNetwork:
    """How to reach the providers: through ``proxy``, except for the hosts of ``no_proxy`` (in the form of
    NO_PROXY), or directly, where addresses of ``allowed`` count as public."""

    proxy: Proxy | None = None
    no_proxy: str = ""
    allowed: tuple[IPv4Network, ...] = ()


def user_network(environment: Mapping[str, str]) -> UserNetwork:
    """Return the network that the environment describes. Raises UserNetworkError."""
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
    no_proxy = environment.get("no_proxy") or environment.get("NO_PROXY", "")
    return UserNetwork(_proxy(address if "://" in address else f"http://{address}", usual), no_proxy, allowed)


def secrets_of_proxies(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each password of a proxy in the environment, and name and password as they are sent, with the
    name of its variable: texts that may be kept nowhere."""
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


def _proxy(address: str, variable: str) -> Proxy:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise UserNetworkError(_not_a_proxy(variable)) from None
    # A password with /, ? or # ends the address before the proxy's name.
    is_bare = parts.path in ("", "/") and not parts.query and not parts.fragment
    if parts.scheme not in ("http", "https") or not parts.hostname or not port or not is_bare:
        raise UserNetworkError(_not_a_proxy(variable))
    name, password = unquote(parts.username or "").encode(), unquote(parts.password or "").encode()
    credentials = (name, password) if "@" in parts.netloc else None
    url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return Proxy(url, parts.hostname, port, variable, credentials)


def _not_a_proxy(variable: str) -> str:
    word = f", or the word {FROM_ENVIRONMENT}" if variable == PROXY_VARIABLE else ""
    return (
        f"{variable} cannot be used: it must be like {_EXAMPLE} or http://name:password@proxy.example:3128 "
        f"(http or https, not SOCKS, with the port; special characters of the password as %XX){word} "
        f"({DOCUMENT})"
    )


def _allowed_networks(text: str) -> tuple[IPv4Network, ...]:
    return tuple(_allowed_network(each.strip()) for each in text.split(",") if each.strip())


def _allowed_network(text: str) -> IPv4Network:
    blocks = OPENABLE_NETWORKS.values()
    try:
        network: IPv4Network | IPv6Network = ip_network(text)
    except ValueError as error:
        raise UserNetworkError(
            f"{ALLOW_VARIABLE}: {text!r} is no network ({error}); write "
            f"{','.join(str(block.network) for block in blocks)}, or the one that you need"
        ) from None
    if not isinstance(network, IPv4Network) or not any(network.subnet_of(block.network) for block in blocks):
        openable = " and ".join(f"{block.network} ({block.whose})" for block in blocks)
        raise UserNetworkError(
            f"{ALLOW_VARIABLE}: {network} cannot be allowed; only {openable} can, and parts of them: what is "
            f"inside your own network stays closed ({DOCUMENT})"
        )
    return network
