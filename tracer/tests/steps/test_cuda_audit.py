"""Everything about CUDA that a CPU build of the pinned torch does not show is listed by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torchgen
import yaml

from gpufare_tracer import cuda_kernels, device, fake_cuda
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.recorder import Recorder
from gpufare_tracer.result import TraceShape
from gpufare_tracer.timeline import Category
from gpufare_tracer.trace import trace

aten = torch.ops.aten

WITHOUT_TEMPORARIES = {
    "the output is all that is written": """
        _foreach_abs _foreach_add _foreach_add_ _foreach_addcdiv_ _foreach_addcmul_ _foreach_copy_
        _foreach_div_ _foreach_lerp_ _foreach_maximum _foreach_mul _foreach_mul_ _foreach_sqrt
        _foreach_sub _fused_adam_ _fused_adamw_ _to_copy arange cat constant_pad_nd copy_ embedding
        empty empty_like empty_strided fill_ full full_like gather index index_add_ index_select
        native_dropout new_empty new_full new_zeros nll_loss_backward normal_ ones ones_like resize_
        scalar_tensor scatter select_backward slice_backward stack tril triu uniform_ zero_ zeros
        zeros_like""",
    "a view": "_reshape_alias _unsafe_view lift_fresh",
    "cuBLAS's workspace is counted apart (workspace_bytes)": "_grouped_mm addmm baddbmm bmm mm",
    "split-k sums only where few blocks leave a card idle, some MiB (flash_api.cpp, set_params_splitkv)": """
        _flash_attention_forward _scaled_dot_product_flash_attention""",
    "a sum per 65,536 elements of the longest tensor, for every tensor: some MiB (ForeachReduceOp.cu)": """
        _foreach_norm""",
    "some numbers per index, block or row, less than 1 MiB": """
        _local_scalar_dense bincount cumsum histc index_put index_put_ nonzero sort topk""",
}
"""Operations of traced steps whose CUDA code allocates nothing to speak of, by reason.

