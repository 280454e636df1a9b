"""A refresh that is killed or interrupted in the middle loses no answer that had come."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive

from .site import Reply, Site

ACME = "prices.acme.example"
ROOT = Path(__file__).parents[2]

CAPTURES = """
import sys
from datetime import date
from pathlib import Path
from types import ModuleType
from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.visit import capture_all
from pipeline.catalog.source_config import SourceConfig

config = SourceConfig.model_validate({
    "name": "acme", "title": "acme", "provider": "acme", "homepage": "https://prices.acme.example/",
    "evidence": {"level": "inferred", "date": "2026-08-22", "note": "made up for a test"},
    "requests": [{"url": f"https://prices.acme.example/{page}"} for page in ("first", "hangs", "last")],
})
with Client(limits=Limits(response_seconds=1), replay=ReplayServer(sys.argv[1])) as client:
    capture_all([config], environment={}, day=date(2026, 8, 22), archive=Archive(Path(sys.argv[2])),
                client=client, module_of=ModuleType)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_what_had_come_is_there(site: Site, archive: Archive, how: signal.Signals) -> None:
    hanging, let_go = threading.Event(), threading.Event()

    def hangs(asked):
        hanging.set()
        let_go.wait(60)
        return Reply(200, b"too late")

    site.say(ACME, "/first", Reply(200, b"first"))
    site.route(ACME, "/hangs", hangs)
    site.say(ACME, "/last", Reply(200, b"last"))
    command = [sys.executable, "-c", CAPTURES, site.base_url, str(archive.root)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) as process:
        assert hanging.wait(60)
        process.send_signal(how)
        process.communicate(timeout=60)
    let_go.set()

    assert process.returncode != 0
    (capture,) = archive.captures("acme")
    assert [answer.body for answer in archive.answers(capture)] == [b"first"]
    assert [asked.target for asked in site.pages_asked()] == ["/first", "/hangs"]
    if how is signal.SIGKILL:
        assert capture.status is None
    else:  # Ctrl-C: the request under way ends, the rest is not asked, the capture is closed
        assert capture.status == "partial"
        assert [entry.outcome for entry in capture.entries] == ["ok", "response_timeout", "given_up"]
