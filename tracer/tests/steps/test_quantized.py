"""Weights in 4 bits: what they take, and what their dequantization does."""

from typing import Any

import pytest

from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import Trace
from gpufare_tracer.timeline import Category, Phase, rounded
from gpufare_tracer.trace import trace
from tests.shapes import HIDDEN, INTERMEDIATE, LAYERS, LINEAR_WEIGHTS, TABLE_WEIGHTS, tiny

LINEARS = 7 * LAYERS
NORMS = 2 * LAYERS + 1


def traced(quantization: str, **changes: Any) -> Trace:
    shape = tiny(**changes.pop("shape", {}))
    recipe = Recipe.model_validate({
        "name": "qlora", "framework": "transformers", "method": "qlora", "quantization": quantization,
        "weight_dtype": "bf16", "lora_targets": ["q_proj"], **changes,
    })  # fmt: skip
    return trace(recipe, shape)


def weights(found: Trace) -> int:
    return found.phase(Phase.FORWARD).by_category[Category.WEIGHTS]


def test_a_4_bit_weight_takes_half_a_byte_and_a_scale_of_4_bytes_per_64() -> None:
    unquantized = 2 * (2 * TABLE_WEIGHTS) + 2 * HIDDEN * NORMS
    least = LINEAR_WEIGHTS // 2 + 4 * LINEAR_WEIGHTS // 64 + unquantized
    small = 512 * (NORMS + LINEARS + 2)  # norms, each layer's table of 16 values, the rotary frequencies
    assert least <= weights(traced("nf4")) <= least + small


def test_double_quantization_takes_one_byte_per_scale() -> None:
    """And per layer the scales' own scales, their mean and a table of 256 values, all small here."""
    sizes = LAYERS * (4 * [HIDDEN * HIDDEN] + 3 * [HIDDEN * INTERMEDIATE])
    saved = sum(rounded(4 * n // 64) - rounded(n // 64) - 512 - 512 - 1024 for n in sizes)
    shared_table = 1024
    assert weights(traced("nf4")) - weights(traced("nf4dq")) == saved - shared_table


def test_kbit_preparation_upcasts_embedding_head_and_norms() -> None:
    plain, upcast = weights(traced("nf4")), weights(traced("nf4", kbit_upcast=True))
    assert 2 * 2 * TABLE_WEIGHTS <= upcast - plain <= 2 * 2 * TABLE_WEIGHTS + 512 * NORMS


def test_embedding_and_head_cast_back_leave_norms_upcast() -> None:
    plain, back = (
        weights(traced("nf4", **switches))
        for switches in ({}, {"kbit_upcast": True, "kbit_casts_back": True})
    )
    assert 0 <= back - plain <= 2 * 2 * HIDDEN * NORMS + 512 * NORMS


def test_a_large_batch_dequantizes_the_whole_weight_and_a_small_one_does_not() -> None:
    """gemm_4bit takes one kernel up to some rows; beyond, it makes the weight in 16 bits first."""
    operations = {n: traced("nf4", shape={"seq_len": n}).operations for n in (16, 2048)}
    assert operations[16] < operations[2048]


@pytest.mark.parametrize("quantization", ["nf4", "nf4dq"])
def test_the_same_trace_twice_in_one_process_is_the_same(quantization: str) -> None:
    assert traced(quantization) == traced(quantization)


def test_the_kernel_is_chosen_for_each_gpu_anew() -> None:
    """The choice is cached by bitsandbytes, per process."""
    operations = {
        capability: traced(
            "nf4", weight_dtype="fp16", shape={"seq_len": 64, "compute_capability": capability}
        ).operations
        for capability in ((8, 0), (10, 0), (8, 0))
    }
    assert operations[8, 0] < operations[10, 0]
