"""Faults of a host, against the real client over real connections.

Each fault ends in an outcome that names it, and the other source is captured all the same.
"""

import gzip
import json
from pathlib import Path
from types import ModuleType

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.visit import capture_all
from pipeline.contracts.listing import SourceChangedError
from tests.refresh.faulty_server import (
    UNTRUSTED,
    Fault,
    FaultyServer,
    breaks_off,
    drips,
    drips_headers,
    falls_silent,
    hangs_up,
    pads_without_end,
    redirects_to,
    refusing,
    says,
    sends,
    sends_200_mb,
    sends_gzip_bomb,
    talks_nonsense,
)

from .conftest import DAY, FAST, Capturing, bodies, capture_many, codes, module, source
from .site import Reply, Site

ACME = "prices.acme.example"
PRICES = b'{"h100": 2.99}'
JSON = {"content-type": "application/json"}
GOOD = Reply(200, PRICES, JSON)
MIB = 2**20


PACKED = {"content_type": "application/json", "content_encoding": "gzip"}
AS_JSON = {"content_type": "application/json"}

FAULTS: dict[str, tuple[Fault, str, int]] = {
    # what the host does -> the outcome, and how often it is asked
    "forbids": (says(403, b"no"), "http_403", 1),
    "is gone": (says(404, b"gone"), "http_404", 1),
    "wants a payment": (says(402, b"pay"), "http_4xx", 1),
    "fails each time": (says(500, b"oops"), "http_5xx", 3),
    "is asked too often": (says(429, b"slow down"), "http_429", 3),
    "closes for an hour": (says(429, retry_after="3600"), "http_429", 1),
    "answers without a page": (says(204), "http_other", 1),
    "is not modified, unasked": (says(304), "http_other", 1),
    "drips the body": (drips, "response_timeout", 1),
    "drips the headers": (drips_headers, "response_timeout", 1),
    "falls silent": (falls_silent, "read_timeout", 3),
    "sends 200 MB": (sends_200_mb, "too_large", 1),
    "pads without end": (pads_without_end, "too_large", 1),
    "announces 200 MB": (sends(b"content-length: 209715200"), "too_large", 1),
    "sends a gzip bomb": (sends_gzip_bomb, "too_large", 1),
    "sends damaged gzip": (says(200, b"\x1f\x8b\x08\x00no", **PACKED), "bad_encoding", 1),
    "cuts gzip short": (says(200, gzip.compress(PRICES)[:-9], **PACKED), "bad_encoding", 1),
    "packs unasked": (says(200, PRICES, content_encoding="br", **AS_JSON), "bad_encoding", 1),
    "breaks off": (breaks_off, "incomplete_body", 3),
    "hangs up": (hangs_up, "protocol_error", 3),
    "talks nonsense": (talks_nonsense, "protocol_error", 3),
    "sends HTML": (says(200, b"<html>", content_type="text/html"), "wrong_content_type", 1),
    "sends HTML as JSON": (says(200, b"<html>", **AS_JSON), "wrong_content_type", 1),
    "sends text of no type": (says(200, b"h100,2.99"), "wrong_content_type", 1),
    "sends nothing": (says(200, **AS_JSON), "empty_body", 1),
    "sends packed nothing": (says(200, gzip.compress(b""), **PACKED), "empty_body", 1),
    "redirects nowhere": (says(302), "redirect_refused", 1),
    "redirects to another host": (redirects_to("https://evil.example/"), "redirect_refused", 1),
    "redirects to a file": (redirects_to("file:///etc/passwd"), "redirect_refused", 1),
    "redirects to metadata": (redirects_to("http://169.254.169.254/latest/", 301), "redirect_refused", 1),
    "redirects to loopback": (redirects_to("http://127.0.0.1:1/", 307), "redirect_refused", 1),
    "redirects to localhost": (redirects_to("http://localhost/", 307), "redirect_refused", 1),
    "redirects with a password": (redirects_to(f"https://{ACME}@evil.example/"), "redirect_refused", 1),
    "redirects to another port": (redirects_to(f"https://{ACME}:8443/"), "redirect_refused", 1),
    "redirects in a circle": (redirects_to("/gpus"), "too_many_redirects", 6),
}


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """The saved page of a source that has no fault."""
    folder = tmp_path / "pages" / "good"
    folder.mkdir(parents=True)
    (folder / "gpus.json").write_bytes(PRICES)
    row = {"url": "https://prices.good.example/gpus", "headers": JSON, "file": "gpus.json"}
    (folder / "index.json").write_text(json.dumps([row]))
    return folder.parent


