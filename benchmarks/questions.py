"""Times of questions, compared with gpuhunt, DuckDB alone and polars on the same offers.

gpuhunt is looked for among the installed packages, then in data/bench, where `make bench` puts it. Without it
the comparison is skipped, with a note.
"""

import os
import site
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

import gpufare
from benchmarks.lines import Line, Taken, above, timed
from pipeline.home.paths import Home
from pipeline.warehouse.connection import connect, quoted
from pipeline.warehouse.database import planner
from pipeline.warehouse.query import ask, reader

GPUHUNT = Path(__file__).parents[1] / "data" / "bench"
WANTED_GPU = "h100-sxm-80gb"
REPEATS = 7
FIRST = 10

JOB: dict[str, Any] = {"model": "llama-3.1-8b", "method": "qlora", "tokens": 100e6, "seq_len": 2048}


JOBS = """
CREATE TABLE jobs AS
SELECT model, method, seq_len
FROM (SELECT model FROM main.models ORDER BY model LIMIT $1),
    (VALUES ('full'), ('lora'), ('qlora')) AS m (method),
    (VALUES (1024), (2048), (4096), (8192)) AS s (seq_len)
"""
CANDIDATES = "SELECT count(*), sum(tokens_per_second_per_gpu), max(needed_gib) FROM candidates_for('jobs')"


def questions(work: Path, repeats: int = REPEATS) -> list[Line]:
    """Time questions that a person asks the published file made from the sample pages."""
    home = Home(work / "demo")
    off = iter(range(2049, 100_000))
    with gpufare.open(home.root) as prices:
        prices.cheapest(**JOB)
        off_grid = timed(lambda _: prices.cheapest(**{**JOB, "seq_len": next(off)}), repeats)
        changed = timed(
            lambda n: prices.cheapest(**{**JOB, "tokens": (n + 1) * 1e6, "max_hours": 500}), repeats
        )
        first_changed = timed(
            lambda n: prices.cheapest(**{**JOB, "tokens": (n + 1) * 1e6}, limit=FIRST), repeats
        )

    # A new connection per repeat, since a connection keeps the plans of a job.
    fresh = [gpufare.open(home.root) for _ in range(repeats)]
    for prices in fresh:
        prices.compare("l4", "t4")
    grid = timed(lambda repeat: fresh[repeat].cheapest(**JOB), repeats)
    for prices in fresh:
        prices.close()
    command = [
        sys.executable, "-m", "pipeline.cli", "cheapest", "--model", JOB["model"], "--method", JOB["method"],
        "--tokens", "100M",
    ]  # fmt: skip
    environment = os.environ | {"GPUFARE_HOME": str(home.root)}
    process = timed(
        lambda _: subprocess.run(command, env=environment, check=True, capture_output=True), repeats
    )
    with reader(home.published) as connection:
        look_up = timed(
            lambda _: ask(
                connection,
                "SELECT * FROM cheapest_gpu_per_workload WHERE workload = '8b-lora-10m-tokens' LIMIT 10",
            ),
            repeats,
        )
    return [
        _against("what-if on a job whose plans are ready", grid, 0.050),
        _against("what-if on any other job, which is planned first", off_grid, 0.150),
        _against("the same job with another deadline and number of tokens", changed, 0.050),
        Line(f"the first {FIRST} answers to that job, as the command asks for them", first_changed, ""),
        _against("`gpufare cheapest` as a process", process, 0.400),
        _against("look-up in a published table", look_up, 0.005),
    ]


def _against(question: str, taken: Taken, goal: float) -> Line:
    ratio = taken.processor / goal
    return Line(question, taken, f"{ratio:.2f} times the goal", f"{goal * 1e3:.0f} ms CPU", ratio <= 1)


def plans(models: int = 8) -> list[Line]:
    """Measure how many candidates the planner evaluates per second on two threads, without pruning.

    A candidate is a model, method, sequence length, GPU, count, micro-batch, checkpointing and sharding.
    """
    with planner("plans_for") as connection:
        connection.execute("SET threads = 2")
        connection.execute(JOBS, [models])
        count = connection.execute(CANDIDATES).fetchall()[0][0]
        taken = timed(lambda _: connection.execute(CANDIDATES).fetchall(), 3)
    return [above(f"{count:,} candidate plans", taken, count / taken.wall / 1e6, 2, "million per second")]


_CHEAPEST_OFFER = f"""
SELECT source, region, usd_per_hour
FROM {{}}
WHERE gpu_id = '{WANTED_GPU}' AND gpu_count >= 1 AND price_kind = 'spot'
ORDER BY usd_per_hour
LIMIT 1
"""

_JOB = """
CREATE OR REPLACE TEMP TABLE asked AS
SELECT 'job' AS job, 'llama-3.1-8b' AS model, 'qlora' AS method, 100e6 AS tokens, 2048 AS seq_len
"""


