"""Requests through the user's proxy."""

import base64
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits
from pipeline.capture.http.proxy import ProxyDoor, is_name_of_the_internet
from pipeline.capture.http.proxy_settings import proxy_in
from pipeline.capture.visit import capture_all
from pipeline.catalog.source_config import SourceConfig, source_config
from pipeline.contracts.capture import Capture
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import Request
from pipeline.refresh.inputs import capture_sources
from tests.conftest import gpufare
from tests.refresh.faulty_server import UNTRUSTED, refusing

from .conftest import FAST, Capturing, capture_one, codes, module, source, stored_bytes
from .connect_proxy import ConnectProxy
from .site import Reply, Site

TODAY = datetime.now(UTC).date()
CERTIFICATE = Path(__file__).with_name("acme.pem")
PRICES = "prices.acme.example"
API = "api.acme.example"
PASSWORD = "p@ss/wörd-1"
PASSWORD_IN_ADDRESS = "p%40ss%2Fw%C3%B6rd-1"
VARIABLES = ("GPUFARE_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def secure_site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site over TLS, whose certificate the user trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with Site(CERTIFICATE) as site:
        site.say(PRICES, "/gpus", Reply(200, b'{"h100": 2.99}'))
        yield site


@pytest.fixture
def proxy(secure_site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectProxy]:
    """The user's proxy, which reaches the site."""
    with ConnectProxy({f"{PRICES}:443": secure_site.port}) as proxy:
        monkeypatch.setenv("GPUFARE_PROXY", proxy.url)
        yield proxy


def live(archive: Archive, config: SourceConfig | None = None, url: str | None = None) -> Capture:
    """Capture one source in the mode that asks the providers."""
    functions = module(requests=lambda config, environment: [Request(url)]) if url else module()
    with Client(limits=Limits(**FAST, connect_seconds=5, read_seconds=5)) as client:
        return capture_one(config or source(), functions, day=TODAY, archive=archive, client=client)


@contextmanager
def raw_server(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port on loopback of a server that does as it is told with each connection."""

    def accept() -> None:
        with suppress(OSError):  # it is closed
            while True:
                Thread(target=served, args=listener.accept()[:1], daemon=True).start()

    def served(connection: socket.socket) -> None:
        with suppress(OSError):  # the client has gone
            serve(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]


def run_apart(function: Callable[[], None]) -> None:
    """In another thread, which must end."""
    thread = Thread(target=function, daemon=True)
    thread.start()
    thread.join(timeout=5)
    assert not thread.is_alive()


# --- through a proxy ----------------------------------------------------------------------------------------


def test_the_proxy_opens_a_tunnel_and_resolves_the_name(
    archive: Archive, proxy: ConnectProxy, secure_site: Site
) -> None:
    """No resolver here knows prices.acme.example, and the port of an API is asked as it is declared."""
    captured = live(archive)
    assert captured.status == "captured"
    assert [answer.body for answer in archive.answers(captured)] == [b'{"h100": 2.99}']
    assert set(proxy.asked) == {f"{PRICES}:443"}
    assert [asked.target for asked in secure_site.asked] == ["/robots.txt", "/gpus"]
    assert b"/gpus" not in proxy.carried  # encrypted from here to the host
    assert all("proxy-authorization" not in head.lower() for head in proxy.heads)

    proxy.tunnels[f"{API}:8443"] = secure_site.port
    secure_site.say(f"{API}:8443", "/v2/pricing", Reply(200, b"{}"))
    config = source(requests=[{"url": f"https://{API}:8443/v2/pricing"}], api_hosts=[f"{API}:8443"])
    assert live(archive, config).status == "captured"
    assert proxy.asked[-1] == f"{API}:8443"


def test_a_proxy_that_answers_for_the_host_is_found_out(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TLS ends at the host: neither an unknown certificate nor one of another name is accepted."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
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
    archive: Archive, secure_site: Site, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    sent = base64.b64encode(f"someone:{PASSWORD}".encode()).decode()
    secure_site.say(PRICES, "/gpus", Reply(200, f"you said {PASSWORD}, {sent}".encode()))
    with ConnectProxy({f"{PRICES}:443": secure_site.port}, password=f"someone:{PASSWORD}") as proxy:
        environment = {"GPUFARE_PROXY": proxy.url.replace("//", f"//someone:{PASSWORD_IN_ADDRESS}@")}
        monkeypatch.setenv("GPUFARE_PROXY", environment["GPUFARE_PROXY"])
        with Client(limits=Limits(**FAST)) as client:
            captured = capture_one(
                source(), environment=environment, day=TODAY, archive=archive, client=client
            )
    proxy_set = proxy_in(environment)
    assert captured.status == "captured"
    assert sent in proxy.heads[0]
    assert all("authorization" not in asked.headers for asked in secure_site.asked)
    kept = stored_bytes(archive).decode()
    assert "you said ${GPUFARE_PROXY}" in kept
    everything = f"{captured} {proxy_set!r} {proxy_set} {kept} {capfd.readouterr()}"
    assert not [each for each in (PASSWORD, PASSWORD_IN_ADDRESS, sent) if each in everything]


@pytest.mark.parametrize("password", [None, "wrong-password"])
def test_a_refused_password_is_tried_once(
    archive: Archive, password: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trying a wrong password for every source would lock the account."""
    with ConnectProxy({}, password="someone:right-password") as proxy:
        userinfo = f"someone:{password}@" if password else ""
        monkeypatch.setenv("GPUFARE_PROXY", proxy.url.replace("//", f"//{userinfo}"))
        with Client(limits=Limits(**FAST)) as client:
            captures = capture_all(
                [source(f"s{number}") for number in range(6)],
                environment={},
                day=TODAY,
                archive=archive,
                client=client,
                module_of=lambda name: module(),
            )
        assert len(proxy.asked) == 1
    said = "refuses the name and password" if password else "wants a name and a password"
    for captured in captures.values():
        assert codes(captured) == ["proxy_refused"]
        assert f"the proxy {proxy.url} (GPUFARE_PROXY) {said} (407)" in (captured.error or "")
        assert "wrong-password" not in (captured.error or "")


def test_a_host_that_drips_behind_the_proxy_holds_up_no_other(
    archive: Archive, proxy: ConnectProxy, secure_site: Site
) -> None:
    """The others wait for the first tunnel, not for what comes through it."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATE)
    secure_site.say(API, "/gpus", Reply(200, b"{}"))
    asked = Event()

    def drip(connection: socket.socket) -> None:
        with tls.wrap_socket(connection, server_side=True) as secure:
            asked.set()
            secure.sendall(b"HTTP/1.1 200 OK\r\n")
            for number in range(100):
                secure.sendall(f"x-{number}: 1\r\n".encode())
                time.sleep(0.05)

    def requests(config: SourceConfig, environment: object) -> list[Request]:
        if config.name == "good":
            asked.wait(1)  # until the other one is under way
        return [Request(f"https://{config.api_hosts[0]}/gpus")]

    configs = [source("slow", requests=[], api_hosts=[PRICES]), source("good", requests=[], api_hosts=[API])]
    with raw_server(drip) as port:
        proxy.tunnels |= {f"{PRICES}:443": port, f"{API}:443": secure_site.port}
        with Client(limits=Limits(**FAST, retries=0, response_seconds=0.5, read_seconds=0.5)) as client:
            captures = capture_all(
                configs,
                environment={},
                day=TODAY,
                archive=archive,
                client=client,
                module_of=lambda name: module(requests=requests),
            )
    assert codes(captures["slow"]) == ["response_timeout"]
    assert captures["good"].status == "captured"


def test_who_waits_for_the_first_tunnel_has_a_time_limit() -> None:
    door, waited = ProxyDoor(), []

    def wait() -> None:
        with suppress(TimeoutError), door.opened(0.01):
            waited.append("came in")

    with door.opened(1) as tunnel_is_there:
        run_apart(wait)
        assert waited == []
        tunnel_is_there()
        run_apart(wait)
        assert waited == ["came in"]


AT_THE_PROXY = {
    b"HTTP/1.1 403 Forbidden\r\n\r\n": ("proxy_refused", 1, f"does not allow {PRICES}:443 (403)"),
    b"HTTP/1.1 502 Bad\r\n\r\n": ("proxy_failed", 3, f"could not reach {PRICES}:443 (502)"),
    b"HTTP/1.1 504 Late s3cret\r\n\r\n": ("proxy_failed", 3, f"could not reach {PRICES}:443 (504)"),
    b"": ("proxy_failed", 3, "Server disconnected"),
    b"\x05\xff": ("proxy_failed", 3, "illegal request line"),
}
"""Answers of a proxy: the outcome, the number of requests, and the error."""


@pytest.mark.parametrize("answer", AT_THE_PROXY)
def test_proxy_errors_name_the_proxy(
    archive: Archive, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome, times, said = AT_THE_PROXY[answer]
    with ConnectProxy(answers=answer) as proxy:
        monkeypatch.setenv("GPUFARE_PROXY", proxy.url)
        captured = live(archive, source(api_hosts=[PRICES]))
    assert (codes(captured), len(proxy.asked)) == ([outcome], times)
    error = captured.error or ""
    assert error.startswith(f"{outcome}: ")
    assert f"the proxy {proxy.url} (GPUFARE_PROXY)" in error
    assert said in error
    assert "s3cret" not in error


def test_a_proxy_that_is_not_there(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    with refusing() as refused:
        for url in (refused, "http://no-such-proxy.invalid:3128"):
            monkeypatch.setenv("GPUFARE_PROXY", url)
            captured = live(archive)
            assert codes(captured) == ["proxy_failed"], url
            assert "(GPUFARE_PROXY)" in (captured.error or "")


def test_errors_behind_the_proxy_name_the_host(
    archive: Archive, proxy: ConnectProxy, secure_site: Site
) -> None:
    secure_site.say(PRICES, "/gpus", Reply(403))
    assert codes(live(archive)) == ["http_403"]
    with Site() as plain:  # no TLS where TLS belongs
        proxy.tunnels[f"{PRICES}:443"] = plain.port
        assert codes(live(archive)) == ["tls_error"]


def test_the_proxy_is_asked_for_names_of_the_internet_only(archive: Archive, proxy: ConnectProxy) -> None:
    """Though a yaml declares another one, by name or by address, in any spelling."""
    for host in ("10.0.0.1", "metadata.google.internal"):
        captured = live(archive, source(hosts=[host]), url=f"https://{host}/gpus")
        assert codes(captured) == ["host_refused"], host
    assert proxy.asked == []
    inside = ["127.1", "0x7f000001", "2130706433", "::1", "fe80::1%eth0", "1.2.3.4.", "example.0x10"]
    inside += [
        "localhost",
        "LOCALHOST",
        "intranet",
        "printer.local",
        "a.localhost",
        "a.Internal.",
        "b.home.arpa",
    ]
    assert [host for host in inside if is_name_of_the_internet(host)] == []
    assert is_name_of_the_internet("prices.acme.example.")


def test_through_a_proxy_only_declared_hosts_are_asked(
    archive: Archive, proxy: ConnectProxy, secure_site: Site
) -> None:
    secure_site.say(PRICES, "/gpus", Reply(302, b"", {"location": "https://evil.example/gpus"}))
    assert codes(live(archive)) == ["redirect_refused"]
    assert codes(live(archive, url="https://evil.example/gpus")) == ["host_refused"]
    assert set(proxy.asked) == {f"{PRICES}:443"}


def test_a_replay_server_is_never_asked_through_the_proxy(
    capture: Capturing, site: Site, proxy: ConnectProxy
) -> None:
    site.say(PRICES, "/gpus", Reply(200, b"{}"))
    assert capture(source()).status == "captured"
    assert proxy.asked == []


def test_the_proxy_is_that_of_the_environment_that_is_given(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one whose password is kept out of the captures."""
    refuses = b"HTTP/1.1 403 Forbidden\r\n\r\n"
    with ConnectProxy(answers=refuses) as other, ConnectProxy(answers=refuses) as given:
        monkeypatch.setenv("GPUFARE_PROXY", other.url)
        captures = capture_sources(
            [source_config("linode")], TODAY, archive, {"GPUFARE_PROXY": given.url}, limits=Limits(**FAST)
        )
        assert captures["linode"].status == "failed"
        assert other.asked == []
        assert set(given.asked) == {"api.linode.com:443"}


def test_a_proxy_set_for_other_programs_is_not_used(
    archive: Archive, proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GPUFARE_PROXY")
    for name in ("HTTPS_PROXY", "ALL_PROXY", "HTTP_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    assert codes(live(archive)) == ["dns_error"]
    assert proxy.asked == []


# --- settings that cannot be used ---------------------------------------------------------------------------


UNUSABLE_PROXIES = [
    "proxy.example:3128",
    "enviroment",
    "http://proxy.example",
    "htp://someone:s3cret@proxy.example:3128",
    "http://someone:s3cret/x@proxy.example:3128",
    "http://someone:1#s3cret@proxy.example:3128",
    "http://someone:s3cret@proxy.example:port",
    "http://someone:s3cret@:3128",
    "http://proxy.example:3128/s3cret",
    "http://[proxy:3128",
    "socks5://someone:s3cret@127.0.0.1:1080",
]


def test_a_proxy_that_cannot_be_used_is_an_error_without_its_value() -> None:
    for value in UNUSABLE_PROXIES:
        with pytest.raises(GpufareError, match=r"^GPUFARE_PROXY .*docs/how-to/networks\.md\)$") as found:
            proxy_in({"GPUFARE_PROXY": value})
        error = str(found.value)
        assert "s3cret" not in error, value
        assert "someone" not in error, value
        assert "not SOCKS" in error, value


def test_certificates_that_cannot_be_read_stop_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in {"missing.pem": None, "empty.pem": b"", "other.pem": b"no certificate"}.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / name))
        with pytest.raises(GpufareError, match=rf"{name} cannot be used: .*docs/how-to/networks\.md"):
            Client()


def test_a_setting_that_cannot_be_used_stops_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUFARE_PROXY", "proxy:3128")
    answer = gpufare("refresh", "--source", "lambda", home=tmp_path)
    assert answer.returncode == 1
    assert "GPUFARE_PROXY" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not list(tmp_path.glob("archive/*/*"))  # nothing was asked