def test_a_fault_has_its_outcome_and_spares_the_other_source(pages: Path, archive: Archive) -> None:
    """All sources are captured together, each from a host with another fault."""
    sources = {f"s{number}": fault for number, fault in enumerate(FAULTS)}
    expected = {name: FAULTS[fault][1:] for name, fault in sources.items()}
    configs = [
        source(
            name,
            requests=[{"url": f"https://prices.{name}.example/gpus", "content_types": ["application/json"]}],
            max_body_bytes=MIB,
        )
        for name in sources
    ]
    limits = Limits(**FAST, response_seconds=2, read_seconds=0.8)
    with (
        FaultyServer(pages, {name: FAULTS[fault][0] for name, fault in sources.items()}) as server,
        Client(limits=limits, replay=ReplayServer(server.base_url)) as client,
    ):
        captures = capture_all(
            [*configs, source("good")],
            environment={},
            day=DAY,
            archive=archive,
            client=client,
            module_of=lambda name: module(),
        )
    good = captures.pop("good")
    assert (good.status, bodies(archive, good)) == ("captured", [PRICES])
    found = {name: (captured.entries[0].outcome, server.asked[name]) for name, captured in captures.items()}
    wrong = {fault: found[name] for name, fault in sources.items() if found[name] != expected[name]}
    assert wrong == {}
    for captured in captures.values():
        (entry,) = captured.entries
        assert captured.status == "failed"
        assert (captured.error or "").startswith(f"{entry.outcome}: {entry.outcome.sentence}")
        assert archive.answers(captured) == []


def test_a_refused_connection(capture: Capturing) -> None:
    with refusing() as base_url:
        captured = capture(source(), base_url=base_url)
    assert codes(captured) == ["connection_refused"]
    assert captured.status == "failed"


def test_untrusted_certificate_is_refused(capture: Capturing, monkeypatch: pytest.MonkeyPatch) -> None:
    with Site(UNTRUSTED) as secure:
        secure.say(ACME, "/gpus", GOOD)
        refused = capture(source(), base_url=secure.base_url)
        assert codes(refused) == ["tls_error"]
        assert secure.asked == []

        monkeypatch.setenv("SSL_CERT_FILE", str(UNTRUSTED))  # the user's own trust, the same server
        assert capture(source(), base_url=secure.base_url).status == "captured"


def test_a_drip_over_tls(capture: Capturing, pages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(UNTRUSTED))
    with FaultyServer(pages, {"acme": drips}) as server:
        captured = capture(source(), base_url=server.tls_url, response_seconds=0.3)
    assert codes(captured) == ["response_timeout"]


def test_no_tls_where_tls_belongs(capture: Capturing, site: Site) -> None:
    captured = capture(source(), base_url=f"https://127.0.0.1:{site.port}")
    assert codes(captured) == ["tls_error"]


