"""Files of past months become one file a month, and every reader of the record sees the same rows."""

import os
import random
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import polars as pl
import pytest

from pipeline.contracts.offer import RejectedRow
from pipeline.contracts.outcome import Outcome
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.home.disk import UnwritableError
from pipeline.home.paths import Home
from pipeline.home.postgres import PostgresError
from pipeline.home.publishing_lock import publishing_lock
from pipeline.record.compaction import SETTLED_DAYS, Compaction, compact, mergeable
from pipeline.record.months import days_of_month
from pipeline.record.record_files import MERGED_FOLDERS, record_file, record_files, stray_files
from pipeline.record.records import RecordError, Records
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import create
from pipeline.warehouse.load import load_newest
from tests.full_load import load_record
from tests.offers.builders import offer

FIRST = date(2026, 6, 1)
DAYS = [FIRST + timedelta(days=number) for number in range(0, 75, 3)]
EMPTY = date(2026, 6, 7)
GAP = date(2026, 6, 10)
LAST = DAYS[-1]
SOURCES = ("crusoe", "lambda")
OLD_COLUMNS = ("size_evidence", "tier_class", "gpu_counts", "max_run_hours")
"""What the first version kept no column of."""

OLD_DAYS = DAYS[:3]


def reject(source: str, day: date, number: int) -> RejectedRow:
    facts = offer()
    return RejectedRow(
        source=source,
        reason=RejectReason.PRICE_JUMP,
        detail=f"row {number} of {day}",
        raw={"label": "Ωmega <b>", "number": number},
        observed_at=facts.observed_at,
        source_url=facts.source_url,
        capture_sha256=facts.capture_sha256,
    )


def attempt_of(day: date, hour: int) -> str:
    return f"{day:%Y%m%d}T{hour:02}0000.000000Z"


def outcome(source: str, day: date, hour: int) -> Outcome:
    return Outcome(
        day=day,
        source=source,
        attempt=attempt_of(day, hour),
        status="captured",
        accepted=hour == 6,
        reason=None if hour == 6 else "few offers: Ω",
        rows=3,
        duration_seconds=0.1 + hour,
        observed_at=datetime(day.year, day.month, day.day, hour, tzinfo=UTC),
        replayed=False,
    )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """25 days of two sources from June on: one day without offers, one that nobody read, three of an earlier
    version; a second attempt on even days."""
    home, dice = Home(tmp_path / "home"), random.Random(4)
    records = Records(home)
    for source in SOURCES:
        for day in DAYS:
            if day == GAP:
                continue
            labels = dice.sample(["H100 SXM", "A100", "L4", "B200"], 3)
            offers = [offer(f"{dice.uniform(1, 9):.2f}", source=source, raw_label=label) for label in labels]
            records.write_accepted(day, source, [] if day == EMPTY else offers)
            records.write_rejects(day, source, [reject(source, day, number) for number in range(day.day % 3)])
            for hour in (6, 9) if day.day % 2 == 0 else (6,):
                records.write_outcome(outcome(source, day, hour))
        for day in OLD_DAYS:
            path = record_file(home, "offers", source, day).path
            pl.read_parquet(path).drop(*OLD_COLUMNS).write_parquet(path)
    for day in DAYS:
        rates = [
            {"day": day, "currency": each, "usd_per_unit": "1.1", "rate_date": day} for each in ("EUR", "GBP")
        ]
        records.write_exchange_rates(day, rates)
    return home


def merged(home: Home, today: date = LAST) -> Compaction:
    done = Compaction()
    compact(home, today, done)
    return done


