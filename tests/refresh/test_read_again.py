"""A day read again from the archive has the same record as the day it was captured, field by field.

Read again by the command and by Dagster's assets; captured by the command and by Dagster's assets.
"""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Limits
from pipeline.catalog.source_config import source_config
from pipeline.home.paths import Home
from pipeline.orchestration.keys import offers_key, raw_key
from pipeline.orchestration.resources import GpufareHome
from pipeline.orchestration.source_assets import source_assets
from pipeline.record.records import Records
from pipeline.refresh.ingest import record_day
from pipeline.refresh.inputs import capture_sources
from pipeline.refresh.refresh import refresh
from tests.conftest import PAGES
from tests.refresh.faulty_server import Fault, FaultyServer, Host, first, says

DAY = datetime.now(UTC).date()
"""Dagster captures today's partition only."""
DAYS = dg.DailyPartitionsDefinition(start_date="2026-08-01", timezone="UTC", end_offset=2)
LIMITS = Limits(backoff_seconds=0.01, backoff_max_seconds=0.02)


def second_request_fails(host: Host) -> None:
    if host.asked == 2:
        host.say(404)
    else:
        host.say_as_ever()


def third_request_fails(host: Host) -> None:
    """Verda's availability, the first of its optional requests."""
    if host.asked == 3:
        host.say(401)
    else:
        host.say_as_ever()


def fails_the_second_time(host: Host) -> None:
    if host.asked == 1:
        host.say_as_ever()
    else:
        host.say(403)


# A source each: what its host does, and some of what the record must say.
CASES: dict[str, tuple[str, Fault | None, dict[str, Any]]] = {
    "exchange rates": ("ecb", None, {"status": "captured", "accepted": True, "error": None}),
    "good": ("scaleway", None, {"status": "captured", "accepted": True, "error": None}),
    "retried": ("lambda", first(2, says(500)), {"status": "captured", "accepted": True, "retries": 2}),
    "partial": ("vast", second_request_fails, {"status": "partial", "accepted": True, "failed_requests": 1}),
    "an optional answer is missing": (
        "verda",
        third_request_fails,
        {"status": "captured", "accepted": True, "error": None, "failed_requests": 1},
    ),
    "asked in another way": (
        "runpod",
        first(1, says(400, b'{"errors": []}', content_type="application/json")),
        {"status": "captured", "accepted": True, "error": None, "failed_requests": 1},
    ),
    "partial and refused": ("azure", second_request_fails, {"status": "partial", "accepted": False}),
    "failed": ("coreweave", says(403, b"no"), {"status": "failed", "rows": 0}),
    "unreadable": (
        "cudo",
        says(200, b"{}", content_type="application/json"),
        {"status": "captured", "reason": "the answer could not be read"},
    ),
    "unchanged": ("crusoe", None, {"status": "captured", "accepted": True, "error": None}),
    "needs a key": ("primeintellect", None, {"status": "needs_key", "failed_requests": 1}),
    "good in the morning, failed in the evening": (
        "salad",
        fails_the_second_time,
        {"status": "failed", "accepted": False, "rows": 0},
    ),
}
SOURCES = [source for source, _, _ in CASES.values()]
FAULTS = {source: fault for source, fault, _ in CASES.values() if fault}


def captured_before(home: Home, url: str) -> None:
    """Crusoe's page was captured the day before, and Salad's in the morning."""
    for source, day in (("crusoe", DAY - timedelta(days=1)), ("salad", DAY)):
        captures = capture_sources([source_config(source)], day, Archive(home.archive), {}, pages=url)
        assert record_day(source_config(source), day, [captures[source]], home).accepted


def materialize(home: Home, *keys: Callable[[str], dg.AssetKey], url: str = "") -> None:
    """Dagster's assets of all sources, the exchange rates in a run before the others, as scheduled."""
    for sources in (SOURCES[:1], SOURCES[1:]):
        dg.materialize(
            [source_assets([source_config(source) for source in sources], DAYS)],
            selection=[key(source) for source in sources for key in keys],
            partition_key=str(DAY),
            resources={"home": GpufareHome(root=str(home.root), pages=url)},
            instance=dg.DagsterInstance.ephemeral(),
            raise_on_error=False,
        )


