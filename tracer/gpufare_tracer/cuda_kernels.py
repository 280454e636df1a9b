"""Effects of CUDA kernels that a CPU build of torch does not show.

A fake step alone gets four things wrong, each discovered in measured runs and audited against the pinned
torch by tracer/tests/steps/test_cuda_audit.py: operations that have a CUDA kernel but would be decomposed
by a CPU build; the choice of the attention kernel; memory that a kernel allocates inside its own C++ code;
and cuBLAS's workspace.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

KEPT_WHOLE = ("_fused_rms_norm", "mish_backward", "silu_backward")
"""Operations with a CUDA kernel and a composite fallback; without a registered kernel, they are decomposed.

From torch's native_functions.yaml: the operations with a CUDA entry besides CompositeImplicitAutograd.
"""


@cache
def keep_whole() -> Any:
    """Register CUDA kernels for ``KEPT_WHOLE``; they are never called, as fake tensors compute nothing."""
    import torch

    library = torch.library.Library("aten", "IMPL")

    def kernel(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a fake tensor was computed")

    for name in KEPT_WHOLE:
        if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CUDA"):
            library.impl(name, kernel, "CUDA")
    return library


FLASH_HEAD_WIDTH = 256
"""Widest head in torch's FlashAttention 2 (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp)."""


def attention_kernel(
    compute_capability: tuple[int, int],
    dtype: Any,
    head_width: int,
    has_mask: bool,
    value_width: int | None = None,
) -> str:
    """Return the kernel that torch's scaled_dot_product_attention uses: flash, efficient or math.

    sdp_utils.cpp: flash needs compute capability 8.0 or higher, 16-bit types, no mask, values as wide as the
    queries, and heads up to 256 wide; efficient supports bf16 from 8.0 up. sdpa_kernel can turn off either.
    """
    import torch

    is_flash = (
        torch.backends.cuda.flash_sdp_enabled()
        and value_width in (None, head_width)
        and compute_capability >= (8, 0)
        and dtype in (torch.float16, torch.bfloat16)
        and head_width <= FLASH_HEAD_WIDTH
        and not has_mask
    )
    is_efficient = torch.backends.cuda.mem_efficient_sdp_enabled() and (
        compute_capability >= (8, 0) or dtype in (torch.float16, torch.float32)
    )
    return "flash" if is_flash else "efficient" if is_efficient else "math"


@contextmanager
def attention_as_on(compute_capability: tuple[int, int]) -> Iterator[None]:
    """Make scaled_dot_product_attention call the CUDA operation that a card of this capability uses.

    A torch build without CUDA does not choose a kernel, and would decompose attention into basic operations.
    """
    import torch
    import torch.nn.functional as functional

    decomposed = functional.scaled_dot_product_attention
    aten = torch.ops.aten

    def chosen(
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
        is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
    ) -> Any:  # fmt: skip
        # sdp_utils.cpp, check_head_dim_size_flash: latent attention has values narrower than its queries
        kernel = attention_kernel(
            compute_capability, query.dtype, query.shape[-1], attn_mask is not None, value.shape[-1]
        )
        if query.device.type != "cuda" or kernel == "math":
            return decomposed(
                query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
            )
        if kernel == "flash":
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


Arguments = tuple[Any, ...]


def _rounded_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _copies(*tensors: Any) -> int:
    """Return the bytes of contiguous copies of the tensors that are not contiguous."""
    return sum(t.numel() * t.element_size() for t in tensors if t is not None and not t.is_contiguous())


def _copies_of(*places: int) -> Callable[[Arguments], int]:
    """Return the rule for an operation that allocates contiguous copies of arguments and nothing else."""
    return lambda args: _copies(*(args[place] for place in places))


def _softmax_backward(args: Arguments) -> int:
    """SoftMax.cu: the gradient times the output, in a separate tensor."""
    return int(args[0].numel() * args[0].element_size()) + _copies(args[1])


def _flash_width(width: int) -> int:
    return _rounded_up(width, 32 if width <= 128 else 64)


def _flash_backward(args: Arguments) -> int:
    """The query gradient's fp32 accumulator, row sums, and key and value gradients for each query head.

    transformers/cuda/flash_attn/flash_api.cpp, mha_bwd: rows are rounded up to multiples of 128.
    """
    grad, query, key = args[:3]
    batch, heads, rows, width = query.shape
    size = batch * heads * _rounded_up(rows, 128) * (_flash_width(width) + 1) * 4
    if key.shape[1] != heads:
        size += 2 * batch * heads * key.shape[2] * width * query.element_size()
    return int(size) + _copies(grad.transpose(1, 2))


def _flash_varlen_backward(args: Arguments) -> int:
    """Like ``_flash_backward``, for packed examples: mha_varlen_bwd allocates 128 more rows per example."""
    grad, query, key = args[:3]
    tokens, heads, width = query.shape
    rows = tokens + 128 * (args[6].shape[0] - 1)
    size = heads * rows * (_flash_width(width) + 1) * 4
    if key.shape[1] != heads:
        size += 2 * heads * key.shape[0] * width * query.element_size()
    return int(size) + _copies(grad)


