"""A simulated year: a refresh every morning, faults from a seed, and at the end a history that is true.

The days are those after 2025-11-20, so that none is in the future. At night it is a month in which most days
have a fault, and every kind of fault comes.
"""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import configs
from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import Home
from pipeline.refresh.ingest import record_day
from pipeline.refresh.inputs import capture_sources
from tests.nightly.stress.homes import (
    ALL,
    LIMITS,
    SEED,
    Lab,
    litter,
    price_problems,
    published_problems,
    refreshed,
    rows,
)
from tests.nightly.stress.market import FIRST_DAY, PRICES, SOURCES, Misread
from tests.refresh.faulty_server import Fault, says

DAYS, FAULT_CHANCE, LONGEST_OUTAGE_DAYS = (365, 0.35, 10) if ALL else (30, 0.8, 3)
"""The longest outage of the year is longer than the seven days after which prices are stale."""

QUIET_DAYS_PER_PUBLISH = 7
"""A publish takes longer the more history there is: it is done on days with a fault, after harm to the home,
and now and then."""

HARD_TO_REACH: dict[str, Fault] = {
    "down": says(503),
    "rate limited": says(429, retry_after="0"),
    "moved": says(200, b"<html><body><h1>We moved</h1></body></html>", content_type="text/html"),
}
OF_A_PAGE = ("all prices misread", "one price misread", "second run without answers")
KINDS = (
    *HARD_TO_REACH, "robots unreachable", *OF_A_PAGE, "damaged file", "killed run", "litter", "stray copy",
    "clock ahead",
)  # fmt: skip
ROBOTS_ARE_ASKED = ("crusoe", "together")
"""The others offer an interface for programs, whose robots.txt is not asked."""

DAMAGED = ("record/offers", "record/rejects", "record/rankings", "record/journal.sqlite", "cache")
MOST_GROWTH = 1.6
"""Largest ratio of the record's growth in the second half year to that in the first."""


@dataclass(frozen=True)
class Trouble:
    """A fault of a day; ``source`` is '' if it is no source's."""

    day: date
    kind: str
    source: str = ""
    factor: int = 10

    def served(self) -> dict[str, Any]:
        """Return how the day's server is at fault."""
        if self.kind in HARD_TO_REACH:
            return {"faults": {self.source: HARD_TO_REACH[self.kind]}}
        if self.kind == "robots unreachable":
            return {"robots": [self.source]}
        if self.kind.endswith("misread"):
            return {"misread": {self.source: Misread(self.factor, self.kind == "one price misread")}}
        return {}


def plan(seed: str, days: int) -> list[Trouble]:
    """The faults of the days, at most one per day, each kind as often as another; outages last."""
    dice, planned, number, left = Random(f"{seed} year"), [], 1, list[str]()
    while number < days - 1:
        day = FIRST_DAY + timedelta(days=number)
        number += 1
        if dice.random() >= FAULT_CHANCE:
            continue
        left = left or dice.sample(KINDS, len(KINDS))
        kind = left.pop()
        if kind in HARD_TO_REACH:
            length = min(dice.randint(1, LONGEST_OUTAGE_DAYS) if kind == "down" else 1, days - number)
            source = dice.choice(SOURCES)
            planned += [Trouble(day + timedelta(days=more), kind, source) for more in range(length)]
            number += length
        elif kind == "robots unreachable":
            planned.append(Trouble(day, kind, dice.choice(ROBOTS_ARE_ASKED)))
        elif kind in OF_A_PAGE:
            planned.append(Trouble(day, kind, dice.choice(PRICES), dice.choice((10, 10, 3))))
        else:
            planned.append(Trouble(day, kind))
    return planned


def test_a_year_of_faults_leaves_a_true_history(lab: Lab) -> None:
    home, troubles = lab.home("home", days=0), {trouble.day: trouble for trouble in plan(SEED, DAYS)}
    assert {trouble.kind for trouble in troubles.values()} == set(KINDS)
    problems: list[str] = []
    touched: dict[date, list[str]] = {}
    sizes = []
    for number in range(DAYS):
        day = FIRST_DAY + timedelta(days=number)
        now, before = troubles.get(day), troubles.get(day - timedelta(days=1))
        trouble = now or Trouble(day, "no fault")
        is_after_harm = before is not None and not before.source
        if now or is_after_harm or number % QUIET_DAYS_PER_PUBLISH == 0 or number == DAYS - 1:
            dice = Random(f"{SEED} day {day}")
            touched[day] = TOUCHES.get(trouble.kind, lambda *_: [])(home, day, dice)
            found = list(live(lab, home, trouble, dice))
        else:
            with lab.serving(day) as server:
                found = list(read_only(home, server.base_url, day))
        problems += [f"{day} ({trouble.kind}): {problem}"[:400] for problem in found]
        sizes.append({path.name: bytes_of(path) for path in home.root.iterdir() if path.is_dir()})
    problems += history_problems(lab, home, list(troubles.values())) + growth_problems(sizes)
    problems += unseen(home, list(troubles.values()), touched)
    assert problems == []


