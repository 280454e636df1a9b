"""How long questions take, side by side in one run, and how that compares with gpuhunt.

    gpufare demo tests/pages
    pip install -r benchmarks/requirements.txt
    python benchmarks/questions.py [--home HOME] [--repeats 7] [--write docs/speed.md]

Times are the least of the repeats. The market of 81,000 offers is made up from a seed. Without gpuhunt the
comparison with it is left out, and said to be.
"""

import argparse
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import duckdb
from plans import CANDIDATES, JOBS

import gpufare
from pipeline.contracts import paths
from pipeline.contracts.paths import Home
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import planner, prepare
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.marts import fill
from pipeline.warehouse.query import ask, reader

TITLE = "# How fast questions are"

AHEAD = """## Plans computed ahead

A question to plans that are published (`plans`, `plan_grid`) needs no planner. How many are published is a
matter of size and time, measured on 2026-11-22 with 140 models: a job takes 0.2 s of CPU to plan for all
GPUs up to 64 (two busy cores) and 19 kB of the file (523 rows of 37 bytes; rows that do not fit are left
out, and bands, P(fits) and verdict follow from the others). Full fine-tuning, LoRA and QLoRA of rank 16
with sequences of 2048 and 4096 are 806 jobs beside the workloads: 173 s and 15.5 MB, with which the
published file stays below 60 MB. Every method with ranks 8 to 64 and sequences from 512 to 32k would be
10,010 jobs, by the same rates 36 minutes and 190 MB. Nothing waits for it: a refresh goes on for a minute
after it has published, and the next publication has what was computed.
"""

WHERE = """## Where the time goes

A question is a large statement on few rows: DuckDB binds and optimizes it anew each time, which costs 12 to
21 microseconds for each expression, whatever the rows. Checking a job is 2,600 expressions, ranking it 4,000,
planning one 20,000, two thirds of which hand columns on to the next step; planning takes seven eighths of
its time for no GPU at all. A prepared statement is bound again as soon as it reads a table. It is not where
all that it reads are Arrow streams: that halves checking a job and planning it and saves a third of the
ranking, which is not worth a second way to read every table.
"""

DAY = "2026-08-22"
SOURCES, GPUS, REGIONS, KINDS = 60, 90, 5, ("on_demand", "spot", "reserved")
WANTED_GPU = "h100-sxm-80gb"
SEED = 15

FIRST = 10
JOB = {"model": "llama-3.1-8b", "method": "qlora", "tokens": 100e6, "seq_len": 2048}


class Taken(NamedTuple):
    """Least seconds of processor and wall clock of some repeats."""

    processor: float
    wall: float


class Line(NamedTuple):
    """One row of the table: what was timed, what it took, and how that compares with its goal."""

    question: str
    taken: Taken | None
    measured: str
    goal: str
    reached: bool | None


def timed(question: Callable[[int], object], repeats: int) -> Taken:
    """Ask so many times; the question is given the number of the repeat."""
    processors, walls = [], []
    for repeat in range(repeats):
        processor, wall = _processor_seconds(), time.perf_counter()
        question(repeat)
        processors.append(_processor_seconds() - processor)
        walls.append(time.perf_counter() - wall)
    return Taken(min(processors), min(walls))


