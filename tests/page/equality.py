"""The page's answers beside those of the macros: random jobs, and jobs by hand for each rule of the money."""

import json
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipeline.warehouse.query import ask

SCRIPT = Path(__file__).with_name("answer.js")

Asked = dict[str, Any]

_AT_ONCE = 50
"""Number of jobs that one query ranks: their candidates are kept in memory."""

_ROWS = """
WITH _asked AS MATERIALIZED (FROM completed_jobs('page_jobs')),
_plans AS MATERIALIZED (FROM plans_at_hand('_asked'))
SELECT
    a.job, a.gpu_id, a.gpu_count, a.node_count, a.provider, a.source, a.tier, a.region, a.instance_type,
    a.price_kind, a.term_days, a.total_usd, a.hours, a.pick, a.cautions, a.total_usd_low, a.total_usd_high,
    a.hours_low, a.hours_high, a.keeps_deadline, a.on_demand_usd, a.share_used, a.fit_probability,
    a.micro_batch, a.evidence, a.billed_hours, a.meets_deadline, a.longer_wait_usd, a.longer_wait_hours
FROM ranked_jobs('_asked', '_plans') AS a
ORDER BY a.job, a.rank
"""

_OFFER = """
SELECT rowid, gpu_id, gpu_count, node_count, provider, source, tier, region, instance_type, price_kind, term_days
FROM main.rentals
"""


def page_answers(page: Path, jobs: Sequence[Asked], at: datetime) -> list[dict[str, Any]]:
    """Return the page's answers, computed by its own scripts under node; skips where there is no node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    command = [node, str(SCRIPT), str(page), str(int(at.timestamp() * 1000))]
    answered = subprocess.run(command, input=json.dumps(list(jobs)), capture_output=True, text=True, check=False)
    assert answered.returncode == 0, answered.stderr
    found: list[dict[str, Any]] = json.loads(answered.stdout)
    return found


def sql_answers(connection: duckdb.DuckDBPyConnection, jobs: Sequence[Asked]) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows that the macros rank for each job."""
    for first in range(0, len(jobs), _AT_ONCE):
        some = jobs[first : first + _AT_ONCE]
        names = sorted({name for job in some for name in job})
        texts = [[str(number), *(_text(job.get(name)) for name in names)] for number, job in enumerate(some)]
        columns = ", ".join(f"{name} VARCHAR" for name in ("job", *names))
        ask(connection, f"CREATE OR REPLACE TEMP TABLE page_jobs ({columns})")
        for row in texts:
            ask(connection, f"INSERT INTO page_jobs VALUES ({', '.join('?' * len(row))})", row)
        found: dict[str, list[dict[str, Any]]] = {row[0]: [] for row in texts}
        for row in ask(connection, _ROWS).dicts():
            found[row["job"]].append(row)
        yield from found.values()


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def differences(connection: duckdb.DuckDBPyConnection, page: Path, jobs: Sequence[Asked], at: datetime) -> list[str]:
    """Return what the page answers otherwise than the macros, a line per job. Order, cents, picks, cautions and
    settings must be equal; hours to a millionth."""
    offers = {row[0]: row[1:] for row in ask(connection, _OFFER).rows}
    answers = page_answers(page, jobs, at)
    told = zip(jobs, answers, sql_answers(connection, jobs), strict=True)
    return [f"{job}: {problem}" for job, ours, theirs in told if (problem := _difference(ours, theirs, offers))]


def _difference(ours: dict[str, Any], theirs: list[dict[str, Any]], offers: dict[int, tuple[Any, ...]]) -> str:
    if "rows" not in ours:
        return f"no answer: {ours}"
    if len(ours["rows"]) != len(theirs):
        return f"{len(ours['rows'])} rows, not {len(theirs)}"
    for place, (row, wanted) in enumerate(zip(ours["rows"], theirs, strict=True)):
        offer, total, hours, pick, cautions, low, high, fast, slow, keeps, on_demand, used, fit, batch, evidence, billed = row
        exact = {
            "offer": (offers[offer], tuple(wanted[name] for name in _NAMES)),
            "total_usd": (total, _hundredths(wanted["total_usd"])),
            "low": (low, _hundredths(wanted["total_usd_low"])),
            "high": (high, _hundredths(wanted["total_usd_high"])),
            "on_demand_usd": (on_demand, _hundredths(wanted["on_demand_usd"])),
            "pick": (pick, wanted["pick"] or []),
            "cautions": (cautions, wanted["cautions"] or []),
            "keeps_deadline": (keeps, wanted["keeps_deadline"]),
            "settings": ((batch, evidence), (wanted["micro_batch"], wanted["evidence"])),
            "meets_deadline": (ours["meets"], wanted["meets_deadline"]),
        }
        near = {
            "hours": (hours, wanted["hours"]), "hours_low": (fast, wanted["hours_low"]),
            "hours_high": (slow, wanted["hours_high"]), "billed": (billed, wanted["billed_hours"]),
            "share_used": (used, wanted["share_used"]),
        }  # fmt: skip
        for name, (got, want) in exact.items():
            if got != want:
                return f"row {place + 1}: {name} is {got}, not {want}"
        for name, (got, want) in near.items():
            if abs(got - want) > 1e-6 * max(1, want):
                return f"row {place + 1}: {name} is {got}, not {want}"
    waits = [] if not theirs or theirs[0]["longer_wait_usd"] is None else [_hundredths(theirs[0]["longer_wait_usd"])]
    if waits != (ours["longer"] or [])[:1]:
        return f"waiting longer is {ours['longer']}, not {waits}"
    return ""


