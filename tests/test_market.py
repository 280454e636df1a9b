"""The made-up market is a record like any other, and the same for the same seed."""

import itertools
from datetime import date
from pathlib import Path

import polars as pl

from benchmarks.market import SMALL, Market, write_market
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.warehouse.database import in_memory
from tests.full_load import load_record

DAY = date(2026, 8, 20)


def test_a_made_up_market_is_a_whole_record(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert write_market(home, SMALL, DAY, 2) == 2 * 447

    records = Records(home)
    assert [records.damages(folder) for folder in ("offers", "outcomes", "exchange_rates")] == [[], [], []]
    with in_memory("offers", "capture_outcomes", "exchange_rates", "rejects", "sources") as connection:
        assert load_record(connection, home, DAY.replace(day=21)) == []
        counted = connection.execute("SELECT count(*), count(DISTINCT day) FROM main.offers").fetchall()
        assert counted == [(2 * 447, 2)]


def test_prices_move_and_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    market = Market(sellers=3, gpus=4, regions=2)
    for place in ("one", "other"):
        write_market(Home(tmp_path / place), market, DAY, 20)
    files = sorted((tmp_path / "one" / "offers").rglob("*.parquet"))
    days = [pl.read_parquet(file) for file in files]
    assert len(days) == 3 * 20
    for file, day in zip(files, days, strict=True):
        assert day.equals(pl.read_parquet(tmp_path / "other" / file.relative_to(tmp_path / "one")))
    prices = [day["usd_per_hour"] for day in days if day["source"][0] == days[0]["source"][0]]
    assert len(prices) == 20
    stood_still = [(before == after).sum() / len(before) for before, after in itertools.pairwise(prices)]
    assert 0.5 < sum(stood_still) / len(stood_still) < 1
