"""A day read again from the archive has the same record as the day it was captured, field by field.

Read again by the command and by Dagster's assets; captured by the command and by Dagster's assets.
"""

import json
import shutil
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Limits
from pipeline.catalog.source_config import source_config
from pipeline.contracts.paths import Home
from pipeline.daily.refresh import refresh
from pipeline.offers.records import Records
from pipeline.orchestration.assets import offers_key, raw_key, source_assets
from pipeline.orchestration.resources import GpufareHome
from tests.conftest import PAGES
from tests.faulty_server import Fault, FaultyServer, Host, first, says

DAY = date(2026, 8, 22)
LIMITS = Limits(backoff_seconds=0.01, backoff_max_seconds=0.02)


def second_page_fails(host: Host) -> None:
    """Azure's first page is answered, the second is not there."""
    if host.asked == 1:
        host.say_as_ever()
    else:
        host.say(404)


def fails_the_second_time(host: Host) -> None:
    if host.asked == 1:
        host.say_as_ever()
    else:
        host.say(403)


def answers_with_validator(host: Host) -> None:
    """The sample page; 304 to who has it already."""
    if host.headers.get("if-none-match") == '"v1"':
        host.say(304)
    else:
        page = (PAGES / "crusoe" / "pricing.html").read_bytes()
        host.say(200, page, content_type="text/html; charset=utf-8", etag='"v1"')


def never_captured(home: Home, url: str) -> None:
    """Nothing happened before."""


def captured_before(home: Home, url: str) -> None:
    """The day before, the same page was captured."""
    refresh(home, day=date(2026, 8, 21), pages=url, sources=["crusoe"], environment={}, limits=LIMITS)


CASES: dict[str, tuple[str, Fault | None, Callable[[Home, str], None], dict[str, Any]]] = {
    # source, what its host does, what was before, some of what the record must say
    "good": ("scaleway", None, never_captured, {"status": "captured", "accepted": True, "error": None}),
    "retried": ("lambda", first(2, says(500)), never_captured, {"accepted": True, "retries": 2}),
    "partial": ("azure", second_page_fails, never_captured, {"status": "partial", "failed_requests": 1}),
    "failed": ("coreweave", says(403, b"no"), never_captured, {"status": "failed", "rows": 0}),
    "unreadable": (
        "cudo",
        says(200, b"{}", content_type="application/json"),
        never_captured,
        {"status": "captured", "reason": "the answer could not be read"},
    ),
    "unchanged": ("crusoe", answers_with_validator, captured_before, {"accepted": True, "error": None}),
    "needs a key": ("tensordock", None, never_captured, {"status": "needs_key", "failed_requests": 1}),
    "exchange rates": ("ecb", None, never_captured, {"accepted": True, "sha256": "any"}),
}


def record(home: Home, source: str) -> dict[str, Any]:
    """All that the record has of the source and day, the times at which it was written left out."""
    records = Records(home)
    days = records.accepted_days(source)
    return {
        "outcome": records.outcome(source, DAY),
        "offers": records.offers(source, DAY) if DAY in days else None,
        "rejects": records.rejects(source, DAY),
        "rates": records.exchange_rates(DAY),
    }


def materialized(home: Home, source: str, *keys: dg.AssetKey, url: str = "") -> None:
    dg.materialize(
        source_assets,
        selection=list(keys),
        partition_key=str(DAY),
        resources={"home": GpufareHome(root=str(home.root), replay_url=url)},
        instance=dg.DagsterInstance.ephemeral(),
        raise_on_error=False,
    )


def without_record(home: Home, folder: Path) -> Home:
    """A new home with the same archive and, so that prices can be compared with it, the day before."""
    shutil.copytree(home.archive, folder / "archive")
    for path in (home.offers, home.rejects):
        if path.is_dir():
            copy = folder / path.name
            shutil.copytree(path, copy)
            for file in copy.glob(f"*/{DAY}.*"):
                file.unlink()
    return Home(folder)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path, sample_home: Home) -> Any:
    source, fault, before, expected = CASES[request.param]
    home = Home(tmp_path / "home")
    shutil.copytree(sample_home.cache, home.cache)
    with FaultyServer(PAGES, {source: fault} if fault else {}) as server:
        before(home, server.base_url)
        yield source, home, server.base_url, expected, tmp_path


