"""A damaged file is set aside and reported, and its days are read again: with days of made-up sources, each
with an archived capture."""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.contracts.outcome import Outcome
from pipeline.home.paths import Home
from pipeline.record.damage import Damage
from pipeline.record.journal import Journal
from pipeline.record.mending import damages, mend
from pipeline.record.months import Month, file_of
from pipeline.record.records import Records
from tests.record.builders import archived, outcome, recorded, rewritten

FIRST, SECOND, LATER = date(2026, 8, 21), date(2026, 8, 22), date(2026, 9, 1)


@dataclass
class ReadAgain:
    """Reads days again from the archive, and notes which."""

    home: Home
    asked: list[tuple[str, date]] = field(default_factory=list)

    def __call__(self, source: str, day: date) -> Outcome | None:
        self.asked.append((source, day))
        captures = Archive(self.home.archive).captures(source, day)
        return recorded(self.home, source, day, captures[-1].capture_id) if captures else None


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    for source in ("acme", "other", "ecb"):
        for day in (FIRST, SECOND):
            recorded(home, source, day)
    recorded(home, "acme", LATER)
    return home


def offers_of(home: Home, source: str = "acme", name: str = "2026-08", table: str = "offers") -> Path:
    return file_of(home, Month(table, source, name))


def contents(home: Home) -> list[object]:
    records = Records(home)
    return [
        (source, day, records.offers(source, day), records.rejects(source, day), records.outcome(source, day))
        for source in ("acme", "other")
        for day in records.accepted_days(source)
    ] + [records.exchange_rates(day) for day in records.rate_days()]


AGAIN = "{} days were read again from the archive"
LOST = "lost, as the archive gives nothing for them: {}"


def test_what_the_archive_lacks_is_named_if_it_had_rows(home: Home) -> None:
    """A month without rows had no day to read, and rankings are not read from it."""
    shutil.rmtree(home.archive / "acme" / f"{FIRST}")
    shutil.rmtree(home.archive / "other")
    records = Records(home)
    records.write_outcome(outcome(FIRST, source="third", rejects=0))
    records.write_rejects(FIRST, "third", [])
    records.write_ranking(FIRST, [])
    no_ranking = "lost: the rankings kept in 2026-08, as those of past days are not computed again"
    results = {
        offers_of(home): f"{AGAIN.format(1)}; {LOST.format(FIRST)}",
        offers_of(home, "other"): LOST.format(f"{FIRST}, {SECOND}"),
        offers_of(home, "third", table="rejects"): "it had no day with rows",
        offers_of(home, "", table="rankings"): no_ranking,
    }
    for path in results:
        path.write_bytes(b"")
    read_again = ReadAgain(home)
    incidents = mend(home, damages(home), read_again)
    assert {home.root / str(i.path): i.remedy.partition("; ")[2] for i in incidents} == results
    assert {i.source for i in incidents} == {"acme", "other", "third", None}
    assert read_again.asked == [("acme", SECOND)]


def test_missing_days_are_read_again_exchange_rates_first(home: Home) -> None:
    before, path = contents(home), Journal(home).path
    offers_of(home).unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM entries WHERE kind = 'exchange_rates' AND day = ?", [f"{SECOND}"])
    missing = [
        Damage(offers_of(home), "offers", "acme", "it is gone", day=FIRST),
        Damage(offers_of(home), "offers", "acme", "it is gone", day=SECOND),
        Damage(path, "exchange_rates", "", "it is gone", day=SECOND),
        Damage(offers_of(home, "other"), "offers", "other", "it is gone", day=LATER),
        Damage(offers_of(home, "other"), "offers", "other", "it is gone", day=FIRST),
    ]
    read_again = ReadAgain(home)
    incidents = mend(home, missing, read_again)
    assert read_again.asked == [
        ("ecb", SECOND),
        *(("acme", FIRST), ("other", FIRST)),  # older days first
        *(("acme", SECOND), ("other", LATER)),
    ]
    results = [(each.source, each.day, each.remedy.partition("; ")[2]) for each in incidents]
    assert results == [
        ("acme", FIRST, AGAIN.format(1)),
        ("acme", SECOND, AGAIN.format(1)),
        (None, SECOND, AGAIN.format(1)),
        ("other", LATER, LOST.format(LATER)),
        ("other", FIRST, AGAIN.format(1)),
    ]
    assert contents(home) == before
    assert mend(home, missing, read_again) == []  # each is reported once


