"""torchtitan: not supported yet."""

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape
from gpufare_tracer.steps import Step


def build(recipe: Recipe, shape: TraceShape) -> Step:
    """Raises ``CannotTraceError``: its loop and models are not traced."""
    raise CannotTraceError(
        f"recipe {recipe.name!r}: torchtitan is not supported yet; nearest to it is "
        "--recipe hf-full-fsdp --set sharding=fsdp2 --set checkpointing=selective"
    )
