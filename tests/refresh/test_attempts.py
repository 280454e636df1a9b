"""Several attempts at a source on one day: each keeps its outcome, and the best gives the day's offers."""

import json
import shutil
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.replay import capture_pages
from pipeline.catalog.source_config import source_config
from pipeline.contracts.outcome import Outcome, SourceResult, attempt_preference
from pipeline.gates.thresholds import THRESHOLDS
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
HELD_DAYS = THRESHOLDS.held_days
VAST = source_config("vast")
"""It asks several pages, so that an attempt can be partial."""


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


ALL, SOME, FEWER, NONE = None, 4, 3, 0
"""Answered requests, out of 5."""


def attempt(home: Home, folder: Path, answered: int | None, day: date = DAY) -> Outcome:
    """One attempt, archived and read into the record as the daily job does it."""
    number = len(list(folder.glob("pages-*")))
    directory = pages(folder / f"pages-{number}", answered)
    return record_day(
        VAST, day, [capture_pages(directory, VAST, day=day, archive=Archive(home.archive))], home
    )


def record(home: Home, day: date = DAY) -> dict[str, Any]:
    records = Records(home)
    kept = day in records.accepted_days("vast")
    return {
        "outcomes": records.outcomes("vast", day),
        "offers": records.offers("vast", day) if kept else None,
        "rejects": records.rejects("vast", day),
    }


def standing(home: Home) -> list[tuple[Any, ...]]:
    """The attempts whose offers are the day's, as they are published."""
    with connect() as connection:
        create(connection, "offers", "rejects", "capture_outcomes", "exchange_rates")
        assert load_record(connection, home, DAY) == []
        return connection.execute(
            "SELECT attempt, rows FROM main.capture_outcomes WHERE stands ORDER BY day"
        ).fetchall()


def read_from_the_archive(home: Home, folder: Path) -> Home:
    """A home with nothing but the archive of another, read in one go."""
    shutil.copytree(home.archive, folder / "archive")
    again = Home(folder)
    record_day(VAST, DAY, Archive(again.archive).captures("vast", DAY), again)
    return again


def test_the_best_accepted_attempt_of_a_day_stands_and_the_archive_gives_the_same(tmp_path: Path) -> None:
    cases = [
        ([ALL, FEWER], 0),
        ([ALL, NONE], 0),
        ([NONE, ALL], 1),
        ([FEWER, SOME], 1),
        ([SOME, SOME], 1),
        ([FEWER, ALL, SOME, NONE], 1),
    ]
    for number, (attempts, best) in enumerate(cases):
        folder = tmp_path / f"{number}"
        home = Home(folder / "home")
        outcomes = [attempt(home, folder, answered) for answered in attempts]
        live = record(home)
        assert [row["attempt"] for row in live["outcomes"]] == [outcome.attempt for outcome in outcomes]
        assert [row["accepted"] for row in live["outcomes"]] == [answered != NONE for answered in attempts]
        assert standing(home) == [(outcomes[best].attempt, len(live["offers"]))], attempts
        assert record(read_from_the_archive(home, folder / "again")) == live, attempts


def test_superseded_attempt_names_the_one_that_stands(home: Home, tmp_path: Path) -> None:
    """Earlier captures of the day are not read again: the lost bodies of the first go unnoticed."""
    morning = attempt(home, tmp_path, ALL)
    for body in (home.archive / "vast" / str(DAY) / morning.attempt).glob("*.gz"):
        body.unlink()
    noon = attempt(home, tmp_path, FEWER)
    assert (morning.warnings, noon.accepted, kept_incidents(home)) == ((), True, [])
    assert noon.warnings == (f"the day keeps what its attempt {morning.attempt} gave",)
    assert noon.rows < morning.rows == len(record(home)["offers"])
    assert standing(home) == [(morning.attempt, morning.rows)]


def test_a_capture_that_was_never_read_is_read_with_the_next(home: Home, tmp_path: Path) -> None:
    """A run was killed between archiving and reading."""
    directory = pages(tmp_path / "killed", ALL)
    capture = capture_pages(directory, VAST, day=DAY, archive=Archive(home.archive))
    later = attempt(home, tmp_path, FEWER)
    assert [row["attempt"] for row in record(home)["outcomes"]] == [capture.capture_id, later.attempt]
    assert standing(home)[0][0] == capture.capture_id


