"""A source asked as it is, from a server on loopback: its own yaml, module and pages."""

from datetime import date
from pathlib import Path

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.visit import capture_all
from pipeline.catalog.source_config import source_config
from pipeline.contracts.capture import Capture
from pipeline.contracts.listing import Answer
from tests.capture.site import Reply, Site

DAY = date(2026, 8, 22)
QUICK = Limits(backoff_seconds=0.01, backoff_max_seconds=0.02)


def json_reply(body: str) -> Reply:
    """A page of JSON."""
    return Reply(200, body.encode(), {"content-type": "application/json"})


def visit(source: str, site: Site, home: Path) -> tuple[Capture, list[Answer]]:
    """A visit to the source at the site, and the archived answers."""
    config = source_config(source).model_copy(update={"spacing_seconds": 0})
    archive = Archive(home / "archive")
    with Client(limits=QUICK, replay=ReplayServer(site.base_url)) as client:
        captured = capture_all([config], environment={}, day=DAY, archive=archive, client=client)[source]
    return captured, list(archive.answers(captured))