def test_twice_500_then_an_answer(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/gpus", Reply(500), Reply(503), GOOD)
    captured = capture(source())
    assert captured.status == "captured"
    assert captured.entries[0].retries == 2
    assert len(site.pages_asked()) == 3


def test_retry_after_is_waited_for(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/gpus", Reply(429, b"", {"retry-after": "1"}), GOOD)
    captured = capture(source())
    assert captured.status == "captured"
    first, second = (asked.at for asked in site.pages_asked())
    assert second - first >= 1.0


def test_a_wait_beyond_the_time_of_the_source_is_not_begun(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/gpus", Reply(503, b"", {"retry-after": "Fri, 31 Dec 2100 23:59:59 GMT"}), GOOD)
    captured = capture(source())
    assert codes(captured) == ["http_5xx"]
    assert "asks to wait" in (captured.error or "")
    assert len(site.pages_asked()) == 1


def test_the_time_of_a_source_ends_its_visit(capture: Capturing, pages: Path) -> None:
    config = source(
        time_limit_seconds=0.3,
        requests=[{"url": f"https://{ACME}/gpus"}, {"url": f"https://{ACME}/more"}],
    )
    with FaultyServer(pages, {"acme": drips}) as server:
        captured = capture(config, base_url=server.base_url)
    assert [(entry.outcome, entry.sent) for entry in captured.entries] == [
        ("source_timeout", True),
        ("source_timeout", False),
    ]
    assert server.asked["acme"] == 1


def test_a_redirect_to_where_the_source_may_go_is_followed(
    capture: Capturing, site: Site, other_site: Site
) -> None:
    """Also to the replay server itself, but to no other port of this machine."""
    own = f"127.0.0.1:{site.port}"
    for location, host in {
        "/list": ACME,
        f"https://{ACME}/list": ACME,
        "https://cdn.acme.example/list": "cdn.acme.example",
        f"http://{own}/list": own,
    }.items():
        site.say(ACME, "/gpus", Reply(302, b"", {"location": location}))
        site.say(host, "/list", GOOD)
        captured = capture(source(hosts=["cdn.acme.example"]))
        assert captured.status == "captured", location
        (entry,) = captured.entries
        assert entry.url == f"https://{ACME}/gpus"
        assert (entry.final_url or "").endswith("/list")
    site.say(ACME, "/gpus", Reply(302, b"", {"location": f"{other_site.base_url}/gpus"}))
    captured = capture(source())
    assert codes(captured) == ["redirect_refused"]
    assert str(other_site.port) in (captured.error or "")
    assert other_site.asked == []


def test_truncated_json_is_archived_as_it_came(capture: Capturing, site: Site, archive: Archive) -> None:
    truncated = b'{"gpus": [{"name": "H100", "pri'
    site.say(ACME, "/gpus", Reply(200, truncated, JSON))

    def next_requests(answer, config):
        answer.json()
        return []

    captured = capture(source(), module(next_requests=next_requests))
    assert captured.entries[0].outcome == "ok"
    assert captured.status == "partial"
    assert "SourceChangedError" in (captured.error or "")
    (answer,) = archive.answers(captured)
    assert answer.body == truncated
    with pytest.raises(SourceChangedError):
        answer.json()


def test_an_error_page_is_kept_as_an_excerpt(capture: Capturing, site: Site, archive: Archive) -> None:
    site.say(ACME, "/gpus", Reply(403, b"challenge " * 100_000, {"content-type": "text/html"}))
    captured = capture(source(), error_body_bytes=5_000)
    assert captured.entries[0].status == 403
    assert 0 < captured.entries[0].bytes <= 5_000


@pytest.mark.parametrize("broken", ["no module", "requests", "next_requests", "redact"])
def test_a_source_whose_own_code_breaks_spares_the_others(broken: str, site: Site, archive: Archive) -> None:
    site.say(ACME, "/gpus", GOOD)
    site.say("prices.good.example", "/gpus", GOOD)

    def breaks(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    def module_of(name: str) -> ModuleType:
        if name == "good":
            return module()
        if broken == "no module":
            raise ModuleNotFoundError("broken on purpose")
        return module(**{broken: breaks})

    captures = capture_many(site, archive, [source("acme"), source("good")], module_of=module_of)
    assert captures["good"].status == "captured"
    assert captures["acme"].status == ("partial" if broken == "next_requests" else "failed")
    assert "broken on purpose" in (captures["acme"].error or "")


def test_the_outcomes_of_a_fault_are_in_the_index(capture: Capturing, site: Site, archive: Archive) -> None:
    site.say(ACME, "/gpus", Reply(403, b"go away"))
    captured = capture(source())
    content = json.loads((archive.folder(captured) / "index.json").read_text())
    assert content["status"] == "failed"
    assert content["replayed_from"] == site.base_url
    (entry,) = content["answers"]
    assert (entry["status"], entry["outcome"], entry["bytes"]) == (403, "http_403", 7)
