"""Hosts in a single canonical form, whether declared in a source's yaml or taken from an address.

A host is a name and a port, written ``name`` (the usual port) or ``name:port``. A name with ``www.`` and the
same name without it count as one host, since providers redirect from either to the other. The same name with
a different port is a different host: it is another service, which has to be declared.
"""

import re
from urllib.parse import urlsplit

_USUAL_PORTS = {"https": 443, "http": 80}
_NAME = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_DECLARED = re.compile(rf"(?=[^:]{{1,253}}(?::|$)){_NAME}(?:\.{_NAME})*(?::[1-9]\d{{0,4}})?", re.ASCII)


def host_of(url: str) -> str:
    """Return the host of an address; '' if the address has none."""
    scheme, name, port = _origin(url) or ("", "", None)
    return host_with_port(name, port, scheme)


def same_origin(one: str, other: str) -> bool:
    """True if two addresses have the same scheme, name and port: only then may a key sent to one be sent to
    the other. Here, a name with ``www.`` differs from the same name without it."""
    origin = _origin(one)
    return origin is not None and origin == _origin(other)


def _origin(url: str) -> tuple[str, str, int | None] | None:
    try:
        parts = urlsplit(url)
        port = _USUAL_PORTS.get(parts.scheme) if parts.port is None else parts.port
        return parts.scheme, parts.hostname or "", port
    except ValueError:
        return None


def declared_host(text: str) -> str:
    """Return the host that ``name`` or ``name:port`` declares. Raises ValueError for anything else."""
    declared = text.strip().lower()
    host = host_of(f"https://{declared}") if _DECLARED.fullmatch(declared) else ""
    if not host:
        raise ValueError(f"{text!r} is not a host: write its name, or name:port, without https:// and path")
    return host


def host_with_port(name: str, port: int | None, scheme: str = "https") -> str:
    """Return the host for a name and a port, omitting the scheme's usual port and a leading ``www.``."""
    name = without_www(name.lower())
    return name if port in (None, _USUAL_PORTS.get(scheme)) else f"{name}:{port}"


def without_www(name: str) -> str:
    """Return a host's name without a leading ``www.``."""
    shorter = name.removeprefix("www.")
    return shorter if "." in shorter else name
