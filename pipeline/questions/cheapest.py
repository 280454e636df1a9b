"""The cheapest ways to run one training job, ranked."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal

import duckdb

from pipeline.contracts.errors import GpufareError
from pipeline.warehouse.query import QueryError, Result, ask


class JobError(GpufareError):
    """The question cannot be answered: says which part of the job is wrong."""


Names = str | Sequence[str] | None
"""One name, several with commas between them, or a sequence of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A training job and what its answers must meet, as ``cheapest_for`` takes it; None leaves a setting at
    its documented default.

    ``tokens`` are those of one epoch. ``gpus``, ``min_gpus`` and ``max_nodes`` count GPUs and machines,
    ``max_usd`` is in US dollars, ``max_hours`` in hours, ``max_term_days`` and ``max_age_days`` in days;
    ``quote`` and ``own`` are like "8 x h100-sxm-80gb at 1.50", US dollars per GPU and hour.
    """

    model: str
    method: str | None = None
    tokens: float | None = None
    examples: float | None = None
    tokens_per_example: float | None = None
    epochs: float | None = None
    seq_len: int | None = None
    lora_rank: int | None = None
    lora_targets: str | None = None
    micro_batch: int | None = None
    global_batch_tokens: float | None = None
    checkpointing: str | None = None
    offload: str | None = None
    stack: str | None = None
    optimizer: str | None = None
    training_precision: str | None = None
    quantization: str | None = None
    gpu: Names = None
    exclude_gpu: Names = None
    gpus: int | None = None
    min_gpus: int | None = None
    max_nodes: int | None = None
    provider: Names = None
    exclude_provider: Names = None
    source: Names = None
    exclude_source: Names = None
    tier: Names = None
    country: Names = None
    continent: Names = None
    kind: Names = None
    max_term_days: int | None = None
    max_usd: float | None = None
    max_hours: float | None = None
    max_age_days: int | None = None
    quote: Names = None
    own: Names = None
    min_fit_probability: float | None = None
    evidence: str | None = None
    assumed_sizes: bool | None = None
    objective: Literal["cost", "time", "pareto"] | None = None

    def settings(self) -> dict[str, Any]:
        """What is given, by its name as an option; several names as one text."""
        given = {name: value for name, value in asdict(self).items() if value is not None and value != ()}
        return {
            _SQL_NAMES.get(name, name): value
            if isinstance(value, str | int | float)
            else separator_of(name).join(value)
            for name, value in given.items()
        }


_SQL_NAMES = {"gpus": "max_gpus", "kind": "price_kind"}

JOB_SETTINGS: tuple[str, ...] = tuple(field.name for field in fields(Job))


def separator_of(setting: str) -> str:
    """What stands between several values of a setting: quotes may have commas in their numbers."""
    return "; " if setting in ("quote", "own") else ","


def cheapest(connection: duckdb.DuckDBPyConnection, job: Job) -> Result:
    """Every ranked way to run the job, all columns of ``cheapest_for``. Raises JobError."""
    settings = job.settings()
    refuse_unknown_model(connection, job.model)
    columns = ", ".join(f"? AS {name}" for name in settings)
    query = f"WITH asked AS (SELECT {columns}) FROM cheapest_for('asked') ORDER BY rank"  # noqa: S608
    try:
        return ask(connection, query, list(settings.values()))
    except QueryError as error:
        raise job_error(error) from error


def job_error(error: QueryError) -> JobError:
    """What DuckDB says of a job that a macro refuses, in one line."""
    return JobError(str(error).splitlines()[0].removeprefix("Invalid Input Error: "))


def refuse_unknown_model(connection: duckdb.DuckDBPyConnection, model: str) -> None:
    """Raise JobError with the nearest names where no model is called so."""
    known = [name for (name,) in ask(connection, "SELECT model FROM main.models ORDER BY model").rows]
    if model not in known:
        similar = get_close_matches(model.lower().rpartition("/")[2], known, n=3)
        hint = f"did you mean {' or '.join(similar)}? " if similar else ""
        raise JobError(
            f"there is no model {model!r}; {hint}give its config.json with --config, or add it with gpufare "
            f"model add and refresh; known models: {', '.join(known)}"
        )
