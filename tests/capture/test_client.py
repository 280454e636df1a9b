"""The client: what it sends, where it may go, what counts as an answer, and when it asks again."""

import gzip
import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from pipeline.capture.http.client import Client, Limits, ReplayServer, _retry_after_seconds
from pipeline.capture.http.response import RequestFailedError, Response
from pipeline.capture.http.secrets import Secrets
from pipeline.contracts.listing import Request
from pipeline.contracts.outcome import OutcomeCode

from .conftest import FAST, moved, rules
from .site import Reply, Site

ACME, CDN = "prices.acme.example", "cdn.acme.example"
URL = f"https://{ACME}/gpus"
AT = datetime(2026, 8, 22, 6, tzinfo=UTC)
AT_THAT_TIME = {"x-gpufare-observed-at": "2026-08-22T08:00:00+02:00"}
JSON = {"content-type": "application/json"}
GOOD = Reply(200, b"{}", JSON)
KEY = "s3cret-value"
KEYED = {"secrets": Secrets({"ACME_KEY": KEY}, {"ACME_KEY"}), "allowed_hosts": frozenset({ACME, CDN})}

Fetch = Callable[..., Response]


@pytest.fixture
def fetch(site: Site) -> Fetch:
    """Fetch a request, or a path of prices.acme.example, from the site; further arguments are rules."""

    def run(asked: Request | str = "/gpus", limits: dict[str, Any] | None = None, **facts: Any) -> Response:
        request = asked if isinstance(asked, Request) else Request(f"https://{ACME}{asked}")
        chosen = Limits(**FAST | (limits or {}))
        with Client(limits=chosen, replay=ReplayServer(site.base_url)) as client:
            return client.fetch(request, rules(**facts))

    return run


