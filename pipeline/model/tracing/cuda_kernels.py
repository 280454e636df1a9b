"""What CUDA kernels do that a CPU build of torch does not show.

Four things differ from what a fake step sees by itself, each found on measured runs and audited against the
pinned torch by tests/tracing/test_cuda_audit.py: operations that have a CUDA kernel but would be decomposed
by a CPU build; the choice of the attention kernel; memory that a kernel allocates inside its own C++ code;
cuBLAS's workspace.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

KEPT_WHOLE = ("silu_backward", "mish_backward", "_fused_rms_norm", "_fused_rms_norm_backward")
"""Operations with a CUDA kernel and a composite fallback: naming a CUDA kernel keeps them whole.

native_functions.yaml of torch: those whose dispatch lists CUDA beside CompositeImplicitAutograd, and that a
training step of a language model calls.
"""


@cache
def keep_whole() -> Any:
    """Name a CUDA kernel for each of ``KEPT_WHOLE``; it is never called, as fake tensors compute nothing."""
    import torch

    library = torch.library.Library("aten", "IMPL")

    def kernel(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a fake tensor was computed")

    for name in KEPT_WHOLE:
        if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CUDA"):
            library.impl(name, kernel, "CUDA")
    return library


FLASH_HEAD_WIDTH = 256
"""Widest head of FlashAttention 2 in torch (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp)."""


def attention_kernel(compute_capability: tuple[int, int], dtype: Any, head_width: int, has_mask: bool) -> str:
    """The kernel that torch's scaled_dot_product_attention takes: flash or efficient.

    sdp_utils.cpp: flash needs compute capability 8.0, 16 bits, no mask, and heads of at most 256.
    """
    import torch

    is_flash = (
        compute_capability >= (8, 0)
        and dtype in (torch.float16, torch.bfloat16)
        and head_width <= FLASH_HEAD_WIDTH
        and not has_mask
    )
    return "flash" if is_flash else "efficient"


@contextmanager
def attention_as_on(compute_capability: tuple[int, int]) -> Iterator[None]:
    """Let scaled_dot_product_attention call the CUDA operation that a card of this capability takes.

    A build without CUDA has no chooser and would decompose attention into its mathematics.
    """
    import torch
    import torch.nn.functional as functional

    decomposed = functional.scaled_dot_product_attention
    aten = torch.ops.aten

    def chosen(
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
        is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
    ) -> Any:  # fmt: skip
        if query.device.type != "cuda":
            return decomposed(
                query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
            )
        kernel = attention_kernel(compute_capability, query.dtype, query.shape[-1], attn_mask is not None)
        # sdp_utils.cpp, check_head_dim_size_flash: multi-head latent attention has narrower values
        if kernel == "flash" and value.shape[-1] == query.shape[-1]:
            width = query.shape[-1]
            query, key, value = (_padded(t, 8) for t in (query, key, value))
            out = aten._scaled_dot_product_flash_attention(
                query, key, value, dropout_p, is_causal, scale=scale
            )[0]
            return out[..., :width] if out.shape[-1] != width else out
        if enable_gqa and key.shape[1] != query.shape[1]:
            groups = query.shape[1] // key.shape[1]
            key, value = (t.repeat_interleave(groups, dim=1) for t in (key, value))
        needs_grad = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
        if attn_mask is not None and attn_mask.dtype is torch.bool:
            attn_mask = torch.empty(attn_mask.shape, dtype=query.dtype, device=query.device)
        if attn_mask is not None:
            attn_mask = attn_mask.expand(*query.shape[:-1], key.shape[-2])
        return aten._scaled_dot_product_efficient_attention(
            query, key, value, attn_mask, needs_grad, dropout_p, is_causal, scale=scale
        )[0]

    with patch.object(functional, "scaled_dot_product_attention", chosen):
        yield


def _padded(tensor: Any, multiple: int) -> Any:
    import torch.nn.functional as functional

    missing = -tensor.shape[-1] % multiple
    return functional.pad(tensor, (0, missing)) if missing else tensor


def _softmax_backward(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """The gradient times the output, in a tensor of its own (aten/src/ATen/native/cuda/SoftMax.cu)."""
    return int(args[0].numel() * args[0].element_size())


def _flash_backward(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """fp32 accumulator of the query's gradient and the row sums; key and value gradients per query head.

    aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp, mha_bwd: rows in multiples of 128, head
    width in multiples of 32.
    """
    query, key = args[1], args[2]
    batch, heads, rows, width = query.shape
    padded_rows = (rows + 127) // 128 * 128
    padded_width = (width + 31) // 32 * 32
    size = batch * heads * padded_rows * (padded_width + 1) * 4
    if key.shape[1] != heads:
        size += 2 * batch * heads * key.shape[2] * width * query.element_size()
    return int(size)


def _flash_varlen_backward(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """The same for packed examples: flash_api.cpp, mha_varlen_bwd, has 128 more rows for each example."""
    query, key, starts = args[1], args[2], args[6]
    tokens, heads, width = query.shape
    rows = tokens + 128 * (starts.shape[0] - 1)
    size = heads * rows * ((width + 31) // 32 * 32 + 1) * 4
    if key.shape[1] != heads:
        size += 2 * heads * key.shape[0] * width * query.element_size()
    return int(size)


def hidden_temporaries() -> dict[Any, Callable[[tuple[Any, ...], dict[str, Any]], int]]:
    """Bytes that an operation's CUDA code allocates for itself while it runs, by operation."""
    import torch

    aten = torch.ops.aten
    return {
        aten._softmax_backward_data.default: _softmax_backward,
        aten._scaled_dot_product_flash_attention_backward.default: _flash_backward,
        aten._flash_attention_backward.default: _flash_varlen_backward,
    }


WORKSPACE_BYTES = 4096 * 1024 * 2 + 16 * 1024 * 8
LARGE_WORKSPACE_BYTES = 4096 * 1024 * 8
LARGE_WORKSPACE_MAJORS = (9, 10, 12)


def workspace_bytes(compute_capability: tuple[int, int]) -> int:
    """What the first matrix product of a thread allocates for cuBLAS, and keeps.

    aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize: 8 MiB and 128 KiB, 32 MiB on Hopper and
    Blackwell. The forward pass and autograd run in a thread each.
    """
    large = compute_capability[0] in LARGE_WORKSPACE_MAJORS
    return LARGE_WORKSPACE_BYTES if large else WORKSPACE_BYTES
