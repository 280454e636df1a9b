"""How many GPUs the machines of a source have, where its prices do not say: catalog/machine_sizes.csv.

One row per source, card and tier. A row without a card is for every card of the source that has none, a row
without a tier for every tier. Checked on loading.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from pipeline.catalog.source_config import CatalogError
from pipeline.catalog.tables import catalog_table


class MachineSize(BaseModel):
    """One row: the numbers of GPUs that are sold as one machine ("1;2;4;8"), and the network between such
    machines.

    Without ``max_nodes`` nothing says that several machines can be rented as a cluster.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    gpu_id: str | None = None
    tier: str | None = None
    gpu_counts: Annotated[tuple[PositiveInt, ...], BeforeValidator(lambda text: text.split(";"))]
    node_network_gbps: PositiveFloat | None = None
    max_nodes: Annotated[int, Field(gt=1)] | None = None
    network_attached: bool | None = None
    evidence: Literal["captured", "code", "documented", "inferred"]
    evidence_url: str | None = None
    read_on: date
    note: str | None = None

    @model_validator(mode="after")
    def _can_be_meant(self) -> "MachineSize":
        if list(self.gpu_counts) != sorted(set(self.gpu_counts)):
            raise ValueError(f"gpu_counts {self.gpu_counts} are not ascending, each once")
        if self.max_nodes is not None and self.node_network_gbps is None:
            raise ValueError("max_nodes needs node_network_gbps: a cluster with an unknown network is none")
        return self


@cache
def machine_sizes() -> Sequence[MachineSize]:
    """Every row of the file. Raises CatalogError naming the file, the line and what is wrong."""
    rows = catalog_table("machine_sizes.csv", MachineSize)
    twice = [key for key, times in Counter((r.source, r.gpu_id, r.tier) for r in rows).items() if times > 1]
    if twice:
        raise CatalogError(
            f"catalog/machine_sizes.csv has two rows for {' '.join(part or 'any' for part in twice[0])}"
        )
    return rows


def machine_size(source: str, gpu_id: str | None, tier: str | None) -> MachineSize | None:
    """The row for a card of a source: that of its card before that of every card, then that of its tier
    before that of every tier. None where there is none. Raises CatalogError."""
    fitting = [
        row
        for row in machine_sizes()
        if row.source == source and row.gpu_id in (gpu_id, None) and row.tier in (tier, None)
    ]
    return max(fitting, key=lambda row: (row.gpu_id is not None, row.tier is not None), default=None)


def machine_size_rows() -> list[dict[str, Any]]:
    """The rows of the table ``machine_sizes``. Raises CatalogError."""
    return [row.model_dump() | {"gpu_counts": list(row.gpu_counts)} for row in machine_sizes()]
