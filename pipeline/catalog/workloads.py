"""The training jobs that are priced every day: catalog/workloads.yaml, expanded and checked."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pipeline.catalog.source_config import CatalogError, read_yaml
from pipeline.contracts.amounts import amount_in
from pipeline.contracts.training import ADAPTER_METHODS, Method
from pipeline.home import paths

GPUS_OF_A_MACHINE = 8
"""Most GPUs of a workload by default: one machine."""

Amount = Annotated[float, BeforeValidator(lambda value: amount_in(str(value)))]

_PARTS = ("examples", "tokens_per_example", "epochs")
"""Columns whose product is the number of tokens."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Workload(_Entry):
    """One job. ``tokens`` pass through the model, all epochs together; ``max_hours`` is the deadline."""

    workload: str
    title: str
    model: str
    method: Method
    tokens: Amount
    examples: Amount | None = None
    tokens_per_example: Amount | None = None
    epochs: Amount | None = None
    seq_len: int = Field(gt=0)
    lora_rank: int | None = Field(default=None, gt=0)
    max_gpus: int = Field(default=GPUS_OF_A_MACHINE, gt=0)
    max_hours: float | None = Field(default=None, gt=0)
    scenario: bool = True
    note: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _count_tokens(cls, given: Any) -> Any:
        """Compute the tokens of a job that is counted in examples."""
        parts = [amount_in(str(given[name])) for name in _PARTS if name in given]
        if not parts:
            return given
        if len(parts) < len(_PARTS):
            raise ValueError("give either tokens, or all of examples, tokens_per_example and epochs")
        tokens = math.prod(parts)
        if "tokens" in given and not math.isclose(stated := amount_in(str(given["tokens"])), tokens):
            raise ValueError(f"tokens is {stated:g}, but its examples and epochs give {tokens:g}")
        return given | {"tokens": tokens}

    @model_validator(mode="after")
    def _check_rank(self) -> "Workload":
        if (self.lora_rank is not None) != (self.method in ADAPTER_METHODS):
            raise ValueError(f"{self.workload}: lora_rank is for lora and qlora, and required there")
        return self


class _Deadline(_Entry):
    """The deadline of jobs with at most ``up_to_tokens`` tokens; without a number, of all others."""

    up_to_tokens: Amount = math.inf
    max_hours: float = Field(gt=0)


class _Block(_Entry):
    """A part of the grid: all combinations of its models, methods and numbers of tokens."""

    models: tuple[str, ...]
    methods: tuple[Method, ...]
    tokens: tuple[str, ...]
    seq_len: int
    lora_rank: int | None = None
    max_gpus: int = GPUS_OF_A_MACHINE

    def expand(self) -> Iterator[Workload]:
        for model, method, tokens in product(self.models, self.methods, self.tokens):
            long = f"-{self.seq_len}" if self.seq_len != 2048 else ""
            yield Workload(
                workload=f"{model}-{method}-{tokens.lower()}{long}",
                title=f"{model}, {method}, {tokens} tokens in sequences of {self.seq_len}",
                model=model,
                method=method,
                tokens=amount_in(tokens),
                seq_len=self.seq_len,
                lora_rank=self.lora_rank if method in ADAPTER_METHODS else None,
                max_gpus=self.max_gpus,
                scenario=False,
            )


class _Catalogue(_Entry):
    deadlines: tuple[_Deadline, ...]
    grid: tuple[_Block, ...]
    scenarios: tuple[Workload, ...]

    @model_validator(mode="after")
    def _check_deadlines(self) -> "_Catalogue":
        tokens = [rule.up_to_tokens for rule in self.deadlines]
        if tokens != sorted(set(tokens)) or tokens[-1:] != [math.inf]:
            raise ValueError("deadlines must ascend by up_to_tokens, and the last must not have it")
        return self

    def jobs(self) -> Iterator[Workload]:
        """Yield the grid's jobs, then the scenarios, each with its own deadline or the first that applies."""
        grid = (job for block in self.grid for job in block.expand())
        for job in (*grid, *self.scenarios):
            yield job if job.max_hours else job.model_copy(update={"max_hours": self.hours_for(job.tokens)})

    def hours_for(self, tokens: float) -> float:
        """Return the default deadline of a job with that many tokens, in hours."""
        return next(rule.max_hours for rule in self.deadlines if tokens <= rule.up_to_tokens)


def deadlines() -> Callable[[float], float]:
    """Return a function from tokens to the default deadline in hours. Raises CatalogError."""
    return read_yaml(paths.CATALOG_DIR / "workloads.yaml", _Catalogue).hours_for


def workloads(path: Path | None = None) -> list[dict[str, Any]]:
    """Return the rows of the table ``workloads``, the grid first.

    Raises CatalogError naming the file and the field if the yaml is invalid.
    """
    path = path or paths.CATALOG_DIR / "workloads.yaml"
    rows = list(read_yaml(path, _Catalogue).jobs())
    twice = [name for name, count in Counter(row.workload for row in rows).items() if count > 1]
    if twice:
        raise CatalogError(f"{path} names these workloads twice: {', '.join(twice)}")
    return [row.model_dump() for row in rows]
