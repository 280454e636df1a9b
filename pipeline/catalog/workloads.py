"""The training jobs that are priced every day: catalog/workloads.yaml, expanded and checked."""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pipeline.catalog.job_settings import default_count, job_settings
from pipeline.catalog.source_config import CatalogError, read_yaml
from pipeline.contracts.amounts import amount_in
from pipeline.contracts.training import ADAPTER_METHODS, Method
from pipeline.home import paths

Amount = Annotated[float, BeforeValidator(lambda value: amount_in(str(value)))]

_PARTS = ("examples", "tokens_per_example", "epochs")
"""Columns whose product is the number of tokens."""


def _count(name: str, default: int | None) -> Any:
    """Return a field with the bounds of a job setting."""
    setting = job_settings()[name]
    return Field(default=default, ge=setting.least, le=setting.most)


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Workload(_Entry):
    """A row of the table ``workloads``. ``tokens`` is the number of tokens that pass through the model in all
    epochs; ``max_hours`` is the job's own deadline."""

    workload: str
    title: str
    model: str
    method: Method
    tokens: Annotated[Amount, Field(ge=1)]
    examples: Amount | None = None
    tokens_per_example: Amount | None = None
    epochs: Amount | None = None
    seq_len: int = _count("seq_len", default_count("seq_len"))
    lora_rank: int | None = _count("lora_rank", None)
    max_gpus: int = _count("gpus", default_count("gpus"))
    max_hours: float | None = Field(default=None, ge=0.01, allow_inf_nan=False)
    scenario: bool = True
    note: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _count_tokens(cls, given: Any) -> Any:
        """Compute the number of tokens for a job whose size is given in examples."""
        parts = [amount_in(str(given[name])) for name in _PARTS if name in given]
        if not parts:
            return given
        if len(parts) < len(_PARTS):
            raise ValueError("give either tokens, or all of examples, tokens_per_example and epochs")
        tokens = math.prod(parts)
        if "tokens" in given and not math.isclose(stated := amount_in(str(given["tokens"])), tokens):
            raise ValueError(f"tokens is {stated:g}, but its examples and epochs give {tokens:g}")
        return given | {"tokens": tokens}

    @model_validator(mode="before")
    @classmethod
    def _adapters_have_a_rank(cls, given: Any) -> Any:
        return (
            {"lora_rank": default_count("lora_rank")} if given.get("method") in ADAPTER_METHODS else {}
        ) | given

    @model_validator(mode="after")
    def _check_rank(self) -> "Workload":
        if self.lora_rank is not None and self.method not in ADAPTER_METHODS:
            raise ValueError(f"{self.workload}: lora_rank is for lora and qlora only")
        return self


class _Block(_Entry):
    """A part of the grid: all combinations of its models, methods and token counts."""

    models: tuple[str, ...]
    methods: tuple[Method, ...]
    tokens: tuple[str, ...]
    seq_len: int = default_count("seq_len")
    max_gpus: int = default_count("gpus")

    def expand(self) -> Iterator[Workload]:
        for model, method, tokens in product(self.models, self.methods, self.tokens):
            long = f"-{self.seq_len}" if self.seq_len != default_count("seq_len") else ""
            yield Workload(
                workload=f"{model}-{method}-{tokens.lower()}{long}",
                title=f"{model}, {method}, {tokens} tokens in sequences of {self.seq_len}",
                model=model,
                method=method,
                tokens=amount_in(tokens),
                seq_len=self.seq_len,
                max_gpus=self.max_gpus,
                scenario=False,
            )


class _Catalogue(_Entry):
    grid: tuple[_Block, ...]
    scenarios: tuple[Workload, ...]


def workloads(path: Path | None = None) -> list[dict[str, Any]]:
    """Return the rows of the table ``workloads``, starting with those of the grid.

    Raises CatalogError naming the file and the field if the yaml file is invalid.
    """
    path = path or paths.CATALOG_DIR / "workloads.yaml"
    catalogue = read_yaml(path, _Catalogue)
    rows = [*chain.from_iterable(block.expand() for block in catalogue.grid), *catalogue.scenarios]
    twice = [name for name, count in Counter(row.workload for row in rows).items() if count > 1]
    if twice:
        raise CatalogError(f"{path} names these workloads twice: {', '.join(twice)}")
    return [row.model_dump() for row in rows]