_NAMES = (
    "gpu_id", "gpu_count", "node_count", "provider", "source", "tier", "region", "instance_type", "price_kind",
    "term_days",
)  # fmt: skip


def _hundredths(usd: Any) -> int | None:
    return None if usd is None else round(usd * 10_000)


def random_jobs(connection: duckdb.DuckDBPyConnection, count: int, seed: int) -> list[Asked]:
    """Return random jobs whose plans are in the file, with up to four constraints each."""
    chosen = random.Random(seed)
    recipes = ask(connection, "SELECT DISTINCT model, method, seq_len, lora_rank FROM grid_plans() ORDER BY ALL").rows
    lists = {
        name: [value for (value,) in ask(connection, f"SELECT DISTINCT {name} FROM main.rentals WHERE {name} IS NOT NULL ORDER BY 1").rows]
        for name in ("provider", "source", "country", "continent", "tier_class", "gpu_id", "price_kind")
    }
    return [_random_job(chosen, recipes, lists) for _ in range(count)]


def _random_job(chosen: random.Random, recipes: Sequence[tuple[Any, ...]], lists: dict[str, list[str]]) -> Asked:
    model, method, seq_len, rank = chosen.choice(recipes)
    job: Asked = {"model": model, "method": method, "seq_len": seq_len, "lora_rank": rank}
    if chosen.random() < 0.7:
        job["tokens"] = f"{10 ** chosen.uniform(5, 11.5):.4g}"
    else:
        job |= {"examples": chosen.randint(10, 10**6), "tokens_per_example": chosen.randint(50, 4000)}
    if chosen.random() < 0.3:
        job["epochs"] = chosen.choice((2, 3, 0.5, 1.7))

    def some(name: str, most: int) -> str:
        return ",".join(chosen.sample(lists[name], min(len(lists[name]), chosen.randint(1, most))))

    constraints = {
        "kind": lambda: chosen.choice(("any", "spot", "reserved", "any,reserved", some("price_kind", 3))),
        "gpus": lambda: chosen.choice((1, 2, 4, 8, 16, 64)),
        "min_gpus": lambda: chosen.choice((2, 4, 8)),
        "max_nodes": lambda: chosen.choice((1, 2)),
        "max_hours": lambda: f"{10 ** chosen.uniform(-0.5, 3.5):.3g}",
        "max_usd": lambda: f"{10 ** chosen.uniform(-1, 5):.3g}",
        "gpu": lambda: some("gpu_id", 6),
        "exclude_gpu": lambda: some("gpu_id", 6),
        "provider": lambda: some("provider", 8),
        "exclude_provider": lambda: some("provider", 8),
        "source": lambda: some("source", 8),
        "exclude_source": lambda: some("source", 8),
        "country": lambda: chosen.choice(("eu", "europe", "US", "Russia", some("country", 5))),
        "exclude_country": lambda: some("country", 5),
        "continent": lambda: some("continent", 2),
        "tier": lambda: some("tier_class", 2),
        "max_term_days": lambda: chosen.choice((7, 30, 90, 400)),
        "evidence": lambda: chosen.choice(("interpolated", "measured")),
        "objective": lambda: "time",
        "hour_worth": lambda: chosen.choice((0, 2, 20)),
        "bid": lambda: chosen.choice((1.5, 3)),
    }
    for name in chosen.sample(list(constraints), chosen.randint(0, 4)):
        job[name] = constraints[name]()
    if "min_gpus" in job and job.get("gpus", 64) < job["min_gpus"]:
        del job["gpus"]
    return job


def today(connection: duckdb.DuckDBPyConnection) -> datetime:
    """Return the start of the day to which the file's macros count ages, by their own clock."""
    return datetime.now(UTC)