def test_a_damaged_newest_capture_falls_back_to_the_one_before(tmp_path: Path) -> None:
    """The archive stays as it is, and nothing of the source is doubted: this machine lost its answer."""
    damages: dict[str, Callable[[bytes], bytes]] = {
        "0001.json.gz": lambda content: content[: len(content) // 2],
        "index.json": lambda content: content[: len(content) // 2],
        "status": lambda content: json.dumps(json.loads(content) | {"status": "splendid"}).encode(),
        "shape": lambda content: json.dumps(json.loads(content) | {"duration_seconds": "long"}).encode(),
    }
    for name, damaged in damages.items():
        home, folder = Home(tmp_path / name / "home"), tmp_path / name
        morning, noon = attempt(home, folder, SOME), attempt(home, folder, ALL)
        place = home.archive / "vast" / str(DAY) / noon.attempt
        file = place / (name if "." in name else "index.json")
        content = file.read_bytes()
        file.unlink()  # bodies may be shared with other captures
        file.write_bytes(damaged(content))
        kept = {path: path.read_bytes() for path in home.archive.rglob("*") if path.is_file()}
        again = record_day(VAST, DAY, Archive(home.archive).captures("vast", DAY), home)
        assert (again.attempt, again.accepted, again.status) == (noon.attempt, False, "failed"), name
        assert (again.result, again.code) == (SourceResult.FAILED_HERE, None)
        assert standing(home) == [(morning.attempt, morning.rows)]
        assert len(record(home)["offers"]) == morning.rows
        (incident,) = kept_incidents(home)
        assert (incident.kind, incident.day, incident.source) == ("damaged_capture", DAY, "vast")
        assert incident.path == str(place.relative_to(home.root))
        assert incident.remedy == "left as it is: the day's other captures are used"
        assert incident.reason == again.error
        assert kept == {path: path.read_bytes() for path in home.archive.rglob("*") if path.is_file()}


def test_lost_offers_of_an_earlier_attempt_are_read_again_with_the_next(home: Home, tmp_path: Path) -> None:
    morning = attempt(home, tmp_path, ALL)
    file_of(home, Month.of("offers", "vast", DAY)).write_bytes(b"PAR1")
    attempt(home, tmp_path, FEWER)
    assert standing(home) == [(morning.attempt, morning.rows)]
    assert len(record(home)["offers"]) == morning.rows
    (incident,) = kept_incidents(home)
    assert incident.remedy.endswith("1 days were read again from the archive")


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


def test_warnings_are_bounded_in_number_and_length() -> None:
    assert bounded_warnings([]) == ()
    assert bounded_warnings(["a\x1bb", "x" * 300]) == ("a\ufffdb", "x" * 300)
    assert bounded_warnings(["x" * 301] * 21) == (*20 * ("x" * 299 + "…",), "and 1 more warnings")
    assert bounded_warnings(["x"] * 20) == ("x",) * 20


def of_aws(folder: Path, lacking: Callable[[dict[str, Any]], bool]) -> Path:
    """AWS's pages, some of them refused."""
    shutil.copytree(PAGES / "aws", folder / "aws")
    index = folder / "aws" / "index.json"
    refused = {"status": 403, "file": None, "optional": True}
    entries = json.loads(index.read_text(encoding="utf-8"))
    index.write_text(json.dumps([entry | (refused if lacking(entry) else {}) for entry in entries]))
    return folder


def test_a_halved_list_with_missing_answers_is_accepted_in_the_end(home: Home, tmp_path: Path) -> None:
    """They may never come again. Where all requests were answered, half of the offers may be misread."""
    config, archive = source_config("aws"), Archive(home.archive)
    first = json.loads((PAGES / "aws" / "index.json").read_text(encoding="utf-8"))[0]
    whole = of_aws(tmp_path / "all", lambda _: False)
    some = of_aws(tmp_path / "some", lambda entry: entry["url"] != first["url"])
    alone = of_aws(tmp_path / "alone", lambda _: False)
    (alone / "aws" / "index.json").write_text(json.dumps([first]))

    def read(pages: Path, days: int) -> Outcome:
        day = DAY + timedelta(days=days)
        return record_day(config, day, [capture_pages(pages, config, day=day, archive=archive)], home)

    full = read(whole, 0)
    early, misread, late = read(some, HELD_DAYS - 1), read(alone, HELD_DAYS), read(some, HELD_DAYS)
    assert [each.accepted for each in (full, early, misread, late)] == [True, False, False, True]
    assert (late.status, late.rows < full.rows / 2) == ("captured", True)
    shrunk = f"{late.rows} offers, while the last accepted reading had {full.rows}"
    assert (early.reason, misread.reason) == (shrunk, shrunk)
    assert late.warnings[0] == f"{shrunk}, on {DAY}: not all requests are answered"


def test_an_attempt_that_lacks_optional_answers_does_not_replace_one_that_has_them(
    home: Home, tmp_path: Path
) -> None:
    config, archive = source_config("aws"), Archive(home.archive)
    spot = next(facts.url for facts in config.requests if facts.optional)
    of_aws(tmp_path / "all", lambda _: False)
    of_aws(tmp_path / "some", lambda entry: entry["url"] == spot)
    morning, noon = (
        record_day(config, DAY, [capture_pages(tmp_path / name, config, day=DAY, archive=archive)], home)
        for name in ("all", "some")
    )
    assert (morning.status, noon.status, noon.accepted) == ("captured", "captured", True)
    assert noon.rows < morning.rows == len(Records(home).offers("aws", DAY))
    assert standing(home) == [(morning.attempt, morning.rows)]
