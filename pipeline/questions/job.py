"""A training job, and what its answers must meet."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from numbers import Number
from typing import Any, Literal, TypedDict, Unpack, cast

from pipeline.contracts.errors import GpufareError
from pipeline.warehouse.query import QueryError


class JobError(GpufareError):
    """The question cannot be answered: says which part of the job is wrong."""


Names = str | Sequence[str]
"""One name, several with commas between them, or a sequence of them."""


class JobSettings(TypedDict, total=False):
    """A training job and what its answers must meet, by the names of the options of ``gpufare cheapest`` and
    of the columns that ``cheapest_for`` takes; what is left out has its documented default.

    ``tokens`` are those of one epoch. ``gpus`` (the most), ``min_gpus`` and ``max_nodes`` count GPUs and
    machines; ``max_usd`` is in US dollars, ``max_hours`` in hours, ``max_term_days`` and ``max_age_days`` in
    days; ``min_fit_probability`` is a share from 0 to 1; a ``quote`` is like "8 x h100-sxm-80gb at 1.50" and
    ``own`` like "2 x rtx-4090 at 0.12", in US dollars per GPU and hour.
    """

    model: str | None
    method: str | None
    tokens: float | None
    examples: float | None
    tokens_per_example: float | None
    epochs: float | None
    seq_len: int | None
    lora_rank: int | None
    lora_targets: Names | None
    micro_batch: int | None
    global_batch_tokens: float | None
    checkpointing: str | None
    offload: str | None
    stack: str | None
    optimizer: str | None
    training_precision: str | None
    quantization: str | None
    gpu: Names | None
    exclude_gpu: Names | None
    gpus: int | None
    min_gpus: int | None
    max_nodes: int | None
    provider: Names | None
    exclude_provider: Names | None
    source: Names | None
    exclude_source: Names | None
    tier: Names | None
    country: Names | None
    continent: Names | None
    kind: Names | None
    max_term_days: int | None
    max_usd: float | None
    max_hours: float | None
    max_age_days: int | None
    quote: Names | None
    own: Names | None
    min_fit_probability: float | None
    evidence: str | None
    assumed_sizes: bool | None
    objective: Literal["cost", "time", "pareto"] | None


JOB_SETTINGS: tuple[str, ...] = tuple(JobSettings.__annotations__)

RECIPE_SETTINGS = (
    "model", "method", "seq_len", "lora_rank", "lora_targets", "micro_batch", "global_batch_tokens",
    "checkpointing", "offload", "stack", "optimizer", "training_precision", "quantization",
)  # fmt: skip
"""Those that say how a model is trained, and not how much, where or for what."""


class Job:
    """A job as ``JobSettings`` describes it, checked for its names alone: the macros check the rest."""

    def __init__(self, **settings: Unpack[JobSettings]) -> None:
        """Raises JobError for a setting that there is not."""
        unknown = [name for name in settings if name not in JOB_SETTINGS]
        if unknown:
            nearest = get_close_matches(unknown[0], JOB_SETTINGS, n=3)
            hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
            raise JobError(f"a job has no setting {unknown[0]!r}{hint}")
        self.settings: dict[str, Any] = {
            name: _joined(name, value)
            for name, value in settings.items()
            if value is not None and value != ()
        }

    def but(self, **changes: Unpack[JobSettings]) -> "Job":
        """The same job with other settings; None leaves one out."""
        return Job(**(cast(JobSettings, self.settings) | changes))

    def __getitem__(self, name: str) -> Any:
        """A setting, None where it is left open."""
        return self.settings.get(name)


def _joined(name: str, value: Any) -> Any:
    """Several names as one text."""
    if isinstance(value, str | Number):
        return value
    return ("; " if name in ("quote", "own") else ",").join(value)


def job_error(error: QueryError) -> JobError:
    """What a macro says of a job that it refuses, in one line."""
    said = re.sub(r"^(Invalid Input Error: )?(Job [^:]*: )?", "", str(error).splitlines()[0])
    if said.startswith("no model "):
        said += "; or give its config.json, or add it with gpufare model add and refresh"
    return JobError(said)