def seen(home: Home, until: date = LAST) -> dict[str, Any]:
    """All that readers see of the record."""
    records = Records(home)
    found: dict[str, Any] = {}
    for source in SOURCES:
        found[source] = (
            {day: records.offers(source, day) for day in records.accepted_days(source)},
            {day: records.rejects(source, day) for day in records.rejected_days(source)},
            records.last_accepted(source, before=date(2026, 6, 20)),
            {day: records.outcomes(source, day) for day in DAYS},
        )
    found["rates"] = {day: records.usd_rates(day) for day in records.rate_days()}
    found["texts"] = {
        (file.folder, file.source, file.part): records.text(file)
        for folder in ("outcomes", "exchange_rates")
        for file in record_files(home, folder)
    }
    found["damages"] = [damage for folder in MERGED_FOLDERS for damage in records.damages(folder)]
    found["stray"] = stray_files(home)
    with connect() as connection:
        create(connection, "offers", "rejects", "capture_outcomes", "exchange_rates")
        assert load_record(connection, home, until) == []
        for table in ("offers", "rejects", "capture_outcomes", "exchange_rates"):
            found[table] = connection.execute(f"FROM main.{table} ORDER BY ALL").fetchall()
    return found


def names(home: Home, folder: str, source: str = "crusoe") -> list[str]:
    return sorted(path.name for path in (home.root / folder / source).iterdir())


def test_every_reader_sees_the_same_rows_as_before(home: Home) -> None:
    before = seen(home)
    files = [file for folder in MERGED_FOLDERS for file in record_files(home, folder) if file.day.month < 8]
    done = merged(home)
    assert seen(home) == before
    assert names(home, "offers")[:2] == ["2026-06.parquet", "2026-07.parquet"]
    assert names(home, "offers")[2:] == [f"{day}.parquet" for day in DAYS if day.month == 8]
    assert names(home, "rejects")[:2] == ["2026-06.parquet", "2026-07.parquet"]
    august = [f"{day}" for day in DAYS if day.month == 8]
    assert names(home, "outcomes") == ["2026-06.parquet", "2026-07.parquet", *august]
    assert sorted(path.name for path in home.exchange_rates.iterdir()) == [
        "2026-06.parquet",
        "2026-07.parquet",
        *(f"{day}.json" for day in august),
    ]
    assert (done.months, done.files, done.left) == (14, len(files), [])
    assert 0 < done.bytes_after < done.bytes_before / 2
    assert done.line().startswith(f"merged {len(files)} files into 14 of months: ")


def test_a_day_without_offers_and_a_day_that_nobody_read_stay_what_they_are(home: Home) -> None:
    merged(home)
    records = Records(home)
    assert records.offers("crusoe", EMPTY) == []
    assert EMPTY in records.accepted_days("crusoe")
    assert GAP not in records.accepted_days("crusoe")
    with pytest.raises(FileNotFoundError):
        records.offers("crusoe", GAP)
    assert records.rejects("crusoe", GAP) == []


def test_a_past_day_is_loaded_without_the_days_after_it(home: Home) -> None:
    until = date(2026, 6, 13)
    before = seen(home, until)
    merged(home)
    after = seen(home, until)
    for table in ("offers", "rejects", "capture_outcomes", "exchange_rates"):
        assert after[table] == before[table]


def test_the_newest_accepted_day_is_found_in_a_month(home: Home) -> None:
    merged(home)
    with connect() as connection:
        create(connection, "offers", "rejects", "capture_outcomes", "exchange_rates", "sources")
        assert load_newest(connection, home, date(2026, 6, 20)) == []
        days = connection.execute("SELECT DISTINCT day FROM main.offers").fetchall()
    assert days == [(date(2026, 6, 19),)]


def test_merging_changes_no_days_stamp(home: Home) -> None:
    """So that nothing is loaded again for it."""

    def stamps() -> dict[Any, Any]:
        return {
            (folder, file.source, file.part): file.stamp()
            for folder in MERGED_FOLDERS
            for file in record_files(home, folder)
        }

    before = stamps()
    merged(home)
    assert stamps() == before


def test_a_month_is_merged_some_days_after_its_end_and_not_again(home: Home) -> None:
    end = days_of_month("2026-06")[-1]
    assert merged(home, end + timedelta(days=SETTLED_DAYS)).files == 0
    assert merged(home, end + timedelta(days=SETTLED_DAYS + 1)).months == 7
    file = record_file(home, "offers", "crusoe", FIRST)
    stamp = file.path.stat().st_mtime_ns
    assert merged(home, end + timedelta(days=SETTLED_DAYS + 1)) == Compaction()
    assert file.path.stat().st_mtime_ns == stamp


