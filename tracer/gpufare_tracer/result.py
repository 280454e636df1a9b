"""The request for a trace, and its result."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from gpufare_tracer.recipes import Recipe
from gpufare_tracer.timeline import Category, Moment, Phase


class TraceShape(BaseModel):
    """The traced model and the sizes of its training step.

    ``model`` is an id in catalog/models.csv; ``config``, if given, is a config.json that takes its place.
    ``layers`` cuts the model to fewer layers. ``compute_capability`` is the card's, e.g. (8, 0) for an A100.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    config: dict[str, Any] | None = None
    layers: int | None = Field(default=None, ge=1)
    micro_batch: int = Field(default=1, ge=1)
    seq_len: int = Field(default=2048, ge=1)
    compute_capability: tuple[int, int] = (8, 0)


class TensorAtPeak(BaseModel):
    """One tensor alive at the peak, or several of the same kind."""

    category: Category
    tensor: str
    """Type and shape."""
    operation: str
    line: str
    """file:line of the code that made the tensor; empty if lines were not recorded."""
    count: int
    size_bytes: int
    """Total size of all ``count`` tensors."""


class PhaseTrace(BaseModel):
    """Memory of one phase, in bytes."""

    phase: Phase
    allocated_bytes: int
    """Peak of the sum of the tensors' sizes, each rounded up to a multiple of 512 bytes."""
    block_bytes: int
    """Peak in whole blocks of the caching allocator, as torch.cuda.max_memory_allocated counts it."""
    reserved_bytes: int
    """Peak of reserved memory up to the end of this phase, from a replay that never returns segments."""
    operation: str
    """The operation at the peak."""
    by_category: dict[Category, int]
    largest: tuple[TensorAtPeak, ...] = ()


class MomentTrace(BaseModel):
    """Peak memory of one moment, in bytes."""

    moment: Moment
    allocated_bytes: int
    operation: str
    """The operation at the peak."""
    by_category: dict[Category, int]


class Trace(BaseModel):
    """Memory and work of one training step of a recipe on one GPU."""

    recipe: Recipe
    shape: TraceShape
    versions: dict[str, str]
    """The version of each package whose code ran."""
    note: str = ""
    """How the traced code differs from the model's own code, if transformers lacks the latter."""
    resident_bytes: int
    """Bytes held after a step, with gradients freed: weights, adapters, optimizer state and buffers."""
    trainable_parameters: int
    phases: tuple[PhaseTrace, ...]
    moments: tuple[MomentTrace, ...] = ()
    """Peaks of the moments; if the model's layers were not found, each phase is one moment."""
    work: dict[Phase, dict[str, int]] = {}
    """FLOPs, bytes, kernels and host operations of one micro-batch's passes; work.py defines the names."""
    operations: int
    """Number of operations recorded in two optimizer steps."""

    @property
    def peak(self) -> PhaseTrace:
        """The phase that needs the most memory."""
        return max(self.phases, key=lambda phase: phase.block_bytes)

    def phase(self, phase: Phase) -> PhaseTrace:
        """Return one phase. Raises ``KeyError`` if the step never entered that phase."""
        for found in self.phases:
            if found.phase is phase:
                return found
        raise KeyError(phase)
