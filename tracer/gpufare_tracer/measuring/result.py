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
    """Optimizer steps that are timed."""
    warm_up: int = Field(default=5, ge=0)
    """Optimizer steps before the timed ones; two more, run first, give the peaks of the phases."""
    on_cpu: bool = False


class PhasePeak(BaseModel):
    """Peak memory of one phase of the first two steps, bytes."""

    model_config = ConfigDict(frozen=True)

    phase: Phase
    allocated_bytes: int
    reserved_bytes: int


class Measured(BaseModel):
    """The result of a run; memory in bytes, None if not counted."""

    model_config = ConfigDict(frozen=True)

    device: str
    """The GPU's name according to its driver, or cpu."""
    card_uuid: str = ""
    """UUID of the GPU according to nvidia-smi, without its prefix."""
    memory_bytes: int | None = None
    """Memory of the GPU."""
    versions: dict[str, str] = {}
    trainable_parameters: int | None = None
    phases: tuple[PhasePeak, ...] = ()
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    used_at_end_bytes: int | None = None
    """Memory in use on the whole GPU after the steps, once the caching allocator had freed its cache."""
    host_bytes: int | None = None
    """Peak memory of the process on the host."""
    step_seconds: tuple[float, ...] = ()
    """Seconds of each timed step."""
    out_of_memory: str = ""
    """The place where memory ran out, with torch's message; empty if the steps ran."""
    note: str = ""


class Failure(BaseModel):
    """Why nothing was measured."""

    problem: str