def test_one_file_of_a_month_is_left_as_it_is(tmp_path: Path) -> None:
    home = Home(tmp_path)
    Records(home).write_accepted(FIRST, "crusoe", [offer(source="crusoe")])
    assert mergeable(home, LAST) == {}


# ------------------------------------------------------------------ a day read again, and crashes


def test_a_day_read_again_wins_at_once_and_is_merged_by_the_next_compaction(home: Home) -> None:
    merged(home)
    records, day = Records(home), date(2026, 6, 16)
    other = [offer("7.77", source="crusoe")]
    records.write_accepted(day, "crusoe", other)
    assert records.offers("crusoe", day) == other
    before = seen(home)
    assert sum(day in row and "crusoe" in row for row in before["offers"]) == 1
    assert (done := merged(home)).files == 1
    assert done.months == 1
    assert f"{day}.parquet" not in names(home, "offers")
    assert seen(home) == before


def test_after_a_crash_between_the_month_and_its_day_files_nothing_is_counted_twice(home: Home) -> None:
    before = seen(home)
    kept = {
        file.path: file.path.read_bytes() for folder in MERGED_FOLDERS for file in record_files(home, folder)
    }
    stamps = {path: path.stat().st_mtime_ns for path in kept}
    merged(home)
    for path, content in list(kept.items())[::2]:  # as if only every other one had been deleted
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        os.utime(path, ns=(stamps[path], stamps[path]))
    assert seen(home) == before
    merged(home)
    assert seen(home) == before
    assert names(home, "outcomes")[2:] == [f"{day}" for day in DAYS if day.month == 8]
    assert f"{FIRST}.parquet" not in names(home, "offers")


