"""Addresses to which the client connects."""

import ipaddress
import socket
import time
from datetime import UTC, datetime

import httpcore
import httpx
import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.http.network import GuardedBackend, GuardedTransport, is_public
from pipeline.capture.http.response import RequestFailedError
from pipeline.capture.visit import capture_all
from pipeline.contracts.listing import Request
from tests.refresh.faulty_server import one_connection_at_a_time

from .conftest import DAY, FAST, Capturing, capture_one, codes, module, source
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
    network = ipaddress.ip_network(block)
    return [str(network[at]) for at in (0, network.num_addresses // 2, -1)]


def test_no_special_purpose_address_is_public() -> None:
    assert [each for block in REGISTRY for each in some_of(block) if is_public(each)] == []


def test_no_ipv6_address_wraps_a_special_one() -> None:
    wraps = ("::ffff:{}", "64:ff9b::{}", "64:ff9b:1::{}", "::{}", "::ffff:0:{}")
    special = [each for block in REGISTRY if ":" not in block for each in some_of(block)]
    wrapped = [wrap.format(each) for wrap in wraps for each in special]
    assert [each for each in wrapped if is_public(each)] == []


def test_other_addresses_that_are_not_public() -> None:
    multicast = ["224.0.0.1", "239.255.255.250", "ff02::1"]
    global_for_a_version_of_python = [
        "192.0.0.192",
        "192.0.0.9",
        "fec0::1",
        "1000::1",
        "4000::1",
        "::1.1.1.1",
    ]
    of_public_addresses = ["2002:101:101::1", "2001:0:4136:e378:8000:63bf:fefe:fefe"]  # 6to4, Teredo
    others = [*multicast, *global_for_a_version_of_python, *of_public_addresses, "fe80::1%eth0"]
    assert [each for each in others if is_public(each)] == []


def test_public_addresses() -> None:
    public = ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
    assert [each for each in public if not is_public(each)] == []


class Noting(httpcore.NetworkBackend):
    """Notes the hosts that it is to connect to, and refuses."""

    def __init__(self) -> None:
        self.hosts: list[str] = []

    def connect_tcp(self, host: str, *_: object, **__: object) -> httpcore.NetworkStream:
        self.hosts.append(host)
        raise httpcore.ConnectError("refused")


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver that answers differently the second time (DNS rebinding) is not asked a second time."""
    answers = [["1.1.1.1", "2606:4700::1111"], ["127.0.0.1"], ["1.1.1.1", "10.0.0.1"]]

    def resolve(host: str, port: int, **_: object) -> list[tuple]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (each, port)) for each in answers.pop(0)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    backend, noting = GuardedBackend(None), Noting()
    monkeypatch.setattr(backend, "_plain", noting)
    with pytest.raises(httpcore.ConnectError):
        backend.connect_tcp("prices.acme.example", 443)
    assert noting.hosts == ["1.1.1.1", "2606:4700::1111"]
    for refused in ("127.0.0.1", "10.0.0.1"):  # also where only one of the addresses is closed
        with pytest.raises(RequestFailedError, match=f"resolves to {refused}, which is not a public address"):
            backend.connect_tcp("prices.acme.example", 443)
    assert len(noting.hosts) == 2


def live(archive: Archive, url: str, **facts: object) -> str:
    """The outcome of asking an address for real, in the mode that asks the providers."""
    with Client(limits=Limits(**FAST)) as client:
        asks = module(requests=lambda config, environment: [Request(url)])
        captured = capture_one(source(**facts), asks, day=TODAY, archive=archive, client=client)
    return captured.entries[0].outcome


def test_a_name_that_leads_to_this_machine_is_not_connected_to(archive: Archive) -> None:
    expected = {
        "localhost": "address_refused",
        "127.0.0.1": "address_refused",
        "no-such-host.invalid": "dns_error",
    }
    assert {host: live(archive, f"https://{host}/gpus", api_hosts=[host]) for host in expected} == expected


def test_live_requests_are_https_on_a_declared_port(archive: Archive) -> None:
    for url in ("http://prices.acme.example/gpus", "https://prices.acme.example:8443/gpus"):
        assert live(archive, url, hosts=["prices.acme.example"]) == "host_refused", url


def test_the_replay_switch_opens_one_host_and_port_only(site: Site, other_site: Site) -> None:
    """Underneath the rules for URLs, the connections of a replay go nowhere else either."""
    site.say(f"127.0.0.1:{site.port}", "/", Reply(200, b"here"))
    with httpx.Client(transport=GuardedTransport(only=("127.0.0.1", site.port))) as http:
        assert http.get(f"{site.base_url}/").text == "here"
        with pytest.raises(RequestFailedError, match="not the one server"):
            http.get(f"{other_site.base_url}/")
    assert other_site.asked == []


def test_a_replay_server_is_given_as_host_and_port() -> None:
    for base_url in ("ftp://127.0.0.1:1", "127.0.0.1:80", "http://127.0.0.1:80/pages", "http://"):
        with pytest.raises(ValueError, match="http://host:port"):
            ReplayServer(base_url)


def test_a_proxy_of_the_environment_is_not_used(
    capture: Capturing, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    site.say("prices.acme.example", "/gpus", Reply(200, b"{}"))
    assert capture(source()).status == "captured"


def test_the_slowest_of_hosts_does_not_hold_the_deadline_up(capture: Capturing, site: Site) -> None:
    """The deadline also ends a read whose own timeout is longer."""

    def sleeps(asked):
        time.sleep(0.3)
        return Reply(200, b"{}")

    site.route("prices.acme.example", "/gpus", sleeps)
    assert codes(capture(source(time_limit_seconds=0.1), read_seconds=60)) == ["source_timeout"]


def test_a_replay_server_that_serves_one_connection_at_a_time(archive: Archive) -> None:
    with (
        one_connection_at_a_time() as base_url,
        Client(limits=Limits(**FAST, read_seconds=5), replay=ReplayServer(base_url)) as client,
    ):
        captures = capture_all(
            [source(f"s{number}") for number in range(4)],
            environment={},
            day=DAY,
            archive=archive,
            client=client,
            module_of=lambda name: module(),
        )
    assert {captured.status for captured in captures.values()} == {"captured"}