def live(lab: Lab, home: Home, trouble: Trouble, dice: Random) -> Iterator[str]:
    """One day of the home, with what goes wrong on it."""
    day = trouble.day
    if trouble.kind == "clock ahead":
        ahead = day + timedelta(days=400)
        with lab.serving(ahead) as server, suppress(GpufareError):
            refreshed(home, server.base_url, ahead)
        home.published.unlink(missing_ok=True)  # as a person is told to do, once the clock is right
    with lab.serving(day, **trouble.served()) as server:
        if trouble.kind == "killed run":
            child = lab.start(home, server, day)
            time.sleep(dice.uniform(0, 2.5))
            child.kill()
        yield from _refresh(home, server.base_url, trouble)
    if trouble.kind == "second run without answers":
        with lab.serving(day, faults={trouble.source: says(503)}) as server:
            yield from _refresh(home, server.base_url, trouble)
    yield from published_problems(home, [day])
    yield from (f"litter is left: {name}" for name in litter(home))


def _refresh(home: Home, url: str, trouble: Trouble) -> Iterator[str]:
    """Refresh, and yield what should not have happened."""
    try:
        answer = refreshed(home, url, trouble.day)
    except Exception as error:  # a traceback is a problem of this day; the year goes on
        yield f"{type(error).__name__}: {error}"
        return
    if answer.published != trouble.day:
        yield f"not published: {answer.said}"
    if refused := {*SOURCES} - answer.accepted - {trouble.source}:
        yield f"not accepted: {sorted(refused)}"
    if trouble.kind == "litter" and "half-written files of killed runs" not in answer.said:
        yield f"the litter is not reported: {answer.said}"


def read_only(home: Home, url: str, day: date) -> Iterator[str]:
    """Capture and read every source, as each does in a separate run under Dagster, without publishing."""
    chosen = [configs()[name] for name in SOURCES]
    captures = capture_sources(chosen, day, Archive(home.archive), {}, pages=url, limits=LIMITS)
    for config in chosen:
        outcome = record_day(config, day, [captures[config.name]], home)
        if not outcome.accepted:
            yield f"{config.name} was not accepted: {outcome.reason} {outcome.error or ''}"


# ------------------------------------------------------------------ harm


