"""A simulated year: a refresh every morning, faults from a seed, and at the end a history that is true.

The days are those after 2025-11-20, so that none is in the future. One home is used for all of
them; an interrupted run resumes on the day after the last complete one.
"""

import json
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import configs
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.outcome import Outcome
from pipeline.home.paths import Home
from pipeline.refresh.ingest import record_day
from pipeline.refresh.inputs import capture_sources
from pipeline.refresh.refresh import refresh
from tests.nightly.stress.homes import (
    LIMITS,
    Lab,
    bytes_of,
    litter,
    noon,
    published_problems,
    rows,
    use_catalogue,
)
from tests.nightly.stress.market import FIRST_DAY, PRICES, SOURCES, Key, Market, Misread, key_of
from tests.nightly.stress.runner import Figures, Part
from tests.refresh.faulty_server import Fault, says

DAYS = 365
FAULT_CHANCE = 0.35
"""On about every third day something goes wrong."""

LONGEST_OUTAGE_DAYS = 10
"""Longer than the seven days after which prices are stale."""

QUIET_DAYS_PER_PUBLISH = 7
"""A publish takes longer the more history there is: ``publishing`` says on which days it is done."""

HARD_TO_REACH: dict[str, Fault] = {
    "down": says(503),
    "rate limited": says(429, retry_after="0"),
    "moved": says(200, b"<html><body><h1>We moved</h1></body></html>", content_type="text/html"),
}
KINDS = (
    *HARD_TO_REACH, "robots unreachable", "all prices misread", "one price misread", "damaged file",
    "killed run", "litter", "stray copy", "clock ahead", "second run without answers",
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


def plan(seed: str, days: int) -> list[Trouble]:
    """The faults of the year, at most one per day; outages last."""
    dice, planned, number = Random(f"{seed} year"), [], 1
    while number < days - 1:
        day = FIRST_DAY + timedelta(days=number)
        number += 1
        if dice.random() >= FAULT_CHANCE:
            continue
        kind, source = dice.choice(KINDS), dice.choice(PRICES)
        if kind in HARD_TO_REACH:
            length = dice.randint(1, LONGEST_OUTAGE_DAYS) if kind == "down" else 1
            length = min(length, days - number)
            source = dice.choice(SOURCES)
            planned += [Trouble(day + timedelta(days=more), kind, source) for more in range(length)]
            number += length
        elif kind == "robots unreachable":
            planned.append(Trouble(day, kind, dice.choice(ROBOTS_ARE_ASKED)))
        elif kind in ("all prices misread", "one price misread", "second run without answers"):
            planned.append(Trouble(day, kind, source, dice.choice((10, 10, 3))))
        else:
            planned.append(Trouble(day, kind))
    return planned


def units(seed: str) -> list[str]:
    """One: the days follow each other."""
    return [f"{DAYS} days"]


def run(lab: Lab, unit: str, seed: str) -> Figures:
    """All days that are not done yet, and the account at the end."""
    days = int(unit.split()[0])
    log = lab.folder / "days.jsonl"
    use_catalogue(lab.catalogue)
    done = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    home = Home(lab.folder / "home") if done else lab.home("home", days=0)
    troubles = {trouble.day: trouble for trouble in plan(seed, days)}
    for number in range(len(done), days):
        began = time.monotonic()
        day = FIRST_DAY + timedelta(days=number)
        dice = Random(f"{seed} day {day}")
        publishes = number == days - 1 or publishing(number, day, troubles)
        found = live(lab, home, day, troubles.get(day), dice, publishes)
        found |= {"seconds": round(time.monotonic() - began, 2), "bytes": _sizes(home)}
        done.append(found)
        with log.open("a") as file:
            file.write(json.dumps(found) + "\n")
        if number % 30 == 29:
            print(f"      the year: {number + 1} of {days} days", flush=True)
    problems = [problem for found in done for problem in found["problems"]]
    account = account_of(home, lab.market, list(troubles.values()), done)
    return {"days": days, **account, "problems": problems + account["problems"]}


def publishing(number: int, day: date, troubles: Mapping[date, Trouble]) -> bool:
    """Whether a day is published: one with a fault, the one after harm to the home, and every seventh. Of an
    outage, the first and the last: the days between differ from them in nothing."""
    before, today, after = (troubles.get(day + timedelta(days=more)) for more in (-1, 0, 1))
    if number % QUIET_DAYS_PER_PUBLISH == 0 or (before is not None and not before.source):
        return True
    if today is None:
        return False
    like = (today.kind, today.source)
    return not all(other and (other.kind, other.source) == like for other in (before, after))


def live(lab: Lab, home: Home, day: date, trouble: Trouble | None, dice: Random, publishes: bool) -> Figures:
    """One day of the home, with what goes wrong on it."""
    kind = trouble.kind if trouble else ""
    if not publishes:
        with lab.serving(day, **_faults(trouble)) as server:
            problems = _read_only(home, server.base_url, day, trouble)
        return {"day": str(day), "kind": kind, "problems": problems, "touched": []}
    touched = TOUCHES[kind](home, day, dice) if kind in TOUCHES else []
    if kind == "clock ahead":
        ahead = day + timedelta(days=400)
        with lab.serving(ahead) as server, suppress(GpufareError):
            _refresh(home, server.base_url, ahead)
    problems = []
    with lab.serving(day, **_faults(trouble)) as server:
        if kind == "killed run":
            child = lab.start(home, server, day)
            time.sleep(dice.uniform(0, 2.5))
            child.kill()
        problems += _refreshed(home, server.base_url, day, trouble)
    if trouble and kind == "second run without answers":
        with lab.serving(day, faults={trouble.source: says(503)}) as server:
            problems += _refreshed(home, server.base_url, day, trouble)
    problems += [f"{day}: {problem}" for problem in published_problems(home, [day])]
    if left := litter(home):
        problems.append(f"{day}: litter is left: {', '.join(left[:3])}")
    return {"day": str(day), "kind": kind, "problems": problems, "touched": touched}


def _faults(trouble: Trouble | None) -> dict[str, Any]:
    """Return the faults of the day's server."""
    if trouble is None:
        return {}
    if trouble.kind in HARD_TO_REACH:
        return {"faults": {trouble.source: HARD_TO_REACH[trouble.kind]}}
    if trouble.kind == "robots unreachable":
        return {"robots": [trouble.source]}
    if trouble.kind.endswith("misread"):
        return {"misread": {trouble.source: Misread(trouble.factor, trouble.kind == "one price misread")}}
    return {}


def _refresh(home: Home, url: str, day: date) -> Any:
    return refresh(home, day=day, sources=SOURCES, pages=url, environment={}, now=noon(day), limits=LIMITS)


def _read_only(home: Home, url: str, day: date, trouble: Trouble | None) -> list[str]:
    """Capture and read every source, as each does in a separate run under Dagster, without publishing."""
    chosen = [configs()[name] for name in SOURCES]
    archive = Archive(home.archive)
    captures = capture_sources(chosen, day, archive, {}, pages=url, limits=LIMITS)
    outcomes = [record_day(config, day, [captures[config.name]], home) for config in chosen]
    return _refused(outcomes, day, trouble)


def _refreshed(home: Home, url: str, day: date, trouble: Trouble | None) -> list[str]:
    """Refresh, and what should not have happened."""
    kind = trouble.kind if trouble else "no fault"
    try:
        report = _refresh(home, url, day)
    except Exception as error:  # a traceback is a problem of this day; the year goes on
        return [f"{day} ({kind}): {type(error).__name__}: {error}"[:400]]
    if not report.published:
        return [f"{day} ({kind}): {report.failure()}"[:400]]
    unswept = [f"{day}: the litter is not reported"] if kind == "litter" and not report.swept_files else []
    return unswept + _refused(report.outcomes, day, trouble)


def _refused(outcomes: Sequence[Outcome], day: date, trouble: Trouble | None) -> list[str]:
    """The sources that were not accepted, but for the one with a fault."""
    refused = [o for o in outcomes if not o.accepted and not (trouble and o.source == trouble.source)]
    return [f"{day}: {o.source} was not accepted: {o.reason} {o.error or ''}"[:300] for o in refused]


# ------------------------------------------------------------------ harm


def _files(home: Home, place: str) -> list[Path]:
    """A file, or the files under a folder."""
    top = home.root / place
    return [top] if top.is_file() else sorted(path for path in top.rglob("*") if path.is_file())


def _damage(home: Home, day: date, dice: Random) -> list[str]:
    files = _files(home, dice.choice(DAMAGED))
    if not files:
        return []
    file = dice.choice(files)
    body = file.read_bytes()
    file.write_bytes(dice.choice((body[: len(body) // 2], b"", b"garbage")))
    return [str(file.relative_to(home.root))]


def _drop_litter(home: Home, day: date, dice: Random) -> list[str]:
    """Leave the files of killed processes, with process ids that are not in use."""
    names = ("record/offers/crusoe/.2025-11.parquet.999999.tmp", "published/.building-999999.duckdb")
    for name in names:
        (home.root / name).write_bytes(b"half a file")
    (home.root / "published" / ".building-999999.duckdb.tmp").mkdir(exist_ok=True)
    return [*names, "published/.building-999999.duckdb.tmp"]


def _copy_a_file(home: Home, day: date, dice: Random) -> list[str]:
    file = dice.choice(_files(home, "record/offers"))
    copy = file.with_name(f"{file.stem} (copy {day}){file.suffix}")
    shutil.copy(file, copy)
    return [str(copy.relative_to(home.root))]


TOUCHES = {"damaged file": _damage, "litter": _drop_litter, "stray copy": _copy_a_file}


# ------------------------------------------------------------------ the account


def account_of(home: Home, market: Market, troubles: Sequence[Trouble], done: Sequence[Figures]) -> Figures:
    """Check that the history is true, every fault is visible, and the disk use is bounded."""
    days = [date.fromisoformat(found["day"]) for found in done]
    problems, held = _history_problems(home, market, troubles, days)
    problems += _ranking_problems(home, market)
    unseen = list(_unseen(home, troubles, done))
    problems += unseen
    mib_per_day, growth = _growth(done)
    if growth > MOST_GROWTH:
        problems.append(f"the record of the second half year is {growth:.1f} times that of the first")
    if (cache := done[-1]["bytes"].get("cache", 0)) > 3 * done[min(5, len(done) - 1)]["bytes"].get(
        "cache", 1
    ):
        problems.append(f"the cache has grown to {cache / 2**20:.1f} MiB")
    return {
        "problems": problems,
        "faults": dict(Counter(trouble.kind for trouble in troubles)),
        "unseen": len(unseen),
        "true_offers": held["true"],
        "missing_offers": held["missing"],
        "mib_per_day": round(mib_per_day, 3),
        "growth": round(growth, 2),
        "published_mib": round(done[-1]["bytes"].get("published", 0) / 2**20, 1),
        "slowest_day_seconds": max(found["seconds"] for found in done),
    }


def _history_problems(
    home: Home, market: Market, troubles: Sequence[Trouble], days: Sequence[date]
) -> tuple[list[str], Counter[str]]:
    """The offers of every day against the truth of that day. No price may be wrong; on a good day of a source
    none may be missing, though a gate may hold back a few (they are counted)."""
    found: dict[tuple[str, date], dict[Key, Decimal]] = defaultdict(dict)
    columns = (
        "day, source, raw_label, instance_type, gpu_count, price_kind, term_days, tier, region, native_price"
    )
    for row in rows(home, f"SELECT {columns} FROM main.offers"):
        found[row["source"], row["day"]][key_of(row["source"], row)] = row["native_price"]
    bad = {(t.source, t.day) for t in troubles if t.source and t.kind != "second run without answers"}
    problems: list[str] = []
    counted: Counter[str] = Counter()
    for day in days:
        for source, truth in market.truth(day).items():
            offers = found[source, day]
            wrong = [key for key, price in offers.items() if truth.get(key) != price]
            if wrong:
                problems.append(f"{source} on {day}: {len(wrong)} wrong prices, such as {wrong[0]}")
            if (source, day) not in bad:
                missing = truth.keys() - offers.keys()
                counted.update(true=len(truth), missing=len(missing))
                if len(missing) > len(truth) / 2:
                    problems.append(f"{source} on {day}: {len(missing)} of {len(truth)} prices are missing")
    problems += _price_history_problems(home, market, bad)
    return problems, counted


def _price_history_problems(home: Home, market: Market, bad: set[tuple[str, date]]) -> list[str]:
    """price_history against the cheapest true price of each GPU, as the day's rate converts it."""
    problems = []
    query = """
        SELECT h.source, h.day, h.gpu_id, h.usd_per_gpu_hour
          FROM main.price_history AS h
          LEFT JOIN main.offers AS o
            ON (o.source, o.day, o.gpu_id, o.price_kind) = (h.source, h.day, h.gpu_id, h.price_kind)
           AND o.tier IS NOT DISTINCT FROM h.tier AND o.term_days IS NOT DISTINCT FROM h.term_days
         GROUP BY ALL
        HAVING NOT coalesce(list_contains(list(o.usd_per_gpu_hour), h.usd_per_gpu_hour), FALSE)"""
    for row in rows(home, query)[:5]:
        problems.append(f"price_history: {row['source']}, {row['gpu_id']} on {row['day']} is not in offers")
    rates = rows(home, "SELECT day, usd_per_unit FROM main.exchange_rates WHERE currency = 'EUR'")
    for row in rates:
        if ("ecb", row["day"]) not in bad and row["usd_per_unit"] != market.usd_per_eur(row["day"]):
            problems.append(f"the exchange rate of {row['day']} is {row['usd_per_unit']}")
    return problems


def _ranking_problems(home: Home, market: Market) -> list[str]:
    """Every ranked price was true on its own day."""
    query = """SELECT DISTINCT source, day, observed_at::DATE AS seen, native_price
                 FROM main.cheapest_gpu_per_workload"""
    problems: list[str] = []
    for row in rows(home, query):
        if row["native_price"] not in market.truth(row["seen"])[row["source"]].values():
            problems.append(
                f"{row['source']} is ranked on {row['day']} at {row['native_price']}, which is wrong"
            )
    return problems[:10]


def _unseen(home: Home, troubles: Sequence[Trouble], done: Sequence[Figures]) -> Iterator[str]:
    """Faults that leave no trace in the published tables."""
    history = {(row["source"], row["day"]): row for row in rows(home, "FROM main.source_health_history")}
    incidents = rows(home, "FROM main.incidents")
    paths = {str(row["path"]) for row in incidents}
    refused = {
        (row["source"], row["day"])
        for row in rows(
            home,
            "FROM main.rejects JOIN main.reject_reasons USING (reason)"
            " WHERE held OR reason = 'price_out_of_bounds'",
        )
    }
    touched = {found["day"]: found["touched"] for found in done}
    for trouble in troubles:
        row = history.get((trouble.source, trouble.day), {})
        if trouble.kind in (*HARD_TO_REACH, "robots unreachable", "all prices misread"):
            seen = bool(row.get("why"))
        elif trouble.kind == "one price misread":
            seen = (trouble.source, trouble.day) in refused and bool(row.get("rejects"))
        elif trouble.kind == "second run without answers":
            seen = row.get("attempts") == 2 and row.get("accepted_attempts", 0) >= 1
        elif trouble.kind == "clock ahead":
            seen = any(i["kind"] == "future_day" for i in incidents)
        elif trouble.kind in ("damaged file", "stray copy"):
            files = touched.get(str(trouble.day), [])
            seen = all(file in paths for file in files)
        else:  # of litter each day's report says that it was swept; a killed run may have begun nothing
            seen = True
        if not seen:
            about = f"{trouble.source or touched.get(str(trouble.day))} on {trouble.day}"
            yield f"not to be seen: {trouble.kind}, {about}"


def _sizes(home: Home) -> dict[str, int]:
    return {path.name: bytes_of(path) for path in home.root.iterdir() if path.is_dir()}


def _growth(done: Sequence[Figures]) -> tuple[float, float]:
    """MiB per day of all but the published file, and how much faster it grew in the second half."""
    totals = [sum(size for name, size in found["bytes"].items() if name != "published") for found in done]
    start, middle, end = min(10, len(done) - 1), len(done) // 2, len(done) - 1
    first = (totals[middle] - totals[start]) / max(1, middle - start)
    second = (totals[end] - totals[middle]) / max(1, end - middle)
    return second / 2**20, second / first if first > 0 else 1.0


def figures(results: Sequence[Figures]) -> str:
    """The sentence of the table."""
    result = results[-1]
    if "faults" not in result:
        return "not finished"
    faults = ", ".join(f"{kind} {count}" for kind, count in sorted(result["faults"].items()))
    missing, true = result["missing_offers"], result["true_offers"]
    said = (
        f"{result['days']} days, {sum(result['faults'].values())} of them with a fault ({faults})",
        f"{true:,} true prices of good days, {missing} of them held back",
        f"{result['unseen']} faults not to be seen",
        f"{result['mib_per_day']} MiB a day besides the published file, which ends at "
        f"{result['published_mib']} MiB",
        f"the record grew {result['growth']} times as fast in the second half as in the first",
        f"slowest day {result['slowest_day_seconds']:.0f} s",
    )
    return "; ".join(said)


PART = Part("year", "a simulated year", units, run, figures, 900)
