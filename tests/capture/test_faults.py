"""Faults of a host below what HTTP allows, against the real client over real connections, and an interrupted
refresh: each fault ends in an outcome that names it, and loses no answer that had come."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.contracts.outcome import OutcomeCode
from tests.refresh import faulty_server as host
from tests.refresh.faulty_server import Fault, FaultyServer

from .conftest import Capturing, bodies, capture_many, codes, source
from .site import UNTRUSTED, Asked, Reply, Site

ACME = "prices.acme.example"
PRICES = b'{"h100": 2.99}'
GOOD = Reply(200, PRICES)
AS_JSON = {"content_type": "application/json"}

FAULTS: list[tuple[Fault, str, int]] = [
    # what the host does -> the outcome, and how often it is asked
    (host.says(200, PRICES, **AS_JSON), "ok", 1),
    (host.says(500, b"oops"), "http_5xx", 3),
    (host.drips, "response_timeout", 1),
    (host.drips_headers, "response_timeout", 1),
    (host.falls_silent, "read_timeout", 3),
    (host.sends_200_mb, "too_large", 1),
    (host.pads_without_end, "too_large", 1),
    (host.sends(b"content-length: 209715200"), "too_large", 1),
    (host.sends_gzip_bomb, "too_large", 1),
    (host.breaks_off, "incomplete_body", 3),
    (host.hangs_up, "protocol_error", 3),
    (host.talks_nonsense, "protocol_error", 3),
    (host.redirects_to("http://169.254.169.254/"), "redirect_refused", 1),
]


@pytest.fixture
def no_pages(tmp_path: Path) -> Path:
    (tmp_path / "pages").mkdir()
    return tmp_path / "pages"


def test_a_fault_has_its_outcome_and_spares_the_other_source(no_pages: Path, archive: Archive) -> None:
    """All sources are captured together, each from a host with another fault."""
    faults = {f"s{number}": does for number, (does, *_) in enumerate(FAULTS)}
    json_only = {"content_types": ["application/json"]}
    configs = [
        source(
            name, requests=[{"url": f"https://prices.{name}.example/gpus", **json_only}], max_body_bytes=2**20
        )
        for name in faults
    ]
    with FaultyServer(no_pages, faults) as server:
        limits = {"response_seconds": 2, "read_seconds": 0.8}
        captures = capture_many(server.base_url, archive, configs, limits)
    found = [(does, *codes(captures[name]), server.asked[name]) for name, does in faults.items()]
    assert found == FAULTS
    assert bodies(archive, captures.pop("s0")) == [PRICES]
    for captured in captures.values():
        (code,) = codes(captured)
        assert (captured.error or "").startswith(f"{code}: {OutcomeCode(code).sentence}: ")
        assert (captured.status, archive.answers(captured)) == ("failed", [])


def test_untrusted_certificate_is_refused(capture: Capturing, monkeypatch: pytest.MonkeyPatch) -> None:
    with Site(UNTRUSTED) as secure:
        secure.say(ACME, "/gpus", GOOD)
        refused = capture(source(), base_url=secure.base_url)
        assert (codes(refused), refused.retries, secure.asked) == (["tls_error"], 0, [])

        monkeypatch.setenv("SSL_CERT_FILE", str(UNTRUSTED))  # the user's own trust, the same server
        assert capture(source(), base_url=secure.base_url).status == "captured"


def test_the_time_of_a_source_ends_its_visit(capture: Capturing, no_pages: Path) -> None:
    """Also a read whose own timeout is longer."""
    config = source(
        time_limit_seconds=0.3, requests=[{"url": f"https://{ACME}/gpus"}, {"url": f"https://{ACME}/more"}]
    )
    for fault in (host.drips, host.falls_silent):
        with FaultyServer(no_pages, {"acme": fault}) as server:
            captured = capture(config, base_url=server.base_url, read_seconds=60)
        assert codes(captured) == ["source_timeout", "source_timeout"]
        assert [entry.sent for entry in captured.entries] == [True, False]
        assert captured.entries[1].error == "not asked: the source's 0.3 s are used up"
        assert server.asked["acme"] == 1


# --- interruptions --------------------------------------------------------------------------------------

CAPTURES = """
import sys
from pathlib import Path
from pipeline.capture.archive import Archive
from tests.capture.conftest import capture_many, source

requests = [{"url": f"https://prices.acme.example/{page}"} for page in ("first", "hangs", "last")]
capture_many(sys.argv[1], Archive(Path(sys.argv[2])), [source(requests=requests)], {"response_seconds": 1})
"""


def test_what_had_come_is_there_after_ctrl_c(site: Site, archive: Archive) -> None:
    """The request under way ends, the rest is not asked, and the capture is closed."""
    hanging, let_go = threading.Event(), threading.Event()

    def hangs(asked: Asked) -> Reply:
        hanging.set()
        let_go.wait(60)
        return Reply(200, b"too late")

    site.say(ACME, "/first", Reply(200, b"first"))
    site.route(ACME, "/hangs", hangs)
    site.say(ACME, "/last", Reply(200, b"last"))
    command = [sys.executable, "-c", CAPTURES, site.base_url, str(archive.root)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.PIPE) as process:
        assert hanging.wait(60)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    let_go.set()

    assert process.returncode != 0
    (capture,) = archive.captures("acme")
    assert bodies(archive, capture) == [b"first"]
    assert [asked.target for asked in site.pages_asked()] == ["/first", "/hangs"]
    assert (capture.status, codes(capture)) == ("partial", ["ok", "response_timeout", "given_up"])
    assert capture.entries[-1].error == "not asked: the refresh was interrupted"
