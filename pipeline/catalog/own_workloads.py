"""A user's own workloads: workloads.csv in the home. They are planned, ranked and recorded like those of
catalog/workloads.yaml."""

import math
from typing import Annotated, Any

from pydantic import Field, model_validator

from pipeline.catalog.own_rows import Name, OwnFile
from pipeline.catalog.workloads import Workload
from pipeline.contracts.amounts import MAX_TOKENS, amount_in
from pipeline.contracts.training import ADAPTER_METHODS

MOST_GPUS = 64
"""Plans are for up to so many."""

_AMOUNTS = ("tokens", "examples", "tokens_per_example", "epochs")


class OwnWorkload(Workload):
    """A row of a user's own workloads. What it leaves open is what a question leaves open."""

    workload: Name
    title: Annotated[str, Field(max_length=300)] = ""
    tokens: Annotated[float, Field(gt=0, le=MAX_TOKENS)]
    seq_len: Annotated[int, Field(gt=0, le=1 << 20)] = 2048
    lora_rank: Annotated[int, Field(gt=0, le=4096)] | None = None
    max_gpus: Annotated[int, Field(gt=0, le=MOST_GPUS)] = 8
    max_hours: Annotated[float, Field(gt=0, le=1e5)] | None = None
    note: Annotated[str, Field(max_length=1000)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_amounts(cls, given: Any) -> Any:
        """100M is a number here, too; adapters have rank 16 unless the row says another."""
        read = {name: amount_in(str(given[name])) for name in _AMOUNTS if name in given}
        rank = {"lora_rank": 16} if given.get("method") in ADAPTER_METHODS else {}
        found = rank | given | read
        if read.keys() == {*_AMOUNTS}:  # as a row is written: the tokens are computed from the others
            tokens = found.pop("tokens")
            if not math.isclose(tokens, math.prod(read[name] for name in _AMOUNTS if name != "tokens")):
                raise ValueError(f"tokens is {tokens:g}, which is not what its examples have in its epochs")
        return found

    def row(self) -> dict[str, Any]:
        """The row of main.workloads."""
        return self.model_dump() | {
            "title": self.title or self.workload,
            "note": self.note or "One of your own workloads.",
        }


OWN_WORKLOADS = OwnFile(
    "workload",
    OwnWorkload,
    "workload",
    tuple(name for name in OwnWorkload.model_fields if name != "scenario"),
    "catalog/workloads.yaml",
    frozenset({"scenario"}),
)
