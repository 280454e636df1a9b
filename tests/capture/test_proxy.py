"""Requests through the user's proxy."""

import base64
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits
from pipeline.capture.http.proxy import is_name_of_the_internet
from pipeline.capture.http.proxy_settings import Proxy, proxy_in, secrets_of_proxy
from pipeline.capture.visit import capture_all
from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.capture import Capture
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import Request

from .conftest import FAST, bodies, capture_many, codes, module, source, stored_bytes
from .connect_proxy import ConnectProxy
from .site import UNTRUSTED, Reply, Site

TODAY = datetime.now(UTC).date()
CERTIFICATE = Path(__file__).with_name("acme.pem")
PRICES, API = "prices.acme.example", "api.acme.example"
PASSWORD = "p@ss/wörd-1"
PASSWORD_IN_ADDRESS = "p%40ss%2Fw%C3%B6rd-1"
SENT = base64.b64encode(f"someone:{PASSWORD}".encode()).decode()


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GPUFARE_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def secure_site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site over TLS, whose certificate the user trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with Site(CERTIFICATE) as site:
        site.say(PRICES, "/gpus", Reply(200, b'{"h100": 2.99}', {"x-gpufare-observed-at": "1999-01-01"}))
        yield site


@pytest.fixture
def proxy(secure_site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectProxy]:
    """The user's proxy, which reaches the site."""
    with ConnectProxy({f"{PRICES}:443": secure_site.port}) as proxy:
        monkeypatch.setenv("GPUFARE_PROXY", proxy.url)
        yield proxy


def live_all(archive: Archive, *configs: SourceConfig, urls: Sequence[str] = (), **environment: str) -> Any:
    """Capture sources in the mode that asks the providers; ``urls`` in place of the yaml's requests."""
    functions = module(requests=lambda *_: [Request(url) for url in urls]) if urls else module()
    limits = Limits(**FAST, connect_seconds=5, read_seconds=5)
    asked = {"environment": environment, "module_of": lambda name: functions, "day": TODAY}
    with Client(limits=limits, environment=environment or os.environ) as client:
        return capture_all(configs, archive=archive, client=client, **asked)


def live(archive: Archive, config: SourceConfig | None = None, **more: Any) -> Capture:
    return live_all(archive, config or source(), **more)["acme"]


def test_the_proxy_opens_a_tunnel_and_resolves_the_name(
    archive: Archive, proxy: ConnectProxy, secure_site: Site
) -> None:
    """No resolver here knows prices.acme.example."""
    captured = live(archive)
    assert (captured.status, bodies(archive, captured)) == ("captured", [b'{"h100": 2.99}'])
    assert captured.entries[0].observed_at.date() == TODAY  # only a replay server may state a time
    assert set(proxy.asked) == {f"{PRICES}:443"}
    assert [asked.target for asked in secure_site.asked] == ["/robots.txt", "/gpus"]
    assert b"/gpus" not in proxy.carried  # encrypted from here to the host
    assert all("proxy-authorization" not in head.lower() for head in proxy.heads)


