"""The made-up market is a record like any other, and the same for the same seed."""

import itertools
from datetime import date
from pathlib import Path

import polars as pl

from benchmarks.market import SMALL, Market, write_market
from pipeline.home.paths import Home
from pipeline.record.mending import damages
from pipeline.record.months import Month, months, rows_of
from pipeline.warehouse.database import in_memory
from tests.warehouse.full_load import load_record

DAY = date(2026, 8, 20)


def test_a_made_up_market_is_a_whole_record(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert write_market(home, SMALL, DAY, 2) == 2 * 447

    assert damages(home) == []
    with in_memory("offers", "capture_outcomes", "exchange_rates", "rejects", "sources") as connection:
        assert load_record(connection, home, DAY.replace(day=21)) == []
        counted = connection.execute("SELECT count(*), count(DISTINCT day) FROM main.offers").fetchall()
        assert counted == [(2 * 447, 2)]


def days_of(home: Home) -> dict[tuple[str, date], pl.DataFrame]:
    found: list[Month] = months(home, "offers")
    return {(month.source, day): rows for month in found for day, rows in rows_of(home, month).items()}


def test_prices_move_and_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    market = Market(sellers=3, gpus=4, regions=2)
    for place in ("one", "other"):
        write_market(Home(tmp_path / place), market, DAY, 20)
    one, other = days_of(Home(tmp_path / "one")), days_of(Home(tmp_path / "other"))
    assert len(one) == 3 * 20
    assert one.keys() == other.keys()
    assert all(rows.equals(other[key]) for key, rows in one.items())
    (source, _), *_ = sorted(one)
    prices = [one[key]["usd_per_hour"] for key in sorted(one) if key[0] == source]
    assert len(prices) == 20
    stood_still = [(before == after).sum() / len(before) for before, after in itertools.pairwise(prices)]
    assert 0.5 < sum(stood_still) / len(stood_still) < 1
