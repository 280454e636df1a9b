"""Emulated kernels: Unsloth's, GPTQ's layers, offloaded activations; bytes by hand."""

from typing import Any

import pytest

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import Trace, TraceShape
from gpufare_tracer.timeline import Category, Phase
from gpufare_tracer.trace import trace

TOKENS, HIDDEN, MLP, VOCAB, HEADS = 1024, 256, 512, 8_000, 4
CONFIG = {
    "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": MLP, "num_attention_heads": HEADS,
    "num_hidden_layers": 1, "vocab_size": VOCAB,
}  # fmt: skip
LINEAR = 4 * HIDDEN * HIDDEN + 3 * HIDDEN * MLP


def traced(layers: int = 1, **switches: Any) -> Trace:
    recipe = Recipe.model_validate({"name": "t", "framework": "transformers", "lora_rank": 8} | switches)
    return trace(recipe, TraceShape(model="small", config=CONFIG, seq_len=TOKENS, layers=layers))


def stored(found: Trace) -> int:
    return found.phase(Phase.FORWARD).by_category[Category.STORED_ACTIVATIONS]


def test_a_fused_layer_keeps_inputs_alone() -> None:
    rows = 2 + 2 + 3 + 1  # inputs of two norms and what they make; query, key, value; what attention makes
    small = 2 * 4 * TOKENS + 4 * TOKENS * HEADS + 2 * 512  # of norms, of attention, its random state
    kept = stored(traced(2, kernels="unsloth")) - stored(traced(1, kernels="unsloth"))
    assert kept == TOKENS * (rows * HIDDEN + 2 * MLP) * 2 + small


def test_the_gradient_of_the_logits_overwrites_them() -> None:
    logits = traced(kernels="unsloth").phase(Phase.BACKWARD).by_category[Category.LOGITS]
    assert logits == TOKENS * VOCAB * 2


def test_what_unsloth_would_not_fuse_is_refused() -> None:
    config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 1, "n_head": 2, "vocab_size": 512}
    recipe = Recipe(name="t", framework="transformers", method="full", kernels="unsloth")
    with pytest.raises(CannotTraceError, match="models built as Llama is"):
        trace(recipe, TraceShape(model="gpt2", config=config, seq_len=64))


def test_gptq_weighs_half_a_byte_and_its_scales() -> None:
    small, large = (traced(n, method="qlora", quantization="gptq", optimizer="sgd") for n in (1, 2))
    tables = sum(
        4 * inputs + 32 + -(-inputs // 128) * outputs * (2 + 0.5)  # order, shifts, scales and zeros
        for inputs, outputs in [(HIDDEN, HIDDEN)] * 4 + [(HIDDEN, MLP)] * 2 + [(MLP, HIDDEN)]
    )
    layer = large.resident_bytes - small.resident_bytes
    adapters = 4 * (large.trainable_parameters - small.trainable_parameters)
    assert layer - adapters == pytest.approx(LINEAR / 2 + tables, rel=0.03)


def test_offloaded_layers_keep_nothing_large() -> None:
    kept = stored(traced(2, activation_offload=True)) - stored(traced(1, activation_offload=True))
    assert kept < TOKENS * HIDDEN * 2
