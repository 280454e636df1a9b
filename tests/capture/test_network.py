"""Addresses to which the client connects."""

import ipaddress
import socket
from datetime import UTC, datetime

import httpcore
import httpx
import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits
from pipeline.capture.http.network import GuardedBackend, GuardedTransport, is_public
from pipeline.capture.http.response import RequestFailedError
from pipeline.contracts.listing import Request

from .conftest import FAST, capture_one, module, source
from .site import Reply, Site

TODAY = datetime.now(UTC).date()

REGISTRY = """
0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
192.0.0.0/29 192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24
192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15
198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 255.255.255.255/32
::1/128 ::/128 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:1::1/128
2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28
2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10
""".split()  # noqa: SIM905
"""The rows of IANA's two registries of special-purpose addresses, without the two blocks (IPv4-mapped, NAT64)
whose addresses are as public as the address that they wrap."""


def some_of(block: str) -> list[str]:
    """The first, middle and last address of a block."""
    each = ipaddress.ip_network(block)
    return [str(each[at]) for at in (0, each.num_addresses // 2, -1)]


def test_no_special_purpose_address_is_public() -> None:
    """Nor multicast, what is public for some version of Python only, or an IPv6 address that wraps one."""
    others = """224.0.0.1 239.255.255.250 ff02::1 192.0.0.192 192.0.0.9 fec0::1 1000::1 4000::1 ::1.1.1.1
    2002:101:101::1 2001:0:4136:e378:8000:63bf:fefe:fefe fe80::1%eth0""".split()  # noqa: SIM905
    special = [each for block in REGISTRY for each in some_of(block)]
    wraps = ("::ffff:{}", "64:ff9b::{}", "64:ff9b:1::{}", "::{}", "::ffff:0:{}")
    wrapped = [wrap.format(each) for wrap in wraps for each in special if ":" not in each]
    assert [each for each in special + others + wrapped if is_public(each)] == []
    public = ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
    assert [each for each in public if not is_public(each)] == []


class Noting(httpcore.NetworkBackend):
    """Notes what it is to connect to, and refuses."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def connect_tcp(self, *asked: object, **_: object) -> httpcore.NetworkStream:
        self.asked.append(asked)
        raise httpcore.ConnectError("refused")


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver that answers differently the second time (DNS rebinding) is not asked a second time."""
    answers = [["1.1.1.1", "2606:4700::1111", "1.1.1.1"], ["127.0.0.1"], ["1.1.1.1", "10.0.0.1"], []]

    def resolve(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (each, port)) for each in answers.pop(0)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    backend, noting = GuardedBackend(None), Noting()
    monkeypatch.setattr(backend, "_plain", noting)
    with pytest.raises(httpcore.ConnectError, match="refused"):
        backend.connect_tcp("prices.acme.example", 443, 7, "0.0.0.0", [])
    assert noting.asked == [(each, 443, 7, "0.0.0.0", []) for each in ("1.1.1.1", "2606:4700::1111")]
    for refused in ("127.0.0.1", "10.0.0.1"):  # also where only one of the addresses is closed
        with pytest.raises(RequestFailedError, match=f"resolves to {refused}, which is not a public address"):
            backend.connect_tcp("prices.acme.example", 443)
    with pytest.raises(httpcore.ConnectError, match="has no address"):
        backend.connect_tcp("prices.acme.example", 443)
    assert len(noting.asked) == 2


def test_a_name_that_leads_to_this_machine_is_not_connected_to(archive: Archive) -> None:
    """Nor is anything but https on a declared port, in the mode that asks the providers."""
    expected = dict.fromkeys(("https://localhost/gpus", "https://127.0.0.1/gpus"), "address_refused")
    expected |= dict.fromkeys(("http://localhost/gpus", "https://localhost:8443/gpus"), "host_refused")
    expected |= {"https://no-such-host.invalid/gpus": "dns_error"}
    asks = module(requests=lambda config, environment: [Request(url) for url in expected])
    config = source(api_hosts=["localhost", "127.0.0.1", "no-such-host.invalid"])
    with Client(limits=Limits(**FAST, retries=0), environment={}) as client:
        captured = capture_one(config, asks, day=TODAY, archive=archive, client=client)
    assert {entry.url: entry.outcome for entry in captured.entries} == expected


def test_the_replay_switch_opens_one_host_and_port_only(site: Site) -> None:
    """Underneath the rules for URLs, the connections of a replay go nowhere else either."""
    site.say(f"127.0.0.1:{site.port}", "/", Reply(200, b"here"))
    with httpx.Client(transport=GuardedTransport(only=("127.0.0.1", site.port))) as http:
        assert http.get(f"{site.base_url}/").text == "here"
        with pytest.raises(RequestFailedError, match=r"127.0.0.1:1 is not the one server that may be asked"):
            http.get("http://127.0.0.1:1/")