def _processor_seconds() -> float:
    """Of this process and of those that it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def questions(home: Home, repeats: int) -> list[Line]:
    """What a person asks, of the published file of a home."""
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

    # A connection for each repeat, opened and in use: the plans of a job are kept.
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
        _against("what-if on a job that has its plans ready", grid, 0.050),
        _against("what-if on any other job: planned first", off_grid, 0.150),
        _against("the same job with other tokens and deadline", changed, 0.050),
        Line(f"its first {FIRST} answers, as the command asks for them", first_changed, "", "", None),
        _against("`gpufare cheapest` as a process", process, 0.400),
        _against("look-up in a published table", look_up, 0.005),
    ]


def _against(question: str, taken: Taken, goal: float) -> Line:
    ratio = taken.processor / goal
    return Line(question, taken, f"{ratio:.2f} of the goal", f"{goal * 1e3:.0f} ms CPU", ratio <= 1)


def candidates(repeats: int) -> Line:
    """How many candidates the planner evaluates per second, on two threads."""
    with planner("plans_for") as connection:
        connection.execute("SET threads = 2")
        connection.execute(JOBS, [8])
        count = connection.execute(CANDIDATES).fetchall()[0][0]
        taken = timed(lambda _: connection.execute(CANDIDATES).fetchall(), min(repeats, 3))
    rate = count / taken.wall
    return Line(
        f"{count:,} candidates of plans",
        taken,
        f"{rate / 1e6:.2f} million per second",
        "2 million",
        rate >= 2e6,
    )


def market() -> duckdb.DuckDBPyConnection:
    """A database of made-up offers: 60 sources x 90 GPUs x 5 regions x 3 price kinds."""
    connection = connect()
    prepare(connection)
    connection.execute("SET threads = 2")
    connection.execute(
        f"SET VARIABLE as_of_day = DATE '{DAY}'; SET VARIABLE today = DATE '{DAY}';"
        f"SET VARIABLE as_of_time = TIMESTAMPTZ '{DAY} 07:00:00+00'"
    )
    connection.execute("DELETE FROM main.sources")
    connection.execute(_MADE_UP_SOURCES, [SOURCES, DAY])
    connection.execute(
        _MADE_UP_OFFERS,
        {
            "gpus": GPUS,
            "regions": REGIONS,
            "kinds": list(KINDS),
            "day": DAY,
            "seed": SEED,
            "wanted": WANTED_GPU,
        },
    )
    lineage = Lineage(connection)
    for mart in lineage.marts({"rentals", "publication", "cheapest_for", "price_list"}):
        if not mart.startswith("plan"):
            fill(connection, mart)
    return connection


_MADE_UP_SOURCES = """
INSERT INTO main.sources BY NAME
SELECT
    'source-' || n AS source, 'Source ' || n AS title, 'Provider ' || n AS provider,
    'https://prices.example' AS homepage, 'prices' AS kind, 'captured' AS evidence_level,
    $2::DATE AS evidence_date, 'made up' AS evidence_note, 'unknown' AS terms_automated, 'USD' AS currency,
    FALSE AS needs_key, 7 AS stale_after_days, 'dedicated' AS tier_class
FROM range($1) AS t (n)
"""

_MADE_UP_OFFERS = """
INSERT INTO main.offers BY NAME
WITH _gpus AS (
    SELECT gpu_id, row_number() OVER (ORDER BY gpu_id <> $wanted, gpu_id) AS n
    FROM main.gpus
    WHERE has_full_specs
    QUALIFY n <= $gpus
),

_made AS (
    SELECT
        s.source, s.provider, g.gpu_id, r.region, k.price_kind,
        [1, 2, 4, 8][1 + (hash($seed, s.source, g.gpu_id) % 4)::INTEGER] AS gpu_count,
        (1 + 0.1 * g.n) * (0.8 + 0.4 * (hash($seed, s.source, g.gpu_id, r.region) % 10007) / 10007.0)
            * CASE k.price_kind WHEN 'spot' THEN 0.4 WHEN 'reserved' THEN 0.7 ELSE 1 END AS usd_per_gpu_hour
    FROM main.sources AS s
    CROSS JOIN _gpus AS g
    CROSS JOIN range($regions) AS r (region)
    CROSS JOIN (SELECT unnest($kinds) AS price_kind) AS k
)

SELECT
    $day::DATE AS day, source, provider, gpu_id || ' x ' || gpu_count AS raw_label,
    gpu_id || '-' || gpu_count AS instance_type, gpu_id, 'matched' AS match_status, 'exact' AS match_rule,
    'certain' AS match_confidence, gpu_count, 'offered' AS size_evidence, price_kind,
    CASE price_kind WHEN 'reserved' THEN 30 END AS term_days, 'region-' || region AS region,
    usd_per_gpu_hour * gpu_count AS usd_per_hour, usd_per_gpu_hour,
    usd_per_gpu_hour * gpu_count AS native_price, 'USD' AS native_currency, 'instance_hour' AS native_unit,
    'dedicated' AS tier_class, ($day || ' 06:00:00+00')::TIMESTAMPTZ AS observed_at,
    'https://prices.example' AS source_url, '00' AS capture_sha256
