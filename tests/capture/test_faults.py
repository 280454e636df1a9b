"""Faults of a host below what HTTP allows, against the real client over real connections.

Each fault ends in an outcome that names it, and the other source is captured all the same.
"""

import json
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
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

from .conftest import Capturing, bodies, capture_many, codes, source
from .site import Reply, Site

ACME = "prices.acme.example"
PRICES = b'{"h100": 2.99}'
JSON = {"content-type": "application/json"}
GOOD = Reply(200, PRICES, JSON)

FAULTS: dict[str, tuple[Fault, str, int]] = {
    # what the host does -> the outcome, and how often it is asked
    "forbids": (says(403, b"no"), "http_403", 1),
    "fails each time": (says(500, b"oops"), "http_5xx", 3),
    "closes for an hour": (says(429, retry_after="3600"), "http_429", 1),
    "drips the body": (drips, "response_timeout", 1),
    "drips the headers": (drips_headers, "response_timeout", 1),
    "falls silent": (falls_silent, "read_timeout", 3),
    "sends 200 MB": (sends_200_mb, "too_large", 1),
    "pads without end": (pads_without_end, "too_large", 1),
    "announces 200 MB": (sends(b"content-length: 209715200"), "too_large", 1),
    "sends a gzip bomb": (sends_gzip_bomb, "too_large", 1),
    "breaks off": (breaks_off, "incomplete_body", 3),
    "hangs up": (hangs_up, "protocol_error", 3),
    "talks nonsense": (talks_nonsense, "protocol_error", 3),
    "sends HTML as JSON": (says(200, b"<html>", content_type="application/json"), "wrong_content_type", 1),
    "redirects to metadata": (redirects_to("http://169.254.169.254/latest/", 301), "redirect_refused", 1),
    "redirects to localhost": (redirects_to("http://localhost/", 307), "redirect_refused", 1),
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
    configs = [
        source(
            name,
            requests=[{"url": f"https://prices.{name}.example/gpus", "content_types": ["application/json"]}],
            max_body_bytes=2**20,
        )
        for name in sources
    ]
    limits = {"response_seconds": 2, "read_seconds": 0.8}
    with FaultyServer(pages, {name: FAULTS[fault][0] for name, fault in sources.items()}) as server:
        captures = capture_many(server.base_url, archive, [*configs, source("good")], limits)
    good = captures.pop("good")
    assert (good.status, bodies(archive, good)) == ("captured", [PRICES])
    found = {sources[name]: (*codes(captured), server.asked[name]) for name, captured in captures.items()}
    assert found == {fault: (code, times) for fault, (_, code, times) in FAULTS.items()}
    for captured in captures.values():
        (entry,) = captured.entries
        assert captured.status == "failed"
        assert (captured.error or "").startswith(f"{entry.outcome}: {entry.outcome.sentence}: ")
        assert archive.answers(captured) == []


def test_a_connection_that_is_refused_or_not_encrypted(capture: Capturing, site: Site) -> None:
    with refusing() as base_url:
        assert codes(capture(source(), base_url=base_url)) == ["connection_refused"]
    assert codes(capture(source(), base_url=f"https://127.0.0.1:{site.port}")) == ["tls_error"]


def test_untrusted_certificate_is_refused(
    capture: Capturing, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Site(UNTRUSTED) as secure:
        secure.say(ACME, "/gpus", GOOD)
        refused = capture(source(), base_url=secure.base_url)
        assert (codes(refused), refused.retries, secure.asked) == (["tls_error"], 0, [])

        monkeypatch.setenv("SSL_CERT_FILE", str(UNTRUSTED))  # the user's own trust, the same server
        assert capture(source(), base_url=secure.base_url).status == "captured"
    with FaultyServer(pages, {"acme": drips}) as server:  # the deadline holds over TLS, too
        captured = capture(source(), base_url=server.tls_url, response_seconds=0.3)
    assert codes(captured) == ["response_timeout"]


def test_the_time_of_a_source_ends_its_visit(capture: Capturing, pages: Path) -> None:
    """Also a read whose own timeout is longer."""
    config = source(
        time_limit_seconds=0.3,
        requests=[{"url": f"https://{ACME}/gpus"}, {"url": f"https://{ACME}/more"}],
    )
    for fault in (drips, falls_silent):
        with FaultyServer(pages, {"acme": fault}) as server:
            captured = capture(config, base_url=server.base_url, read_seconds=60)
        assert [(entry.outcome, entry.sent) for entry in captured.entries] == [
            ("source_timeout", True),
            ("source_timeout", False),
        ]
        assert captured.entries[1].error == "not asked: the source's 0.3 s are used up"
        assert server.asked["acme"] == 1