def test_a_file_that_is_not_moved_is_left_alone(home: Home) -> None:
    """It was replaced meanwhile, or cannot be moved; one that is gone is read again."""
    path, read_again = offers_of(home), ReadAgain(home)
    rewritten(path)
    (damage,) = damages(home)
    rewritten(path)
    assert mend(home, [damage], read_again) == []
    home.damaged.write_text("in the way")
    assert mend(home, damages(home), read_again) == []
    assert (path.exists(), read_again.asked) == (True, [])
    for each in (path, home.damaged):
        each.unlink()
    gone = Damage(path, "offers", "acme", "it is gone", None)
    (incident,) = mend(home, [gone], read_again)
    assert incident.remedy == f"it was gone; {AGAIN.format(2)}"


def spoil(home: Home, where: str) -> None:
    """Cut the content of some entries of the journal."""
    with closing(sqlite3.connect(Journal(home).path)) as connection, connection:
        connection.execute(f"UPDATE entries SET content = '{{' WHERE {where}")


LOST_ENTRIES = "attempts that failed without an archived answer, and incidents, are lost where it is damaged"


def test_entries_that_can_be_read_of_a_damaged_journal_are_kept(home: Home) -> None:
    """Attempts without an archived answer, too. Entries of unknown kinds or of another day are not whole."""
    before, records = contents(home), Records(home)
    for hour in (1, 2):
        records.write_outcome(outcome(SECOND, hour=hour, accepted=False, source="aws"))
    unfinished = archived(home, "third", FIRST)
    Archive(home.archive).start("third", SECOND)  # interrupted, without an answer
    Journal(home).write("outcome", "acme", SECOND, "another", '{"source": "acme"}')
    Journal(home).write("unknown", "acme", SECOND, "", "{}")
    Journal(home).write("incident", "", SECOND, "x", '{"kind": "none"}')
    spoil(home, f"source = 'acme' AND day = '{FIRST}' OR kind = 'exchange_rates' AND day = '{SECOND}'")
    spoil(home, "source = 'aws' AND name LIKE '%T02%'")
    path = Journal(home).path
    path.with_name("journal.sqlite-journal").write_bytes(b"an unfinished write")
    read_again = ReadAgain(home)
    (incident,) = mend(home, damages(home), read_again)
    kept = "kept in damaged/record/journal.sqlite; 8 of its entries could still be read"
    assert incident.line() == (
        f"record/journal.sqlite: an entry is not JSON; {kept}; {AGAIN.format(3)}; {LOST_ENTRIES}"
    )
    assert read_again.asked == [("ecb", SECOND), ("acme", FIRST), ("third", FIRST)]
    assert contents(home) == before
    assert (records.outcome("third", FIRST) or {})["attempt"] == unfinished
    assert [row["attempt"] for row in records.outcomes("aws")] == ["20260822T010000.000000Z"]
    assert (home.damaged / "record" / "journal.sqlite").is_file()
    assert not path.with_name("journal.sqlite-journal").exists()
    assert damages(home) == []


def test_a_journal_without_a_file_is_made_of_the_archive(home: Home) -> None:
    before, path = contents(home), Journal(home).path
    nothing = "kept in damaged/record/journal.sqlite; 0 of its entries could still be read"
    for reason, done in (("it is gone", "it was gone"), ("a folder is where a file belongs", nothing)):
        path.unlink()
        if done == nothing:
            path.mkdir()
        (incident,) = mend(home, damages(home), ReadAgain(home))
        text = f"{done}; {AGAIN.format(7)}; {LOST_ENTRIES}"
        assert (incident.reason, incident.remedy, contents(home)) == (reason, text, before)


@pytest.mark.parametrize("after", ["replaced", "read"])
def test_a_mending_that_was_interrupted_is_finished_by_the_next(after: str, home: Home) -> None:
    before = contents(home)
    spoil(home, "source <> ''")

    def killed(source: str, day: date) -> Outcome | None:
        if after == "read":
            ReadAgain(home)(source, day)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mend(home, damages(home), killed)
    (damage,) = damages(home)
    assert damage.reason == "its mending was interrupted"
    mend(home, [damage], ReadAgain(home))
    assert (damages(home), contents(home)) == ([], before)