FROM _made
"""

_CHEAPEST_OFFER = f"""
SELECT source, region, usd_per_hour
FROM main.price_list
WHERE gpu_id = '{WANTED_GPU}' AND gpu_count >= 1 AND price_kind = 'spot'
ORDER BY usd_per_hour
LIMIT 1
"""

_JOB = """
CREATE OR REPLACE TEMP TABLE asked AS
SELECT 'job' AS job, 'llama-3.1-8b' AS model, 'qlora' AS method, 100e6 AS tokens, 2048 AS seq_len
"""


def against_gpuhunt(repeats: int) -> list[Line]:
    """The cheapest of the made-up offers, and the whole answer for a job, against gpuhunt in memory."""
    with market() as connection:
        count = connection.execute("SELECT count(*) FROM main.offers").fetchall()[0][0]
        offer = timed(lambda _: connection.execute(_CHEAPEST_OFFER).fetchall(), repeats)
        cheapest = connection.execute(_CHEAPEST_OFFER).fetchall()[0][2]
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
        Line(f"the cheapest of {count:,} offers", offer, "", "", None),
        Line(f"dollars per job among them: {rows:,} ranked ways", answer, "", "", None),
        Line("the first 20 of these", first, "", "", None),
    ]
    catalog = _gpuhunt(offers)
    if catalog is None:
        missing = "not compared: gpuhunt is not installed (pip install -r benchmarks/requirements.txt)"
        return [*lines, Line("gpuhunt", None, missing, "", None)]
    query = catalog.query  # type: ignore[attr-defined]
    found = query(gpu_name=WANTED_GPU, min_gpu_count=1, spot=True)
    if abs(min(item.price for item in found) - float(cheapest)) > 1e-8:
        raise SystemExit("gpuhunt finds another cheapest offer: the comparison is not of the same question")
    theirs = timed(lambda _: query(gpu_name=WANTED_GPU, min_gpu_count=1, spot=True), repeats)
    listed = timed(lambda _: query(spot=False, max_gpu_count=8), repeats)
    times = theirs.processor / offer.processor
    faster = listed.processor / answer.processor
    return [
        lines[0]._replace(measured=f"{times:.0f} x gpuhunt", goal="30 x gpuhunt", reached=times >= 30),
        Line("gpuhunt: the same query", theirs, "", "", None),
        lines[1]._replace(measured=f"{faster:.1f} x gpuhunt's list", goal="1 x", reached=faster >= 1),
        lines[2]._replace(measured=f"{listed.processor / first.processor:.1f} x gpuhunt's list"),
        Line("gpuhunt: its list of their prices", listed, "", "", None),
    ]


_AS_ITEMS = """
SELECT instance_type, region, usd_per_hour::DOUBLE, gpu_id, gpu_count::INTEGER, price_kind = 'spot'
FROM main.offers
ORDER BY ALL
"""


def _gpuhunt(offers: Sequence[tuple[str, str, float, str, int, bool]]) -> object | None:
    """Its catalogue with the same offers, spread over the providers that it knows; None without gpuhunt."""
    try:
        from gpuhunt._internal import catalog as theirs
        from gpuhunt._internal.models import AcceleratorVendor, CatalogItem
    except ImportError:
        return None
    found = theirs.Catalog(balance_resources=False, auto_reload=False)
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


def table(lines: Sequence[Line]) -> str:
    """The lines as a table of Markdown."""
    rows = ["| | CPU | wall | measured | goal | reached |", "| --- | ---: | ---: | --- | --- | --- |"]
    for line in lines:
        times = (
            (f"{line.taken.processor * 1e3:.1f} ms", f"{line.taken.wall * 1e3:.1f} ms")
            if line.taken
            else "  "
        )
        reached = {None: "", True: "yes", False: "no"}[line.reached]
        rows.append(
            f"| {line.question} | {times[0]} | {times[1]} | {line.measured} | {line.goal} | {reached} |"
        )
    return "\n".join(rows)


def page(lines: Sequence[Line]) -> str:
    """docs/speed.md: the table, and on what it was measured."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    made = (
        f"{datetime.now(UTC):%Y-%m-%d}, commit {commit or 'unknown'}, {os.cpu_count()} cores, {_processor()}"
    )
    return f"""{TITLE}

Written by `python benchmarks/questions.py --write docs/speed.md`: {made},
Python {platform.python_version()}, DuckDB {duckdb.__version__}, load {os.getloadavg()[0]:.1f} when it ended.
Processor time is that of all threads; each time is the least of the repeats. All lines are of one run:
compare the ratios, as times on a machine that does other work are longer.

{table(lines)}

The offers are made up: 60 sources x 90 GPUs x 5 regions x 3 price kinds. gpuhunt has the same ones in memory.

{WHERE}
{AHEAD}"""


def _processor() -> str:
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    return names[0] if names else platform.machine()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--home", type=Path, help="default: $GPUFARE_HOME, or the user's data folder")
    arguments.add_argument("--repeats", type=int, default=7)
    arguments.add_argument("--write", type=Path, metavar="FILE", help="also write the table here")
    options = arguments.parse_args()
    home = Home(options.home.absolute()) if options.home else paths.home()
    lines = [
        *questions(home, options.repeats),
        candidates(options.repeats),
        *against_gpuhunt(options.repeats),
    ]
    print(table(lines))
    if options.write:
        options.write.write_text(page(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
