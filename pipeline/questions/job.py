"""A training job, and what its answers must meet."""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from difflib import get_close_matches
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast, get_type_hints

from pipeline.contracts.amounts import amount_in
from pipeline.contracts.errors import GpufareError
from pipeline.warehouse.query import QueryError

if TYPE_CHECKING:
    from pipeline.catalog.own import OwnModel


class JobError(GpufareError):
    """The question cannot be answered: says which part of the job is wrong."""


Names = str | Sequence[str]
"""One name, several with commas between them, or a sequence of them."""


Amount = float | str
"""A number, or a text such as 100M, as the options of the command take it."""


class RecipeSettings(TypedDict, total=False):
    """How a model is trained: not how much, where or for what."""

    model: str | None
    method: str | None
    seq_len: int | None
    lora_rank: int | None
    lora_targets: Names | None
    micro_batch: int | None
    global_batch_tokens: Amount | None
    checkpointing: str | None
    offload: str | None
    stack: str | None
    optimizer: str | None
    training_precision: str | None
    quantization: str | None


class JobSettings(RecipeSettings, total=False):
    """A training job and what its answers must meet, by the names of the options of ``gpufare cheapest`` and
    of the columns that ``cheapest_for`` takes; what is left out has its documented default.

    ``tokens`` are those of one epoch; they and the other amounts may be texts such as "100M". ``gpus`` (the
    most), ``min_gpus`` and ``max_nodes`` count GPUs and machines; ``max_usd`` is in US dollars, ``max_hours``
    in hours, ``max_term_days`` and ``max_age_days`` in days; ``min_fit_probability`` is a share from 0 to 1;
    a ``quote`` is like "8 x h100-sxm-80gb at 1.50" and ``own`` like "2 x rtx-4090 at 0.12", in US dollars per
    GPU and hour.
    """

    tokens: Amount | None
    examples: Amount | None
    tokens_per_example: Amount | None
    epochs: float | None
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

_TYPES = get_type_hints(JobSettings)

_OTHER_NAMES = {"max_gpus": "gpus", "price_kind": "kind"}
"""Names that only SQL takes."""


class Job:
    """A job as ``JobSettings`` describes it. Its names and types are checked here, the rest by the macros.
    ``config`` is the config.json that its model was read from, if any."""

    def __init__(self, config: Path | None = None, **settings: Unpack[JobSettings]) -> None:
        """Raises JobError for a setting that there is not, for one that is given and names nothing, and for a
        value that is of another type."""
        unknown = [name for name in settings if name not in JOB_SETTINGS]
        if unknown:
            other = _OTHER_NAMES.get(unknown[0])
            nearest = [other] if other else get_close_matches(unknown[0], JOB_SETTINGS, n=3)
            hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
            raise JobError(f"a job has no setting {unknown[0]!r}{hint}")
        self.config = config
        self.settings: dict[str, Any] = {
            name: _checked(name, value) for name, value in settings.items() if value is not None
        }

    def but(self, **changes: Unpack[JobSettings]) -> "Job":
        """Return the same job with other settings; None leaves one out."""
        return Job(self.config, **(cast(JobSettings, self.settings) | changes))

    def __getitem__(self, name: str) -> Any:
        """A setting, None where it is left open."""
        return self.settings.get(name)


def given_job(
    model: str | None, config: Path | None, settings: dict[str, Any]
) -> "tuple[Job, OwnModel | None, list[str]]":
    """Return the job of a model of the catalogue, or of a config.json: its model, and what is left out of it.

    Raises JobError, and GivenModelError for a config.json that is not understood.
    """
    if config is None:
        return Job(model=model, **settings), None, []
    from pipeline.model.given_models import model_of_file

    given, left_out = model_of_file(config)
    job = Job(config, model=given.model, **settings)
    return job, given, [f"{config}: {line}" for line in left_out]


def _checked(name: str, value: Any) -> Any:
    """A setting as DuckDB takes it: several names as one text, numbers as Python's. Raises JobError."""
    if getattr(value, "ndim", None) == 0:  # a scalar of numpy
        value = value.item()
    asked = _TYPES[name]
    if asked == bool | None:
        if not isinstance(value, bool):
            raise JobError(f"{name} must be True or False, not {value!r}")
        return value
    if asked == Amount | None and isinstance(value, str):
        try:
            return amount_in(value)
        except ValueError as error:
            raise JobError(f"{name}: {error}") from error
    if asked in (int | None, float | None, Amount | None):
        return whole(name, value) if asked == int | None else number(name, value)
    return _names(name, value, several=asked == Names | None)


def number(name: str, value: Any) -> float:
    """Return a value as a number. Raises JobError."""
    if not isinstance(value, bool) and isinstance(value, Real | Decimal | str):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise JobError(f"{name} must be a number, not {value!r}")


def whole(name: str, value: Any, least: int | None = None) -> int:
    """Return a value as a whole number, of at least ``least``. Raises JobError."""
    amount = number(name, value)
    if not amount.is_integer():
        raise JobError(f"{name} must be a whole number, not {value}")
    if least is not None and amount < least:
        raise JobError(f"{name} must be at least {least}, not {value}")
    return int(amount)


def _names(name: str, value: Any, *, several: bool) -> str:
    """One name, or several as one text."""
    parts = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    wrong = [part for part in parts if not isinstance(part, str)]
    if wrong:
        raise JobError(f"{name} must be text, not {wrong[0]!r}")
    if not any(part.strip(" ,;[]'\"") for part in parts):
        raise JobError(f"{name} names nothing: give a name, or leave {name} out")
    if len(parts) > 1 and not several:
        raise JobError(f"{name}: name one, not {', '.join(parts)}")
    return ("; " if name in ("quote", "own") else ",").join(parts)


def job_error(error: QueryError) -> JobError:
    """Return what a macro says of a job that it refuses, in one line."""
    if str(error).startswith(("Catalog Error", "Binder Error")):  # a macro, table or column is not there
        return JobError("the published file is of an earlier version of gpufare: run `gpufare refresh`")
    said = re.sub(r"^(Invalid Input Error: )?(Job [^:]*: )?", "", str(error).splitlines()[0])
    if said.startswith("no model "):
        said += "; or give its config.json, or add it with gpufare model add and refresh"
    return JobError(said)
