"""Time, memory and disk space of publishing, by phase: small and large markets, long and short histories."""

import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.lines import Line, Taken, below, clock, peak_megabytes, timed, together
from benchmarks.market import LARGE, SIZES_BY_NAME
from pipeline.home.paths import Home
from pipeline.warehouse import build as building
from pipeline.warehouse.connection import connect
from pipeline.warehouse.publish import publish

LAST_DAY = date(2026, 8, 22)
PHASES = {
    "start": "start from the prepared database",
    "_load": "load the record",
    "keep": "keep what was loaded for the next build",
    "fill": "marts",
    "run_checks": "checks",
}
"""The functions of pipeline/warehouse/build.py that are timed separately, with a name for each."""


@contextmanager
def phases() -> Iterator[dict[str, Taken]]:
    """Time the phases of the builds within the block."""
    taken: dict[str, Taken] = defaultdict(lambda: Taken(0, 0))

    def timing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            with clock() as read:
                answer = function(*arguments)
            taken[name] = together(taken[name], read())
            return answer

        return run

    untimed = {name: getattr(building, name) for name in PHASES}
    try:
        for name, function in untimed.items():
            setattr(building, name, timing(PHASES[name], function))
        yield taken
    finally:
        for name, function in untimed.items():
            setattr(building, name, function)


def first(work: Path) -> list[Line]:
    """Time a machine's first publication, which computes everything that does not depend on prices."""
    home = Home(work / "first")
    _write(home, "small", 1)
    taken = timed(lambda _: publish(home, LAST_DAY, _now(LAST_DAY)))
    return [
        Line("the first publication: plans, and everything else that needs no prices", taken, ""),
        below("peak memory of the run", None, peak_megabytes() / 1e3, 2, "GB"),
    ]


def large(work: Path) -> list[Line]:
    """Time a day of 81,000 offers by phase, and DuckDB and polars alone on the same files."""
    home = _home(work, "large")
    count = LARGE.offers_per_day
    _write(home, "large", 1)
    with phases() as taken, clock() as read:
        publish(home, LAST_DAY, _now(LAST_DAY))
    whole, peak = read(), peak_megabytes()
    files = str(home.record / "offers" / "*" / "*.parquet")
    with connect() as connection:
        bare = timed(lambda n: connection.execute(f"CREATE TABLE t{n} AS FROM read_parquet(?)", [files]), 5)
    polars = timed(lambda _: pl.read_parquet(files), 5)
    record = sum(file.stat().st_size for file in (home.record / "offers").rglob("*.parquet"))
    published = (
        home.published.stat().st_size - (work / "first" / "published" / "gpufare.duckdb").stat().st_size
    )
    ratio = taken[PHASES["_load"]].processor / bare.processor
    return [
        below(f"publish a day of {count:,} offers", whole, whole.processor, 60, "s CPU"),
        below("peak memory of the run", None, peak / 1e3, 1.5, "GB"),
        *(Line(f"phase: {what}", taken[what], "") for what in PHASES.values()),
        Line("the same files with DuckDB alone", bare, f"gpufare takes {ratio:.1f} x as long"),
        Line("the same files with polars", polars, f"{polars.processor / bare.processor:.1f} x DuckDB"),
        Line("size of the record", None, f"{record / count:.0f} bytes per offer"),
        Line("what the day adds to the published file", None, f"{published / count:.0f} bytes per offer"),
    ]


def history(work: Path, size: str = "small", days: tuple[int, int] = (30, 730)) -> list[Line]:
    """Compare a publication after a long history with one after a short one."""
    taken, sizes = [], []
    for length in days:
        home = _home(work, f"history-{length}")
        _write(home, size, length + 1)
        publish(home, LAST_DAY - timedelta(days=1), _now(LAST_DAY - timedelta(days=1)))
        with clock() as read:
            publish(home, LAST_DAY, _now(LAST_DAY))
        taken.append(read())
        sizes.append(home.published.stat().st_size)
        shutil.rmtree(home.root)
    offers = f"{SIZES_BY_NAME[size].offers_per_day:,} offers each"
    ratio = taken[1].processor / taken[0].processor
    return [
        Line(f"publish one more day after {days[0]} days of {offers}", taken[0], f"{sizes[0] / 1e6:.1f} MB"),
        below(f"publish one more day after {days[1]} days", taken[1], ratio, 1.3, "x"),
        below(f"the published file after {days[1]} days", None, sizes[1] / 1e6, 60, "MB"),
        below("peak memory of both publications", None, peak_megabytes() / 1e3, 1.5, "GB"),
    ]


def demo(work: Path, pages: Path) -> list[Line]:
    """Time another publication of the sample pages, with plans and audit cached."""
    from benchmarks.readers import replay

    home = _home(work, "demo")
    with clock() as read:
        day = replay(home, pages)[0]
    publish(home, day, _now(day))
    with phases() as taken, clock() as again:
        publish(home, day, _now(day))
    both = together(read(), again())
    return [
        below("refresh the demo without new plans", both, both.processor, 8, "s CPU"),
        below("peak memory of the run", None, peak_megabytes() / 1e3, 1.5, "GB"),
        *(Line(f"phase: {what}", taken[what], "") for what in PHASES.values()),
    ]


def _write(home: Home, size: str, days: int) -> None:
    """Write a market in a separate process, so that the memory that this takes is not counted."""
    command = [sys.executable, "-m", "benchmarks.market", str(home.root), "--size", size]
    subprocess.run([*command, "--days", str(days), "--last-day", str(LAST_DAY)], check=True)


def _home(work: Path, name: str) -> Home:
    """Return a new home with the caches of the first publication."""
    home = Home(work / name)
    shutil.copytree(work / "first" / "cache", home.cache)
    return home


def _now(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 7, tzinfo=UTC)
