"""The fit of a job on a card, the largest micro-batch, the models that fit a card, and card comparisons."""

import json
import shlex
from dataclasses import dataclass
from typing import Any

from pipeline.questions.job import Job, JobError, whole
from pipeline.questions.reasons import MEMORY_PARTS, infeasible_text, percent_text
from pipeline.questions.session import Session
from pipeline.questions.words import METHODS, assumed, command_line, family_text, needed_text, own_runs_text
from pipeline.warehouse.query import Result


@dataclass(frozen=True, slots=True)
class Fit:
    """The fit of a job on some GPUs: the plan (one row of the table ``plans``), the memory in parts that add
    up (``memory_parts``), the largest micro-batches (``largest_micro_batches``), and ``notes``: the card
    that was taken for a family, and the command that says what would fit if the job does not."""

    plans: Result
    memory: Result
    micro_batches: Result
    notes: tuple[str, ...] = ()

    @property
    def plan(self) -> dict[str, Any]:
        """The plan's values, keyed by column."""
        return next(self.plans.dicts())

    @property
    def fits(self) -> bool:
        """True if the job fits with the probability that rankings require."""
        return bool(self.plan["verdict"] == "fits")

    def sentences(self, *, briefly: bool = False) -> list[str]:
        """Return the answer in words: whether the job fits, how fast it is, and what was assumed
        (``briefly``: only what changes it most)."""
        plan = self.plan
        job, where = f"{plan['model']} {plan['method']}", f"{plan['gpu_count']} x {plan['gpu_id']}"
        if plan["verdict"] == "does_not_fit":
            facts = plan | {"needed_gib": plan["usable_memory_gib"] - plan["memory_margin_gib"]}
            lines = [f"{job} does not fit on {where}: {infeasible_text(facts)}."]
        else:
            lines = [
                f"{job} {'fits' if self.fits else 'may fit'} on {where} with a probability of "
                f"{percent_text(plan['fit_probability'])}: it needs {needed_text(plan, 2)}; the peak is "
                f"{plan['memory_gib']:.2f} ({plan['memory_gib_low']:.1f} to {plan['memory_gib_high']:.1f}).",
                f"The plan: micro-batch {plan['micro_batch']}, checkpointing "
                f"{plan['checkpointing']}, sharding {plan['sharding']}; {plan['tokens_per_second']:,.0f} "
                f"tokens/s ({plan['tokens_per_second_low']:,.0f} to {plan['tokens_per_second_high']:,.0f}), "
                f"{plan['evidence']}{_without_bf16(plan)}.",
            ]
        taken = json.loads(plan["assumptions"])
        more = (own_runs_text(taken), assumed(taken, plan["method"], briefly=briefly))
        return [*lines, *filter(None, more), *self.notes]


def _without_bf16(plan: dict[str, Any]) -> str:
    """Return that a plan trains in fp16, which a card without bf16 has to, if it was not asked for."""
    is_assumed = "training_precision" in json.loads(plan["assumptions"])
    return "; in fp16: the card has no bf16" if is_assumed and plan["training_precision"] == "fp16" else ""


_PLAN = """
CREATE OR REPLACE TEMP TABLE gpufare_fit AS
SELECT p.* REPLACE (json_with(j.job_assumptions, json_members(p.assumptions)) AS assumptions)
FROM job_plans('gpufare_jobs') AS p
JOIN gpufare_jobs AS j USING (job)
WHERE p.gpu_id = ? AND p.gpu_count = ?
"""
_SHORT_JOB_TOKENS = 1_000_000
"""The length of the job that is asked about for its memory alone."""

_PARTS = "SELECT part, gib FROM memory_parts('gpufare_fit') ORDER BY place"
_MICRO_BATCHES = "SELECT * EXCLUDE (job, gpu_id, gpu_count) FROM largest_micro_batches('gpufare_fit')"


def fit(session: Session, job: Job) -> Fit:
    """Return the fit of a job on the card ``gpu``, of which it uses ``gpus`` (1 by default). Raises JobError
    if such a run cannot be planned."""
    if job["gpu"] is None:
        raise JobError("name the GPU on which the job should fit")
    gpu_id, gpus = one_gpu(session, job["gpu"]), _planned(session, 1 if job["gpus"] is None else job["gpus"])
    session.complete(job.but(tokens=1, gpu=None, gpus=gpus, min_gpus=None))
    session.ask(_PLAN, [gpu_id, gpus])
    plans = session.ask("FROM gpufare_fit")
    if not plans.rows:
        raise JobError(
            f"{gpus} x {gpu_id} is not planned: plans need a card with full specifications and, for several "
            "machines, a server card"
        )
    plan, notes = next(plans.dicts()), family_notes(session, job["gpu"])
    if plan["verdict"] == "does_not_fit":
        notes.append(_what_would_fit(job))
    return Fit(plans, _memory(session, plan), session.ask(_MICRO_BATCHES), tuple(notes))


