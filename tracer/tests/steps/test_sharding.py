"""The arithmetic of sharded states: weights over n, a layer gathered, buckets like gradients."""

import functools
from collections import Counter
from typing import Any
from unittest.mock import patch

import pytest
from torch.utils._pytree import tree_leaves

from gpufare_tracer import collectives
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import Trace, TraceShape
from gpufare_tracer.timeline import Category, Moment, Phase
from gpufare_tracer.trace import STEPS, trace

HIDDEN, INTERMEDIATE, LAYERS, VOCAB = 256, 512, 2, 1024
LAYER = 4 * HIDDEN**2 + 3 * HIDDEN * INTERMEDIATE + 2 * HIDDEN
ROOT = 2 * VOCAB * HIDDEN + HIDDEN
PARAMETERS = LAYERS * LAYER + ROOT
TINY = {
    "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE,
    "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": VOCAB,
    "tie_word_embeddings": False,
}  # fmt: skip
BF16, FP32 = 2, 4
FP16_SCALES = 2 / 128
"""Bytes per weight of GPTQ's scales, one for 128 weights."""
ROUNDING = 0.01
"""Blocks of 512 bytes and the optimizer's step counters, as a share of a tiny model."""


@functools.cache
def traced(
    sharding: str, gpu_count: int = 4, layers: int = LAYERS, seq_len: int = 16, **switches: object
) -> Trace:
    recipe = Recipe.model_validate({
        "name": "tiny", "framework": "transformers", "method": "full", "optimizer": "adamw",
        "gradient_clipping": False, "sharding": sharding, "gpu_count": gpu_count, **switches,
    })  # fmt: skip
    config = {**TINY, "num_hidden_layers": layers}
    return trace(recipe, TraceShape(model="tiny", config=config, micro_batch=1, seq_len=seq_len))


def communicated(sharding: str, **switches: object) -> dict[str, float]:
    """Bytes of the input of each collective on one rank, per step."""
    claim, moved = collectives.claim, Counter[str]()

    def noting(recorder: Any, func: Any, args: Any, out: Any) -> None:
        if known := collectives._known(func):
            name, source, _ = known
            tensors = (leaf for leaf in tree_leaves(args[source]) if hasattr(leaf, "nbytes"))
            moved[f"{recorder.timeline.phase}|{name}"] += sum(tensor.nbytes for tensor in tensors)
        claim(recorder, func, args, out)

    with patch.object(collectives, "claim", noting):
        traced.__wrapped__(sharding, **switches)
    return {name: size / STEPS for name, size in moved.items() if not name.startswith("build")}


def category(found: Trace, phase: Phase, name: Category) -> int:
    return found.phase(phase).by_category.get(name, 0)


@pytest.mark.parametrize("gpu_count", [2, 4])
def test_weights_gradients_and_moments_are_one_share_of_n(gpu_count):
    step = traced("fsdp", gpu_count).phase(Phase.OPTIMIZER).by_category
    share = PARAMETERS / gpu_count * BF16
    assert step[Category.WEIGHTS] == pytest.approx(share, rel=ROUNDING)
    assert step[Category.GRADIENTS] == pytest.approx(share, rel=ROUNDING)
    assert step[Category.OPTIMIZER] == pytest.approx(2 * share, rel=ROUNDING)


def test_mixed_precision_keeps_shards_in_fp32_and_gathers_16_bits():
    found = traced("fsdp", weight_dtype="fp32", autocast="bf16")
    step = found.phase(Phase.OPTIMIZER).by_category
    assert step[Category.WEIGHTS] == pytest.approx(PARAMETERS / 4 * FP32, rel=ROUNDING)
    assert step[Category.OPTIMIZER] == pytest.approx(2 * PARAMETERS / 4 * FP32, rel=ROUNDING)
    gathered = category(found, Phase.FORWARD, Category.COMMUNICATION)
    assert ROOT * BF16 <= gathered <= (PARAMETERS + LAYER) * BF16 * 1.25


