"""The memory of each optimizer on the GPU between steps and during a step."""

from typing import Any

import pytest

from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import Trace
from gpufare_tracer.timeline import Category, Phase
from gpufare_tracer.trace import trace
from tests.shapes import ALL_WEIGHTS, HIDDEN, LAYERS, LINEAR_WEIGHTS, TABLE_WEIGHTS, tiny

TENSORS = 9 * LAYERS + 3
NORMS = 2 * LAYERS + 1


def traced(optimizer: str, **changes: Any) -> Trace:
    shape = tiny(**changes.pop("shape", {}))
    recipe = Recipe.model_validate({
        "name": "full", "framework": "transformers", "method": "full", "optimizer": optimizer,
        "weight_dtype": "bf16", "gradient_clipping": False, **changes,
    })  # fmt: skip
    return trace(recipe, shape)


def state(found: Trace) -> int:
    return found.phase(Phase.FORWARD).by_category.get(Category.OPTIMIZER, 0)


@pytest.mark.parametrize("optimizer", ["adamw", "adamw_fused"])
def test_adam_keeps_two_moments_in_the_weights_type(optimizer: str) -> None:
    steps = 512 * TENSORS  # fused keeps its step count on the GPU
    assert 2 * 2 * ALL_WEIGHTS <= state(traced(optimizer)) <= 2 * 2 * ALL_WEIGHTS + 2 * 512 * TENSORS + steps


def test_foreach_needs_another_copy_of_what_trains_and_fused_does_not() -> None:
    def transient(optimizer: str) -> int:
        return traced(optimizer).phase(Phase.OPTIMIZER).by_category.get(Category.TEMPORARIES, 0)

    assert transient("adamw_fused") < 512 * 4
    assert transient("adamw") >= 2 * ALL_WEIGHTS


def test_8_bit_adam_keeps_a_byte_per_moment_and_a_scale_per_256_but_for_embeddings() -> None:
    """Tensors below 4,096 elements, here the norms, keep fp32 moments, too."""
    large = LINEAR_WEIGHTS + TABLE_WEIGHTS
    least = 2 * (large + 4 * large // 256) + 2 * 4 * (TABLE_WEIGHTS + HIDDEN * NORMS)
    assert least <= state(traced("adamw8bit")) <= least + 4 * 512 * TENSORS


def test_paged_state_is_managed_memory_and_not_counted() -> None:
    """State of less than 100,000 elements is not paged: here only that of the two wider tables is."""
    wide = {"vocab_size": 1024}
    config = tiny().config or {}
    shape = {"config": config | wide}
    saved = state(traced("adamw8bit", shape=shape)) - state(traced("paged_adamw8bit", shape=shape))
    assert saved == (2 + 2 * 4) * 1024 * HIDDEN
    assert state(traced("paged_adamw32", shape=shape)) == 2 * 4 * (LINEAR_WEIGHTS + NORMS * HIDDEN)


def test_sgd_keeps_nothing() -> None:
    assert state(traced("sgd")) == 0
