"""A build that continues from the one before has the same tables as one from the whole record.

Random days of a small record, with days read again, gaps, files that vanish and damaged ones, are loaded day
by day and, from empty tables, at once. Offers are kept for a few days only, so that few days are enough;
tests/nightly/test_long_history.py does the same with as many as people keep.
"""

import itertools
import random
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipeline.contracts.offer import RejectedRow
from pipeline.contracts.outcome import Outcome, SourceResult
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.home.paths import Home
from pipeline.record.damage import Damage
from pipeline.record.journal import Journal
from pipeline.record.months import file_of, months
from pipeline.record.records import Records
from pipeline.warehouse import history
from pipeline.warehouse.database import prepare
from pipeline.warehouse.history import bring_up_to_date
from pipeline.warehouse.load_record import LOADED_INTO
from pipeline.warehouse.marts import fill
from pipeline.warehouse.query import ask, reader
from tests.conftest import gpufare
from tests.offers.builders import offer
from tests.scenario import BAD, MENDED, Scenario

FIRST = date(2026, 6, 24)
KEPT_DAYS = 5
SOURCES = ("crusoe", "lambda", "runpod")
GPUS = ("h100-sxm-80gb", "a100-sxm-80gb", "rtx-4090")
PLACES = (("us-east", "US", "north_america"), ("somewhere", None, None), (None, None, None))

TABLES = (
    *("offers", "rejects", "capture_outcomes", "exchange_rates", "ranking_history", "recorded_days"),
    *("price_history", "price_changes", "market_index", "source_health_history"),
    *("unmatched_labels", "unmatched_regions", "offers_latest", "claim_audit"),
)
FILLED = ("source_health_history", "offers_latest", "unmatched_labels", "unmatched_regions", "claim_audit")
"""The tables that each build fills again from the tables of the previous one."""

KEPT = ("recorded_prices()", "history.first_seen", "history.claim_prices", "history.spot_prices")