EFFICIENT_ROW_WIDTH = 128
"""Widest head whose output the memory-efficient kernel keeps in registers."""


def _efficient_forward(args: Arguments) -> int:
    """An fp32 output for wide heads (kNeedsOutputAccumulatorBuffer in kernel_forward.h)."""
    query, value = args[0], args[2]
    if query.element_size() == 4 or value.shape[-1] <= EFFICIENT_ROW_WIDTH:
        return 0
    return int(query.shape[:-1].numel() * value.shape[-1] * 4)


def _efficient_backward(args: Arguments) -> int:
    """Row sums, and a workspace of fp32 gradient tiles: for queries and, in wide heads, for keys and values.

    See transformers/cuda/attention_backward.cu and mem_eff_attention/kernel_backward.h (workspace_size), for
    the kernel that cutlassB.h chooses without dropout if shared memory suffices.
    """
    import torch

    grad, query, key, out = args[0], args[1], args[2], args[5]
    batch, heads, rows, width = query.shape
    delta = batch * heads * rows * 4
    is_half = query.element_size() == 2
    row_block = 128 if is_half and width > 64 else 64
    is_ampere = torch.cuda.get_device_capability() >= (8, 0)
    column_block = 128 if is_half and is_ampere and 64 < width <= EFFICIENT_ROW_WIDTH else 64
    tiles = (_rounded_up(rows, row_block) // row_block) * (_rounded_up(width, column_block) // column_block)
    workspace = batch * heads * tiles * (row_block * column_block * 4 + 16)
    if is_half and width > EFFICIENT_ROW_WIDTH:
        splits = max(1, min(_rounded_up(key.shape[2], column_block) // column_block, 200 // (batch * heads)))
        keys = _rounded_up(key.shape[2], column_block)
        workspace += 2 * batch * heads * splits * keys * _rounded_up(width, row_block) * 4
    product = 0 if is_half else out.numel() * 4 + delta
    return int(delta + max(workspace, product)) + _copies(grad.transpose(1, 2))


EMBEDDING_SORTED_FROM = 3072
EMBEDDING_ROWS_PER_THREAD = 10


def _embedding_backward(args: Arguments) -> int:
    """EmbeddingBackwardKernel.cu: from 3,073 tokens on, fp32 sums for each segment of equal tokens."""
    grad, indices, vocab = args[:3]
    count = indices.numel()
    copy = _copies(grad)
    if count <= EMBEDDING_SORTED_FROM:
        return copy
    segments = min(count, vocab)
    partial = count // EMBEDDING_ROWS_PER_THREAD + segments
    numbers = 3 * count + 2 * segments + partial
    return int(partial * grad.shape[-1] * 4 + numbers * indices.element_size()) + copy


def hidden_temporaries() -> dict[Any, Callable[[Arguments], int]]:
    """Return rules for the bytes that an operation's CUDA code allocates internally while it runs.

    Files are in aten/src/ATen/native/cuda unless a folder is named. The rules are called on the fake device.
    """
    import torch

    aten = torch.ops.aten
    return {
        aten._softmax.default: _copies_of(0),
        aten._softmax_backward_data.default: _softmax_backward,
        aten._log_softmax.default: _copies_of(0),
        aten._log_softmax_backward_data.default: _copies_of(0, 1),
        aten.native_layer_norm.default: _copies_of(0),
        aten.native_layer_norm_backward.default: _copies_of(0, 1),
        aten._fused_rms_norm.default: _copies_of(0),
        aten._fused_rms_norm_backward.default: _copies_of(0, 1),
        aten.nll_loss_forward.default: _copies_of(0),
        aten.embedding_dense_backward.default: _embedding_backward,
        aten._scaled_dot_product_flash_attention_backward.default: _flash_backward,
        aten._flash_attention_backward.default: _flash_varlen_backward,
        aten._scaled_dot_product_efficient_attention.default: _efficient_forward,
        aten._scaled_dot_product_efficient_attention_backward.default: _efficient_backward,
    }


WORKSPACE_BYTES = 4096 * 1024 * 2 + 16 * 1024 * 8
LARGE_WORKSPACE_BYTES = 4096 * 1024 * 8
LARGE_WORKSPACE_MAJORS = (9, 10, 12)


def workspace_bytes(compute_capability: tuple[int, int]) -> int:
    """Return the bytes of the workspace that cuBLAS keeps once a thread has multiplied matrices.

    aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize: 8 MiB plus 128 KiB, or 32 MiB on Hopper
    and Blackwell. The forward pass and autograd run in separate threads.
    """
    large = compute_capability[0] in LARGE_WORKSPACE_MAJORS
    return LARGE_WORKSPACE_BYTES if large else WORKSPACE_BYTES
