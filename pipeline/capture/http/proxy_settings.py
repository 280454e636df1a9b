"""The user's proxy, as the environment describes it.

``GPUFARE_PROXY`` is an ``http://`` or ``https://`` address, or the word ``environment`` for the usual
variables. Without it, no proxy is used.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from pipeline.contracts.errors import GpufareError

PROXY_VARIABLE = "GPUFARE_PROXY"
FROM_ENVIRONMENT = "environment"
USUAL_VARIABLES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "http_proxy", "HTTP_PROXY")

DOCUMENT = "docs/how-to/networks.md"

_EXAMPLE = "http://proxy.example:3128"


class NetworkSettingError(GpufareError):
    """A variable that describes the network cannot be used. The message names it but never shows its value,
    which may contain a password."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy. ``url`` is its address without name and password, which are never shown; ``variable`` is
    where it is set, ``no_proxy`` the hosts to ask directly, in the form of NO_PROXY."""

    url: str
    host: str
    port: int
    variable: str
    credentials: tuple[bytes, bytes] | None = field(default=None, repr=False)
    no_proxy: str = ""

    def __str__(self) -> str:
        return f"the proxy {self.url} ({self.variable})"


def proxy_in(environment: Mapping[str, str]) -> Proxy | None:
    """Return the proxy that the environment sets, None without one. Raises NetworkSettingError."""
    setting = environment.get(PROXY_VARIABLE, "").strip()
    if setting != FROM_ENVIRONMENT:
        return _proxy(setting, PROXY_VARIABLE) if setting else None
    usual = next((name for name in USUAL_VARIABLES if environment.get(name, "").strip()), None)
    if usual is None:
        raise NetworkSettingError(
            f"{PROXY_VARIABLE}={FROM_ENVIRONMENT}, but none of HTTPS_PROXY, ALL_PROXY and HTTP_PROXY is set: "
            f"set one, or {PROXY_VARIABLE} itself to an address like {_EXAMPLE}"
        )
    address = environment[usual].strip()
    no_proxy = environment.get("no_proxy") or environment.get("NO_PROXY", "")
    return _proxy(address if "://" in address else f"http://{address}", usual, no_proxy)


def secrets_of_proxies(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each password of a proxy in the environment, and name and password as they are sent, with the
    name of the variable: texts that must not be stored anywhere."""
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


def _proxy(address: str, variable: str, no_proxy: str = "") -> Proxy:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise NetworkSettingError(_not_a_proxy(variable)) from None
    # A password with /, ? or # ends the address before the proxy's name.
    is_bare = parts.path in ("", "/") and not parts.query and not parts.fragment
    if parts.scheme not in ("http", "https") or not parts.hostname or not port or not is_bare:
        raise NetworkSettingError(_not_a_proxy(variable))
    name, password = unquote(parts.username or "").encode(), unquote(parts.password or "").encode()
    credentials = (name, password) if "@" in parts.netloc else None
    url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return Proxy(url, parts.hostname, port, variable, credentials, no_proxy)


def _not_a_proxy(variable: str) -> str:
    word = f", or the word {FROM_ENVIRONMENT}" if variable == PROXY_VARIABLE else ""
    return (
        f"{variable} cannot be used: it must be like {_EXAMPLE} or http://name:password@proxy.example:3128 "
        f"(http or https, not SOCKS, with the port; special characters of the password as %XX){word} "
        f"({DOCUMENT})"
    )