def test_the_forward_pass_of_fsdp_gathers_the_root_and_one_layer_at_a_time():
    gathered = category(traced("fsdp"), Phase.FORWARD, Category.COMMUNICATION)
    assert gathered == pytest.approx((ROOT + LAYER) * BF16, rel=ROUNDING)


def test_ddp_adds_buckets_as_large_as_all_gradients():
    alone, parallel = traced("none", 1), traced("ddp")
    assert category(alone, Phase.OPTIMIZER, Category.COMMUNICATION) == 0
    buckets = category(parallel, Phase.OPTIMIZER, Category.COMMUNICATION)
    assert buckets == pytest.approx(PARAMETERS * BF16, rel=ROUNDING)
    more = parallel.resident_bytes - alone.resident_bytes
    assert more == buckets


def test_nothing_is_left_behind_and_traces_repeat():
    import torch.distributed

    found = traced("fsdp", 4)
    traced.cache_clear()
    assert traced("fsdp", 4) == found
    assert not torch.distributed.is_initialized()


def test_layers_are_gathered_twice_the_root_once_and_gradients_reduced_once():
    moved = communicated("fsdp")
    assert moved["forward|all_gather"] == pytest.approx(PARAMETERS / 4 * BF16, rel=ROUNDING)
    assert moved["backward|all_gather"] == pytest.approx(LAYERS * LAYER / 4 * BF16, rel=ROUNDING)
    assert moved["backward|reduce_scatter"] == pytest.approx(PARAMETERS * BF16, rel=ROUNDING)


def test_ddp_reduces_all_gradients_once_and_broadcasts_buffers():
    moved = communicated("ddp")
    frequencies = HIDDEN // 4 // 2
    buffers = 2 * frequencies * FP32
    assert moved == {"forward|broadcast": buffers, "backward|all_reduce": PARAMETERS * BF16}


@pytest.mark.parametrize(
    ("quantization", "packed_bytes", "scale_bytes"),
    [("nf4dq", 1 / 2, 1 / 64), ("gptq", 1 / 2 + 1 / 2 / 128, FP16_SCALES)],
)
def test_packed_weights_are_sharded_and_their_scales_are_not(quantization, packed_bytes, scale_bytes):
    of_two, of_four = (
        category(
            traced(
                "fsdp", gpu_count, method="qlora", quantization=quantization, weight_dtype="fp16",
                attention="eager", lora_targets=("q_proj",),
            ), Phase.OPTIMIZER, Category.WEIGHTS,
        ) for gpu_count in (2, 4)
    )  # fmt: skip
    linears = LAYERS * (4 * HIDDEN**2 + 3 * HIDDEN * INTERMEDIATE)
    sharded = linears * packed_bytes + (PARAMETERS - linears) * BF16
    assert of_two - of_four == pytest.approx(sharded / 4, rel=ROUNDING)
    assert of_four - sharded / 4 >= linears * scale_bytes


def test_checkpoints_around_frozen_units_keep_a_gradient_per_layer():
    layers, tokens = 6, 512

    def at_the_end(is_around):
        found = traced(
            "fsdp", layers=layers, seq_len=tokens, method="lora", checkpointing="full",
            checkpoint_reentrant=True, checkpoint_around_unit=is_around,
        )  # fmt: skip
        moments = {moment.moment: moment.allocated_bytes for moment in found.moments}
        return moments[Moment.FIRST_LAYER_BACKWARD]

    within, around = at_the_end(False), at_the_end(True)
    assert around - within >= (layers - 1) * tokens * HIDDEN * BF16


def test_checkpoints_around_units_gather_trained_layers_as_often():
    checkpoints = {"checkpointing": "full", "checkpoint_reentrant": True}
    cases = [checkpoints | {"checkpoint_around_unit": is_around} for is_around in (False, True)]
    within, around = (traced("fsdp", **case).resident_bytes for case in cases)
    assert around == within
    within, around = (communicated("fsdp", **case)["backward|reduce_scatter"] for case in cases)
    assert around == within
