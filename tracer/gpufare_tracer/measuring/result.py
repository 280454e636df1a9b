"""The request for a measured run, and its result."""

from pydantic import BaseModel, ConfigDict, Field

from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape
from gpufare_tracer.timeline import Phase


class Request(BaseModel):
    """The steps to run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    recipe: Recipe
    shape: TraceShape
    steps: int = Field(default=12, ge=1)
    """Number of timed optimizer steps."""
    warm_up: int = Field(default=5, ge=0)
    """Number of optimizer steps before the timed steps; two more, run first, give the peaks of the phases."""
    on_cpu: bool = False


class PhasePeak(BaseModel):
    """Peak memory of one phase in the first two steps, in bytes."""

    model_config = ConfigDict(frozen=True)

    phase: Phase
    allocated_bytes: int
    reserved_bytes: int


class Measured(BaseModel):
    """The result of a run; memory is in bytes, or None if it was not counted."""

    model_config = ConfigDict(frozen=True)

    device: str
    """The GPU's name according to its driver, or ``cpu``."""
    card_uuid: str = ""
    """UUID of the GPU as in nvidia-smi, without the prefix ``GPU-``."""
    memory_bytes: int | None = None
    """Total memory of the GPU."""
    versions: dict[str, str] = {}
    trainable_parameters: int | None = None
    phases: tuple[PhasePeak, ...] = ()
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    used_at_end_bytes: int | None = None
    """Memory in use on the whole GPU after the steps, plus the memory that torch gave back after its peak."""
    host_bytes: int | None = None
    """Peak memory of the process on the host."""
    step_seconds: tuple[float, ...] = ()
    """Duration of each timed step, in seconds."""
    out_of_memory: str = ""
    """The place where memory ran out, with torch's message; empty if the steps ran."""
    note: str = ""


class Failure(BaseModel):
    """The reason why nothing was measured."""

    problem: str