def test_the_command_and_dagster_read_a_day_again_as_it_was_captured(case: Any) -> None:
    source, home, url, expected, folder = case
    refresh(home, day=DAY, pages=url, sources=[source], environment={}, limits=LIMITS)
    live = record(home, source)
    assert {name: live["outcome"][name] for name in expected if expected[name] != "any"} == {
        name: value for name, value in expected.items() if value != "any"
    }
    assert live["outcome"]["requests"] > 0
    assert live["outcome"]["duration_seconds"] > 0

    by_command = without_record(home, folder / "by-command")
    refresh(by_command, day=DAY, pages="archive", sources=[source], environment={})
    assert record(by_command, source) == live

    by_dagster = without_record(home, folder / "by-dagster")
    materialized(by_dagster, source, offers_key(source))
    assert record(by_dagster, source) == live


def test_a_day_captured_by_dagster_is_read_again_by_the_command(case: Any) -> None:
    source, home, url, expected, folder = case
    materialized(home, source, raw_key(source), offers_key(source), url=url)
    live = record(home, source)
    assert live["outcome"]["status"] == expected.get("status", "captured")
    again = without_record(home, folder / "again")
    refresh(again, day=DAY, pages="archive", sources=[source], environment={})
    assert record(again, source) == live


def test_the_unchanged_capture_was_answered_304(tmp_path: Path, sample_home: Home) -> None:
    home = Home(tmp_path / "home")
    shutil.copytree(sample_home.cache, home.cache)
    with FaultyServer(PAGES, {"crusoe": answers_with_validator}) as server:
        captured_before(home, server.base_url)
        refresh(home, day=DAY, pages=server.base_url, sources=["crusoe"], environment={}, limits=LIMITS)
    (capture,) = Archive(home.archive).captures("crusoe", DAY)
    assert [entry.outcome for entry in capture.entries] == ["not_modified"]


def test_two_captures_of_a_day_are_read_again_in_their_order(tmp_path: Path, sample_home: Home) -> None:
    """A failed attempt in the evening is the day's outcome; the morning's prices stay accepted."""
    home = Home(tmp_path / "home")
    shutil.copytree(sample_home.cache, home.cache)
    with FaultyServer(
        PAGES, {"crusoe": lambda host: host.say_as_ever() if host.asked == 1 else host.say(403)}
    ) as server:
        for _ in range(2):
            refresh(home, day=DAY, pages=server.base_url, sources=["crusoe"], environment={}, limits=LIMITS)
    live = record(home, "crusoe")
    assert (live["outcome"]["status"], live["outcome"]["accepted"]) == ("failed", False)
    assert live["offers"]
    again = without_record(home, tmp_path / "again")
    report = refresh(again, day=DAY, pages="archive", sources=["crusoe"], environment={})
    assert record(again, "crusoe") == live
    assert report.published


def test_a_capture_of_an_older_version_is_read(tmp_path: Path) -> None:
    """Its index has no error, and its entries are only those that were sent."""
    home = Home(tmp_path / "home")
    with FaultyServer(PAGES, {"azure": second_page_fails}) as server:
        refresh(home, day=DAY, pages=server.base_url, sources=["azure"], environment={}, limits=LIMITS)
    (index,) = home.archive.glob("azure/*/*/index.json")
    content = json.loads(index.read_text())
    del content["error"]
    for entry in content["answers"]:
        del entry["sent"]
    index.chmod(0o644)
    index.write_text(json.dumps(content))
    (capture,) = Archive(home.archive).captures("azure", DAY)
    assert capture.status == "partial"
    assert (capture.error or "").startswith("http_404: there is nothing at this address")
    began = datetime.strptime(capture.capture_id or "", "%Y%m%dT%H%M%S.%fZ")
    finished = datetime.fromisoformat(content["finished_at"]).replace(tzinfo=None)
    assert capture.duration_seconds == round((finished - began).total_seconds(), 3)
    assert source_config("azure").name == capture.source
