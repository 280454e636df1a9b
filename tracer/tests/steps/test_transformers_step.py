"""Precision, checkpointing, masks and adapters of the transformers step."""

from typing import Any

import pytest

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import Trace
from gpufare_tracer.timeline import Category, Phase
from gpufare_tracer.trace import trace
from tests.shapes import ALL_WEIGHTS, HIDDEN, LAYERS, VOCAB, attention_kernels, tiny

TENSORS = 9 * LAYERS + 3
LOGITS = 64 * VOCAB


def traced(**changes: Any) -> Trace:
    shape = tiny(**changes.pop("shape", {}))
    values = {"name": "lora", "framework": "transformers", "method": "lora", "lora_targets": ["q_proj"]}
    return trace(Recipe.model_validate(values | changes), shape)


def category(found: Trace, phase: Phase, name: Category) -> int:
    return found.phase(phase).by_category.get(name, 0)


def adapters(found: Trace) -> int:
    return category(found, Phase.FORWARD, Category.ADAPTERS)


@pytest.mark.parametrize(("dtype", "size"), [("fp32", 4), ("bf16", 2), ("fp16", 2)])
def test_an_adapter_takes_rank_times_in_and_out(dtype: str, size: int) -> None:
    assert adapters(traced(adapter_dtype=dtype)) == size * LAYERS * 16 * (HIDDEN + HIDDEN)


def test_an_adapter_on_the_head_takes_rank_times_hidden_and_vocabulary() -> None:
    found = traced(lora_targets=["lm_head"])
    assert adapters(found) == 4 * 16 * (HIDDEN + VOCAB)


def test_dropout_of_adapters_stores_its_input_and_its_mask() -> None:
    stored = [
        category(traced(lora_dropout=rate), Phase.FORWARD, Category.STORED_ACTIVATIONS) for rate in (0, 0.1)
    ]
    assert stored[1] - stored[0] == (LAYERS - 1) * 64 * HIDDEN  # the first layer's input has no gradient


def test_targets_take_the_models_own_names() -> None:
    phi = {
        "model_type": "phi3", "hidden_size": HIDDEN, "intermediate_size": 256, "vocab_size": VOCAB,
        "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 4, "pad_token_id": 0,
    }  # fmt: skip
    found = traced(lora_targets=["q_proj", "v_proj", "gate_proj"], shape={"config": phi})
    fused = 16 * (HIDDEN + 3 * HIDDEN) + 16 * (HIDDEN + 2 * 256)
    assert adapters(found) == 4 * LAYERS * fused


def test_a_target_that_a_model_lacks_is_refused_by_name() -> None:
    with pytest.raises(CannotTraceError, match=r"'router'.*its linear layers are down_proj, gate_proj"):
        traced(lora_targets=["q_proj", "router"])


def test_fp32_outputs_are_a_copy_of_the_logits_in_the_forward_pass() -> None:
    held = traced(autocast="bf16", fp32_logits=True, outputs_held=True)
    kept = traced(autocast="bf16", outputs_held=True)
    gain = held.phase(Phase.OPTIMIZER).allocated_bytes - kept.phase(Phase.OPTIMIZER).allocated_bytes
    assert gain == 4 * LOGITS - 2 * LOGITS


def test_older_transformers_copied_the_logits_to_shift_them() -> None:
    """Bytes per logit at the peak: 2 + 4 + 4 today, 4 + 4 + 4 up to 4.45, 2 + 4 + 4 + 4 in 4.46.

    Shifted copies lack one token in 64; of a batch of one example there is no copy.
    """
    shape = {"config": (tiny().config or {}) | {"vocab_size": 4096}, "micro_batch": 2}
    today, model, loss = (
        traced(shifted_logits=how, shape=shape).phase(Phase.FORWARD).allocated_bytes
        for how in ("none", "model", "loss")
    )
    logit, shifted = 2 * 64 * 4096, 2 * 63 * 4096
    labels = 4 * 512
    assert model - today == pytest.approx(4 * logit + 8 * shifted - 10 * logit, abs=labels)
    assert loss - model == pytest.approx(2 * logit, abs=labels)


def test_a_fused_loss_writes_its_gradient_over_the_shifted_copy() -> None:
    """2 + 4 + 4 bytes per logit instead of 2 + 4 + 4 + 4, as in fms-acceleration under transformers 4.46."""
    shape = {"config": (tiny().config or {}) | {"vocab_size": 4096}, "micro_batch": 2}
    fused, plain = (
        traced(shifted_logits="loss", kernels=kernels, shape=shape).phase(Phase.FORWARD).by_category
        for kernels in ("unsloth", "eager")
    )
    log_softmax = 4 * 2 * 63 * 4096
    assert plain[Category.LOGITS] - fused[Category.LOGITS] == pytest.approx(log_softmax, rel=0.01)


def test_a_script_that_keeps_its_output_has_its_logits_when_the_optimizer_steps() -> None:
    held, freed = (traced(outputs_held=on).phase(Phase.OPTIMIZER).allocated_bytes for on in (True, False))
    assert held - freed >= 2 * LOGITS


def test_fp32_weights_under_autocast_have_fp32_gradients_and_moments() -> None:
    found = traced(
        method="full", weight_dtype="fp32", autocast="fp16", gradient_scaling=True, optimizer="adamw"
    )
    rounding = 512 * TENSORS
    for name, copies in ((Category.GRADIENTS, 1), (Category.OPTIMIZER, 2)):
        size = category(found, Phase.OPTIMIZER, name)
        assert copies * 4 * ALL_WEIGHTS <= size <= copies * (4 * ALL_WEIGHTS + rounding)


def test_checkpointing_stores_less() -> None:
    stored = [
        category(traced(method="full", checkpointing=how), Phase.FORWARD, Category.STORED_ACTIVATIONS)
        for how in ("full", "none")
    ]
    assert stored == sorted(stored)
    assert len(set(stored)) == 2
    assert stored[0] >= (LAYERS - 1) * 2 * 64 * HIDDEN


def test_reentrant_checkpoints_store_the_same_layers_inputs() -> None:
    for reentrant in (True, False):
        found = traced(checkpointing="full", checkpoint_reentrant=reentrant)
        stored = category(found, Phase.FORWARD, Category.STORED_ACTIVATIONS)
        assert (LAYERS - 1) * 2 * 64 * HIDDEN <= stored < 2 * (LAYERS + 4) * 2 * 64 * HIDDEN


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_mask_of_ones_is_dropped_for_sdpa_and_made_for_eager(attention: str) -> None:
    """transformers asks whether the mask is all ones, which a fake answers as the real one would."""
    without, given = (
        traced(attention=attention, attention_mask=on).phase(Phase.BACKWARD).allocated_bytes
        for on in (False, True)
    )
    assert abs(given - without) <= 1024


def test_a_t4_takes_the_efficient_kernel_and_repeats_keys() -> None:
    for capability, kernel in (((7, 5), "efficient"), ((8, 0), "flash")):
        with attention_kernels() as called:
            traced(weight_dtype="fp16", shape={"compute_capability": capability})
        assert called == {kernel}
