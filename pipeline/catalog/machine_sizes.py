"""Facts about machines that sources' prices omit.

catalog/machine_sizes.csv has the numbers of GPUs per machine: one row per source, card and tier. A row
without a card applies to every card of the source, and a row without a tier to every tier, unless there is a
more specific row. catalog/machines.csv has the machines themselves: their names, vCPUs, memory and regions.
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
    """One row: the numbers of GPUs that one machine can have ("1;2;4;8"), and the network between machines.

    Without ``max_nodes``, it is unknown whether several machines can be rented as a cluster.
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
    def _check_sizes_and_network(self) -> "MachineSize":
        if list(self.gpu_counts) != sorted(set(self.gpu_counts)):
            raise ValueError(f"gpu_counts {self.gpu_counts} are not ascending, each once")
        if self.max_nodes is not None and self.node_network_gbps is None:
            raise ValueError("max_nodes needs node_network_gbps: jobs need a known network")
        return self


class NamedMachine(BaseModel):
    """One row of machines.csv: a machine by its source's name.

    Without a card, the row adds its vCPUs and memory to offers that state the name. With a card, it also
    names the machine of offers that state only the card; without ``gpu_count``, the machine has any number of
    GPUs that the source rents, and vCPUs and memory are per GPU. ``regions`` are all regions that have the
    machine, and are empty if not known.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    instance_type: str
    gpu_id: str | None = None
    tier: str | None = None
    gpu_count: PositiveInt | None = None
    vcpus: PositiveFloat | None = None
    ram_gib: PositiveFloat | None = None
    regions: Annotated[tuple[str, ...], BeforeValidator(lambda text: text.split(";"))] = ()
    evidence_url: str
    read_on: date
    note: str | None = None


@cache
def named_machines(source: str) -> Sequence[NamedMachine]:
    """Return a source's rows of machines.csv. Raises CatalogError naming the file, line and problem."""
    rows = catalog_table("machines.csv", NamedMachine)
    twice = [key for key, times in Counter((r.source, r.instance_type) for r in rows).items() if times > 1]
    if twice:
        raise CatalogError(f"catalog/machines.csv has two rows for {' '.join(twice[0])}")
    return [row for row in rows if row.source == source]


@cache
def machine_sizes() -> Sequence[MachineSize]:
    """Return the rows of machine_sizes.csv. Raises CatalogError naming the file, the line and the problem."""
    rows = catalog_table("machine_sizes.csv", MachineSize)
    twice = [key for key, times in Counter((r.source, r.gpu_id, r.tier) for r in rows).items() if times > 1]
    if twice:
        raise CatalogError(
            f"catalog/machine_sizes.csv has two rows for {' '.join(part or 'any' for part in twice[0])}"
        )
    return rows


def machine_size(source: str, gpu_id: str | None, tier: str | None) -> MachineSize | None:
    """Return the most specific row that applies, or None: a row for the card is preferred to a row for every
    card, and then a row for the tier to a row for every tier. Raises CatalogError."""
    fitting = [
        row
        for row in machine_sizes()
        if row.source == source and row.gpu_id in (gpu_id, None) and row.tier in (tier, None)
    ]
    return max(fitting, key=lambda row: (row.gpu_id is not None, row.tier is not None), default=None)


def machine_size_rows() -> list[dict[str, Any]]:
    """Return the rows of the table ``machine_sizes``. Raises CatalogError."""
    return [row.model_dump() | {"gpu_counts": list(row.gpu_counts)} for row in machine_sizes()]
