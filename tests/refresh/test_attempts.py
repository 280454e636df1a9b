"""Several attempts at a source on one day: each keeps its outcome, and the best gives the day's offers."""

import json
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.replay import capture_pages
from pipeline.catalog.source_config import source_config
from pipeline.contracts.outcome import Outcome, SourceResult, attempt_preference
from pipeline.home.paths import Home
from pipeline.record.incidents import kept_incidents
from pipeline.record.months import Month, file_of
from pipeline.record.records import Records
from pipeline.refresh.ingest import bounded_warnings, record_day
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import create
from tests.homes import PAGES
from tests.warehouse.full_load import load_record

DAY = date(2026, 8, 22)
VAST = source_config("vast")
"""It asks several pages, so that an attempt can be partial."""
ALL, SOME, FEWER, NONE = None, 4, 3, 0
"""Answered requests, out of 5."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def pages(folder: Path, answered: int | None = None) -> Path:
    """Copy the source's sample pages, with answers to only the first requests."""
    shutil.copytree(PAGES / "vast", folder / "vast")
    index = folder / "vast" / "index.json"
    entries = json.loads(index.read_text(encoding="utf-8"))
    for entry in entries[answered:] if answered is not None else []:
        entry |= {"status": 503, "file": None, "outcome": "http_5xx"}
    index.write_text(json.dumps(entries))
    return folder


def attempt(home: Home, folder: Path, answered: int | None, day: date = DAY) -> Outcome:
    """One attempt, archived and read into the record as the daily job does it."""
    directory = pages(folder / f"pages-{len(list(folder.glob('pages-*')))}", answered)
    capture = capture_pages(directory, VAST, day=day, archive=Archive(home.archive))
    return record_day(VAST, day, [capture], home)


def record(home: Home) -> dict[str, Any]:
    records = Records(home)
    offers = records.offers("vast", DAY) if DAY in records.accepted_days("vast") else None
    found = {"outcomes": records.outcomes("vast", DAY), "rejects": records.rejects("vast", DAY)}
    return found | {"offers": offers}


def standing(home: Home) -> list[tuple[Any, ...]]:
    """The attempts whose offers are the day's, as they are published."""
    with connect() as connection:
        create(connection, "offers", "rejects", "capture_outcomes", "exchange_rates")
        assert load_record(connection, home, DAY) == []
        return connection.execute(
            "SELECT attempt, rows FROM main.capture_outcomes WHERE stands ORDER BY day"
        ).fetchall()


def test_the_best_accepted_attempt_of_a_day_stands_and_the_archive_gives_the_same(tmp_path: Path) -> None:
    cases = [([ALL, NONE], 0), ([NONE, ALL], 1), ([SOME, SOME], 1), ([FEWER, ALL, SOME, NONE], 1)]
    for number, (attempts, best) in enumerate(cases):
        folder = tmp_path / f"{number}"
        home = Home(folder / "home")
        outcomes = [attempt(home, folder, answered) for answered in attempts]
        live = record(home)
        assert [row["attempt"] for row in live["outcomes"]] == [outcome.attempt for outcome in outcomes]
        assert [row["accepted"] for row in live["outcomes"]] == [answered != NONE for answered in attempts]
        assert standing(home) == [(outcomes[best].attempt, len(live["offers"]))], attempts
        again = Home(folder / "again")
        shutil.copytree(home.archive, again.archive)
        record_day(VAST, DAY, Archive(again.archive).captures("vast", DAY), again)
        assert record(again) == live, attempts


def test_a_capture_that_was_never_read_is_read_with_the_next(home: Home, tmp_path: Path) -> None:
    """A run was killed between archiving and reading."""
    directory = pages(tmp_path / "killed", ALL)
    capture = capture_pages(directory, VAST, day=DAY, archive=Archive(home.archive))
    later = attempt(home, tmp_path, FEWER)
    assert [row["attempt"] for row in record(home)["outcomes"]] == [capture.capture_id, later.attempt]
    assert standing(home)[0][0] == capture.capture_id


