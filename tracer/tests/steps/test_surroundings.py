"""Paths that libraries take with values and kernels at hand are taken on the fake device, and left again."""

from typing import Any

from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import Trace, TraceShape
from gpufare_tracer.timeline import Phase
from gpufare_tracer.trace import trace
from tests.shapes import attention_kernels

HEADS, WIDTH, SEQ = 4, 64, 512
SMALL = {
    "hidden_size": HEADS * WIDTH, "intermediate_size": 512, "num_attention_heads": HEADS, "vocab_size": 1024,
    "num_key_value_heads": HEADS, "num_hidden_layers": 1, "max_position_embeddings": 4096,
}  # fmt: skip
SCORES_BYTES = 2 * SEQ * SEQ * 2
"""A mask of two examples in 16 bits, before it is shared by the heads."""


def traced(
    switches: dict[str, Any] | None = None, layers: int = 1, micro_batch: int = 2, **config: Any
) -> Trace:
    recipe = Recipe.model_validate(
        {"name": "t", "framework": "transformers", "method": "full", "optimizer": "adamw_fused"}
        | (switches or {})
    )
    shape = TraceShape(
        model="small", config={"model_type": "mistral", "sliding_window": None} | SMALL | config,
        micro_batch=micro_batch, seq_len=SEQ, layers=layers,
    )  # fmt: skip
    return trace(recipe, shape)


def kernels(*arguments: Any, **named: Any) -> set[str]:
    with attention_kernels() as called:
        traced(*arguments, **named)
    return called


def forward_bytes(found: Trace) -> int:
    return found.phase(Phase.FORWARD).allocated_bytes


def test_a_causal_mask_is_skipped_as_with_values() -> None:
    assert kernels() == {"flash"}
    assert kernels({"attention_mask": True}) == {"flash"}


def test_a_window_shorter_than_the_sequence_takes_a_mask_in_every_layer() -> None:
    assert kernels(sliding_window=SEQ + 1) == {"flash"}
    assert kernels(sliding_window=SEQ // 2) == {"efficient"}
    plain = traced(sliding_window=SEQ + 1)
    one, two = traced(sliding_window=SEQ // 2), traced(sliding_window=SEQ // 2, layers=2)
    more_without = forward_bytes(traced(layers=2)) - forward_bytes(plain)
    assert forward_bytes(two) - forward_bytes(one) - more_without == SCORES_BYTES


def test_flash_attention_needs_no_mask_for_a_window() -> None:
    flash = {"attention": "flash_attention_2"}
    assert kernels(flash, sliding_window=SEQ // 2) == {"flash"}
    assert forward_bytes(traced(flash, sliding_window=SEQ // 2)) == forward_bytes(traced(flash))


def test_flash_attention_takes_a_single_example_as_not_packed() -> None:
    flash = {"attention": "flash_attention_2"}
    assert kernels(flash, micro_batch=1) == {"flash"}


def test_nothing_stays_patched() -> None:
    from transformers import masking_utils, modeling_flash_attention_utils
    from transformers.utils import import_utils

    def state() -> list[Any]:
        return [
            import_utils.is_fake_tensor,
            masking_utils.find_packed_sequence_indices,
            vars(modeling_flash_attention_utils) | {"__builtins__": None},
        ]

    before = state()
    first = traced({"attention": "flash_attention_2"})
    assert state() == before
    assert traced({"attention": "flash_attention_2"}) == first
