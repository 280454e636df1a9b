"""The moments of real steps: where the layers are found, each grows by the same bytes with every layer."""

import pytest

from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import Trace, TraceShape
from gpufare_tracer.timeline import Category, Moment
from gpufare_tracer.trace import trace

RECIPES = (
    Recipe(name="stored", framework="transformers", method="full", attention="eager"),
    Recipe(name="checkpointed", framework="transformers", checkpointing="full", checkpoint_reentrant=True),
)


def traced(recipe: Recipe, layers: int) -> Trace:
    return trace(recipe, TraceShape(model="llama-3.2-1b", layers=layers, micro_batch=1, seq_len=512))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_every_category_of_every_moment_is_linear_in_depth(recipe: Recipe) -> None:
    two, three, four = (traced(recipe, layers).moments for layers in (2, 3, 4))
    assert [found.moment for found in two] == list(Moment)
    for low, middle, high in zip(two, three, four, strict=True):
        for category in Category:
            sizes = [found.by_category.get(category, 0) for found in (low, middle, high)]
            assert sizes[1] - sizes[0] == sizes[2] - sizes[1], (low.moment, category)


def test_a_phase_peaks_in_one_of_its_moments() -> None:
    found = traced(RECIPES[0], 2)
    moments = {moment.allocated_bytes for moment in found.moments}
    assert {phase.allocated_bytes for phase in found.phases} <= moments


def test_scores_of_eager_attention_and_gradients_of_embeddings_are_no_logits() -> None:
    # 512 x 32 scores a token against 128,256 logits; the embedding has more elements than the logits.
    backward = next(m for m in traced(RECIPES[0], 2).moments if m.moment is Moment.FIRST_LAYER_BACKWARD)
    assert Category.LOGITS not in backward.by_category
