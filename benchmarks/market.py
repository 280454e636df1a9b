"""A made-up market, written as the record of a home that has seen days with many offers.

    python -m benchmarks.market HOME --sources 60 --gpus 90 --regions 5 --kinds 3 --days 1

The same seed gives the same prices. Sellers beyond the catalogue's sources are further providers that those
sources list. List prices stay the same for weeks and then move by a few percent; spot prices move every few
days; all prices fall over the years.
"""

import argparse
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl

from pipeline.catalog.source_config import SourceConfig, configs
from pipeline.contracts.outcome import Outcome, SourceResult
from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.record.journal import Entry, Journal
from pipeline.record.months import SCHEMAS, Month, write_days

KINDS = ("on_demand", "spot", "reserved")
SHARE_OF_ON_DEMAND = {"on_demand": 1.0, "spot": 0.4, "reserved": 0.7}
MOVES_PER_DAY = {"on_demand": 0.02, "spot": 0.3, "reserved": 0.01}
MOVE = 0.03
"""The standard deviation of the logarithm of a price's move."""
PULL = 0.05
"""With each move, a price closes this share of its distance to the market."""
YEARLY_DECLINE = 0.2

REGIONS = (
    ("us-east", "US", "north_america"),
    ("us-west", "US", "north_america"),
    ("eu-west", "NL", "europe"),
    ("eu-central", "DE", "europe"),
    ("ap-northeast", "JP", "asia"),
)
TERM_DAYS = 30
SIZES = (1, 2, 4, 8)
EUR_IN_USD = "1.1699"


@dataclass(frozen=True, slots=True)
class Market:
    """The size of a market: every seller offers every GPU in every region and price kind.

    ``most_offers`` limits a day's offers. With ``same_country``, all regions are in one country, and offers
    with the same terms there are one rental.
    """

    sellers: int
    gpus: int
    regions: int = 5
    kinds: int = 3
    most_offers: int | None = None
    same_country: bool = False
    seed: int = 16

    @property
    def offers_per_day(self) -> int:
        """Return the number of offers in each day's record."""
        every = self.sellers * self.gpus * self.regions * self.kinds
        return min(every, self.most_offers or every)


SMALL = Market(sellers=43, gpus=4, regions=1, most_offers=447)
MIDDLE = Market(sellers=40, gpus=60)
LARGE = Market(sellers=60, gpus=90)
SIZES_BY_NAME = {"small": SMALL, "middle": MIDDLE, "large": LARGE}
"""447, 36,000 and 81,000 offers a day."""


@dataclass(slots=True)
class _Record:
    """The record of a home that was refreshed every day, written a month at a time."""

    home: Home
    offers: dict[Month, dict[date, pl.DataFrame]] = field(default_factory=lambda: defaultdict(dict))
    entries: list[Entry] = field(default_factory=list)

    def add(self, kind: str, source: str, day: date, name: str, content: object) -> None:
        text = json.dumps(content, default=str)
        self.entries.append(Entry(kind, source, day, name, text))

    def write(self) -> None:
        Journal(self.home).write_all(self.entries)
        for month, days in self.offers.items():
            write_days(self.home, month, days)
        self.entries.clear()
        self.offers.clear()


def write_market(home: Home, market: Market, first_day: date, days: int) -> int:
    """Write the record of some days into a home. Returns the total number of offers."""
    record = _Record(home)
    rng = np.random.default_rng(market.seed)
    frame = _offers(market, rng)
    parts = [(str(source), rows, _constant(rows)) for (source,), rows in _by_source(frame)]
    offers = 0
    for number, levels in enumerate(_levels(frame, rng, days)):
        day = first_day + timedelta(days=number)
        _write_rates(record, day)
        for source, rows, constant in parts:
            prices = levels[rows["series"].to_numpy()] * rows["region_factor"].to_numpy()
            _write_day(record, day, source, constant, prices)
            offers += len(rows)
        if (day + timedelta(days=1)).day == 1:
            record.write()
    record.write()
    return offers


def _by_source(frame: pl.DataFrame) -> Iterator[tuple[tuple[Any, ...], pl.DataFrame]]:
    yield from frame.group_by("source", maintain_order=True)


