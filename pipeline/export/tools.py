"""What other tools list, and by which names: catalog/consumers/."""

from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict

from pipeline.catalog.tables import catalog_table


class Cloud(BaseModel):
    """One row of clouds.csv: a source that a tool knows.

    ``left_out`` is the reason for listing none of its machines. ``regions`` says where the tool itself lists
    a price that does not depend on the region: in "every" region of the source, or in those where the source
    is "stated" to have the machine. ``spot`` is "no" if the tool lists or rents no spot machines there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tool: str
    source: str
    name: str = ""
    left_out: str = ""
    regions: Literal["every", "stated"] | None = None
    spot: Literal["no"] | None = None
    evidence: str = ""


class Accelerator(BaseModel):
    """One row of accelerator_names.csv: a tool's name for a GPU, or '' if it has none.

    A row with a source applies to it, and takes precedence over the row for every source.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tool: str
    gpu_id: str
    source: str = ""
    name: str = ""
    evidence: str


@cache
def clouds(tool: str) -> dict[str, Cloud]:
    """Return the sources that a tool knows. Raises CatalogError."""
    return {row.source: row for row in catalog_table("consumers/clouds.csv", Cloud) if row.tool == tool}


def accelerator(tool: str, source: str, gpu_id: str) -> str:
    """Return a tool's name for a GPU of a source, or '' if it has none. Raises CatalogError."""
    names = _accelerators(tool)
    return names.get((gpu_id, source), names.get((gpu_id, ""), ""))


@cache
def _accelerators(tool: str) -> dict[tuple[str, str], str]:
    rows = catalog_table("consumers/accelerator_names.csv", Accelerator)
    return {(row.gpu_id, row.source): row.name for row in rows if row.tool == tool}
