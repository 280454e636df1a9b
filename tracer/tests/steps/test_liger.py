"""Liger's own code on the fake device: what its kernels save, and that nothing of it stays."""

from typing import Any

import pytest

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import Trace, TraceShape
from gpufare_tracer.timeline import Category, Phase
from gpufare_tracer.trace import trace

TOKENS, HIDDEN, MLP, VOCAB = 1024, 256, 512, 32_000
CONFIG = {
    "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": MLP, "num_attention_heads": 4,
    "num_hidden_layers": 1, "vocab_size": VOCAB,
}  # fmt: skip


def traced(layers: int = 1, model_type: str = "llama", **switches: Any) -> Trace:
    recipe = Recipe.model_validate(
        {"name": "t", "framework": "transformers", "method": "full", "optimizer": "adamw_fused"} | switches
    )
    config = CONFIG | {"model_type": model_type}
    return trace(recipe, TraceShape(model="small", config=config, seq_len=TOKENS, layers=layers))


def stored(found: Trace) -> int:
    return found.phase(Phase.FORWARD).by_category[Category.STORED_ACTIVATIONS]


def test_the_logits_of_a_fused_head_never_appear() -> None:
    assert Category.LOGITS in traced().phase(Phase.FORWARD).by_category
    fused = traced(loss="fused_linear")
    assert all(Category.LOGITS not in phase.by_category for phase in fused.phases)


def test_a_fused_head_takes_chunks_of_logits_and_the_gradient_of_the_head_in_the_forward_pass() -> None:
    forward = traced(loss="fused_linear").phase(Phase.FORWARD).by_category
    # ops/fused_linear_cross_entropy.py: 1,024 tokens in ceil(32,000 / 256) = 125 parts are 9 tokens each, 16
    # as a power of two.
    assert forward[Category.WORKING_SET] >= 16 * VOCAB * 2
    assert forward[Category.WORKING_SET] < 3 * 16 * VOCAB * 2
    assert forward[Category.GRADIENTS] >= VOCAB * HIDDEN * 2


def test_a_layer_of_fused_kernels_keeps_less() -> None:
    plain = stored(traced(2)) - stored(traced(1))
    fused = stored(traced(2, kernels="liger")) - stored(traced(1, kernels="liger"))
    row = TOKENS * HIDDEN * 2
    # Two norms: an fp32 copy of the input, the input divided by its size, and the product with the weight,
    # against input and product; Llama's MLP is twice as wide and keeps its SiLU besides.
    assert plain - fused == 2 * (2 + 1 + 1) * row - 2 * 2 * row + 2 * row


def test_nothing_of_liger_stays() -> None:
    from transformers.models.llama import modeling_llama

    names = ("apply_rotary_pos_emb", "LlamaRMSNorm", "LlamaMLP", "LlamaForCausalLM")
    before = [getattr(modeling_llama, name) for name in names]
    plain = traced()
    fused = traced(kernels="liger")
    assert [getattr(modeling_llama, name) for name in names] == before
    assert traced() == plain
    assert traced(kernels="liger") == fused


def test_a_model_without_liger_kernels_is_refused() -> None:
    with pytest.raises(CannotTraceError, match="no kernels for model_type 'gpt_neox'"):
        traced(model_type="gpt_neox", kernels="liger")