def test_an_answer_and_the_request_for_it_without_cookies(
    fetch: Fetch, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = {"Content-Encoding": "gzip", "Set-Cookie": "id=1", "X-Echo": KEY}
    site.say(ACME, "/gpus", Reply(200, gzip.compress(b'{"a":1}'), AT_THAT_TIME | packed))
    url = f"{URL}?$filter=name%20eq%20'p5'&key={KEY}&x=1+2"
    response = fetch(Request(url, headers={"X-Team": "a"}), **KEYED)
    kept = {name: response.headers.get(name) for name in ("content-encoding", "set-cookie", "x-echo")}
    assert kept == {"content-encoding": "gzip", "set-cookie": "[redacted]", "x-echo": "${ACME_KEY}"}
    assert replace(response, headers={}, duration_seconds=0) == Response(
        observed_at=AT, status=200, body=b'{"a":1}', final_url=url.replace(KEY, "${ACME_KEY}")
    )
    (asked,) = site.asked
    assert (asked.method, asked.target, asked.body) == ("GET", url.removeprefix(f"https://{ACME}"), b"")
    assert re.fullmatch(
        r"gpufare/\S+ \(\+https://github.com/gpufare/gpufare\)", asked.headers.pop("user-agent")
    )
    assert asked.headers.pop("connection")
    languages = {"accept": "*/*", "accept-language": "en-US,en;q=0.9", "accept-encoding": "gzip"}
    assert asked.headers == {"host": ACME, "x-gpufare-source": "acme", "x-team": "a", **languages}
    monkeypatch.setenv("GPUFARE_CONTACT", "ops@example.org")
    with Client(replay=ReplayServer(site.base_url)) as client:
        for _ in range(2):
            client.fetch(Request(URL), rules(spacing_seconds=3600))  # a replay server needs no rest
    assert site.asked[1].headers["user-agent"].endswith(" (+ops@example.org)")
    assert "cookie" not in site.asked[2].headers


WAIT = {"retry-after": "3600"}
NOON = {"x-gpufare-observed-at": "noon"}
PACKED = {"content-encoding": "gzip"}
HTML = {"content-type": "Text/HTML; charset=utf-8"}
ANSWERED = [
    # the host's answer -> the code, what the error says, and the body that is kept
    (Reply(200, b'["%s"]' % (b"a" * 96), JSON), "ok", None, b'["%s"]' % (b"a" * 96)),
    (Reply(200, b"a" * 101), "too_large", "it announces 101 bytes, but only 100 are allowed", None),
    (Reply(200, b"<p>", HTML), "wrong_content_type", f"{URL} sent a fragment of markup as text/html", b"<p>"),
    (Reply(200, b"", JSON), "empty_body", URL, b""),
    (Reply(204), "http_other", f"{URL} answered 204", b""),
    (Reply(403, b"<html>"), "http_403", f"{URL} answered 403", b"<html"),
    (Reply(404, gzip.compress(bytes(9)), PACKED), "http_404", f"{URL} answered 404", bytes(5)),
    (Reply(429, b"", WAIT), "http_429", f"{URL} answered 429 and asks to wait 3600 s", b""),
    (Reply(200, b"{}", NOON), "protocol_error", "x-gpufare-observed-at 'noon", None),
    (Reply(302), "redirect_refused", f"{URL} redirects to nowhere", b""),
    (moved(f"/{'x' * 70_000}"), "protocol_error", f"{URL} (URL too long)", None),
    (moved("file:///etc/passwd"), "redirect_refused", "file:/etc/passwd is not https", b""),
    (moved("http://169.254.169.254", 301), "redirect_refused", "http://169.254.169.254 is not on", b""),
    (moved(f"https://{ACME}@evil.example/", 307), "redirect_refused", "https://evil.example/ carries", b""),
    (moved("/gpus"), "too_many_redirects", f"more than 3, the last to {URL}", None),
]  # fmt: skip


def test_what_counts_as_an_answer(fetch: Fetch, site: Site) -> None:
    limits = {"retries": 0, "error_body_bytes": 5, "redirects": 3}
    for reply, code, error, body in ANSWERED:
        site.say(ACME, "/gpus", reply)
        response = fetch(limits=limits, body_bytes=100, content_types=("application/json",))
        said = f"{OutcomeCode(code).sentence}: {error}" if error else ""
        found = (response.code, (response.error or "")[: len(said)], response.body)
        assert found == (code, said, body)
    assert len(site.asked) == len(ANSWERED) + 3


# --- where requests may go ------------------------------------------------------------------------------

API, WWW = "api.acme.example", "www.api.acme.example"
ALLOWED = [
    # the hosts that a source declares, an address, and whether the source may ask it
    ([f"{API}:8443"], f"https://{API}:8443/more", True),
    ([f"{API}:8443"], f"https://{WWW}:8443/more", True),
    ([API], f"https://{WWW}/more", True),
    ([API], f"http://{API}/more", True),  # only a replay server is asked over http
    ([f"{API}:8443"], f"https://{API}:8444/more", False),
    ([f"{API}:8443"], f"https://{API}/more", False),
    ([API], f"https://{API}:8443/more", False),
    ([API], f"https://evil.{API}/more", False),
    ([API], f"https://{API}.evil.example/more", False),
    ([API], f"https://{API}@evil.example/more", False),
    ([API], f"https://user:password@{API}/more", False),
    ([API], f"ftp://{API}/more", False),
]
NO_ADDRESSES = ["http://[::1/more", "https://\x00/more", "/more", "", f"https://{API}/{'x' * 70_000}"]


def test_only_declared_hosts_and_ports_are_asked(fetch: Fetch, site: Site) -> None:
    """By a request or by a redirect."""
    for host in (API, WWW, f"{API}:8443", f"{WWW}:8443"):
        site.say(host, "/more", GOOD)
    for declared, url, allowed in ALLOWED:
        site.say(ACME, "/gpus", moved(url))
        site.asked.clear()
        hosts = frozenset(declared)
        ended = [fetch(Request(url), allowed_hosts=hosts).code, fetch(allowed_hosts=hosts | {ACME}).code]
        expected = ["ok", "ok"] if allowed else ["host_refused", "redirect_refused"]
        assert (ended, len(site.asked)) == (expected, 3 if allowed else 1), (declared, url)
    assert {fetch(Request(url), allowed_hosts=hosts).code for url in NO_ADDRESSES} == {"host_refused"}
    refused = fetch(Request("https://evil.example/"), allowed_hosts=frozenset({"b.example", "a.example"}))
    assert refused.error == (
        "the address is not one that this source may ask: https://evil.example/ is not on one of the hosts "
        "and ports that acme declares (a.example, b.example)"
    )


def test_a_replay_server_may_redirect_to_itself_and_to_no_other_port(fetch: Fetch, site: Site) -> None:
    site.say(f"127.0.0.1:{site.port}", "/list", GOOD)
    for port, code in ((site.port, "ok"), (site.port + 1, "redirect_refused")):
        site.say(ACME, "/gpus", moved(f"http://127.0.0.1:{port}/list"))
        assert fetch().code == code


def test_what_becomes_of_a_query_at_a_redirect(fetch: Fetch, site: Site) -> None:
    """Headers other than these stay behind at another host, port or scheme, or at a name with www."""
    site.say(ACME, "/there", GOOD)
    asked = Request(URL, "POST", {"Accept": "text/html", "Content-Type": "a/b", "Authorization": KEY}, b"{}")
    for status in (301, 302, 303, 307, 308):
        for target in ("/there", f"https://{CDN}/there", f"https://www.{ACME}/there", f"http://{ACME}/there"):
            site.say(ACME, "/gpus", moved(target, status))
            site.say(CDN, "/there", GOOD)
            site.say(f"www.{ACME}", "/there", GOOD)
            assert fetch(asked, **KEYED).code == "ok"
            second = site.asked[-1]
            kept = [second.headers["accept"], *({"content-type", "authorization"} & set(second.headers))]
            expected = ["text/html", *(["content-type"] if status >= 307 else [])]
            expected += ["authorization"] if target == "/there" else []
            method, body = ("POST", b"{}") if status >= 307 else ("GET", b"")
            assert (second.method, second.body, sorted(kept)) == (method, body, sorted(expected))


def test_a_redirect_carries_no_key_to_another_host(fetch: Fetch, site: Site) -> None:
    asked = Request(URL, "POST", {}, f'{{"key": "{KEY}"}}'.encode())
    site.say(ACME, "/there", GOOD)
    site.say(CDN, "/there", GOOD)
    cases = {
        ("/there", 307): "ok",
        (f"/there?key={KEY}", 302): "ok",
        (f"https://{CDN}/there", 302): "ok",  # without the body
        (f"https://{CDN}/there", 307): "redirect_refused",
        (f"https://{CDN}/there", 308): "redirect_refused",
        (f"https://{CDN}/there?key={KEY}", 302): "redirect_refused",
    }
    for (place, status), code in cases.items():
        site.say(ACME, "/gpus", moved(place, status))
        response = fetch(asked, **KEYED)
        assert response.code == code, (place, status)
    assert response.error == f"{OutcomeCode.REDIRECT_REFUSED.sentence}: a key would go to {CDN}"
    assert KEY not in "".join(f"{each.target}{each.body!r}" for each in site.asked if each.host == CDN)


REPLAY_SERVERS = {
    # its address -> its host, its port, and whether it may have keys
    "https://replay.example": ("replay.example", 443, True),
    "http://127.9.9.9:8000/": ("127.9.9.9", 8000, True),
    "http://localhost": ("localhost", 80, True),
    "http://10.0.0.5:8000": ("10.0.0.5", 8000, False),
    "http://localhost.example": ("localhost.example", 80, False),
}


def test_a_replay_server_is_a_host_and_a_port() -> None:
    servers = [ReplayServer(url) for url in REPLAY_SERVERS]
    found = {server.base_url: (*server.endpoint, server.may_have_keys) for server in servers}
    assert found == REPLAY_SERVERS
    server = ReplayServer("http://127.0.0.1:81")
    own = "https://127.0.0.1:81/a"  # keeps its scheme
    assert str(server.address_of(httpx.URL(own))) == own


# --- when it asks, and asks again -----------------------------------------------------------------------


def test_a_wait_that_the_source_has_no_time_for_is_not_begun() -> None:
    """The host's own wait, or else the longest wait between tries, which is three seconds here."""
    endless = float("inf")
    cases = [
        # retry-after, seconds left, the longest wait for this request, whether to ask again
        ("4", endless, 5, 4.0),
        ("5", endless, 5, False),
        ("0", endless, 1, 0.0),
        (None, endless, 3, False),
        (None, endless, 3.1, True),
        ("101", 100, endless, False),
        (None, 4, endless, True),
        (None, 2, endless, False),
    ]
    with Client(limits=Limits(backoff_max_seconds=4)) as client:
        for wait, left, longest, expected in cases:
            answer = Response(observed_at=AT, headers={"retry-after": wait or "soon"})
            error = RequestFailedError(OutcomeCode.HTTP_429, "", answer if wait else None)
            asked = rules(deadline=time.monotonic() + left, longest_wait_seconds=longest)
            assert client._retry(error, asked) == expected, (wait, left, longest)


def test_retry_after_in_seconds_or_as_a_date() -> None:
    expected = {"0": 0, "120": 120, " 7 ": 7, "Fri, 31 Dec 1999 23:59:59 GMT": 0, "31 Dec 1999 23:59:59": 0}
    expected |= dict.fromkeys(["", "soon", "-5", "1.5", "²", "Fri, 99 Dec 9999 99:99:99 GMT"])
    assert {text: _retry_after_seconds({"retry-after": text}) for text in expected} == expected
    assert _retry_after_seconds({}) is None
    azures_own = {"x-ms-ratelimit-retailprices-retry-after": "9", "content-length": "5"}
    assert _retry_after_seconds(azures_own) == 9
    assert _retry_after_seconds({**azures_own, "retry-after": "8"}) == 8


def test_a_host_has_its_rest_between_requests() -> None:
    with Client() as client:
        with client._spaced(ACME, rules(spacing_seconds=0.1)):
            asked = time.monotonic()
        with client._spaced("another.example", rules()):
            assert time.monotonic() - asked < 0.1
        with client._spaced(ACME, rules(spacing_seconds=3600)):
            assert 0.1 <= time.monotonic() - asked < 5
        late = client.fetch(Request(f"https://www.{ACME}/gpus"), rules())  # www does not count
    assert (late.code, late.sent, late.status) == ("source_timeout", True, None)
    assert late.error == f"{OutcomeCode.SOURCE_TIMEOUT.sentence}: no time left to wait for {ACME}"