def _damage(home: Home, day: date, dice: Random) -> list[str]:
    top = home.root / dice.choice(DAMAGED)
    files = [top] if top.is_file() else sorted(path for path in top.rglob("*") if path.is_file())
    for file in files and [dice.choice(files)]:
        body = file.read_bytes()
        file.write_bytes(dice.choice((body[: len(body) // 2], b"", b"garbage")))
        return [str(file.relative_to(home.root))]
    return []


def _drop_litter(home: Home, day: date, dice: Random) -> list[str]:
    """Leave the files of killed processes, with process ids that are not in use."""
    for name in ("record/offers/crusoe/.2025-11.parquet.999999.tmp", "published/.building-999999.duckdb"):
        (home.root / name).write_bytes(b"half a file")
    (home.root / "published" / ".building-999999.duckdb.tmp").mkdir(exist_ok=True)
    return []


def _copy_a_file(home: Home, day: date, dice: Random) -> list[str]:
    file = dice.choice(sorted((home.record / "offers").rglob("*.parquet")))
    copy = shutil.copy(file, file.with_name(f"{file.stem} (copy {day}){file.suffix}"))
    return [str(Path(copy).relative_to(home.root))]


TOUCHES = {"damaged file": _damage, "litter": _drop_litter, "stray copy": _copy_a_file}
"""What is done to a home, by kind; each returns the files that an incident must name."""


# ------------------------------------------------------------------ the account


def history_problems(lab: Lab, home: Home, troubles: Sequence[Trouble]) -> list[str]:
    """No price of any day may be wrong; on a good day of a source few may be missing. The history's prices
    are those of the offers, the rates the true ones, and every ranked price was true on its own day."""
    bad = {(t.source, t.day) for t in troubles if t.source and t.kind != "second run without answers"}
    problems: list[str] = []
    for day in (FIRST_DAY + timedelta(days=number) for number in range(DAYS)):
        good = [source for source in PRICES if (source, day) not in bad]
        problems += price_problems(home, lab.market, day, good, may_miss=0.5)
        problems += price_problems(home, lab.market, day, {*PRICES} - {*good}, may_miss=1)
    query = """
        SELECT h.source, h.day, h.gpu_id, h.usd_per_gpu_hour
          FROM main.price_history AS h
          LEFT JOIN main.offers AS o
            ON (o.source, o.day, o.gpu_id, o.price_kind) = (h.source, h.day, h.gpu_id, h.price_kind)
           AND o.tier IS NOT DISTINCT FROM h.tier AND o.term_days IS NOT DISTINCT FROM h.term_days
         GROUP BY ALL
        HAVING NOT coalesce(list_contains(list(o.usd_per_gpu_hour), h.usd_per_gpu_hour), FALSE)"""
    problems += [f"the history's price is not in offers: {row}" for row in rows(home, query)[:5]]
    for row in rows(home, "SELECT day, usd_per_unit FROM main.exchange_rates WHERE currency = 'EUR'"):
        if ("ecb", row["day"]) not in bad and row["usd_per_unit"] != lab.market.usd_per_eur(row["day"]):
            problems.append(f"the exchange rate is wrong: {row}")
    ranked = (
        "SELECT DISTINCT source, observed_at::DATE AS seen, native_price FROM main.cheapest_gpu_per_workload"
    )
    for row in rows(home, ranked):
        if row["native_price"] not in lab.market.truth(row["seen"])[row["source"]].values():
            problems.append(f"a wrong price is ranked: {row}")
    return problems


def unseen(home: Home, troubles: Sequence[Trouble], touched: Mapping[date, Sequence[str]]) -> list[str]:
    """Faults that leave no trace in the published tables. Of litter each day's report says that it was swept;
    a killed run may have begun nothing."""
    history = {(row["source"], row["day"]): row for row in rows(home, "FROM main.source_health_history")}
    incidents = rows(home, "FROM main.incidents")
    kinds, paths = ({str(row[column]) for row in incidents} for column in ("kind", "path"))
    query = """FROM main.rejects JOIN main.reject_reasons USING (reason)
                WHERE held OR reason = 'price_out_of_bounds'"""
    refused = {(row["source"], row["day"]) for row in rows(home, query)}
    missing = []
    for trouble in troubles:
        at = (trouble.source, trouble.day)
        row = history.get(at, {})
        if trouble.kind in (*HARD_TO_REACH, "robots unreachable", "all prices misread"):
            seen = bool(row.get("why"))
        elif trouble.kind == "one price misread":
            seen = at in refused and bool(row.get("rejects"))
        elif trouble.kind == "second run without answers":
            seen = row.get("attempts") == 2 and row.get("accepted_attempts", 0) >= 1
        elif trouble.kind == "clock ahead":
            seen = "future_day" in kinds
        else:
            seen = paths.issuperset(touched.get(trouble.day, ()))
        missing += [] if seen else [f"not to be seen: {trouble} {touched.get(trouble.day)}"]
    return missing


def bytes_of(folder: Path) -> int:
    """The size of all files under a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def growth_problems(sizes: Sequence[Mapping[str, int]]) -> list[str]:
    """All but the published file must grow evenly in a whole year, and the cache not at all."""
    totals = [sum(size for name, size in found.items() if name != "published") for found in sizes]
    start, middle, end = 10, len(totals) // 2, len(totals) - 1
    first = (totals[middle] - totals[start]) / (middle - start)
    second = (totals[end] - totals[middle]) / (end - middle)
    cache, early = sizes[-1].get("cache", 0), sizes[5].get("cache", 1)
    problems = [f"the cache has grown from {early} to {cache} bytes"] if cache > 3 * early else []
    if ALL and second > MOST_GROWTH * first:
        problems.append(f"{second:.0f} bytes a day in the second half, {first:.0f} before")
    return problems