class World:
    """A record that changes from day to day, by chance."""

    def __init__(self, home: Home, seed: int, start: date = FIRST) -> None:
        self.home, self.records, self.chance, self.start = home, Records(home), random.Random(seed), start
        self.prices: dict[tuple[Any, ...], Decimal] = {}

    def a_day(self, day: date) -> None:
        """Most sources are read; now and then one is read again, an earlier day, too, or a file is lost."""
        for source in SOURCES:
            if self.chance.random() < 0.85:
                self.read(source, day)
        if self.chance.random() < 0.3:
            rates = [{"day": day, "currency": "EUR", "usd_per_unit": "1.1", "rate_date": day}]
            self.records.write_exchange_rates(day, rates)
        earlier = day - timedelta(days=self.chance.choice((0, 1, 2, 5, history.KEPT_DAYS + 3)))
        if self.chance.random() < 0.25 and earlier >= self.start:
            self.read(self.chance.choice(SOURCES), earlier)
        for table, share in (("offers", 0.06), ("rejects", 0.04), ("rankings", 0.04)):
            files = [file_of(self.home, month) for month in months(self.home, table)]
            if files and self.chance.random() < share:
                path = self.chance.choice(files)
                path.unlink() if self.chance.random() < 0.5 else path.write_bytes(path.read_bytes()[:50])

    def read(self, source: str, day: date) -> None:
        moment = datetime(day.year, day.month, day.day, 6, self.chance.randrange(60), tzinfo=UTC)
        every = itertools.product(GPUS, ("on_demand", "spot"), PLACES)
        found = [self.offer(source, *facts) for facts in every if self.chance.random() < 0.6]
        if self.chance.random() < 0.3:
            label = self.chance.choice(("Mystery X", "Mystery Y"))
            found.append(offer("1", source=source, raw_label=label, gpu_id=None, match_status="unknown"))
        accepted = self.chance.random() < 0.9
        if accepted:
            self.records.write_accepted(day, source, found)
        rejects = [self.reject(source, moment) for _ in range(self.chance.randrange(3))]
        self.records.write_rejects(day, source, rejects)
        facts: dict[str, Any] = {"status": self.chance.choice(("captured", "partial")), "rows": len(found)}
        facts |= {"result": SourceResult.FRESH if accepted else SourceResult.DOUBTED, "accepted": accepted}
        facts |= {
            "attempt": moment.strftime("%Y%m%dT%H%M%S.%fZ"),
            "reason": None if accepted else "few offers",
        }
        self.records.write_outcome(Outcome(day=day, source=source, **facts))

    def offer(self, source: str, gpu: str, kind: str, place: tuple[str | None, ...]) -> Any:
        key = (source, gpu, kind, place)
        if key not in self.prices or self.chance.random() < 0.1:
            self.prices[key] = Decimal(self.chance.randrange(100, 500)) / 100
        facts: dict[str, Any] = {"provider": source.title(), "gpu_id": gpu, "price_kind": kind}
        facts |= dict(zip(("region", "country", "continent"), place, strict=True))
        facts |= {"flag_reason": "custom_quote" if self.chance.random() < 0.05 else None}
        facts |= {"available": self.chance.choice((True, None, None, False))}
        return offer(str(self.prices[key]), source=source, **facts)

    def reject(self, source: str, moment: datetime) -> RejectedRow:
        reason = self.chance.choice(list(RejectReason))
        return RejectedRow(source=source, reason=reason, detail="x", raw={}, observed_at=moment,
                           source_url="https://x.example", capture_sha256="0" * 64)  # fmt: skip

    def publish(self, day: date) -> None:
        """The ranking of the day, as its publication saves it."""
        where = ("rtx-4090", 1, 1, "lambda", "Lambda", None, None)
        costs = Decimal(self.chance.randrange(100, 500)) / 100, Decimal("2.5")
        ranks = itertools.product(("llama-3.1-8b-lora-100m", "8b-lora-10m-tokens"), (1, 2))
        rows = [(workload, "on_demand", "cost", rank, *where, *costs) for workload, rank in ranks]
        self.records.write_ranking(day, rows)


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the catalogue, without any record."""
    file = tmp_path_factory.mktemp("history") / "empty.duckdb"
    with duckdb.connect(file) as connection:
        prepare(connection)
    return file


@pytest.fixture
def connections(empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(history, "KEPT_DAYS", KEPT_DAYS)
    with_tables = []

    def another() -> duckdb.DuckDBPyConnection:
        file = tmp_path / f"{len(with_tables)}.duckdb"
        file.write_bytes(empty.read_bytes())
        with_tables.append(duckdb.connect(file))
        with_tables[-1].execute("SET TimeZone = 'UTC'; SET threads = 1")
        return with_tables[-1]

    yield another
    for connection in with_tables:
        connection.close()


def tables(connection: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table that depends on the record."""
    for table in FILLED:
        connection.execute(f"DELETE FROM main.{table}")
    for table in FILLED:
        fill(connection, table)
    names = (*(f"main.{table}" for table in TABLES), *KEPT)
    return {name: connection.execute(f"FROM {name} ORDER BY ALL").fetchall() for name in names}


