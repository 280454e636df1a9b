"""Thirty mornings under Dagster, on each of which one of three sources fails in one of ten ways: it is named,
and the others are read."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import pytest

from pipeline.health.digest import digest_of
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.permissions import enable
from tests.homes import PAGES
from tests.orchestration.conftest import TODAY, Dagster
from tests.record.builders import outcome
from tests.refresh.faulty_server import Fault, FaultyHandler, FaultyServer, says

SOURCES = ("crusoe", "linode", "together")


def page(edit: Callable[[bytes], bytes]) -> Fault:
    """Give the source's page, edited."""

    def fault(host: FaultyHandler) -> None:
        said: list[bytes] = []
        real, host.wfile = host.wfile, _Caught(said)  # type: ignore[assignment]
        host.say_page()
        host.wfile = real
        head, _, body = b"".join(said).partition(b"\r\n\r\n")
        edited = edit(body)
        length = f"content-length: {len(edited)}".encode()
        real.write(re.sub(rb"(?i)content-length: \d+", length, head) + b"\r\n\r\n" + edited)

    return fault


class _Caught:
    def __init__(self, said: list[bytes]) -> None:
        self._said = said

    def write(self, text: bytes) -> int:
        self._said.append(bytes(text))
        return len(text)

    def flush(self) -> None:
        """Nothing is kept back."""


def cut_off(host: FaultyHandler) -> None:
    """Promise more than is sent."""
    host.send_response(200)
    host.send_header("content-type", "text/html")
    host.send_header("content-length", "1000")
    host.end_headers()
    host.wfile.write(b"x")


FAULTS: dict[str, Fault] = {
    "down": says(503),
    "forbidden": says(403),
    "gone": says(404),
    "rate limited": says(429, retry_after="0"),
    "moved": says(200, b"<html><body><h1>We moved</h1></body></html>", content_type="text/html"),
    "empty": says(200, b"", content_type="text/html"),
    "cut off": cut_off,
    "another type": says(200, b"x", content_type="image/png"),
    "another host": says(302, location="https://elsewhere.example/prices"),
    "in cents": page(lambda body: re.sub(rb'(\$|"hourly": ?)(\d+)\.(\d\d)', rb"\g<1>\g<2>\g<3>.00", body)),
}


@pytest.fixture(scope="module")
def dagster() -> Iterator[Dagster]:
    import dagster as dg

    with dg.DagsterInstance.ephemeral() as instance:
        yield Dagster(instance)


@pytest.fixture(scope="module")
def yesterday(tmp_path_factory: pytest.TempPathFactory, dagster: Dagster) -> Home:
    """A home whose sources were read well on the day before."""
    home = Home(tmp_path_factory.mktemp("mornings") / "home")
    with FaultyServer(PAGES, {}) as server:
        assert dagster.sources(" ".join(SOURCES), home, server.base_url).success
    offers = {source: Records(home).offers(source, TODAY) for source in SOURCES}
    shutil.rmtree(home.root)
    records = Records(home)
    for source, found in offers.items():
        records.write_accepted(TODAY - timedelta(days=1), source, found)
        records.write_rejects(TODAY - timedelta(days=1), source, [])
        read = outcome(TODAY - timedelta(days=1), rows=len(found), accepted=True)
        records.write_outcome(replace(read, source=source))
    enable(SOURCES, home, TODAY, {})
    return home


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("source", SOURCES)
def test_a_source_that_fails_is_named_and_the_others_are_read(
    source: str, fault: str, yesterday: Home, dagster: Dagster, tmp_path: Path
) -> None:
    shutil.copytree(yesterday.root, tmp_path / "home")
    home = Home(tmp_path / "home")
    with ExitStack() as stack:
        server = stack.enter_context(FaultyServer(PAGES, {source: FAULTS[fault]}))
        run = dagster.sources(" ".join(SOURCES), home, server.base_url)
    red = {name for name, check in run.checked.items() if not check.passed}
    assert (run.success, red) == (False, {source})
    lines = digest_of(home, datetime.combine(TODAY, time(23), UTC)).lines
    (broke,) = (line for line in lines if line.startswith("Broke: "))
    assert broke.startswith(f"Broke: {source} failing: ")
    last = f"its prices of {TODAY - timedelta(days=1)} stay"
    assert last in broke or broke.endswith("…")
    accepted = {name for name in SOURCES if Records(home).is_accepted(name, TODAY)}
    assert accepted == {*SOURCES} - {source}