def against_others(work: Path, repeats: int = REPEATS) -> list[Line]:
    """Time finding the cheapest of 81,000 offers, and a job's whole answer, against gpuhunt, DuckDB alone and
    polars on the same offers in memory."""
    with connect() as connection:
        published = Home(work / "large").published
        connection.execute(f"ATTACH '{quoted(published)}' AS gpufare (READ_ONLY)")
        connection.execute("USE gpufare; SET threads = 2")
        connection.execute("SET VARIABLE today = (SELECT as_of_day FROM main.publication)")
        count = connection.execute("SELECT count(*) FROM main.offers").fetchall()[0][0]
        query = _CHEAPEST_OFFER.format("main.price_list")
        offer = timed(lambda _: connection.execute(query).fetchall(), repeats)
        cheapest = connection.execute(query).fetchall()[0][2]
        connection.execute("CREATE TEMP TABLE in_memory AS FROM main.offers")
        bare_query = _CHEAPEST_OFFER.format("in_memory")
        bare = timed(lambda _: connection.execute(bare_query).fetchall(), repeats)
        frame = pl.read_parquet(str(Home(work / "large").record / "offers" / "*" / "*.parquet"))
        polars = timed(lambda _: _cheapest(frame), repeats)
        connection.execute(_JOB)
        connection.execute("CREATE TEMP TABLE jobs AS FROM completed_jobs('asked')")
        connection.execute("CREATE TEMP TABLE ready AS FROM job_plans('jobs')")
        ranked = "SELECT * FROM ranked_jobs('jobs', 'ready') ORDER BY rank"
        rows = len(connection.execute(ranked).fetchall())
        answer = timed(lambda _: connection.execute(ranked).fetchall(), repeats)
        connection.execute("CREATE TEMP TABLE first AS SELECT * REPLACE (20 AS most_rows) FROM jobs")
        first = timed(lambda _: connection.execute(ranked.replace("'jobs'", "'first'")).fetchall(), repeats)
        offers = connection.execute(_AS_ITEMS).fetchall()
    lines = [
        Line(f"the cheapest of {count:,} offers", offer, ""),
        Line("the same question to DuckDB alone", bare, f"{bare.processor / offer.processor:.1f} x"),
        Line("the same question to polars", polars, f"{polars.processor / offer.processor:.1f} x"),
        Line(f"dollars per job among these offers: {rows:,} ranked ways", answer, ""),
        Line("the first 20 of these ways", first, ""),
    ]
    return [*lines, *_against_gpuhunt(offers, float(cheapest), offer, answer, repeats)]


def _cheapest(frame: pl.DataFrame) -> pl.DataFrame:
    return (
        frame.lazy()
        .filter(
            (pl.col("gpu_id") == WANTED_GPU) & (pl.col("gpu_count") >= 1) & (pl.col("price_kind") == "spot")
        )
        .select("source", "region", "usd_per_hour")
        .bottom_k(1, by="usd_per_hour")
        .collect()
    )


def _against_gpuhunt(
    offers: Sequence[tuple[str, str, float, str, int, bool]],
    cheapest: float,
    offer: Taken,
    answer: Taken,
    repeats: int,
) -> list[Line]:
    catalog = _gpuhunt(offers)
    if catalog is None:
        missing = "not compared: gpuhunt is not installed (pip install -r benchmarks/requirements.txt)"
        return [Line("gpuhunt", None, missing)]
    query = catalog.query
    found = query(gpu_name=WANTED_GPU, min_gpu_count=1, spot=True)
    if abs(min(item.price for item in found) - cheapest) > 1e-8:
        raise SystemExit("gpuhunt finds another cheapest offer: the comparison is not of the same question")
    theirs = timed(lambda _: query(gpu_name=WANTED_GPU, min_gpu_count=1, spot=True), repeats)
    listed = timed(lambda _: query(spot=False, max_gpu_count=8), repeats)
    return [
        above("the cheapest offer, with gpuhunt", theirs, theirs.processor / offer.processor, 30, "x"),
        above("a list of prices, with gpuhunt", listed, listed.processor / answer.processor, 1, "x"),
    ]


_AS_ITEMS = """
SELECT instance_type, region, usd_per_hour::DOUBLE, gpu_id, gpu_count::INTEGER, price_kind = 'spot'
FROM main.offers
ORDER BY ALL
"""


def _gpuhunt(offers: Sequence[tuple[str, str, float, str, int, bool]]) -> Any | None:
    """Return gpuhunt's catalogue with the same offers, spread over its providers; None if it is missing."""
    site.addsitedir(str(GPUHUNT))
    try:
        from gpuhunt._internal import catalog as theirs
        from gpuhunt._internal.models import AcceleratorVendor, CatalogItem
    except ImportError:
        return None
    found: Any = theirs.Catalog(balance_resources=False, auto_reload=False)
    names = theirs.OFFLINE_PROVIDERS
    for place, name in enumerate(names):
        items = [
            CatalogItem(
                provider=name, instance_name=label, location=region, price=price, cpu=8, memory=64.0,
                gpu_count=count, gpu_name=gpu, gpu_memory=80.0, spot=spot, disk_size=None,
                gpu_vendor=AcceleratorVendor.NVIDIA,
            )
            for label, region, price, gpu, count, spot in offers[place :: len(names)]
        ]  # fmt: skip
        found.catalog[name] = theirs.ProviderCatalog(version="made up", items=items)
    found.loaded_at = time.monotonic()
    return found
