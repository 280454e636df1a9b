"""The file of a source's month: what is written is read, a day at a time, and nothing else."""

import multiprocessing
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from pipeline.home.disk import stamp_of
from pipeline.home.paths import Home
from pipeline.record.damage import Damage, RecordError
from pipeline.record.journal import Journal
from pipeline.record.months import (
    SCHEMAS,
    Day,
    Month,
    damage_of,
    days_of,
    file_of,
    months,
    remove_source,
    rows_of,
    strays,
    write_days,
)
from pipeline.record.records import Records
from tests.offers.builders import offer
from tests.record.builders import REWRITTEN, rewritten

FIRST, LAST, NEXT = date(2026, 8, 1), date(2026, 8, 31), date(2026, 9, 1)
AUGUST = Month("offers", "acme", "2026-08")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def frame(*prices: str) -> pl.DataFrame:
    return pl.DataFrame([offer(price).model_dump() for price in prices], SCHEMAS["offers"], orient="row")


def write_day(home: Home, source: str, day: date, rows: pl.DataFrame) -> None:
    write_days(home, Month.of("offers", source, day), {day: rows})


def prices(home: Home, month: Month = AUGUST) -> dict[date, list[str]]:
    return {day: [f"{p:.2f}" for p in rows["usd_per_hour"]] for day, rows in rows_of(home, month).items()}


def test_a_day_is_replaced_and_the_others_of_its_month_stay(home: Home) -> None:
    assert (months(home, "offers"), dict(days_of(home, AUGUST)), damage_of(home, AUGUST)) == ([], {}, None)
    write_day(home, "acme", LAST, frame("3", "2"))
    write_day(home, "acme", FIRST, frame("1"))
    write_day(home, "acme", NEXT, frame("4"))
    write_day(home, "other", FIRST, frame("9"))
    write_day(home, "acme", LAST, frame("5", "6", "7"))
    assert prices(home) == {FIRST: ["1.00"], LAST: ["5.00", "6.00", "7.00"]}
    assert list(rows_of(home, AUGUST)[FIRST].columns) == list(SCHEMAS["offers"])
    mine = [AUGUST, Month("offers", "acme", "2026-09")]
    assert months(home, "offers", "acme") == mine
    assert months(home, "offers") == [*mine, Month("offers", "other", "2026-08")]
    remove_source(home, "acme")
    assert months(home, "offers") == [Month("offers", "other", "2026-08")]


def test_the_hash_of_a_day_changes_with_its_rows_alone(home: Home) -> None:
    write_day(home, "acme", FIRST, frame("1"))
    before = days_of(home, AUGUST)[FIRST]
    assert (before.rows, len(before.digest)) == (1, 16)
    write_day(home, "acme", LAST, frame("1", "2"))
    assert days_of(home, AUGUST) == {FIRST: before, LAST: Day(2, days_of(home, AUGUST)[LAST].digest)}
    write_day(home, "acme", FIRST, frame("1.01"))
    assert days_of(home, AUGUST)[FIRST] != before
    write_day(home, "acme", FIRST, frame())
    assert (prices(home)[FIRST], days_of(home, AUGUST)[FIRST].rows) == ([], 0)


def test_a_file_that_is_not_as_it_was_written_is_damaged_and_never_written_over(home: Home) -> None:
    path = file_of(home, AUGUST)
    for source, day in (("acme", FIRST), ("vast", FIRST), ("acme", NEXT)):
        write_day(home, source, day, frame("1", "2").with_columns(source=pl.lit(source)))
    content = path.read_bytes()
    half = len(content) // 2
    rewritten(path)
    others = [file_of(home, Month.of("offers", *other)) for other in (("vast", FIRST), ("acme", NEXT))]
    spoilt = [
        (content[:half], ""),
        (b"", ""),
        (content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :], ""),
        (others[0].read_bytes(), "it has rows of vast, another source"),
        (others[1].read_bytes(), "it lists 2026-09-01, which is in another month"),
        (path.read_bytes(), REWRITTEN),
    ]
    for written, reason in spoilt:
        path.write_bytes(written)
        found = damage_of(home, AUGUST)
        assert found is not None
        assert reason in found.reason
        assert found == Damage(path, "offers", "acme", found.reason, stamp_of(path))
        with pytest.raises(RecordError, match=r"2026-08\.parquet is damaged"):
            write_day(home, "acme", LAST, frame("3"))
        with pytest.raises(RecordError):
            rows_of(home, AUGUST)


def _write(root: Path, days: list[int]) -> None:
    for day in days:
        Records(Home(root)).write_accepted(date(2026, 8, day), "acme", [offer(f"{day}")])
        for number in range(4):
            Journal(Home(root)).write("outcome", "acme", date(2026, 8, day), f"{number}", "{}")


def test_processes_that_write_one_month_and_the_journal_lose_nothing(home: Home) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(home.root, list(range(s, 20, 2)))) for s in (1, 2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert prices(home) == {date(2026, 8, day): [f"{day:.2f}"] for day in range(1, 20)}
    assert len(Journal(home).entries("outcome")) == 4 * 19


def test_strays_are_named_and_ignored(home: Home) -> None:
    write_day(home, "acme", FIRST, frame("1"))
    names = ["journal (copy).sqlite", "offers/notes.txt", "rankings/x", "rankings/acme/2026-08.parquet"]
    for name in ("2026-08 (copy).parquet", "2026-8.parquet", "2026-13.parquet", "2026-08.txt"):
        names.append(f"offers/acme/{name}")
    for name in [*names, "journal.sqlite", "journal.sqlite-journal", "rejects/other/.unfinished"]:
        (home.record / name).parent.mkdir(parents=True, exist_ok=True)
        (home.record / name).write_bytes(b"x")
    (home.record / "offers" / "acme" / ".2026-08.parquet.12.tmp").write_bytes(b"half")
    found = [str(path.relative_to(home.record)) for path in strays(home)]
    assert found == sorted([*names, "rankings/acme"])
    assert months(home, "offers") == [AUGUST]
    assert months(home, "rankings") == []
