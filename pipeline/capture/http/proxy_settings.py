"""The user's proxy: ``GPUFARE_PROXY``, an ``http://`` or ``https://`` address.

The usual variables, such as HTTPS_PROXY, are not read: a variable that was set for another program must not
decide where keys are sent.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from pipeline.contracts.errors import GpufareError

PROXY_VARIABLE = "GPUFARE_PROXY"

DOCUMENT = "docs/how-to/networks.md"

# The message never shows the variable's value, which may contain a password.
_NOT_A_PROXY = (
    f"{PROXY_VARIABLE} cannot be used: it must be like http://proxy.example:3128 or "
    "http://name:password@proxy.example:3128 (http or https, not SOCKS, with the port; special characters in "
    f"the password as %XX) ({DOCUMENT})"
)


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy. ``url`` is its address without the user name or password, which are never shown."""

    url: str
    host: str
    port: int
    credentials: tuple[bytes, bytes] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"the proxy {self.url} ({PROXY_VARIABLE})"


def proxy_in(environment: Mapping[str, str]) -> Proxy | None:
    """Return the proxy set in the environment, or None. Raises GpufareError for an unusable address."""
    address = environment.get(PROXY_VARIABLE, "").strip()
    if not address:
        return None
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise GpufareError(_NOT_A_PROXY) from None
    # An unescaped /, ? or # in the password ends the address before the proxy's name.
    is_bare = parts.path in ("", "/") and not parts.query and not parts.fragment
    if parts.scheme not in ("http", "https") or not parts.hostname or not port or not is_bare:
        raise GpufareError(_NOT_A_PROXY)
    name, password = unquote(parts.username or "").encode(), unquote(parts.password or "").encode()
    credentials = (name, password) if "@" in parts.netloc else None
    return Proxy(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", parts.hostname, port, credentials)


def secrets_of_proxy(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the strings that must not be stored anywhere: the proxy's password, and the user name and
    password as they are sent."""
    if "@" not in (address := environment.get(PROXY_VARIABLE, "")):
        return
    userinfo = address.rpartition("@")[0].rpartition("//")[2]
    name, _, password = userinfo.partition(":")
    sent = f"{unquote(name)}:{unquote(password)}".encode()
    yield from (userinfo, password, unquote(password), base64.b64encode(sent).decode("ascii"))
