"""Alternatives to what a job asks for: on demand instead of other prices, more GPUs, LoRA instead of QLoRA,
pure bf16 instead of fp32 masters."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from pipeline.questions.job import Job, JobError
from pipeline.questions.session import Session
from pipeline.questions.words import (
    PRECISIONS,
    careful_text,
    cost_text,
    picked,
    picks,
    safety_text,
    ties,
    told_first,
)

WORTH_SAFETY = Decimal("1.5")
"""A machine on demand is told if it costs at most this many times what the safest of other answers costs."""


def advice(session: Session, job: Job, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the picks and the alternatives of a job in a sentence each, in the order of their weight: if the
    answers cost more than the same job on demand, the alternatives come first. ``rows``: as for
    ``alternatives``. Raises JobError."""
    told, others = [*picks(rows), *ties(rows)], alternatives(session, job, rows)
    return [*others, *told] if are_dearer(rows) else [*told, *others]


def are_dearer(rows: Sequence[Mapping[str, Any]]) -> bool:
    """True if the answers cost more than the same job on demand."""
    return "dearer_than_on_demand" in (rows[0]["cautions"] or ())


def foreseen(job: Job) -> list[Job]:
    """Return the jobs that ``alternatives`` will ask about, as far as the job's settings tell: for
    ``Session.with_picks``, which ranks several jobs at once."""
    jobs = []
    if job["kind"] not in (None, "on_demand"):
        jobs.append(_with_on_demand(job))
    if job["method"] == "qlora":
        jobs.append(_with_lora(job))
    return jobs


def _with_on_demand(job: Job) -> Job:
    return job.but(kind="on_demand", max_term_days=None)


def _with_lora(job: Job) -> Job:
    return job.but(method="lora", quantization=None)


def alternatives(session: Session, job: Job, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what would change with another price kind, number of GPUs, method or precision, in a sentence
    each: on demand, if that costs less, or is safe and costs little more; more GPUs, if nothing finishes in
    time; LoRA, if it costs no more than QLoRA; and the other precision, if the job leaves the precision open.
    ``rows``: the job's first answers, with all picks. Raises JobError."""
    first = rows[0]
    lines = [*_on_demand(session, job, rows), *_more_gpus(session, job, first)]
    if first["method"] == "qlora":
        lines += _lora(session, job, told_first(rows))
    if first["method"] == "full" and job["training_precision"] is None and job["optimizer"] is None:
        planned = _planned_precision(session, first)
        if planned == "fp16":  # a card without bf16 has no such choice
            return lines
        precision = "amp" if planned == "bf16" else "bf16"
        found = _best(session, job.but(training_precision=precision))
        answer = cost_text(found[0]) if found else "nothing that can be rented runs it"
        if not found or found[0]["total_usd"] != first["total_usd"]:
            lines.append(f"With {PRECISIONS[precision]} (--training-precision {precision}): {answer}.")
    return lines


def _on_demand(session: Session, job: Job, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the job costs on demand, if that is cheaper than the answers, or safe and not much dearer
    than the safest of them."""
    kind, safest_usd = rows[0]["price_kind"], rows[0]["safest_usd"]
    if kind in ("on_demand", "quote", "own"):
        return []
    others = list(session.with_picks(_with_on_demand(job)).dicts())
    lines = []
    cheapest, safest = picked(others, "cheapest"), picked(others, "safest")
    if cheapest and cheapest["total_usd"] <= rows[0]["total_usd"]:
        lines.append(f"Cheaper on demand: {cost_text(cheapest)}.{careful_text(cheapest)}")
    if safest and (safest_usd is None or safest["total_usd"] <= safest_usd * WORTH_SAFETY):
        lines.append(f"Safest on demand: {cost_text(safest)}; {safety_text(safest)}.{careful_text(safest)}")
    return lines


def _lora(session: Session, job: Job, told: Mapping[str, Any]) -> list[str]:
    """Return what the job costs with LoRA, and the safest way, if LoRA costs no more than the QLoRA told."""
    try:
        rows = list(session.with_picks(_with_lora(job)).dicts())
    except JobError:  # the named checkpoint is quantized
        return []
    other, safest = told_first(rows) if rows else None, picked(rows, "safest")
    if other is None or other["total_usd"] > told["total_usd"]:
        return []
    text = f"Take LoRA, without quantization: {cost_text(other)}.{careful_text(other)}"
    if safest and safest is not other:
        text += f" The safest with LoRA: {cost_text(safest)}.{careful_text(safest)}"
    return [text]


def _more_gpus(session: Session, job: Job, first: Mapping[str, Any]) -> list[str]:
    """Return what the job costs on more GPUs, if only they keep the deadline at the slow end."""
    if first["keeps_deadline"]:
        return []
    found = _best(session, job.but(gpus=session.most_gpus, min_gpus=None))
    return [
        f"In time with --gpus {row['gpu_count']}: {cost_text(row)}.{careful_text(row)}"
        for row in found
        if row["keeps_deadline"]
    ]


def _best(session: Session, job: Job) -> list[dict[str, Any]]:
    """Return the job's first answer; an empty list if there is none."""
    return list(session.cheapest(job, 1).dicts())


def _planned_precision(session: Session, row: Mapping[str, Any]) -> str:
    query = f"SELECT any_value(training_precision) FROM {session.plans()} WHERE gpu_id = ? AND gpu_count = ?"  # noqa: S608
    return str(session.ask(query, [row["gpu_id"], row["gpu_count"]]).rows[0][0])
