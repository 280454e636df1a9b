"""Alternatives to a job's method and precision: LoRA instead of QLoRA, pure bf16 instead of fp32 masters."""

from collections.abc import Mapping
from typing import Any

from pipeline.questions.job import Job
from pipeline.questions.session import Session
from pipeline.questions.words import way_text

_PURE, _MASTERS = (
    ("bf16", "pure bf16, without fp32 masters"),
    ("amp", "fp32 masters, as most trainers keep them"),
)
"""The two precisions of full fine-tuning: the value of training_precision, and what it is."""


def alternatives(session: Session, job: Job, first: Mapping[str, Any]) -> list[str]:
    """Return what would change with another method or precision, in a sentence each: LoRA, if it costs no
    more than QLoRA, and the other precision, if the job leaves the precision open. ``first`` is the job's
    first answer. Raises JobError."""
    lines = []
    if first["method"] == "qlora":
        for other in _best(session, job.but(method="lora", quantization=None)):
            if other["total_usd"] <= first["total_usd"]:
                lines.append(
                    f"Take LoRA: without quantization it costs ${other['total_usd']:,.2f} in "
                    f"{other['hours']:,.1f} hours, on {way_text(other)}."
                )
    if first["method"] == "full" and job["training_precision"] is None and job["optimizer"] is None:
        planned = _planned_precision(session, first)
        if planned == "fp16":  # a card without bf16 has no such choice
            return lines
        precision, meaning = _MASTERS if planned == _PURE[0] else _PURE
        found = _best(session, job.but(training_precision=precision))
        costs = [f"${row['total_usd']:,.2f} in {row['hours']:,.1f} hours, {way_text(row)}" for row in found]
        answer = costs[0] if costs else "nothing that can be rented runs it"
        lines.append(f"With {meaning} (--training-precision {precision}): {answer}.")
    return lines


def _best(session: Session, job: Job) -> list[dict[str, Any]]:
    """Return the job's first answer; an empty list if there is none."""
    return list(session.cheapest(job, 1).dicts())


def _planned_precision(session: Session, row: Mapping[str, Any]) -> str:
    query = f"SELECT any_value(training_precision) FROM {session.plans()} WHERE gpu_id = ? AND gpu_count = ?"  # noqa: S608
    return str(session.ask(query, [row["gpu_id"], row["gpu_count"]]).rows[0][0])
