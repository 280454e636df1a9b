"""The lowest layer of the client: which addresses may be connected to, and the deadline for all I/O.

A host name is resolved here, each of its addresses is checked, and the connection goes to a checked address,
so no second look-up between the check and the connection can give a different address.
"""

import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import httpcore
import httpx

from pipeline.capture.http.proxy_settings import DOCUMENT
from pipeline.capture.http.response import RequestFailedError
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.outcome import OutcomeCode

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # the part of the IPv6 space that IANA has allocated

_SPECIAL_ADDRESSES = tuple(
    ipaddress.ip_network(block)
    for block in (
        "192.0.0.0/24",  # protocol assignments
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays, deprecated
        "192.175.48.0/24",  # AS112
        "224.0.0.0/4",  # multicast (RFC 5771)
        "2001::/23",  # protocol assignments, including Teredo and ORCHID
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
"""Special-purpose addresses that ``ipaddress.is_global`` counts as public in some versions of Python: entries
in IANA's registries up to RFC 9780 (2025), and multicast. No price page is served from such an address."""

KEPT_SECONDS = 15.0
"""Lifetime of an idle connection."""

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def reading_until(deadline: float) -> Iterator[None]:
    """While the context is open, end all of this thread's I/O at ``deadline`` (in time.monotonic seconds)."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def seconds_left() -> float:
    """Return the seconds left until this thread's deadline, or infinity if no deadline is set."""
    deadline = _deadline.get()
    return float("inf") if deadline is None else deadline - time.monotonic()


def is_public(text: str) -> bool:
    """True if an IP address is on the public internet. For an IPv6 address that wraps an IPv4 address, the
    wrapped address decides."""
    address = _unwrapped(text)
    is_special = any(address in block for block in _SPECIAL_ADDRESSES)
    is_unicast = isinstance(address, ipaddress.IPv4Address) or address in _GLOBAL_UNICAST
    return is_unicast and address.is_global and not is_special


def _unwrapped(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address, or the IPv4 address that it wraps (IPv4-mapped, NAT64)."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


class GuardedTransport(httpx.HTTPTransport):
    """An httpx transport whose connections obey the rules of this module.

    ``only`` names the one host and port that may be connected to, at any address (for a replay server);
    without ``only``, any public address may be connected to. Proxies set in the environment are not used.
    """

    def __init__(self, only: tuple[str, int] | None = None) -> None:
        super().__init__(verify=trusted_certificates(), trust_env=False)
        # httpx has no argument for the network backend, so its pool is replaced by one with this backend.
        self._pool = httpcore.ConnectionPool(
            ssl_context=trusted_certificates(),
            max_connections=None,
            # A replay server might serve only one connection at a time, so no connection to it is kept open.
            max_keepalive_connections=None if only is None else 0,
            keepalive_expiry=KEPT_SECONDS,
            network_backend=GuardedBackend(only),
        )


def trusted_certificates() -> ssl.SSLContext:
    """Return a context that verifies against the certificates set in the environment, or else certifi's.
    Raises GpufareError when the certificate file cannot be used."""
    return _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    try:
        return httpx.create_ssl_context()
    except OSError as error:  # ssl.SSLError is an OSError, too
        raise GpufareError(
            f"SSL_CERT_FILE={file or ''} cannot be used: {error.strerror or error}; it must be "
            f"a PEM file of certificates ({DOCUMENT})"
        ) from None


class GuardedBackend(httpcore.NetworkBackend):
    """Until the deadline, connects only to public addresses, or only to the host and port in ``only``."""

    def __init__(self, only: tuple[str, int] | None) -> None:
        self._only = only
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first of a host's addresses that accepts a connection. Raises RequestFailedError if
        any address is forbidden, and httpcore.ConnectError or ConnectTimeout if none of them accepts."""
        failure: Exception | None = None
        for address in self._addresses(host, port):
            try:
                stream = self._plain.connect_tcp(
                    address, port, _bounded(timeout, httpcore.ConnectTimeout), local_address, socket_options
                )
                return _BoundedStream(stream)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore.ConnectError(f"{host} has no address")

    def _addresses(self, host: str, port: int) -> list[str]:
        if self._only is not None and (host, port) != self._only:
            detail = f"{host}:{port} is not the one server that may be asked"
            raise RequestFailedError(OutcomeCode.ADDRESS_REFUSED, detail)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host}: {error}") from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        for address in addresses if self._only is None else ():
            if not is_public(address):
                detail = f"{host} resolves to {address}, which is not a public address"
                raise RequestFailedError(OutcomeCode.ADDRESS_REFUSED, detail)
        return addresses


class _BoundedStream(httpcore.NetworkStream):
    """A connection that a slow drip of bytes, in the headers or the body, cannot keep open past the
    deadline."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _bounded(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _bounded(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        limit = _bounded(timeout, httpcore.ConnectTimeout)
        return _BoundedStream(self._stream.start_tls(ssl_context, server_hostname, limit))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _bounded(timeout: float | None, expired: type[Exception]) -> float | None:
    """Return the timeout, cut to the time left until the deadline. Raises ``expired`` if no time is left."""
    left = seconds_left()
    if left <= 0:
        raise expired("the deadline has passed")
    limit = left if timeout is None else min(timeout, left)
    return None if limit == float("inf") else limit
