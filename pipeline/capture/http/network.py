"""The lowest layer of the client: which addresses may be connected to, and until when bytes may arrive.

A host name is resolved here, every address it has is checked, and the connection goes to an address that was
checked: between the check and the connection there is no second look-up that could give another answer.
"""

import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import httpcore
import httpx

from pipeline.capture.http.response import RequestFailedError
from pipeline.capture.http.user_network import DOCUMENT, OPENABLE_NETWORKS, UserNetworkError
from pipeline.contracts.outcome import OutcomeCode

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # all that IANA has given out of IPv6

SPECIAL_ADDRESSES = tuple(
    ipaddress.ip_network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by the customers of a provider
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, and the metadata services of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays, deprecated
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast (RFC 5771)
        "240.0.0.0/4",  # reserved, and broadcast
        "2001::/23",  # protocol assignments, Teredo and ORCHID among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
"""IANA's registries of special-purpose addresses (iana-ipv4-special-registry, iana-ipv6-special-registry,
with all rows up to RFC 9780 of 2025) inside IPv4 and _GLOBAL_UNICAST, and multicast. No price page is on any
of them, globally reachable or not; ``ipaddress.is_global`` differs between versions of Python."""

_NEVER_ALLOWED = frozenset(
    {ipaddress.IPv4Address("100.100.100.200")}  # Alibaba Cloud's metadata service, inside 100.64.0.0/10
)

KEPT_SECONDS = 15.0
"""How long an idle connection is kept."""

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def reading_until(deadline: float) -> Iterator[None]:
    """Within, no read, write or connection of this thread outlasts ``deadline`` (time.monotonic seconds)."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def seconds_left() -> float:
    """Return the seconds until the deadline of this thread's request; infinity without one."""
    deadline = _deadline.get()
    return float("inf") if deadline is None else deadline - time.monotonic()


def refusal_of(text: str, allowed: Collection[ipaddress.IPv4Network] = ()) -> OutcomeCode | None:
    """Return how a request ends whose host has an IP address; None if that may be connected to: an address of
    the public internet, which is none of SPECIAL_ADDRESSES and no IPv6 address that wraps such an IPv4 one,
    or one of the OPENABLE_NETWORKS in the parts that the user ``allowed``."""
    address = _unwrapped(text)
    for code, openable in OPENABLE_NETWORKS.items():
        if address in openable.network and address not in _NEVER_ALLOWED:
            return None if any(address in network for network in allowed) else code
    is_special = any(address in block for block in SPECIAL_ADDRESSES)
    is_unicast = isinstance(address, ipaddress.IPv4Address) or address in _GLOBAL_UNICAST
    return None if is_unicast and address.is_global and not is_special else OutcomeCode.ADDRESS_REFUSED


def _unwrapped(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address; the IPv4 address where an IPv6 one wraps it (IPv4-mapped, NAT64)."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


class GuardedTransport(httpx.HTTPTransport):
    """httpx's transport over connections that keep to the rules of this module.

    ``only`` names the one host and port that may be connected to, at any address (a replay server, a
    webhook); without it every public address may be, and those of the networks ``allowed``. Proxies of the
    environment are not used.
    """

    def __init__(
        self, only: tuple[str, int] | None = None, *, allowed: Collection[ipaddress.IPv4Network] = ()
    ) -> None:
        super().__init__(verify=trusted_certificates(), trust_env=False)
        # httpx has no argument for the network backend; its pool is replaced by one that has it.
        self._pool = httpcore.ConnectionPool(
            ssl_context=trusted_certificates(),
            max_connections=None,
            # A replay server may serve one connection at a time: none is kept from it.
            max_keepalive_connections=None if only is None else 0,
            keepalive_expiry=KEPT_SECONDS,
            network_backend=GuardedBackend(only, allowed),
        )


def trusted_certificates() -> ssl.SSLContext:
    """Return verification against the certificates that the environment names, else certifi's. Raises
    UserNetworkError when the file cannot be used."""
    return _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    try:
        return httpx.create_ssl_context()
    except OSError as error:  # ssl.SSLError is one, too
        raise UserNetworkError(
            f"SSL_CERT_FILE={file or ''} cannot be used: {error.strerror or error}; it must be "
            f"a file of certificates in PEM ({DOCUMENT})"
        ) from None


class GuardedBackend(httpcore.NetworkBackend):
    """Connects to checked addresses only, or to the one host and port ``only``, until the deadline."""

    def __init__(self, only: tuple[str, int] | None, allowed: Collection[ipaddress.IPv4Network] = ()) -> None:
        self._only = only
        self._allowed = allowed
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of a host that accepts. Raises RequestFailedError when one of them may
        not be connected to, httpcore.ConnectError and ConnectTimeout."""
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
            if refusal := refusal_of(address, self._allowed):
                detail = f"{host} resolves to {address}, which is not a public address"
                raise RequestFailedError(refusal, detail)
        return addresses


class _BoundedStream(httpcore.NetworkStream):
    """A connection that no drip of bytes, in the headers or in the body, keeps open past the deadline."""

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
    """Return the timeout, cut to what is left until the deadline. Raises ``expired`` when nothing is."""
    left = seconds_left()
    if left <= 0:
        raise expired("the deadline has passed")
    limit = left if timeout is None else min(timeout, left)
    return None if limit == float("inf") else limit