def differences(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {
        name: (set(one[name]) ^ set(other[name])) or (len(one[name]), len(other[name]))
        for name in one
        if one[name] != other[name]
    }


def reasons(damages: list[Damage]) -> set[Path]:
    return {damage.path for damage in damages}


def loaded_at_once(growing: Any, connections: Any, home: Home, day: date) -> list[Damage]:
    """Load the whole record at once, which must give the same tables; return what was damaged."""
    at_once = connections()
    damages = bring_up_to_date(at_once, home, day)
    assert differences(tables(growing), tables(at_once)) == {}, day
    return damages


def compare_growing_with_whole(home: Home, connections: Any, days: int, compared: tuple[int, ...]) -> None:
    """Load random days one by one, and on some of them the whole record at once; then go back and forth."""
    start = FIRST + timedelta(days=22 - days)
    world = World(home, seed=4, start=start)
    growing, lost = connections(), set()
    for number in range(days):
        day = start + timedelta(days=number)
        if world.chance.random() < 0.9:
            world.a_day(day)
        damages = bring_up_to_date(growing, home, day)
        if number in compared:
            assert reasons(loaded_at_once(growing, connections, home, day)) == reasons(damages)
        for damage in damages:
            damage.path.unlink(missing_ok=True)  # set aside by whoever publishes
        world.publish(day)
        lost.update(reasons(damages))
    assert lost
    assert growing.execute("SELECT count(*) FROM history.prices").fetchone() != (0,)
    oldest = growing.execute("SELECT min(day) FROM offers_latest").fetchone()
    kept = growing.execute("SELECT min(day) FROM main.offers").fetchone()
    in_time = "SELECT min(day) FROM recorded_days WHERE offers > 0 AND day > ?"
    (first,) = growing.execute(in_time, [day - timedelta(days=history.KEPT_DAYS)]).fetchone()
    assert kept == (min(oldest[0], first),)

    assert bring_up_to_date(growing, home, day) == []
    changes = history._changes(growing, home, day)
    assert changes.days(*LOADED_INTO) == set()
    for moment in (start + timedelta(days=days // 3), day):  # what was forgotten is loaded again
        bring_up_to_date(growing, home, moment)
        loaded_at_once(growing, connections, home, moment)


def test_day_by_day_equals_loading_the_whole_record(
    tmp_path: Path, connections: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if few days are loaded at a time, over the end of a month."""
    monkeypatch.setattr(history, "CHUNK_DAYS", 4)
    compare_growing_with_whole(Home(tmp_path / "home"), connections, 14, (3, 13))


def test_a_restored_journal_is_loaded_again(tmp_path: Path, connections: Any) -> None:
    home = Home(tmp_path / "home")
    world, journal, growing = World(home, seed=5), Journal(home).path, connections()
    for source in SOURCES:
        world.read(source, FIRST)
    copy = journal.read_bytes()
    for number in (1, 2):
        world.read("lambda", FIRST + timedelta(days=number))
    bring_up_to_date(growing, home, FIRST + timedelta(days=2))
    journal.write_bytes(copy)
    for number in (3, 4):
        world.read("lambda", FIRST + timedelta(days=number))
    bring_up_to_date(growing, home, FIRST + timedelta(days=4))
    loaded_at_once(growing, connections, home, FIRST + timedelta(days=4))


def read_days(home: Home, seed: int, sources: tuple[str, ...], days: int) -> date:
    """Read each of the sources on some days; return the last one."""
    for source in sources:
        world = World(home, seed)
        for number in range(days):
            world.read(source, FIRST + timedelta(days=number))
    return FIRST + timedelta(days=days - 1)


def test_rows_of_a_source_that_the_catalogue_lacks_are_skipped(tmp_path: Path, connections: Any) -> None:
    """As if the source had never been read."""
    home, apart = Home(tmp_path / "home"), Home(tmp_path / "apart")
    day = read_days(home, 3, SOURCES, KEPT_DAYS + 4)
    read_days(apart, 3, ("crusoe", "runpod"), KEPT_DAYS + 4)
    skipping, without = connections(), connections()
    for connection in (skipping, without):
        connection.execute("DELETE FROM main.sources WHERE source = 'lambda'")
    assert history.unknown_sources(skipping, home) == ["lambda"]
    bring_up_to_date(skipping, home, day)
    bring_up_to_date(without, apart, day)
    assert differences(tables(skipping), tables(without)) == {}
    assert skipping.execute("SELECT count(*) > 0 FROM main.price_history").fetchone() == (True,)


def test_a_past_day_is_rebuilt_and_asked_about_beside_the_published_file(
    scenario: Scenario, copy_of: Callable[..., Home], tmp_path: Path
) -> None:
    """With the rankings that were published on that day; nothing of the home changes."""
    home, past = copy_of(MENDED), tmp_path / "past.duckdb"
    before = {path: path.stat().st_mtime_ns for path in home.root.rglob("*") if path.is_file()}
    assert gpufare("rebuild", str(past), "--day", f"{BAD}", home=home).returncode == 0
    job = ("--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "1M")
    assert gpufare("cheapest", *job, "--day", f"{BAD}", home=home).returncode == 0
    ranking = "FROM main.cheapest_gpu_per_workload ORDER BY ALL"
    with reader(past) as rebuilt, reader(scenario.home(BAD).published) as published:
        assert ask(rebuilt, ranking).rows == ask(published, ranking).rows
    assert {path: path.stat().st_mtime_ns for path in home.root.rglob("*") if path.is_file()} == before


def test_documented_query_of_the_record_answers(scenario: Scenario) -> None:
    text = (Path(__file__).parents[2] / "docs" / "explanation" / "retention.md").read_text(encoding="utf-8")
    (query,) = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    home = scenario.home(BAD)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{home.published}' AS gpufare (READ_ONLY)")
        found = connection.execute(query.replace("HOME", str(home.root))).fetchall()
    of_h100 = "WHERE gpu_id = 'h100-sxm-80gb' AND price_kind = 'on_demand'"
    published = scenario.rows(BAD, f"SELECT day, source, region, usd_per_gpu_hour FROM main.offers {of_h100}")
    assert set(published) <= set(found)
    assert len(published) > 5
