"""Which addresses the client connects to."""

import ipaddress
import time
from datetime import UTC, date, datetime

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.http.network import is_public_address
from pipeline.capture.visit import capture_all
from pipeline.contracts.listing import Request
from tests.faulty_server import one_connection_at_a_time

from .conftest import FAST, Capturing, capture_one, module, source
from .site import Reply, Site

TODAY = datetime.now(UTC).date()


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "64:ff9b::a9fe:a9fe",
        "2001:db8::1",
    ],
)
def test_addresses_that_are_not_the_public_internet(address: str) -> None:
    assert not is_public_address(address)


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


@pytest.mark.parametrize("block", REGISTRY)
def test_no_special_purpose_address_is_public(block: str) -> None:
    network = ipaddress.ip_network(block)
    middle = network[network.num_addresses // 2]
    for address in (network[0], middle, network[-1]):
        assert not is_public_address(str(address)), address


@pytest.mark.parametrize("block", [block for block in REGISTRY if ":" not in block])
@pytest.mark.parametrize("wrapped", ["::ffff:{}", "64:ff9b::{}", "64:ff9b:1::{}", "::{}", "::ffff:0:{}"])
def test_no_ipv6_address_wraps_a_special_one(block: str, wrapped: str) -> None:
    network = ipaddress.ip_network(block)
    assert not is_public_address(wrapped.format(network[0]))
    assert not is_public_address(wrapped.format(network[-1]))


@pytest.mark.parametrize(
    "address",
    [
        "192.0.0.192",  # global for Python 3.11.7
        "192.0.0.9",
        "2002:101:101::1",  # 6to4 of a public address
        "2001:0:4136:e378:8000:63bf:fefe:fefe",  # Teredo of a public address
        "fec0::1",
        "1000::1",
        "4000::1",
        "::1.1.1.1",
    ],
)
def test_addresses_that_a_version_of_python_takes_for_global(address: str) -> None:
    assert not is_public_address(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_public_addresses(address: str) -> None:
    assert is_public_address(address)


def live(archive: Archive, host: str, **limits: float) -> str:
    """The outcome of asking a host for real, in the mode that asks the providers."""
    config = source(requests=[{"url": f"https://{host}/gpus"}], api_hosts=[host])
    with Client(limits=Limits(**{**FAST, **limits})) as client:
        captured = capture_one(config, module(), environment={}, day=TODAY, archive=archive, client=client)
    return captured.entries[0].outcome


def test_a_name_that_leads_to_this_machine_is_not_connected_to(archive: Archive) -> None:
    assert live(archive, "localhost") == "address_refused"
    assert live(archive, "127.0.0.1") == "address_refused"


def test_a_name_that_does_not_exist(archive: Archive) -> None:
    assert live(archive, "no-such-host.invalid") == "dns_error"


@pytest.mark.parametrize("url", ["http://prices.acme.example/gpus", "https://prices.acme.example:8443/gpus"])
def test_live_requests_are_https_on_a_declared_port(archive: Archive, url: str) -> None:
    with Client(limits=Limits(**FAST)) as client:
        captured = capture_one(
            source(hosts=["prices.acme.example"]),
            module(requests=lambda config, environment: [Request(url)]),
            environment={},
            day=TODAY,
            archive=archive,
            client=client,
        )
    assert [entry.outcome for entry in captured.entries] == ["host_refused"]


def test_the_replay_switch_opens_one_host_and_port_only(site: Site, other_site: Site) -> None:
    """Underneath the rules for URLs, the connections of a replay go nowhere else either."""
    import httpx

    from pipeline.capture.http.network import GuardedTransport
    from pipeline.capture.http.response import RequestFailedError

    site.say(f"127.0.0.1:{site.port}", "/", Reply(200, b"here"))
    with httpx.Client(transport=GuardedTransport(only=("127.0.0.1", site.port))) as http:
        assert http.get(f"{site.base_url}/").text == "here"
        with pytest.raises(RequestFailedError):
            http.get(f"{other_site.base_url}/")
    assert other_site.asked == []


@pytest.mark.parametrize(
    "base_url", ["ftp://127.0.0.1:1", "127.0.0.1:80", "http://127.0.0.1:80/pages", "http://"]
)
def test_a_replay_server_is_given_as_host_and_port(base_url: str) -> None:
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
    """The deadline holds in the middle of a read that has a longer time of its own."""

    def sleeps(asked):
        time.sleep(0.6)
        return Reply(200, b"{}")

    site.route("prices.acme.example", "/gpus", sleeps)
    captured = capture(source(time_limit_seconds=0.2), read_seconds=60)
    assert [entry.outcome for entry in captured.entries] == ["source_timeout"]


def test_a_replay_server_that_serves_one_connection_at_a_time(archive: Archive) -> None:
    with (
        one_connection_at_a_time() as base_url,
        Client(limits=Limits(**FAST, read_seconds=5), replay=ReplayServer(base_url)) as client,
    ):
        captures = capture_all(
            [source(f"s{number}") for number in range(10)],
            environment={},
            day=date(2026, 8, 22),
            archive=archive,
            client=client,
            module_of=lambda name: module(),
        )
    assert [captured.status for captured in captures.values()] == ["captured"] * 10
