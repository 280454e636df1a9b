"""Hosts as a source's yaml declares them and as addresses name them, in one spelling.

A host is a name and a port, written ``name`` (the usual port) or ``name:port``. A site without ``www.`` and
the same site with it are one host: providers redirect from either to the other. Ports are not: what listens
on another port of a host is another service, which has to be declared.
"""

import re
from urllib.parse import urlsplit

_USUAL_PORTS = {"https": 443, "http": 80}
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_WWW = "www."


def host_of(url: str) -> str:
    """The host of an address; '' where it names none."""
    try:
        parts = urlsplit(url)
        return host_with_port(parts.hostname or "", parts.port, parts.scheme)
    except ValueError:
        return ""


def same_origin(one: str, other: str) -> bool:
    """Whether two addresses have the same scheme, name and port: only then may a key follow from one to the
    other. A name with ``www.`` is another one here."""
    origin = _origin(one)
    return origin is not None and origin == _origin(other)


def _origin(url: str) -> tuple[str, str, int | None] | None:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or _USUAL_PORTS.get(parts.scheme)
    except ValueError:
        return None


def declared_host(text: str) -> str:
    """The host that ``name`` or ``name:port`` declares. Raises ValueError for anything else."""
    name, colon, port = text.strip().lower().partition(":")
    if not _NAME.fullmatch(name) or (colon and not _is_port(port)):
        raise ValueError(f"{text!r} is no host: write its name, or name:port, without https:// and path")
    return host_with_port(name, int(port) if colon else None)


def host_with_port(name: str, port: int | None, scheme: str = "https") -> str:
    """A host from its parts: the scheme's usual port and a leading ``www.`` are not written."""
    name = without_www(name.lower())
    return name if port in (None, _USUAL_PORTS.get(scheme)) else f"{name}:{port}"


def without_www(name: str) -> str:
    """A host's name without a leading ``www.``."""
    shorter = name.removeprefix(_WWW)
    return shorter if "." in shorter else name


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text) < 65536
