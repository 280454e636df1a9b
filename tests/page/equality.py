"""The page's answers beside those of the macros: random jobs, and jobs by hand for each rule of the money."""

import json
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipeline.page.queries import tenths_of_percent
from pipeline.questions.job import Job
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
SELECT
    rowid, gpu_id, gpu_count, node_count, provider, source, tier, region, instance_type, price_kind,
    term_days
FROM main.rentals
"""


def page_answers(page: Path, jobs: Sequence[Asked], at: datetime, *more: str) -> list[dict[str, Any]]:
    """Return the page's answers, computed by its own scripts under node; skips where there is no node.
    ``more``: "why" for the reasons why GPUs have no row."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    command = [node, str(SCRIPT), str(page), str(int(at.timestamp() * 1000)), *more]
    answered = subprocess.run(
        command, input=json.dumps(list(jobs)), capture_output=True, text=True, check=False
    )
    assert answered.returncode == 0, answered.stderr
    found: list[dict[str, Any]] = json.loads(answered.stdout)
    return found


def sql_answers(
    connection: duckdb.DuckDBPyConnection, jobs: Sequence[Asked]
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows that the macros rank for each job."""
    for first in range(0, len(jobs), _AT_ONCE):
        some = [Job(**job).settings for job in jobs[first : first + _AT_ONCE]]
        _ask_for(connection, some)
        found: dict[str, list[dict[str, Any]]] = {str(number): [] for number in range(len(some))}
        for row in ask(connection, _ROWS).dicts():
            found[row["job"]].append(row)
        yield from found.values()


def _ask_for(connection: duckdb.DuckDBPyConnection, jobs: Sequence[Asked]) -> None:
    """Write jobs, named by their numbers, into the table page_jobs."""
    names = sorted({name for job in jobs for name in job})
    columns = ", ".join(f"{name} VARCHAR" for name in ("job", *names))
    ask(connection, f"CREATE OR REPLACE TEMP TABLE page_jobs ({columns})")
    for number, job in enumerate(jobs):
        row = [str(number), *(_text(job.get(name)) for name in names)]
        ask(connection, f"INSERT INTO page_jobs VALUES ({', '.join('?' * len(row))})", row)


_WHY = {
    "why_jobs": "FROM completed_jobs('page_jobs')",
    "why_plans": """SELECT j.job, p.* FROM why_jobs AS j JOIN main.plans AS p
        ON p.model = j.model AND p.method = j.method AND p.seq_len = j.seq_len
        AND p.lora_rank IS NOT DISTINCT FROM j.lora_rank""",
    "why_ranked": "FROM ranked_jobs('why_jobs', 'why_plans')",
}


def sql_reasons(connection: duckdb.DuckDBPyConnection, jobs: Sequence[Asked]) -> list[dict[str, str]]:
    """Return why the macros have no row of a GPU, by GPU, for each job with plans of a workload."""
    _ask_for(connection, [Job(**job).settings for job in jobs])
    for name, query in _WHY.items():
        ask(connection, f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")
    reasons: list[dict[str, str]] = [{} for _ in jobs]
    query = "SELECT job, gpu_id, reason FROM why_not_for('why_jobs', 'why_plans', 'why_ranked')"
    for job, gpu, reason in ask(connection, query).rows:
        if reason != "ranked":
            reasons[int(job)][gpu] = reason
    return reasons


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


class Compared:
    """Jobs with the macros' answers, to which those of pages are compared."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, jobs: Sequence[Asked]) -> None:
        self.jobs = jobs
        self.offers = {row[0]: row[1:] for row in ask(connection, _OFFER).rows}
        self.answers = list(sql_answers(connection, jobs))

    def differences(self, page: Path, at: datetime) -> list[str]:
        """Return what the page answers otherwise than the macros, a line per job. Order, cents, picks,
        cautions and settings must be equal; hours to a millionth."""
        told = zip(self.jobs, page_answers(page, self.jobs, at), self.answers, strict=True)
        each = ((job, _difference(ours, theirs, self.offers)) for job, ours, theirs in told)
        return [f"{job}: {problem}" for job, problem in each if problem]


def _difference(
    ours: dict[str, Any], theirs: list[dict[str, Any]], offers: dict[int, tuple[Any, ...]]
) -> str:
    if "rows" not in ours:
        return f"no answer: {ours}"
    if len(ours["rows"]) != len(theirs):
        return f"{len(ours['rows'])} rows, not {len(theirs)}"
    for place, (row, wanted) in enumerate(zip(ours["rows"], theirs, strict=True)):
        (
            offer,
            total,
            hours,
            pick,
            cautions,
            low,
            high,
            fast,
            slow,
            keeps,
            on_demand,
            used,
            fit,
            batch,
            evidence,
            billed,
        ) = row
        exact = {
            "offer": (offers[offer], tuple(wanted[name] for name in _NAMES)),
            "total_usd": (total, _hundredths(wanted["total_usd"])),
            "low": (low, _hundredths(wanted["total_usd_low"])),
            "high": (high, _hundredths(wanted["total_usd_high"])),
            "on_demand_usd": (on_demand, _hundredths(wanted["on_demand_usd"])),
            "pick": (pick, wanted["pick"] or []),
            "cautions": (cautions, wanted["cautions"] or []),
            "keeps_deadline": (keeps, wanted["keeps_deadline"]),
            "plan": ((fit, batch, evidence), _plan(wanted)),
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
    waits = (
        []
        if not theirs or theirs[0]["longer_wait_usd"] is None
        else [_hundredths(theirs[0]["longer_wait_usd"])]
    )
    if waits != (ours["longer"] or [])[:1]:
        return f"waiting longer is {ours['longer']}, not {waits}"
    return ""


_NAMES = (
    "gpu_id", "gpu_count", "node_count", "provider", "source", "tier", "region", "instance_type",
    "price_kind", "term_days",
)  # fmt: skip


def _plan(row: dict[str, Any]) -> tuple[Any, ...]:
    return (tenths_of_percent(row["fit_probability"]), row["micro_batch"], row["evidence"])


def _hundredths(usd: Any) -> int | None:
    return None if usd is None else round(usd * 10_000)


def random_jobs(connection: duckdb.DuckDBPyConnection, count: int, seed: int) -> list[Asked]:
    """Return random jobs whose plans are in the file, with up to four constraints each."""
    chosen = random.Random(seed)
    recipes = ask(
        connection, "SELECT DISTINCT model, method, seq_len, lora_rank FROM grid_plans() ORDER BY ALL"
    ).rows
    lists = {
        name: [
            value
            for (value,) in ask(
                connection, f"SELECT DISTINCT {name} FROM main.rentals WHERE {name} IS NOT NULL ORDER BY 1"
            ).rows
        ]
        for name in ("provider", "source", "country", "continent", "tier_class", "gpu_id", "price_kind")
    }
    return [_random_job(chosen, recipes, lists) for _ in range(count)]


def _random_job(
    chosen: random.Random, recipes: Sequence[tuple[Any, ...]], lists: dict[str, list[str]]
) -> Asked:
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


HARSH = {
    "minimum_seconds": ("7200", 3),
    "billing_increment_seconds": ("1 + 600 * (rowid % 7)", 2),
    "ram_gib": ("(5 + rowid % 40) * node_count", 4),
    "local_disk_gb": ("25 * (rowid % 40)", 3),
    "persistent_disk": ("rowid % 4 < 2", 2),
    "disk_outlives_host": ("rowid % 6 < 3", 2),
    "notice_seconds": ("30 * (rowid % 5)", 2),
    "hours_between_failures": ("5 + rowid % 200", 3),
    "hours_between_interruptions": ("CASE WHEN price_kind = 'spot' THEN 1 + rowid % 30 END", 1),
    "bid_exponent": ("CASE WHEN price_kind = 'spot' THEN 2 ELSE 0 END", 3),
    "interruption_wait_seconds": ("100 * (rowid % 9)", 2),
    "further_machine_wait_seconds": ("500 * (rowid % 9)", 2),
    "max_run_hours": ("2 + rowid % 50", 4),
    "download_usd_per_gb": ("0.01 * (rowid % 12)", 3),
    "egress_usd_per_gb": ("0.02 * (rowid % 7)", 3),
    "storage_usd_per_gb_month": ("0.05 * (rowid % 11)", 3),
    "evaluation_share": ("0.01 * (rowid % 9)", 2),
    "checkpoint_pause_seconds": ("rowid % 100", 3),
    "host_usd_per_hour": ("0.1 * (rowid % 4)", 5),
    "available": ("rowid % 3 = 0", 2),
    "size_evidence": ("'assumed'", 11),
    "doubt": ("'moved'", 13),
    "renter_notice": ("CASE rowid % 2 WHEN 0 THEN 'no_eu_adequacy' ELSE 'sanctions' END", 17),
    "gpus_billed": ("gpu_count * (1 + rowid % 3)", 7),
    "term_days": ("CASE WHEN price_kind = 'reserved' THEN 1 + rowid % 60 END", 2),
}
"""A market in which every rule of the money matters: the values of columns of rentals, on every n-th row."""


def harsh_market(published: Path, copy: Path) -> None:
    """Copy a published file and make its market harsh."""
    shutil.copyfile(published, copy)
    with duckdb.connect(str(copy)) as connection:
        for place, (column, (value, step)) in enumerate(HARSH.items()):
            connection.execute(f"UPDATE rentals SET {column} = {value} WHERE rowid % {step} = {place % step}")


_JOB = {"model": "llama-3.1-8b", "method": "lora", "tokens": "100M"}

HAND = (
    _JOB | {"tokens": "1k", "kind": "any"},  # nothing but set-up and minimum
    _JOB | {"method": "full", "gpus": 64, "kind": "any,reserved"},
    _JOB | {"tokens": "20B", "kind": "reserved", "max_hours": "2000"},  # several terms
    _JOB | {"tokens": "11B"},  # the deadline of long jobs
    _JOB | {"tokens": "3B", "kind": "spot", "max_hours": "90"},  # in time, but not at the slow end
    _JOB | {"tokens": "3B", "kind": "spot", "bid": "3"},
    _JOB | {"tokens": "500B", "kind": "any"},  # nothing is in time
    _JOB
    | {"method": "full", "tokens": "2B", "min_gpus": 16, "gpus": 64, "kind": "any"},  # host memory, waits
    _JOB | {"country": "Russia", "kind": "any"},
    _JOB | {"assumed_sizes": "true", "kind": "any"},
    _JOB | {"tokens": "1B", "objective": "time", "kind": "any"},
    _JOB | {"method": "qlora", "gpu": "mi300x,a100-80gb,4090", "kind": "any"},
    _JOB | {"hour_worth": "0", "kind": "any"},
    _JOB | {"max_usd": "2.7412", "kind": "any"},
    _JOB | {"epochs": "3", "kind": "flex_start,serverless"},
    _JOB | {"max_hours": "inf", "tokens": "1T", "kind": "spot"},  # taken away too often
    _JOB | {"max_term_days": "20", "kind": "reserved", "tokens": "1B"},
)
"""Jobs in which a rule decides."""