def test_a_damaged_newest_capture_falls_back_to_the_one_before(tmp_path: Path) -> None:
    """The archive stays as it is, and nothing of the source is doubted: this machine lost its answer."""
    for name in ("0001.json.gz", "index.json"):
        home, folder = Home(tmp_path / name / "home"), tmp_path / name
        morning, noon = attempt(home, folder, SOME), attempt(home, folder, ALL)
        place = home.archive / "vast" / str(DAY) / noon.attempt
        content = (place / name).read_bytes()
        (place / name).unlink()  # bodies may be shared with other captures
        (place / name).write_bytes(content[: len(content) // 2])
        kept = {path: path.read_bytes() for path in home.archive.rglob("*") if path.is_file()}
        again = record_day(VAST, DAY, Archive(home.archive).captures("vast", DAY), home)
        assert (again.attempt, again.accepted, again.status) == (noon.attempt, False, "failed"), name
        assert (again.result, again.code) == (SourceResult.FAILED_HERE, None)
        assert standing(home) == [(morning.attempt, morning.rows)]
        assert len(record(home)["offers"]) == morning.rows
        (incident,) = kept_incidents(home)
        assert (incident.kind, incident.day, incident.source) == ("damaged_capture", DAY, "vast")
        assert (incident.path, incident.reason) == (str(place.relative_to(home.root)), again.error)
        assert incident.remedy == "left as it is: the day's other captures are used"
        assert kept == {path: path.read_bytes() for path in home.archive.rglob("*") if path.is_file()}


def test_lost_offers_of_an_earlier_attempt_are_read_again_with_the_next(home: Home, tmp_path: Path) -> None:
    morning = attempt(home, tmp_path, ALL)
    file_of(home, Month.of("offers", "vast", DAY)).unlink()
    attempt(home, tmp_path, FEWER)
    assert standing(home) == [(morning.attempt, morning.rows)]
    assert len(record(home)["offers"]) == morning.rows


def test_attempts_are_preferred_by_completeness_then_by_what_they_lack_and_then_by_newness() -> None:
    ranked = [("partial", 8, 0, "b"), ("partial", 9, 1, "a"), ("partial", 9, 0, "b"), ("captured", 8, 2, "b")]
    ranked += [("captured", 9, 1, "a"), ("captured", 7, 1, "c"), ("captured", 1, 0, "a")]
    assert sorted(ranked[::2] + ranked[1::2], key=lambda each: attempt_preference(*each)) == ranked


def test_the_outcome_says_what_could_not_be_written(home: Home, tmp_path: Path) -> None:
    """The rows of an attempt, and then the outcome itself."""
    (home.record / "offers" / "vast").parent.mkdir(parents=True)
    (home.record / "offers" / "vast").write_text("in the way")
    unwritten = attempt(home, tmp_path, ALL)
    assert (unwritten.accepted, unwritten.result, unwritten.code) == (False, SourceResult.FAILED_HERE, None)
    assert unwritten.reason == unwritten.error == kept_incidents(home)[0].reason
    assert kept_incidents(home)[0].remedy == (
        "the last accepted offers stay, and the day can be read again from the archive"
    )


def test_a_day_whose_record_cannot_be_mended_has_an_outcome(home: Home, tmp_path: Path) -> None:
    attempt(home, tmp_path, ALL)
    file_of(home, Month.of("offers", "vast", DAY)).write_bytes(b"cut")
    home.damaged.write_text("in the way")
    unmended = attempt(home, tmp_path, ALL)
    assert (unmended.accepted, unmended.result) == (False, SourceResult.FAILED_HERE)
    assert Records(home).outcomes("vast")[-1]["error"] == unmended.error


def test_warnings_are_bounded_in_number_and_length() -> None:
    assert bounded_warnings([]) == ()
    assert bounded_warnings(["a\x1bb", "x" * 300]) == ("a\ufffdb", "x" * 300)
    assert bounded_warnings(["x" * 301] * 21) == (*20 * ("x" * 299 + "…",), "and 1 more warnings")
    assert bounded_warnings(["x"] * 20) == ("x",) * 20