def archive_of(home: Home, folder: Path, small_homes: Callable[[Path], Home]) -> Home:
    """A home with nothing but the archive of another (and the plans, which need not be computed again)."""
    copy = small_homes(folder)
    shutil.copytree(home.archive, copy.archive)
    return copy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("read-again")


@pytest.fixture(scope="module")
def by_command(folder: Path, small_homes: Callable[[Path], Home]) -> Home:
    """The day as the command captured it."""
    home = small_homes(folder / "command")
    with FaultyServer(PAGES, FAULTS) as server:
        captured_before(home, server.base_url)
        refresh(home, day=DAY, pages=server.base_url, sources=SOURCES, environment={}, limits=LIMITS)
    return home


@pytest.fixture(scope="module")
def by_dagster(folder: Path) -> Home:
    """The day as Dagster's assets captured it."""
    home = Home(folder / "dagster")
    with FaultyServer(PAGES, FAULTS) as server:
        captured_before(home, server.base_url)
        materialize(home, raw_key, offers_key, url=server.base_url)
    return home


@pytest.fixture(scope="module")
def command_again_by_command(folder: Path, by_command: Home, small_homes: Callable[[Path], Home]) -> Home:
    home = archive_of(by_command, folder / "command-command", small_homes)
    refresh(home, day=DAY, pages="archive", sources=SOURCES, environment={})
    return home


@pytest.fixture(scope="module")
def command_again_by_dagster(folder: Path, by_command: Home, small_homes: Callable[[Path], Home]) -> Home:
    home = archive_of(by_command, folder / "command-dagster", small_homes)
    materialize(home, offers_key)
    return home


@pytest.fixture(scope="module")
def dagster_again_by_command(folder: Path, by_dagster: Home, small_homes: Callable[[Path], Home]) -> Home:
    home = archive_of(by_dagster, folder / "dagster-command", small_homes)
    refresh(home, day=DAY, pages="archive", sources=SOURCES, environment={})
    return home


def record(home: Home, name: str) -> dict[str, Any]:
    """All that the record has of the source and day."""
    source, records = CASES[name][0], Records(home)
    return {
        "outcome": records.outcome(source, DAY),
        "offers": records.offers(source, DAY) if DAY in records.accepted_days(source) else None,
        "rejects": records.rejects(source, DAY),
        "rates": records.usd_rates(DAY),
    }


@pytest.mark.parametrize("name", CASES)
def test_the_command_records_what_happened(name: str, by_command: Home) -> None:
    expected, outcome = CASES[name][2], record(by_command, name)["outcome"]
    assert {column: outcome[column] for column in expected} == expected
    assert outcome["requests"] > 0
    assert outcome["duration_seconds"] > 0


@pytest.mark.parametrize("name", CASES)
def test_the_command_reads_its_day_again(name: str, by_command: Home, command_again_by_command: Home) -> None:
    assert record(command_again_by_command, name) == record(by_command, name)


@pytest.mark.parametrize("name", CASES)
def test_dagster_reads_the_commands_day_again(
    name: str, by_command: Home, command_again_by_dagster: Home
) -> None:
    assert record(command_again_by_dagster, name) == record(by_command, name)


@pytest.mark.parametrize("name", CASES)
def test_the_command_reads_dagsters_day_again(
    name: str, by_dagster: Home, dagster_again_by_command: Home
) -> None:
    live = record(by_dagster, name)
    expected = CASES[name][2]
    assert {column: live["outcome"][column] for column in expected} == expected
    assert record(dagster_again_by_command, name) == live


def test_the_unchanged_page_is_stored_once(by_command: Home) -> None:
    archive = Archive(by_command.archive)
    before, now = (archive.folder(archive.captures("crusoe", day)[0]) for day in archive.days("crusoe"))
    assert (now / "0001.html.gz").samefile(before / "0001.html.gz")


def test_a_failed_attempt_in_the_evening_leaves_the_mornings_prices(by_command: Home) -> None:
    assert len(Archive(by_command.archive).captures("salad", DAY)) == 2
    assert record(by_command, "good in the morning, failed in the evening")["offers"]
