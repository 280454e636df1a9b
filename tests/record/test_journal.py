"""The journal: entries of many processes, one after the other, and a file of this layout or none."""

import multiprocessing
import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from pipeline.home.disk import UnwritableError
from pipeline.home.paths import Home
from pipeline.record.damage import RecordError
from pipeline.record.journal import LAYOUT, Entry, HomeLayoutError, Journal, read_each
from pipeline.record.months import months
from pipeline.record.records import Records
from tests.offers.builders import offer

DAY = date(2026, 8, 22)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_an_entry_that_is_written_again_replaces_the_one_before(home: Home) -> None:
    journal = Journal(home)
    journal.write("outcome", "acme", DAY, "1", '{"a": 1}')
    journal.write("outcome", "other", DAY, "1", "{}")
    journal.write("outcome", "acme", DAY, "1", '{"a": 2}')
    assert [entry.content for entry in journal.entries("outcome")] == ['{"a": 2}', "{}"]
    assert [entry.source for entry in journal.entries("outcome")] == ["acme", "other"]
    assert journal.entries("outcome", "acme", date(2026, 8, 21)) == []
    assert (journal.days("outcome"), journal.days("outcome", "third")) == ([DAY], [])


def _write(root: Path, source: str) -> None:
    for number in range(50):
        Journal(Home(root)).write("outcome", source, DAY, f"{number}", "{}")


def test_processes_that_write_at_once_lose_nothing(home: Home) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(home.root, source)) for source in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(Journal(home).entries("outcome")) == 200


def test_a_home_without_a_journal_has_no_entries_and_gets_none_by_reading(home: Home) -> None:
    journal = Journal(home)
    assert (journal.entries("outcome"), journal.damage()) == ([], None)
    assert not home.record.exists()


def test_a_home_of_another_version_is_refused_in_one_sentence(home: Home) -> None:
    Journal(home).begin()
    with closing(sqlite3.connect(Journal(home).path)) as connection:
        connection.execute(f"PRAGMA user_version = {LAYOUT + 1}")
    for attempt in (lambda: Journal(home).write("x", "", DAY, "", "{}"), Records(home).outcome_days):
        with pytest.raises(HomeLayoutError, match=r"filled by another version .*set GPUFARE_HOME"):
            attempt()


@pytest.mark.parametrize("how", ["gone", "empty", "text", "cut"])
def test_a_journal_that_cannot_have_been_written_so_is_damaged(how: str, home: Home) -> None:
    Records(home).write_accepted(DAY, "acme", [offer("2")])
    journal = Journal(home)
    for number in range(500):
        journal.write("outcome", "acme", DAY, f"{number}", '"' + "x" * 500 + '"')
    content = journal.path.read_bytes()
    journal.path.unlink()
    if how != "gone":
        spoilt = {"empty": b"", "text": b"whatever" * 100, "cut": content[: len(content) // 2]}
        journal.path.write_bytes(spoilt[how])
    damage = journal.damage()
    assert damage is not None
    assert (damage.path, damage.table) == (journal.path, "journal")
    with pytest.raises(RecordError):
        journal.entries("outcome")
    assert months(home, "offers")


def test_without_any_month_an_empty_journal_is_a_new_one(home: Home) -> None:
    home.record.mkdir(parents=True)
    Journal(home).path.write_bytes(b"")
    assert Journal(home).damage() is None
    Journal(home).write("outcome", "acme", DAY, "1", "{}")
    assert len(Journal(home).entries("outcome")) == 1


def test_an_entry_that_is_not_json_is_damage(home: Home) -> None:
    Journal(home).write("outcome", "acme", DAY, "1", "{")
    damage = Journal(home).damage()
    assert damage is not None
    assert damage.reason == "an entry is not JSON"


def test_undamaged_entries_of_a_damaged_journal_can_be_read(home: Home) -> None:
    journal = Journal(home)
    for number in range(500):
        journal.write("outcome", "acme", DAY, f"{number:03}", '"' + "x" * 500 + '"')
    assert len(read_each(journal.path)) == 500
    content = bytearray(journal.path.read_bytes())
    page = content.index(b"x" * 400, len(content) // 4) // 4096 * 4096
    content[page : page + 4096] = b"\xff" * 4096
    journal.path.write_bytes(content)
    assert 480 < len(read_each(journal.path)) < 500
    journal.path.write_bytes(b"whatever" * 100)
    assert read_each(journal.path) == []


def test_entries_that_were_written_often_can_still_be_read_of_a_damaged_journal(home: Home) -> None:
    entries = [Entry("outcome", "acme", DAY, f"{number}", "{}") for number in range(20)]
    for _ in range(100):
        Journal(home).write_all(entries)
    assert len(read_each(Journal(home).path)) == 20


def test_a_folder_in_its_place_is_damage(home: Home) -> None:
    home.record.mkdir(parents=True)
    Journal(home).path.mkdir()
    assert Journal(home).damage() is not None
    with pytest.raises(RecordError, match=r"journal\.sqlite is damaged \(a folder is where a file belongs\)"):
        Journal(home).write("outcome", "acme", DAY, "1", "{}")


def test_a_full_disk_is_named_and_keeps_the_old_file(small_disk: Path) -> None:
    journal = Journal(Home(small_disk))
    written = 0
    with pytest.raises(UnwritableError, match="No space left on device"):  # noqa: PT012
        for number in range(1000):
            journal.write("outcome", "acme", DAY, f"{number}", '"' + "x" * 1000 + '"')
            written += 1
    assert len(journal.entries("outcome")) == written > 0