def _constant(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows in the record's columns and types, without the values that differ from day to day."""
    return rows.select(
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in SCHEMAS["offers"].items()
    )


def _levels(frame: pl.DataFrame, rng: np.random.Generator, days: int) -> Iterator[np.ndarray]:
    """Yield USD per GPU-hour of each series (seller, GPU, price kind), day by day."""
    series = frame.unique("series").sort("series")
    market = np.log(series["usd_per_gpu_hour"].to_numpy())
    moves_per_day = series["price_kind"].replace_strict(MOVES_PER_DAY, return_dtype=pl.Float64).to_numpy()
    level = market + rng.normal(0, 0.1, len(market))
    for _ in range(days):
        yield np.exp(level)
        market = market - YEARLY_DECLINE / 365
        moved = level + PULL * (market - level) + rng.normal(0, MOVE, len(level))
        level = np.where(rng.random(len(level)) < moves_per_day, moved, level)


def _offers(market: Market, rng: np.random.Generator) -> pl.DataFrame:
    """Return a day's offers without prices; prices are those of the ``series`` times ``region_factor``."""
    sellers = pl.DataFrame(_sellers(market.sellers)).with_columns(
        seller_factor=pl.Series(np.exp(rng.normal(0, 0.15, market.sellers))),
        billing_increment_seconds=pl.Series(rng.choice([1, 60, 3600], market.sellers)).cast(pl.Int32),
        egress_usd_per_gb=pl.Series(rng.choice([0.0, 0.01, 0.05, 0.09], market.sellers)),
    )
    gpus = _gpus().head(market.gpus)
    kinds = pl.DataFrame({"price_kind": KINDS[: market.kinds]})
    places = [REGIONS[0]] * market.regions if market.same_country else _places(market.regions)
    regions = pl.DataFrame(
        [
            {"region": f"{name}-{n + 1}", "country": country, "continent": continent}
            for n, (name, country, continent) in enumerate(places)
        ]
    ).with_columns(region_factor=pl.Series(np.exp(rng.normal(0, 0.04, market.regions))))

    machines = sellers.join(gpus, how="cross")
    largest = machines["max_gpus_per_node"].to_numpy()
    drawn = np.array(SIZES)[rng.integers(0, len(SIZES), len(machines))]
    machines = machines.with_columns(gpu_count=pl.Series(np.minimum(drawn, largest)).cast(pl.Float64))
    share = pl.col("price_kind").replace_strict(SHARE_OF_ON_DEMAND, return_dtype=pl.Float64)
    return (
        machines.join(kinds, how="cross")
        .with_row_index("series")
        .with_columns(usd_per_gpu_hour=pl.col("list_usd_per_gpu_hour") * pl.col("seller_factor") * share)
        .join(regions, how="cross")
        .head(market.offers_per_day)
        .with_columns(
            raw_label=pl.format("{} x {}", pl.col("gpu_count").cast(pl.Int32), "gpu_id"),
            instance_type=pl.format("{}-{}", "gpu_id", pl.col("gpu_count").cast(pl.Int32)),
            match_status=pl.lit("matched"),
            match_rule=pl.lit("label"),
            match_confidence=pl.lit("certain"),
            candidates=pl.col("gpu_id"),
            size_evidence=pl.lit("offered"),
            term_days=pl.when(pl.col("price_kind") == "reserved").then(TERM_DAYS).cast(pl.Int32),
            native_currency=pl.lit("USD"),
            native_unit=pl.lit("instance_hour"),
            vcpus=12 * pl.col("gpu_count"),
            ram_gib=2 * pl.col("memory_gb") * pl.col("gpu_count"),
        )
    )


def _places(count: int) -> list[tuple[str, str, str]]:
    return [REGIONS[n % len(REGIONS)] for n in range(count)]


def _sellers(count: int) -> list[dict[str, str]]:
    """Return sellers: the catalogue's sources, then further providers that those sources list."""
    found = []
    sources = _price_sources()
    for n in range(count):
        config = sources[n % len(sources)]
        found.append(
            {
                "source": config.name,
                "provider": config.provider if n < len(sources) else f"Provider {n + 1}",
                "tier_class": config.attributes.tier_class,
            }
        )
    return found


@cache
def _price_sources() -> list[SourceConfig]:
    """Return the active sources with machines for training."""
    return [
        config
        for config in configs().values()
        if config.kind == "prices"
        and config.disabled is None
        and config.attributes.tier_class != "serverless"
    ]


@cache
def _gpus() -> pl.DataFrame:
    """Return the GPUs with plans, newest data-centre cards first, priced by their memory and speed."""
    file = paths.CATALOG_DIR / "gpus.csv"
    with duckdb.connect() as connection:
        rows = connection.execute(_GPUS, [str(file)]).fetchall()
    names = ["gpu_id", "memory_gb", "max_gpus_per_node", "list_usd_per_gpu_hour"]
    return pl.DataFrame(rows, schema=names, orient="row")


_GPUS = """
SELECT
    gpu_id, memory_gb::DOUBLE, coalesce(max_gpus_per_node, 1)::BIGINT,
    0.03 * memory_gb ** 0.6 * coalesce(bf16_dense_tflops, fp16_dense_tflops) ** 0.3
FROM read_csv(?)
WHERE has_full_specs
ORDER BY segment <> 'datacenter', segment = 'legacy', derived_from IS NOT NULL, year DESC, gpu_id
"""


def _write_day(
    record: _Record, day: date, source: str, offers: pl.DataFrame, usd_per_gpu_hour: np.ndarray
) -> None:
    observed_at = datetime.combine(day, time(6), UTC)
    sha256 = hashlib.sha256(f"{source} {day}".encode()).hexdigest()
    # To the hundredth of a cent, so that the machine's price is exactly the sum of its GPUs' prices.
    per_gpu = pl.Series(np.maximum(np.round(usd_per_gpu_hour, 4), 1e-4))
    of_the_day: dict[str, Any] = {
        "usd_per_gpu_hour": per_gpu,
        "usd_per_hour": per_gpu * offers["gpu_count"],
        "native_price": per_gpu * offers["gpu_count"],
        "observed_at": observed_at,
        "source_url": f"https://{source}.example/prices",
        "capture_sha256": sha256,
    }
    types = offers.schema
    priced = offers.with_columns(
        pl.lit(value).cast(types[name]).alias(name) for name, value in of_the_day.items()
    )
    record.offers[Month.of("offers", source, day)][day] = priced
    _write_outcome(record, day, source, len(offers), observed_at, sha256)


def _write_outcome(
    record: _Record, day: date, source: str, rows: int, observed_at: datetime, sha256: str
) -> None:
    attempt = f"{observed_at:%Y%m%dT%H%M%S}.000000Z"
    outcome = Outcome(
        day=day, source=source, attempt=attempt, status="captured", accepted=True, reason=None, requests=1,
        bytes=200 * rows, sha256=sha256, duration_seconds=1.0, rows=rows, matched=rows,
        observed_at=observed_at, result=SourceResult.FRESH, regions=1, replayed=False,
    )  # fmt: skip
    content = asdict(outcome) | {"warnings": None, "result": "fresh"}
    record.add("outcome", source, day, attempt, content)


def _write_rates(record: _Record, day: date) -> None:
    """Record the European Central Bank's rates for a day."""
    observed_at = datetime.combine(day, time(6), UTC)
    row = {"day": day, "currency": "EUR", "usd_per_unit": EUR_IN_USD, "rate_date": day}
    record.add("exchange_rates", "", day, "", [row])
    for config in configs().values():
        if config.kind == "exchange_rates":
            _write_outcome(record, day, config.name, 1, observed_at, hashlib.sha256(b"rates").hexdigest())


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("home", type=Path)
    arguments.add_argument("--size", choices=SIZES_BY_NAME, help="447, 36,000 or 81,000 offers a day")
    arguments.add_argument("--sources", type=int, default=60)
    arguments.add_argument("--gpus", type=int, default=90)
    arguments.add_argument("--regions", type=int, default=5)
    arguments.add_argument("--kinds", type=int, default=len(KINDS), choices=range(1, len(KINDS) + 1))
    arguments.add_argument("--days", type=int, default=1)
    arguments.add_argument("--last-day", type=date.fromisoformat, default=date(2026, 8, 22))
    arguments.add_argument("--seed", type=int, default=16)
    options = arguments.parse_args()
    market = (
        SIZES_BY_NAME[options.size]
        if options.size
        else Market(options.sources, options.gpus, options.regions, options.kinds, seed=options.seed)
    )
    first_day = options.last_day - timedelta(days=options.days - 1)
    offers = write_market(Home(options.home.absolute()), market, first_day, options.days)
    print(f"{offers:,} offers, {market.offers_per_day:,} a day, {first_day} to {options.last_day}")


if __name__ == "__main__":
    main()
