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

from pipeline.capture.http.user_network import (
    DOCUMENT,
    NETWORKS_OF_CODES,
    Proxy,
    UserNetwork,
    UserNetworkError,
)
from pipeline.contracts.capture import OutcomeCode

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
        "::/128",  # unspecified
        "::1/128",  # loopback
        "::ffff:0:0/96",  # IPv4-mapped
        "64:ff9b::/96",  # NAT64
        "64:ff9b:1::/48",  # NAT64 of one network
        "100::/64",  # discarded
        "100:0:0:1::/64",  # dummy
        "2001::/23",  # protocol assignments, Teredo and ORCHID among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
        "5f00::/16",  # segment routing
        "fc00::/7",  # private
        "fe80::/10",  # link-local
        "fec0::/10",  # site-local, deprecated (RFC 3879)
        "ff00::/8",  # multicast (RFC 4291)
    )
)
"""IANA's registries of special-purpose addresses (iana-ipv4-special-registry, iana-ipv6-special-registry,
with all rows up to RFC 9780 of 2025), and multicast. No price page is on any of them, globally reachable or
not; ``ipaddress.is_global`` differs between versions of Python."""

_NEVER_ALLOWED = frozenset(
    {ipaddress.IPv4Address("100.100.100.200")}  # Alibaba Cloud's metadata service, inside 100.64.0.0/10
)

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


class AddressRefusedError(Exception):
    """The host leads to an address that may not be connected to; ``code`` says of which kind."""

    def __init__(self, message: str, code: OutcomeCode = OutcomeCode.ADDRESS_REFUSED) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def reading_until(deadline: float) -> Iterator[None]:
    """Within, no read, write or connection of this thread outlasts ``deadline`` (time.monotonic seconds)."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def is_public_address(text: str, allowed: Collection[ipaddress.IPv4Network] = ()) -> bool:
    """Whether an IP address is of the public internet: none of SPECIAL_ADDRESSES, and not an IPv6
    address that wraps such an IPv4 one. Addresses of the networks ``allowed`` by the user count as public."""
    address = _unwrapped(text)
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    if address not in _NEVER_ALLOWED and any(address in network for network in allowed):
        return True
    return address.is_global and not any(address in block for block in SPECIAL_ADDRESSES)


def _unwrapped(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address; the IPv4 address where an IPv6 one wraps it (IPv4-mapped, NAT64)."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


class GuardedTransport(httpx.HTTPTransport):
    """httpx's transport over connections that keep to the rules of this module.

    ``only`` names the one host and port that may be connected to, whatever its address (replay); without it
    every public address may be, and those of the networks ``allowed``. With a ``proxy`` nothing else is
    connected to: it gets a CONNECT for each host and resolves the name; TLS is with the host, and verified.
    Proxies of the environment are not used unless the user says so.
    """

    def __init__(
        self,
        only: tuple[str, int] | None = None,
        *,
        allowed: Collection[ipaddress.IPv4Network] = (),
        proxy: Proxy | None = None,
    ) -> None:
        context = _trust(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        super().__init__(verify=context, trust_env=False)
        # httpx has no argument for the network backend; its pool is replaced by one that has it.
        if proxy is not None:
            self._pool = httpcore.HTTPProxy(
                proxy.url,
                proxy_auth=proxy.credentials,
                ssl_context=context,
                proxy_ssl_context=context if proxy.scheme == "https" else None,
                max_connections=None,
                keepalive_expiry=15.0,
                network_backend=_GuardedBackend((proxy.host, proxy.port)),
            )
            return
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=None,
            # A replay server may serve one connection at a time: none is kept from it.
            max_keepalive_connections=None if only is None else 0,
            keepalive_expiry=15.0,
            network_backend=_GuardedBackend(only, allowed),
        )


class UserNetworkTransport(httpx.BaseTransport):
    """Through the user's proxy where it is for the host, else directly."""

    def __init__(self, network: UserNetwork) -> None:
        self._network = network
        self._direct = GuardedTransport(allowed=network.allowed)
        self._proxied = GuardedTransport(proxy=network.proxy) if network.proxy else self._direct

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request. Raises httpx.TransportError and AddressRefusedError."""
        transport = self._proxied if self._network.proxy_for(request.url.host) else self._direct
        return transport.handle_request(request)

    def close(self) -> None:
        """Close all connections."""
        self._direct.close()
        self._proxied.close()


@cache
def _trust(cert_file: str | None, cert_dir: str | None) -> ssl.SSLContext:
    """Verification against the certificates that the environment names, else certifi's; read once. Raises
    UserNetworkError when the file cannot be used."""
    try:
        return httpx.create_ssl_context()
    except OSError as error:  # ssl.SSLError is one, too
        raise UserNetworkError(
            f"SSL_CERT_FILE={cert_file or ''} cannot be used: {error.strerror or error}; it must be "
            f"a file of certificates in PEM ({DOCUMENT})"
        ) from None


class _GuardedBackend(httpcore.NetworkBackend):
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
            raise AddressRefusedError(f"{host}:{port} is not the one server that may be asked")
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host}: {error}") from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if self._only is None:
            refused = [each for each in addresses if not is_public_address(each, self._allowed)]
            if refused:
                message = f"{host} resolves to {refused[0]}, which is not a public address"
                raise AddressRefusedError(message, _code_of(refused[0]))
        return addresses


def _code_of(refused: str) -> OutcomeCode:
    """How a request ends whose host has this address: by the block that the user could open for it."""
    address = _unwrapped(refused)
    for code, network in NETWORKS_OF_CODES.items():
        if address in network and address not in _NEVER_ALLOWED:
            return code
    return OutcomeCode.ADDRESS_REFUSED


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
    """The timeout, cut to what is left until the deadline. Raises ``expired`` when nothing is."""
    deadline = _deadline.get()
    if deadline is None:
        return timeout
    left = deadline - time.monotonic()
    if left <= 0:
        raise expired("the deadline has passed")
    return left if timeout is None else min(timeout, left)
