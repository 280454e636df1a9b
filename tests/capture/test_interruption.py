"""A refresh that is killed or interrupted in the middle loses no answer that had come."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive

from .conftest import bodies, outcomes
from .site import Asked, Reply, Site

ACME = "prices.acme.example"

CAPTURES = """
import sys
from pathlib import Path
from pipeline.capture.archive import Archive
from tests.capture.conftest import capture_many, source

requests = [{"url": f"https://prices.acme.example/{page}"} for page in ("first", "hangs", "last")]
capture_many(sys.argv[1], Archive(Path(sys.argv[2])), [source(requests=requests)], {"response_seconds": 1})
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_what_had_come_is_there(site: Site, archive: Archive, how: signal.Signals) -> None:
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
        process.send_signal(how)
        process.communicate(timeout=60)
    let_go.set()

    assert process.returncode != 0
    (capture,) = archive.captures("acme")
    assert bodies(archive, capture) == [b"first"]
    assert [asked.target for asked in site.pages_asked()] == ["/first", "/hangs"]
    if how is signal.SIGKILL:
        assert (capture.status, outcomes(capture)) == (None, "/first ok")
    else:  # Ctrl-C: the request under way ends, the rest is not asked, the capture is closed
        assert capture.status == "partial"
        assert outcomes(capture) == "/first ok, /hangs response_timeout, /last given_up"
        assert capture.entries[-1].error == "not asked: the refresh was interrupted"