def test_a_file_that_changed_while_it_was_merged_stays(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process reads a day again after its rows were taken and before its file is deleted."""
    from pipeline.record import compaction

    again = [offer("5.55", source="crusoe")]
    write = compaction._write

    def write_meanwhile(path: Path, *rest: Any) -> None:
        write(path, *rest)
        if path == home.offers / "crusoe" / "2026-06.parquet":
            Records(home).write_accepted(FIRST, "crusoe", again)

    monkeypatch.setattr(compaction, "_write", write_meanwhile)
    merged(home)
    assert f"{FIRST}.parquet" in names(home, "offers")
    assert Records(home).offers("crusoe", FIRST) == again


@pytest.mark.parametrize("again_later", [False, True])
def test_a_file_that_came_just_before_the_deletion_is_put_back(
    home: Home, monkeypatch: pytest.MonkeyPatch, again_later: bool
) -> None:
    """Another process reads the day again after the stamps were compared, and maybe once more."""
    again, later = [offer("5.55", source="crusoe")], [offer("6.66", source="crusoe")]
    path = home.offers / "crusoe" / f"{FIRST}.parquet"
    rename = Path.rename

    def read_again_first(this: Path, target: Path) -> Path:
        if this != path:
            return rename(this, target)
        Records(home).write_accepted(FIRST, "crusoe", again)
        renamed = rename(this, target)
        if again_later:
            Records(home).write_accepted(FIRST, "crusoe", later)
        return renamed

    monkeypatch.setattr(Path, "rename", read_again_first)
    merged(home)
    assert Records(home).offers("crusoe", FIRST) == (later if again_later else again)
    assert not list(home.offers.glob("*/.*"))


@pytest.mark.parametrize("is_newer", [False, True])
def test_after_a_crash_before_the_deletion_nothing_is_lost(
    home: Home, monkeypatch: pytest.MonkeyPatch, is_newer: bool
) -> None:
    path = home.offers / "crusoe" / f"{FIRST}.parquet"
    before = path.read_bytes(), path.stat().st_mtime_ns
    merged(home)
    if is_newer:
        Records(home).write_accepted(FIRST, "crusoe", [offer("5.55", source="crusoe")])
    else:
        path.write_bytes(before[0])
        os.utime(path, ns=(before[1], before[1]))
    expected = seen(home)
    path.rename(path.with_name(f".{path.name}.merged.tmp"))
    merged(home)
    assert seen(home) == expected
    assert not list(home.offers.glob("*/.*"))
    assert not path.exists()


def test_a_reader_finds_a_day_that_is_merged_while_it_reads(home: Home) -> None:
    records = Records(home)
    file = record_file(home, "offers", "crusoe", FIRST)
    before = records.offers("crusoe", FIRST)
    merged(home)
    assert not file.path.exists()
    assert records._offers(file) == before


def test_nothing_is_merged_while_somebody_publishes(home: Home) -> None:
    with publishing_lock(home):
        waiting = Thread(target=merged, args=(home,))
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        assert not list(home.offers.glob("*/????-??.parquet"))
    waiting.join(60)
    assert list(home.offers.glob("*/????-??.parquet"))


class Lost:
    """A lock that another machine has by now."""

    def confirm(self) -> None:
        raise PostgresError("lost")


def test_nothing_is_replaced_once_the_lock_is_lost(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    before = seen(home)
    monkeypatch.setattr("pipeline.record.compaction.publishing_lock", lambda _: nullcontext(Lost()))
    with pytest.raises(PostgresError):
        merged(home)
    assert not list(home.offers.glob("*/????-??.parquet"))
    assert seen(home) == before


def test_what_cannot_be_written_leaves_the_day_files(home: Home) -> None:
    before = seen(home)
    in_the_way = home.offers / "crusoe" / f".2026-06.parquet.{os.getpid()}.tmp"
    in_the_way.mkdir()
    with pytest.raises(UnwritableError, match=r"2026-06\.parquet: Is a directory"):
        merged(home)
    in_the_way.rmdir()
    assert seen(home) == before
    assert merged(home).months == 14


# ------------------------------------------------------------------ outcomes, of which a day has several


def test_a_later_attempt_of_an_old_day_stands_beside_the_merged_ones(home: Home) -> None:
    merged(home)
    records, day = Records(home), date(2026, 6, 16)
    records.write_outcome(outcome("crusoe", day, 12))
    attempts = [attempt_of(day, hour) for hour in (6, 9, 12)]
    assert [row["attempt"] for row in records.outcomes("crusoe", day)] == attempts
    before = seen(home)
    assert sum(row[:2] == (day, "crusoe") for row in before["capture_outcomes"]) == len(attempts)
    assert (merged(home).files, names(home, "outcomes")[0]) == (1, "2026-06.parquet")
    assert f"{day}" not in names(home, "outcomes")
    assert seen(home) == before


def test_an_attempt_that_is_read_again_wins_over_its_month(home: Home) -> None:
    merged(home)
    records, day = Records(home), date(2026, 6, 16)
    records.write_outcome(replace(outcome("crusoe", day, 9), rows=7))
    for _ in range(2):
        assert [row["rows"] for row in records.outcomes("crusoe", day)] == [3, 7]
        merged(home)


def test_outcomes_of_the_first_version_stay_as_they_are(home: Home) -> None:
    """A later reading of the day may take their place."""
    for day in DAYS[:2]:
        Records(home).write_outcome(replace(outcome("crusoe", day, 6), attempt=""))
    before = seen(home)
    merged(home)
    assert seen(home) == before
    assert [name for name in names(home, "outcomes") if name.endswith(".json")] == [
        f"{day}.json" for day in DAYS[:2]
    ]


def test_an_attempt_is_kept_whose_folder_is_removed_while_it_is_written(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of a day is removed once its attempts are merged, between its making and the first file."""
    made = Path.mkdir
    removed = []

    def mkdir(this: Path, *rest: Any, **named: Any) -> None:
        made(this, *rest, **named)
        if this.parent.parent == home.outcomes and not removed:
            removed.append(this.rmdir())

    monkeypatch.setattr(Path, "mkdir", mkdir)
    Records(home).write_outcome(outcome("crusoe", GAP, 6))
    assert removed
    assert len(Records(home).outcomes("crusoe", GAP)) == 1


def test_values_of_another_type_in_a_merged_text_are_damage_to_the_loader_too(home: Home) -> None:
    merged(home)
    path = home.outcomes / "crusoe" / "2026-06.parquet"
    metadata = {key: value for key, value in pl.read_parquet_metadata(path).items() if "gpufare" in key}
    spoiled = pl.col("content").str.replace('"replayed": false', '"replayed": "Ω"')
    pl.read_parquet(path).with_columns(spoiled).write_parquet(path, metadata=metadata)
    assert [damage.file.path for damage in Records(home).damages("outcomes")] == [path]
    with connect() as connection:
        create(connection, "offers", "rejects", "capture_outcomes", "exchange_rates")
        assert [damage.file.path for damage in load_record(connection, home, LAST)] == [path]


# ------------------------------------------------------------------ damage


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def without_a_row(path: Path) -> None:
    """A whole file that has fewer rows than its metadata says."""
    metadata = {key: value for key, value in pl.read_parquet_metadata(path).items() if "gpufare" in key}
    pl.read_parquet(path).head(-1).write_parquet(path, metadata=metadata)


def of_another_shape(path: Path) -> None:
    pl.DataFrame({"source": ["crusoe"]}).write_parquet(path)


def test_a_damaged_day_file_stays_alone_and_spoils_no_month(home: Home) -> None:
    path = record_file(home, "offers", "crusoe", DAYS[5]).path
    cut(path)
    done = merged(home)
    assert [damage.file.path for damage in done.left] == [path]
    assert "1 files of past months stay as they are" in done.line()
    assert path.exists()
    assert Records(home).offers("crusoe", DAYS[4])


@pytest.mark.parametrize("spoil", [cut, without_a_row, of_another_shape], ids=lambda spoil: spoil.__name__)
@pytest.mark.parametrize("folder", ["outcomes", "exchange_rates"])
def test_a_damaged_month_of_texts_is_named_once_and_by_every_reader(
    home: Home, folder: str, spoil: Callable[[Path], None]
) -> None:
    merged(home)
    path = record_file(home, folder, *MERGED_TEXT[folder]).path
    spoil(path)
    records = Records(home)
    assert [damage.file.path for damage in records.damages(folder)] == [path]
    with connect() as connection:
        create(connection, "offers", "rejects", "capture_outcomes", "exchange_rates")
        damages = load_record(connection, home, LAST)
    assert [damage.file.path for damage in damages] == [path]
    assert merged(home).files == 0


MERGED_TEXT = {"outcomes": ("crusoe", FIRST, attempt_of(FIRST, 6)), "exchange_rates": (None, FIRST, "")}


@pytest.mark.parametrize("spoil", [cut, without_a_row, of_another_shape], ids=lambda spoil: spoil.__name__)
def test_a_damaged_month_is_named_once_and_by_every_reader(home: Home, spoil: Callable[[Path], None]) -> None:
    merged(home)
    path = home.offers / "crusoe" / "2026-06.parquet"
    spoil(path)
    records = Records(home)
    assert [damage.file.path for damage in records.damages("offers")] == [path]
    with pytest.raises(RecordError, match="`gpufare refresh` moves it aside and reads its days again"):
        records.offers("crusoe", FIRST)
    with connect() as connection:
        create(connection, "offers", "rejects", "capture_outcomes", "exchange_rates")
        damages = load_record(connection, home, LAST)
        others = connection.execute("SELECT count(DISTINCT (source, day)) FROM main.offers").fetchone()
    assert [damage.file.path for damage in damages] == [path]
    days = len(DAYS) - 1 - 1  # but for the gap and the day without offers
    assert others == (2 * days - 8,)
    assert merged(home).files == 0


def test_a_month_of_another_source_or_month_is_damaged(home: Home) -> None:
    merged(home)
    june, july = (home.offers / "crusoe" / f"2026-0{month}.parquet" for month in (6, 7))
    june.write_bytes(july.read_bytes())
    (home.offers / "lambda" / "2026-07.parquet").write_bytes(july.read_bytes())
    found = {damage.file.path for damage in Records(home).damages("offers")}
    assert found == {june, home.offers / "lambda" / "2026-07.parquet"}
    with connect() as connection:
        create(connection, "offers", "rejects", "capture_outcomes", "exchange_rates")
        assert {damage.file.path for damage in load_record(connection, home, LAST)} == found