Besides: views; pointwise operations, one kernel of TensorIterator.cpp; reductions, which keep the partial
sums of some blocks (Reduce.cuh). Those are tagged so by torch.
"""
NO_REASON_NEEDED = {torch.Tag.pointwise, torch.Tag.reduction}

RECIPES: dict[str, dict[str, Any]] = {
    "adapters": {"method": "lora", "lora_dropout": 0.1},
    "eager attention": {"method": "lora", "attention": "eager"},
    "checkpointed": {"method": "full", "checkpointing": "full", "optimizer": "adamw"},
    "quantized": {"method": "qlora", "quantization": "nf4"},
    "fused": {"method": "full", "optimizer": "adamw_fused"},
}


def cuda_beside_a_composite() -> set[str]:
    """Operations that a build without CUDA decomposes before a trace sees them, and a CUDA build does not."""
    packaged = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native" / "native_functions.yaml"
    functions = {f["func"].partition("(")[0]: f for f in yaml.safe_load(packaged.read_text(encoding="utf-8"))}

    def keys(name: str) -> set[str]:
        function = functions[name]
        own = {key.strip() for group in function.get("dispatch", {}) for key in group.split(",")}
        return own | (keys(function["structured_delegate"]) if "structured_delegate" in function else set())

    return {name for name in functions if {"CUDA", "CompositeImplicitAutograd"} <= keys(name)}


def test_what_a_cpu_build_decomposes_is_kept_whole() -> None:
    """A new torch that adds one fails here with its name: append it to KEPT_WHOLE and trace anew."""
    assert sorted(cuda_beside_a_composite()) == sorted(cuda_kernels.KEPT_WHOLE)


def test_kept_whole_they_reach_the_recorder() -> None:
    def step() -> None:
        x = torch.empty(4, 8, device="cuda", requires_grad=True)
        torch.nn.functional.silu(x).sum().backward()
        torch.nn.functional.rms_norm(x, (8,)).sum().backward()

    assert {"aten.silu_backward.default", "aten._fused_rms_norm_backward.default"} <= operations(step)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_each_operation_has_a_rule_or_a_reason(
    recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[Any] = set()
    dispatch = Recorder.__torch_dispatch__

    def watched(self: Recorder, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        seen.add(func)
        return dispatch(self, func, types, args, kwargs)

    monkeypatch.setattr(Recorder, "__torch_dispatch__", watched)
    shape = TraceShape(model="llama-3.2-1b", layers=1, micro_batch=2, seq_len=64)
    trace(Recipe(name="audit", framework="transformers", **recipe), shape)
    known = {name for names in WITHOUT_TEMPORARIES.values() for name in names.split()}
    ruled = set(cuda_kernels.hidden_temporaries())
    unknown = {
        str(func)
        for func in seen - ruled
        if func.namespace == "aten" and not func.is_view and not NO_REASON_NEEDED & set(func.tags)
        and func._opname not in known
    }  # fmt: skip
    assert not unknown, "look into their CUDA code: a rule in hidden_temporaries, or a reason here"


def record(step: Callable[[], object], capability: tuple[int, int] = (8, 0)) -> Recorder:
    fake_cuda.install()
    cuda_kernels.keep_whole()
    from torch._subclasses.fake_tensor import FakeTensorMode

    recorder = Recorder(10**12, workspace_bytes=0)
    with (
        device.answering(capability),
        cuda_kernels.attention_as_on(capability),
        FakeTensorMode(allow_non_fake_inputs=True),
        recorder,
    ):
        step()
    return recorder


def operations(step: Callable[[], object]) -> set[str]:
    return {allocation.operation for allocation in record(step).timeline.allocations}


def hidden(step: Callable[[], object], capability: tuple[int, int] = (8, 0)) -> dict[str, int]:
    """Bytes of hidden temporaries by operation, before they are rounded to blocks of 512."""
    return {
        allocation.operation.removeprefix("aten.").removesuffix(".default"): allocation.size_bytes
        for allocation in record(step, capability).timeline.allocations
        if allocation.owner is Category.HIDDEN_TEMPORARIES
    }


def attention(heads: int, kv_heads: int, rows: int, width: int, dtype: Any = torch.bfloat16) -> None:
    """Forward and backward of attention whose output goes back to tokens first, as in a model."""
    query = torch.empty(2, rows, heads, width, device="cuda", dtype=dtype, requires_grad=True)
    key, value = (
        torch.empty(2, rows, kv_heads, width, device="cuda", dtype=dtype, requires_grad=True)
        for _ in range(2)
    )
    out = torch.nn.functional.scaled_dot_product_attention(
        *(t.transpose(1, 2) for t in (query, key, value)), is_causal=True, enable_gqa=True
    )
    out.transpose(1, 2).backward(torch.empty(2, rows, heads, width, device="cuda", dtype=dtype))


FLASH = "_scaled_dot_product_flash_attention_backward"
EFFICIENT = "_scaled_dot_product_efficient_attention"


def test_flash_backward() -> None:
    """flash_api.cpp, mha_bwd: accumulator, row sums, keys and values per query head."""
    assert hidden(lambda: attention(8, 8, 256, 64)) == {FLASH: 2 * 8 * 256 * (64 + 1) * 4}
    # 100 rows are 128, heads of 160 are 192 wide.
    assert hidden(lambda: attention(8, 8, 100, 160)) == {FLASH: 2 * 8 * 128 * (192 + 1) * 4}
    grouped = 2 * 8 * 256 * (64 + 1) * 4 + 2 * (2 * 8 * 256 * 64 * 2)
    assert hidden(lambda: attention(8, 2, 256, 64)) == {FLASH: grouped}


def test_flash_backward_copies_a_gradient_that_is_not_contiguous() -> None:
    def step() -> None:
        query = torch.empty(1, 4, 128, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        out = torch.nn.functional.scaled_dot_product_attention(query, query, query)
        out.backward(torch.empty(1, 4, 128, 64, device="cuda", dtype=torch.bfloat16))

    assert hidden(step) == {FLASH: 4 * 128 * (64 + 1) * 4 + 4 * 128 * 64 * 2}


def test_efficient_backward() -> None:
    """attention_backward.cu and kernel_backward.h: row sums, and fp32 tiles with 16 bytes of locks each."""
    half = hidden(lambda: attention(8, 8, 256, 64, torch.float16), (7, 5))
    assert half == {f"{EFFICIENT}_backward": 16 * (256 * 4 + 4 * (64 * 64 * 4 + 16))}
    # Heads of 128 on an A100 with fp32: the product of gradient and output is larger than the tiles.
    full = hidden(lambda: attention(8, 8, 256, 128, torch.float32))
    tiles = 16 * 4 * 2 * (64 * 64 * 4 + 16)
    product = 16 * 256 * 128 * 4 + 16 * 256 * 4
    assert full == {f"{EFFICIENT}_backward": 16 * 256 * 4 + max(tiles, product)}


def test_efficient_attention_of_wide_heads_accumulates_in_fp32() -> None:
    found = hidden(lambda: attention(4, 4, 128, 256, torch.float16), (7, 5))
    assert found[EFFICIENT] == 8 * 128 * 256 * 4
    # Tiles of query, and key and value each for both splits of the keys.
    tiles = 8 * 4 * (128 * 64 * 4 + 16)
    assert found[f"{EFFICIENT}_backward"] == 8 * 128 * 4 + tiles + 2 * 8 * 2 * 128 * 256 * 4


@pytest.mark.parametrize(
    ("tokens", "expected"), [(3072, 0), (3073, (307 + 1000) * 64 * 4 + 8 * (3 * 3073 + 3307))]
)
def test_gradients_of_many_tokens_are_sorted_and_summed_in_fp32(tokens: int, expected: int) -> None:
    """Embedding.cu: up to 3,072 tokens one kernel does it; then as many segments as there are words."""

    def step() -> None:
        table = torch.nn.Embedding(1000, 64, device="cuda", dtype=torch.bfloat16)
        words = torch.empty(1, tokens, dtype=torch.long, device="cuda")
        table(words).backward(torch.empty(1, tokens, 64, device="cuda", dtype=torch.bfloat16))

    assert sum(hidden(step).values()) == -(-expected // 512) * 512


def test_softmax_backward_multiplies_first_and_copies_what_is_strided() -> None:
    def step() -> None:
        scores = torch.empty(64, 128, device="cuda", requires_grad=True)
        torch.softmax(scores.t(), -1).backward(torch.empty(128, 64, device="cuda"))

    assert hidden(step) == {"_softmax": 64 * 128 * 4, "_softmax_backward_data": 64 * 128 * 4}
