"""A site, a client that replays against it, and sources made up for one test."""

import gzip
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits, ReplayServer, Rules
from pipeline.capture.http.secrets import Secrets
from pipeline.capture.visit import capture_all
from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.capture import Capture

from .site import Reply, Site

DAY = date(2026, 8, 22)

FAST = {"backoff_seconds": 0.01, "backoff_max_seconds": 0.02}


def source(name: str = "acme", **facts: Any) -> SourceConfig:
    """A made-up source that asks https://prices.<name>.example/gpus."""
    host = f"prices.{name}.example"
    names = dict.fromkeys(("name", "title", "provider"), name) | {"homepage": f"https://{host}/"}
    evidence = {"level": "inferred", "date": "2026-08-22", "note": "made up for a test"}
    usual = {"evidence": evidence, "requests": [{"url": f"https://{host}/gpus"}], "spacing_seconds": 0}
    return SourceConfig.model_validate({**names, **usual, **facts})


def module(**functions: Any) -> ModuleType:
    """A source's module with the given functions."""
    made = ModuleType("made_up")
    made.__dict__.update(functions)
    return made


def moved(to: str, status: int = 302) -> Reply:
    return Reply(status, b"", {"location": to})


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "archive")


def capture_one(
    config: SourceConfig, functions: ModuleType, environment: Mapping[str, str] | None = None, **more: Any
) -> Capture:
    """Capture a single source with ``functions`` as its module; the other arguments are capture_all's."""
    captures = capture_all([config], module_of=lambda name: functions, environment=environment or {}, **more)
    return captures[config.name]


def capture_many(
    server: Site | str, archive: Archive, configs: Sequence[SourceConfig], limits: Any = (), **more: Any
) -> dict[str, Capture]:
    """Capture sources together from a server or its address; the other arguments are capture_all's."""
    arguments = {"environment": {}, "module_of": lambda name: module(), **more}
    replay = ReplayServer(server if isinstance(server, str) else server.base_url)
    with Client(limits=Limits(**FAST | dict(limits)), replay=replay) as client:
        return capture_all(configs, day=DAY, archive=archive, client=client, **arguments)


Capturing = Callable[..., Capture]


@pytest.fixture
def capture(site: Site, archive: Archive) -> Capturing:
    """Capture one source from ``site`` or another address; further keywords are limits."""

    def run(config, functions=None, environment=None, base_url=None, **limits):
        more = {"environment": environment or {}, "module_of": lambda name: functions or module()}
        return capture_many(base_url or site, archive, [config], limits, **more)[config.name]

    return run


def rules(**facts: Any) -> Rules:
    """The rules for one request to prices.acme.example."""
    hosts = frozenset({"prices.acme.example"})
    usual = {"source": "acme", "allowed_hosts": hosts, "secrets": Secrets({}, ()), "body_bytes": 100_000}
    return Rules(**{"deadline": time.monotonic() + 60, **usual, **facts})


def codes(captured: Capture) -> list[str]:
    """Return the outcome code of each request."""
    return [entry.outcome for entry in captured.entries]


def bodies(archive: Archive, captured: Capture) -> list[bytes]:
    return [answer.body for answer in archive.answers(captured)]


def stored_bytes(archive: Archive) -> bytes:
    """All that the archive holds, unpacked, with the names of its files."""
    files = [path for path in archive.root.rglob("*") if path.is_file()]
    contents = [gzip.decompress(f.read_bytes()) if f.suffix == ".gz" else f.read_bytes() for f in files]
    return b"\n".join([*(str(file).encode() for file in files), *contents])