def _what_would_fit(job: Job) -> str:
    """Return the command that ranks the job on more cards of its kind, or says what else would fit."""
    command = command_line(job.but(gpus=None, tokens=_SHORT_JOB_TOKENS))
    return f"For what would fit: {shlex.join(command)}"


def _memory(session: Session, plan: dict[str, Any]) -> Result:
    parts = session.ask(_PARTS)
    rows = []
    for part, gib in parts.rows:
        name, meaning = MEMORY_PARTS[part]
        rows.append((name, gib, meaning.format_map(plan | {"beyond": "below" if gib < 0 else "beyond"})))
    return Result((*parts.columns, "meaning"), (*parts.types, "VARCHAR"), rows)


def fits_on(session: Session, gpu: str, gpus: int = 1, seq_len: int | None = None) -> Result:
    """Return the models that fit on a card, by method: the rows of the macro ``fits_on``. Raises JobError."""
    tokens = None if seq_len is None else whole("seq_len", seq_len, least=1)
    asked = [one_gpu(session, gpu), _planned(session, gpus), tokens]
    return session.ask("FROM fits_on(?, gpus := ?, tokens_per_sequence := ?)", asked)


def largest_that_fit(found: Result) -> list[str]:
    """Return the largest model that fits by method, in a sentence; ``found``: rows of ``fits_on``."""
    largest = {row["method"]: row for row in _by_size(found) if row["verdict"] == "fits"}
    texts = [
        f"{name} {row['model']} ({row['params_billion']:.1f}B)"
        for method, name in METHODS.items()
        if (row := largest.get(method))
    ]
    return [f"The largest that fit: {', '.join(texts)}."] if texts else []


def _by_size(found: Result) -> list[dict[str, Any]]:
    return sorted(found.dicts(), key=lambda row: row["params_billion"])


def _planned(session: Session, gpus: int) -> int:
    """Return ``gpus`` if plans are made for that number of GPUs. Raises JobError otherwise."""
    return int(session.ask("SELECT planned_gpus(?)", [whole("gpus", gpus)]).rows[0][0])


COMPARED_OF_A_JOB = {
    "total_usd": "The job's lowest cost on the GPU, in USD.",
    "hours": "Hours from renting the machine to the finished job.",
    "gpu_count": "Number of GPUs used.",
    "provider": "Provider of the cheapest offer.",
    "tokens_per_second": "Speed of all the GPUs used, together.",
    "fit_probability": "P(fits).",
}
"""Columns of ``cheapest_for`` that a comparison shows, as facts whose names begin with job_."""


def compare(session: Session, one: str, other: str, job: Job | None = None) -> Result:
    """Return the facts of two cards side by side: the rows of the macro ``compare_gpus``. With a ``job``,
    facts about the cheapest way to run it on each card come first, null if there is none. Raises JobError."""
    cards = [one_gpu(session, one), one_gpu(session, other)]
    facts = session.ask("FROM compare_gpus(?, ?)", cards)
    if job is None:
        return facts
    ranked = list(session.cheapest(job.but(gpu=cards, exclude_gpu=None)).dicts())
    best = [next((row for row in ranked if row["gpu_id"] == card), None) for card in cards]
    rows = [
        (f"job_{name}", *(None if row is None else str(row[name]) for row in best), meaning)
        for name, meaning in COMPARED_OF_A_JOB.items()
    ]
    return Result(facts.columns, facts.types, [*rows, *facts.rows])


def one_gpu(session: Session, name: str) -> str:
    """Return the gpu_id of a card, given any name that a job may use for it. Raises JobError with the nearest
    names for an unknown name, and with the cards for a name that could mean several models."""
    return str(session.ask("SELECT one_gpu(?)", [name]).rows[0][0])


def family_notes(session: Session, *names: str) -> list[str]:
    """Return which card was taken for each of the names that are families of cards. Raises JobError."""
    query = "SELECT gpu_id, other_cards FROM gpu_readings(?) WHERE len(other_cards) > 0"
    found = [(name, row) for name in names for row in session.ask(query, [name]).rows]
    return [f"{family_text(name, gpu_id, others)}." for name, (gpu_id, others) in found]
