"""A month under Dagster: each morning, one of three sources fails in one of ten ways. It is named, the others
are read, and it is read again on the next morning."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import product
from pathlib import Path

import pytest

from pipeline.gates.history import dated_price
from pipeline.health.digest import Problem, digest_of
from pipeline.home.paths import Home
from pipeline.orchestration import source_assets
from pipeline.record.records import Records
from pipeline.refresh.permissions import enable
from tests.homes import PAGES
from tests.orchestration.conftest import TODAY, Dagster
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


@pytest.fixture
def dagster() -> Iterator[Dagster]:
    import dagster as dg

    with dg.DagsterInstance.ephemeral() as instance:
        yield Dagster(instance)


MONTH = [
    (TODAY - timedelta(days=31 - number), source, fault)
    for number, (fault, source) in enumerate(product(FAULTS, SOURCES), 1)
]
"""The failing source and its fault for each of thirty days, of which the last was yesterday."""


class _Clock(datetime):
    """The time of day, on the day of the month that is simulated."""

    day_of_month = TODAY

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "_Clock":
        return cls.combine(cls.day_of_month, datetime.now(tz).timetz())


def on(
    day: date, failing: Mapping[str, Fault], home: Home, dagster: Dagster
) -> tuple[bool, set[str], list[Problem]]:
    """Read the sources on a day. Return whether the run succeeded, the sources whose check is red, and what
    the digest says is broken."""
    _Clock.day_of_month = day
    with FaultyServer(PAGES, failing) as server:
        run = dagster.sources(" ".join(SOURCES), home, server.base_url, day)
    red = {name for name, check in run.checked.items() if not check.passed}
    problems = digest_of(home, datetime.combine(day, time(23), UTC)).problems
    return run.success, red, [problem for problem in problems if problem.subject in SOURCES]


def test_each_failure_of_a_month_is_named_and_passes(
    dagster: Dagster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_assets, "datetime", _Clock)
    home, records = Home(tmp_path / "home"), Records(Home(tmp_path / "home"))
    first = MONTH[0][0] - timedelta(days=1)
    enable(SOURCES, home, first, {})
    assert on(first, {}, home, dagster) == (True, set(), [])
    for day, source, fault in MONTH:
        succeeded, red, broke = on(day, {source: FAULTS[fault]}, home, dagster)
        assert (succeeded, red) == (False, {source}), (day, fault)
        (problem,) = broke
        assert (problem.subject, bool(problem.step)) == (source, True), (day, fault)
        assert f"its prices of {day - timedelta(days=1)} stay" in problem.meanwhile
        assert {name for name in SOURCES if records.is_accepted(name, day)} == {*SOURCES} - {source}
    assert on(TODAY, {}, home, dagster) == (True, set(), [])
    for source in SOURCES:
        accepted = records.accepted_days(source)
        # On its first day, a source can only be compared with dated facts.
        assert prices(records, source, TODAY) == prices(records, source, accepted[1])
        failed = {day for day, name, _ in MONTH if name == source}
        assert {first, *(day for day, _, _ in MONTH), TODAY} - {*accepted} == failed


def prices(records: Records, source: str, day: date) -> Counter[tuple[object, ...]]:
    """Return a day's offers as the gates tell them apart, with their prices and doubts."""
    return Counter((*dated_price(offer), offer.doubt) for offer in records.offers(source, day))
