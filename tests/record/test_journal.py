"""The journal: entries of many processes, one after the other, and a file of this layout or none."""

import sqlite3
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import pytest

from pipeline.home.disk import UnwritableError, stamp_of
from pipeline.home.paths import Home
from pipeline.record.damage import Damage, RecordError
from pipeline.record.journal import LAYOUT, Entry, HomeLayoutError, Journal, read_each
from pipeline.record.months import months
from pipeline.record.records import Records
from tests.offers.builders import offer

DAY = date(2026, 8, 22)
TOMORROW = DAY + timedelta(days=1)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_entries_are_kept_by_kind_source_day_and_name(home: Home) -> None:
    journal = Journal(home)
    assert (journal.entries("outcome"), journal.days("outcome"), journal.sources()) == ([], [], set())
    assert (journal.damage(), home.record.exists()) == (None, False)
    journal.write("outcome", "acme", DAY, "1", '{"a": 1}')
    journal.write("outcome", "other", DAY, "1", "{}")
    journal.write("outcome", "acme", TOMORROW, "1", "{}")
    journal.write("outcome", "acme", DAY, "0", "{}")
    journal.write("incident", "third", DAY, "1", "{}")
    journal.write("outcome", "acme", DAY, "1", '{"a": 2}')
    acme = [
        Entry("outcome", "acme", DAY, "0", "{}"),
        Entry("outcome", "acme", DAY, "1", '{"a": 2}'),
        Entry("outcome", "acme", TOMORROW, "1", "{}"),
    ]
    assert journal.entries("outcome") == [*acme, Entry("outcome", "other", DAY, "1", "{}")]
    assert journal.entries("outcome", "acme") == acme
    assert journal.entries("outcome", "acme", DAY) == acme[:2]
    assert [entry.source for entry in journal.entries("outcome", day=DAY)] == ["acme", "acme", "other"]
    assert (journal.days("outcome"), journal.days("outcome", "other")) == ([DAY, TOMORROW], [DAY])
    assert (journal.days("outcome", "third"), journal.sources()) == ([], {"acme", "other"})
    journal.remove("acme")
    assert [entry.source for entry in journal.entries("outcome")] == ["other"]
    assert journal.damage() is None


def test_a_home_of_another_version_is_refused_in_one_sentence(home: Home) -> None:
    Journal(home).begin()
    with closing(sqlite3.connect(Journal(home).path)) as connection:
        connection.execute(f"PRAGMA user_version = {LAYOUT + 1}")
    for attempt in (lambda: Journal(home).write("x", "", DAY, "", "{}"), Records(home).outcome_days):
        with pytest.raises(HomeLayoutError) as refused:
            attempt()
        assert str(refused.value) == (
            f"{home.root} was filled by another version of gpufare and cannot be read: set GPUFARE_HOME to "
            "another folder, or move it away"
        )


def filled(home: Home) -> Journal:
    """A journal of many pages."""
    journal, text = Journal(home), '"' + "x" * 500 + '"'
    journal.write_all(Entry("outcome", "acme", DAY, f"{number:03}", text) for number in range(500))
    return journal


def test_a_journal_that_cannot_have_been_written_so_is_damaged(home: Home) -> None:
    Records(home).write_accepted(DAY, "acme", [offer("2")])
    journal = filled(home)
    content = journal.path.read_bytes()
    journal.path.unlink()
    spoilt: dict[str, bytes | None] = {
        "it is gone": None,
        "it is empty": b"",
        "file is not a database": b"whatever" * 100,
        "database disk image is malformed": content[: len(content) // 2],
        "a folder is where a file belongs": None,
    }
    for reason, written in spoilt.items():
        if written is not None:
            journal.path.write_bytes(written)
        elif "folder" in reason:
            journal.path.unlink()
            journal.path.mkdir()
        assert journal.damage() == Damage(journal.path, "journal", "", reason, stamp_of(journal.path))
        message = (
            f"{journal.path} is damaged ({reason}); `gpufare refresh` sets it aside and reads its days again "
            "from the archive"
        )
        for attempt in (lambda: journal.entries("outcome"), lambda: journal.write("x", "", DAY, "", "{}")):
            with pytest.raises(RecordError) as raised:
                attempt()
            assert str(raised.value) == message
    assert months(home, "offers")


def test_undamaged_entries_of_a_damaged_journal_can_be_read(home: Home) -> None:
    journal = filled(home)
    assert read_each(journal.path) == journal.entries("outcome")
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
    assert sorted(read_each(Journal(home).path)) == sorted(entries)


def test_a_full_disk_is_named_and_keeps_the_old_file(small_disk: Path) -> None:
    journal = Journal(Home(small_disk))
    written = 0
    with pytest.raises(UnwritableError, match="No space left on device"):  # noqa: PT012
        for number in range(1000):
            journal.write("outcome", "acme", DAY, f"{number}", '"' + "x" * 1000 + '"')
            written += 1
    assert len(journal.entries("outcome")) == written > 0
