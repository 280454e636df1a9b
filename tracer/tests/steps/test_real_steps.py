"""The builders of traced steps also build steps that compute: random weights and tokens, here on the CPU."""

import math

import pytest
import torch

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.frameworks import quantized
from gpufare_tracer.frameworks.surroundings import here, on_a_real_device
from gpufare_tracer.recipes import Recipe, read_recipes
from gpufare_tracer.steps import build_step, load_transformers
from gpufare_tracer.timeline import Phase
from tests.shapes import VOCAB, tiny


def recipe(**changes: object) -> Recipe:
    return Recipe.model_validate({"name": "mine", "framework": "transformers", **changes})


RECIPES = [
    recipe(method="full", weight_dtype="fp32"),
    recipe(checkpointing="full", autocast="bf16", fp32_logits=True),
    recipe(method="qlora", quantization="nf4dq", kbit_upcast=True, optimizer="adamw"),
    recipe(method="qlora", quantization="nf4", gradient_accumulation=True),
]


@pytest.mark.parametrize("mine", RECIPES, ids=lambda r: f"{r.method} {r.quantization}")
def test_a_step_trains_random_weights_on_random_tokens(mine: Recipe) -> None:
    torch.manual_seed(1)
    load_transformers()
    with on_a_real_device(mine, "cpu"):
        step = build_step(mine, tiny(micro_batch=2, seq_len=32))
        # Untrained, every entry of the vocabulary is as likely as another.
        assert step.loss().item() == pytest.approx(math.log(VOCAB), rel=0.1)
        trained = [p for p in step.parameters if p.requires_grad]
        before = [p.detach().clone() for p in trained]
        phases: list[Phase] = []
        for _ in range(2):
            step.run(phases.append)
    assert phases[-1] is Phase.OPTIMIZER
    changed = [not torch.equal(p, old) for p, old in zip(trained, before, strict=True)]
    assert all(changed), "LoRA's first factor moves in the second step, when the other is no longer zero"


def test_frozen_weights_are_in_four_bits() -> None:
    mine = recipe(method="qlora", quantization="nf4dq")
    load_transformers()
    with on_a_real_device(mine, "cpu"):
        parameters = dict(build_step(mine, tiny()).model.named_parameters())
    packed = [p for name, p in parameters.items() if "base_layer" in name]
    assert {p.dtype for p in packed} == {torch.uint8}
    assert {p.device.type for p in parameters.values()} == {"cpu"}


def test_patches_of_libraries_are_undone_after_a_run_on_a_gpu() -> None:
    undone = []
    with on_a_real_device(recipe()):
        here().undo.callback(undone.append, True)
        assert not undone
    assert undone == [True]


def test_without_its_kernels_nothing_is_quantized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantized, "cuda_kernels", {})
    with pytest.raises(CannotTraceError, match="imported in this process for a real GPU"):
        quantized.quantize(None, read_recipes()["hf-qlora"], None)
