"""The request for a trace, and its result."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from gpufare_tracer.recipes import Recipe
from gpufare_tracer.timeline import Category, Moment, Phase


class TraceShape(BaseModel):
    """The traced model and the sizes of its training step.

    ``model`` is an id of catalog/models.csv; ``config``, a config.json, takes its place if given.
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
    """One tensor alive at the peak, or several alike."""

    category: Category
    tensor: str
    """Type and shape."""
    operation: str
    line: str
    """file:line of the code that made it; empty if lines were not recorded."""
    count: int
    size_bytes: int
    """Total size of these tensors."""


class PhaseTrace(BaseModel):
    """Memory of one phase, bytes."""

    phase: Phase
    allocated_bytes: int
    """Peak of the tensors' own sizes, each rounded up to 512 bytes."""
    block_bytes: int
    """Peak in whole blocks of the caching allocator, as torch.cuda.max_memory_allocated counts it."""
    reserved_bytes: int
    """Reserved peak up to the end of this phase, from a replay that never returns segments."""
    operation: str
    """The operation at the peak."""
    by_category: dict[Category, int]
    largest: tuple[TensorAtPeak, ...] = ()


class MomentTrace(BaseModel):
    """Peak memory of one moment, bytes."""

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
    """How the traced code differs from the model's own, if transformers lacks that."""
    resident_bytes: int
    """Held after an optimizer step, with gradients freed: weights, adapters, optimizer state, buffers."""
    trainable_parameters: int
    phases: tuple[PhaseTrace, ...]
    moments: tuple[MomentTrace, ...] = ()
    """Only moments of the forward pass and the optimizer step if the model's layers were not found."""
    work: dict[Phase, dict[str, int]] = {}
    """FLOPs, bytes, kernels and host operations of one micro-batch's passes; work.py has their names."""
    operations: int
    """Operations seen in two optimizer steps."""

    @property
    def peak(self) -> PhaseTrace:
        """The phase that needs the most memory."""
        return max(self.phases, key=lambda phase: phase.block_bytes)

    def phase(self, phase: Phase) -> PhaseTrace:
        """Return one phase. Raises ``KeyError`` if the step never entered it."""
        for found in self.phases:
            if found.phase is phase:
                return found
        raise KeyError(phase)
