"""torchtitan: not supported yet."""

from pipeline.model.tracing.errors import CannotTraceError
from pipeline.model.tracing.recipes import Recipe
from pipeline.model.tracing.result import TraceShape
from pipeline.model.tracing.steps import Step


def build(recipe: Recipe, shape: TraceShape) -> Step:
    """Raises ``CannotTraceError``: its loop and models are not traced."""
    raise CannotTraceError(
        f"recipe {recipe.name!r}: torchtitan is not supported yet; nearest to it is "
        "--recipe hf-full-fsdp --set sharding=fsdp2 --set checkpointing=selective"
    )
