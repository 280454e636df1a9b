"""The file of a source's month: what is written is read, a day at a time, and nothing else."""

import multiprocessing
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from pipeline.home.paths import Home
from pipeline.record import months as module
from pipeline.record.damage import RecordError
from pipeline.record.months import (
    SCHEMAS,
    Day,
    Month,
    damage_of,
    days_of,
    file_of,
    months,
    rows_of,
    strays,
    write_days,
)
from pipeline.record.records import Records
from tests.offers.builders import offer

FIRST, LAST, NEXT = date(2026, 8, 1), date(2026, 8, 31), date(2026, 9, 1)
AUGUST = Month("offers", "acme", "2026-08")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def frame(*prices: str) -> pl.DataFrame:
    return pl.DataFrame([offer(price).model_dump() for price in prices], SCHEMAS["offers"], orient="row")


def write_day(home: Home, table: str, source: str, day: date, rows: pl.DataFrame) -> None:
    write_days(home, Month.of(table, source, day), {day: rows})


def prices(home: Home, month: Month = AUGUST) -> dict[date, list[str]]:
    return {day: [f"{p:.2f}" for p in rows["usd_per_hour"]] for day, rows in rows_of(home, month).items()}


def test_a_day_is_replaced_and_the_others_of_its_month_stay(home: Home) -> None:
    write_day(home, "offers", "acme", LAST, frame("3", "2"))
    write_day(home, "offers", "acme", FIRST, frame("1"))
    write_day(home, "offers", "acme", NEXT, frame("4"))
    write_day(home, "offers", "other", FIRST, frame("9"))
    write_day(home, "offers", "acme", LAST, frame("5", "6", "7"))
    assert prices(home) == {FIRST: ["1.00"], LAST: ["5.00", "6.00", "7.00"]}
    assert months(home, "offers", "acme") == [AUGUST, Month("offers", "acme", "2026-09")]
    assert {month.source for month in months(home, "offers")} == {"acme", "other"}


def test_a_day_without_rows_is_known(home: Home) -> None:
    write_day(home, "offers", "acme", FIRST, frame())
    assert prices(home) == {FIRST: []}
    assert list(days_of(home, AUGUST)) == [FIRST]


def test_the_hash_of_a_day_changes_with_its_rows_alone(home: Home) -> None:
    write_day(home, "offers", "acme", FIRST, frame("1"))
    before = days_of(home, AUGUST)[FIRST]
    write_day(home, "offers", "acme", LAST, frame("1", "2"))
    assert days_of(home, AUGUST) == {FIRST: before, LAST: Day(2, days_of(home, AUGUST)[LAST].digest)}
    write_day(home, "offers", "acme", FIRST, frame("1.01"))
    assert days_of(home, AUGUST)[FIRST] != before


def test_missing_month_has_no_days(home: Home) -> None:
    assert (months(home, "offers"), dict(days_of(home, AUGUST)), damage_of(home, AUGUST)) == ([], {}, None)


def _spoilt(home: Home, path: Path, how: str) -> None:
    content, rows = path.read_bytes(), pl.read_parquet(path)
    metadata = pl.read_parquet_metadata(path)
    kept = {key: metadata[key] for key in (module.DAYS_KEY, module.SEAL_KEY)}
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "folder":
        path.unlink()
        path.mkdir()
    elif how == "no metadata":
        rows.write_parquet(path)
    elif how == "another source":
        write_day(home, "offers", "vast", FIRST, frame("1", "2").with_columns(source=pl.lit("vast")))
        path.write_bytes(file_of(home, Month.of("offers", "vast", FIRST)).read_bytes())
    elif how == "another month":
        write_day(home, "offers", "acme", NEXT, frame("1", "2"))
        path.write_bytes(file_of(home, Month.of("offers", "acme", NEXT)).read_bytes())
    elif how == "another price":
        rows = rows.with_columns(usd_per_hour=(rows["usd_per_hour"] * 2).cast(pl.Decimal(18, 8)))
        rows.write_parquet(path, metadata=kept)
    elif how == "another bit":
        place = len(content) // 2
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])


HOW = ("cut", "empty", "folder", "no metadata", "another source", "another month")


@pytest.mark.parametrize("how", [*HOW, "another price", "another bit"])
def test_a_file_that_is_not_as_it_was_written_is_damaged_and_never_written_over(how: str, home: Home) -> None:
    write_day(home, "offers", "acme", FIRST, frame("1", "2"))
    path = file_of(home, AUGUST)
    _spoilt(home, path, how)
    found = damage_of(home, AUGUST)
    assert found is not None
    assert (found.path, found.table, found.source) == (path, "offers", "acme")
    assert found.reason
    with pytest.raises(RecordError, match=r"2026-08\.parquet is damaged"):
        write_day(home, "offers", "acme", LAST, frame("3"))
    with pytest.raises(RecordError):
        Records(home).offers("acme", FIRST)


def _write(root: Path, days: list[int]) -> None:
    for day in days:
        write_day(Home(root), "offers", "acme", date(2026, 8, day), frame(f"{day}"))


def test_processes_that_write_one_month_lose_no_day(home: Home) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=_write, args=(home.root, list(range(start, 20, 2)))) for start in (1, 2)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert prices(home) == {date(2026, 8, day): [f"{day:.2f}"] for day in range(1, 20)}


def test_strays_are_named_and_ignored(home: Home) -> None:
    write_day(home, "offers", "acme", FIRST, frame("1"))
    names = [
        "offers/notes.txt",
        "offers/acme/2026-08 (copy).parquet",
        "offers/acme/2026-8.parquet",
        "journal (copy).sqlite",
        "rankings/x",
    ]
    for name in names:
        (home.record / name).parent.mkdir(parents=True, exist_ok=True)
        (home.record / name).write_bytes(b"x")
    (home.record / "offers" / "acme" / ".2026-08.parquet.12.tmp").write_bytes(b"half")
    assert [str(path.relative_to(home.record)) for path in strays(home)] == sorted(names)
    assert months(home, "offers") == [AUGUST]