def test_a_proxy_that_answers_for_the_host_is_found_out(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TLS ends at the host: neither an unknown certificate nor one of another name is accepted."""
    with Site(UNTRUSTED) as impostor, ConnectProxy({f"{PRICES}:443": impostor.port}) as proxy:
        monkeypatch.setenv("GPUFARE_PROXY", proxy.url)
        assert codes(live(archive)) == ["tls_error"]
        monkeypatch.setenv("SSL_CERT_FILE", str(UNTRUSTED))
        assert codes(live(archive)) == ["tls_error"]
        assert impostor.asked == []


def test_a_proxy_that_is_spoken_to_over_tls(
    archive: Archive, secure_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own certificate is verified before it gets a name and a password."""
    with ConnectProxy({f"{PRICES}:443": secure_site.port}, certificate=CERTIFICATE) as proxy:
        monkeypatch.setenv("GPUFARE_PROXY", f"https://someone:{PASSWORD_IN_ADDRESS}@127.0.0.1:{proxy.port}")
        assert live(archive).status == "captured"
        asked = len(proxy.asked)
        monkeypatch.delenv("SSL_CERT_FILE")
        assert codes(live(archive)) == ["proxy_failed"]
        assert len(proxy.asked) == asked > 0


def test_a_password_opens_the_proxy_and_is_kept_nowhere(
    archive: Archive, secure_site: Site, capfd: pytest.CaptureFixture[str]
) -> None:
    """The proxy and its password are those of the environment that is given."""
    secure_site.say(PRICES, "/gpus", Reply(200, f"you said {PASSWORD}, {SENT}".encode()))
    with ConnectProxy({f"{PRICES}:443": secure_site.port}, password=f"someone:{PASSWORD}") as proxy:
        address = proxy.url.replace("//", f"//someone:{PASSWORD_IN_ADDRESS}@")
        environment = {"GPUFARE_PROXY": f" {address}\n"}
        captured = live(archive, **environment)
    assert captured.status == "captured"
    assert SENT in proxy.heads[0]
    assert all("authorization" not in asked.headers for asked in secure_site.asked)
    kept = stored_bytes(archive).decode()
    assert "you said ${GPUFARE_PROXY}, ${GPUFARE_PROXY}" in kept
    proxy_set = proxy_in(environment)
    assert proxy_set == Proxy(proxy.url, "127.0.0.1", proxy.port, (b"someone", PASSWORD.encode()))
    everything = f"{captured} {proxy_set!r} {proxy_set} {kept} {capfd.readouterr()}"
    assert not [each for each in (PASSWORD, PASSWORD_IN_ADDRESS, SENT) if each in everything]
    assert f"someone:{PASSWORD_IN_ADDRESS}" in secrets_of_proxy(environment)
    assert [*secrets_of_proxy({"GPUFARE_PROXY": "http://a:1"}), *secrets_of_proxy({})] == []


def test_a_refused_password_is_tried_once(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying a wrong password for every source would lock the account."""
    ways = ("", "wants a name and a password"), ("someone:wrong-password@", "refuses the name and password")
    for userinfo, said in ways:
        with ConnectProxy({}, password="someone:right-password") as proxy:
            monkeypatch.setenv("GPUFARE_PROXY", proxy.url.replace("//", f"//{userinfo}"))
            captures = live_all(archive, *(source(f"s{number}") for number in range(6)))
        assert len(proxy.asked) == 1
        for captured in captures.values():
            assert codes(captured) == ["proxy_refused"]
            said_so = f"the proxy {proxy.url} (GPUFARE_PROXY) {said} (407): it is not asked again in this run"
            assert (captured.error or "").endswith(said_so)


AT_THE_PROXY = [
    # its answer -> the outcome, the number of requests, and the error
    (b"HTTP/1.1 403 Forbidden\r\n\r\n", "proxy_refused", 1, f" does not allow {PRICES}:443 (403)"),
    (b"HTTP/1.1 502 Late s3cret\r\n\r\n", "proxy_failed", 3, f" could not reach {PRICES}:443 (502)"),
    (b"\x05\xff", "proxy_failed", 3, ": illegal request line"),
]


def test_proxy_errors_name_the_proxy(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    for answer, code, times, said in AT_THE_PROXY:
        with ConnectProxy({}, answers=answer) as proxy:
            monkeypatch.setenv("GPUFARE_PROXY", proxy.url)
            captured = live(archive, source(api_hosts=[PRICES]))
        sentence = captured.entries[0].outcome.sentence
        assert (codes(captured), len(proxy.asked)) == ([code], times)
        assert captured.error == f"{code}: {sentence}: the proxy {proxy.url} (GPUFARE_PROXY){said}"


def test_the_proxy_is_asked_for_names_of_the_internet_only(archive: Archive, proxy: ConnectProxy) -> None:
    """Though a yaml declares another one, by name or by address, in any spelling."""
    host = "metadata.google.internal"
    captured = live(archive, source(hosts=[host], api_hosts=[host]), urls=[f"https://{host}/gpus"])
    assert (captured.error or "").endswith("and a proxy is asked only for public names")
    assert proxy.asked == []
    inside = """127.1 0x7f000001 2130706433 ::1 fe80::1%eth0 1.2.3.4. example.0x10 example.0X localhost
    LOCALHOST intranet printer.local a.localhost a.Internal. b.home.arpa""".split()  # noqa: SIM905
    assert [host for host in inside if is_name_of_the_internet(host)] == []
    public = ["prices.acme.example.", "a.b", "1.example.0xg", "mylocal.example"]
    assert [host for host in public if is_name_of_the_internet(host)] == public


def test_a_proxy_set_for_other_programs_is_not_used(
    archive: Archive, proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GPUFARE_PROXY")
    for name in ("HTTPS_PROXY", "ALL_PROXY", "HTTP_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    assert codes(live(archive)) == ["dns_error"]
    with Site() as site:  # nor does a replay use either one
        monkeypatch.setenv("GPUFARE_PROXY", proxy.url)
        site.say(PRICES, "/gpus", Reply(200, b"{}"))
        assert capture_many(site, archive, [source()])["acme"].status == "captured"
    assert proxy.asked == []


UNUSABLE_PROXIES = """proxy.example:3128 http://proxy.example htp://someone:s3cret@proxy.example:3128
http://someone:s3cret/x@proxy.example:3128 http://someone:1#s3cret@proxy.example:3128
http://someone:1?s3cret@proxy.example:3128 http://someone:s3cret@proxy.example:port
http://someone:s3cret@:3128 http://proxy.example:3128/s3cret http://proxy.example:3128?s3cret
http://[proxy:3128 socks5://someone:s3cret@127.0.0.1:1080""".split()  # noqa: SIM905
UNUSABLE = """GPUFARE_PROXY cannot be used: it must be like http://proxy.example:3128 or \
http://name:password@proxy.example:3128 (http or https, not SOCKS, with the port; special characters in the \
password as %XX) (docs/how-to/networks.md)"""


def test_a_proxy_that_cannot_be_used_is_an_error_without_its_value() -> None:
    for value in UNUSABLE_PROXIES:
        with pytest.raises(GpufareError) as found:
            proxy_in({"GPUFARE_PROXY": value})
        assert str(found.value) == UNUSABLE
    assert proxy_in({"GPUFARE_PROXY": " "}) is proxy_in({}) is None
    assert proxy_in({"GPUFARE_PROXY": "https://a.example:1/"}) == Proxy("https://a.example:1", "a.example", 1)
