"""Counts the work of a forward and a backward pass: FLOPs, bytes, kernels and host operations.

Nothing is measured. Matrix products and attention are counted by their shapes, and every other kernel by the
bytes that it must read and write once. Views and other metadata changes launch no kernel and move nothing,
but cost host time like any operation. The optimizer step is not counted: sql/model contains a formula for it.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_iter

from gpufare_tracer.timeline import Phase

COUNTED = (Phase.FORWARD, Phase.BACKWARD)
METADATA_NAMESPACES = ("prim", "profiler")
"""Namespaces outside the step's work: torch asks a fake tensor for its device, or opens a profiler range."""
COMMUNICATION_NAMESPACES = ("c10d", "_c10d_functional", "_c10d_functional_autograd")
NO_KERNEL = frozenset({
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach", "alias", "lift_fresh",
    "_unsafe_view", "_reshape_alias", "is_same_size", "set_", "resize_", "record_stream", "wait_tensor",
    "_local_scalar_dense", "_record_function_enter_new",
})  # fmt: skip
"""Operations that touch no data, in addition to views, which are recognized by their schemas."""

ONLY_WRITES = frozenset({
    "fill_", "zero_", "zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full",
    "full_like", "new_full", "arange", "scalar_tensor", "eye", "uniform_", "normal_", "bernoulli_", "random_",
    "rand", "randn",
})  # fmt: skip

DEQUANTIZES = ("dequant", "quantize_")
"""Prefixes of operations that pack or unpack frozen weights."""

NARROW = 128
"""A matrix product with a side of at most this length, such as an adapter's, moves many bytes per FLOP."""

KERNELS: Mapping[str, int] = {
    "_softmax_backward_data": 2,  # aten/src/ATen/native/cuda/SoftMax.cu: computes grad x output first
    "nll_loss_backward": 2,  # aten/src/ATen/native/cuda/NLLLoss2d.cu and Loss.cu: writes zeros first
    "slice_backward": 2,  # aten/src/ATen/native/FunctionsManual: writes zeros, then a copy
    "select_backward": 2,
    "embedding_dense_backward": 4,  # aten/src/ATen/native/cuda/Embedding.cu: sorts the tokens
    "index_put_": 4,  # aten/src/ATen/native/cuda/Indexing.cu: sorts the indices if it accumulates
    "index_put": 5,
    "sort": 4, "topk": 2, "nonzero": 4, "histc": 2,
    "_scaled_dot_product_flash_attention_backward": 3,  # flash_attn/flash_bwd_launch_template.h
    "_flash_attention_backward": 3,
    "_scaled_dot_product_efficient_attention_backward": 2,  # mem_eff_attention: computes row sums first
    "_efficient_attention_backward": 2,
}  # fmt: skip
"""Numbers of kernels, for operations that launch more than one kernel."""

PRODUCTS: Mapping[str, tuple[str, str]] = {
    "mm": ("self", "mat2"), "bmm": ("self", "mat2"), "addmm": ("mat1", "mat2"),
    "baddbmm": ("batch1", "batch2"), "_addmm_activation": ("mat1", "mat2"),
    "_scaled_mm": ("self", "mat2"), "_int_mm": ("self", "mat2"),
    "_grouped_mm": ("self", "mat2"), "_scaled_grouped_mm": ("self", "mat2"),
}  # fmt: skip
"""Operations that multiply matrices, and the names of both factors in their schemas."""


class _Operation(NamedTuple):
    """Facts about an operation that are known before it is called."""

    name: str
    """The name without the namespace and the overload."""
    is_counted: bool
    has_kernel: bool
    is_communication: bool
    arguments: tuple[str, ...]
    written: tuple[bool, ...]
    """True for each argument that the operation writes in place, in the order of ``arguments``."""


@cache
def _operation(func: Any) -> _Operation:
    schema = func._schema
    namespace, _, name = schema.name.partition("::")
    returns = schema.returns
    is_view = bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)
    return _Operation(
        name=name, is_counted=namespace not in METADATA_NAMESPACES,
        has_kernel=not is_view and name not in NO_KERNEL,
        is_communication=namespace in COMMUNICATION_NAMESPACES,
        arguments=tuple(a.name for a in schema.arguments),
        written=tuple(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments),
    )  # fmt: skip


class WorkCounter:
    """Counts the operations of a step's passes.

    Only the last forward and backward passes count; with accumulation, they find earlier gradients in place.
    """

    def __init__(self) -> None:
        self.phase = Phase.BUILD
        self.work: dict[Phase, Counter[str]] = {phase: Counter() for phase in COUNTED}
        """By phase: flops and attention_flops for each precision (e.g. ``flops_16bit``), moved_bytes,
        dequantized_bytes, kernels, python_operations and autograd_operations."""

    def begin(self, phase: Phase) -> None:
        """Start a phase. A forward pass starts a micro-step, and drops the previous micro-step's counts."""
        if phase is Phase.FORWARD and phase is not self.phase:
            for counter in self.work.values():
                counter.clear()
        self.phase = phase

    def count_read(self) -> None:
        """Count one read of a tensor's value by the host."""
        if self.phase in COUNTED:
            self.work[self.phase][f"{_driver()}_operations"] += 1

    def launch(self, arguments: Any) -> None:
        """Count a kernel that no operation shows, as if it read or wrote each of its tensors once in full."""
        if self.phase in COUNTED:
            self.work[self.phase] += Counter(kernels=1, moved_bytes=_sum(_on_gpu(arguments)))

    def count(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> None:
        """Count an operation that was called."""
        operation = _operation(func)
        if self.phase not in COUNTED or not operation.is_counted:
            return
        work = self.work[self.phase]
        work[f"{_driver()}_operations"] += 1
        inputs, outputs = _on_gpu((args, kwargs)), _on_gpu(out)
        if not operation.has_kernel or operation.is_communication or not (inputs or outputs):
            return
        named = dict(zip(operation.arguments, args, strict=False)) | dict(kwargs)
        work["kernels"] += KERNELS.get(operation.name, 1)
        if operation.name in PRODUCTS:
            _count_product(work, operation.name, named)
        elif "attention" in operation.name and "query" in named:
            _count_attention(work, operation.name, named)
        else:
            kind = "dequantized" if operation.name.startswith(DEQUANTIZES) else "moved"
            work[f"{kind}_bytes"] += _moved_bytes(operation, args, kwargs, inputs, outputs)


def _count_product(work: Counter[str], name: str, named: Mapping[str, Any]) -> None:
    """Count each multiplication and its addition as two FLOPs; for narrow products, also count the bytes."""
    first, second = (named[argument] for argument in PRODUCTS[name])
    batch = first.shape[0] if first.dim() == 3 else 1
    m, k, n = first.shape[-2], first.shape[-1], second.shape[-1]
    if "grouped" in name:
        batch, m, k, n = _group_shape(first, second, named["offs"])
    work[f"flops_{_precision(first)}"] += 2 * batch * m * k * n
    if min(m, n, k) <= NARROW:
        work["moved_bytes"] += batch * (m * k + k * n + m * n) * first.element_size()


def _count_attention(work: Counter[str], name: str, named: Mapping[str, Any]) -> None:
    """Count an attention kernel's products, ignoring masks: two forward and five backward."""
    query = named["query"]
    batch, heads, query_length, key_length, width = _attention_shape(name, query, named["key"], named)
    products = 5 if "backward" in name else 2  # Dao 2023, arXiv 2307.08691
    flops = 2 * products * batch * heads * query_length * key_length * width
    work[f"attention_flops_{_precision(query)}"] += flops


def _precision(tensor: Any) -> str:
    return {8: "fp64", 4: "fp32", 2: "16bit", 1: "8bit"}[tensor.element_size()]


def count_launch(*args: Any, **kwargs: Any) -> None:
    """Count a Triton kernel in the current trace, if there is one."""
    for mode in _get_current_dispatch_mode_stack():
        counter = getattr(mode, "work", None)
        if isinstance(counter, WorkCounter):
            counter.launch((args, kwargs))


def _driver() -> str:
    """Return what called the current operation: ``autograd`` for calls by its C++ engine, else ``python``.

    A backward pass that is written in Python, or that recomputes a checkpointed layer, counts as ``python``.
    """
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_DISPATCH_FILES):
        frame = frame.f_back
    return "autograd" if frame.f_code.co_name == "_engine_run_backward" else "python"


_TORCH = torch.__file__.removesuffix("__init__.py")
_DISPATCH_FILES = (
    __file__.replace("work.py", "recorder.py"), __file__, f"{_TORCH}_compile.py", f"{_TORCH}_dynamo",
    f"{_TORCH}_ops.py", f"{_TORCH}utils/_stats.py",
)  # fmt: skip
"""Files whose stack frames lie between an operation's caller and the counter."""


def _on_gpu(tree: Any) -> list[Any]:
    """Return the GPU tensors in a tree of arguments, each once."""
    found = {
        id(leaf): leaf
        for leaf in tree_iter(tree)
        if isinstance(leaf, torch.Tensor) and leaf.device.type == "cuda"
    }
    return list(found.values())


def touched_bytes(tensor: Any) -> int:
    """Return the bytes that a tensor occupies in memory; an expanded dimension counts once."""
    count = tensor.element_size()
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= size if stride or not size else 1
    return int(count)


def _sum(tensors: Iterable[Any]) -> int:
    return sum(map(touched_bytes, tensors))


def _gathered(inputs: Sequence[Any], outputs: Sequence[Any]) -> int:
    """Return the bytes of the rows read, the rows written, and the row indices."""
    return 2 * _sum(outputs) + _sum(t for t in inputs if not t.dtype.is_floating_point)


def _scattered(inputs: Sequence[Any], outputs: Sequence[Any]) -> int:
    """Return the bytes of rows read (new and old) and written, of indices, and of any copy of the table."""
    table, *rows = [t for t in inputs if t.dtype.is_floating_point] or inputs
    copied = 0 if any(t is table for t in outputs) else 2 * touched_bytes(table)
    return copied + 3 * _sum(rows[-1:]) + _sum(t for t in inputs if not t.dtype.is_floating_point)


def _nll_forward(inputs: Sequence[Any], outputs: Sequence[Any]) -> int:
    """Return the bytes of one log-probability and one label per token."""
    return int(inputs[1].numel() * (inputs[0].element_size() + inputs[1].element_size()))


SPECIAL_BYTES: Mapping[str, Callable[[Sequence[Any], Sequence[Any]], int]] = {
    "embedding": _gathered, "index": _gathered, "index_select": _gathered, "gather": _gathered,
    "_unsafe_index": _gathered,
    "index_add": _scattered, "index_add_": _scattered, "index_put": _scattered, "index_put_": _scattered,
    "scatter": _scattered, "scatter_": _scattered, "scatter_add": _scattered, "scatter_add_": _scattered,
    "nll_loss_forward": _nll_forward,
    "nll_loss_backward": lambda inputs, outputs: _sum(outputs) + touched_bytes(inputs[2]),
    # The gradient is read, zeros are written, and the rows of each token are added up in order.
    "embedding_dense_backward": lambda inputs, outputs: _sum(outputs) + 3 * touched_bytes(inputs[0]),
    "slice_backward": lambda inputs, outputs: _sum(outputs) + 2 * _sum(inputs),
    "select_backward": lambda inputs, outputs: _sum(outputs) + 2 * _sum(inputs),
    # aten/src/ATen/native/cuda/SoftMax.cu: a product of both inputs is written and read again.
    "_softmax_backward_data": lambda inputs, outputs: 2 * (_sum(inputs) + _sum(outputs)),
}  # fmt: skip
"""Rules for the bytes of operations that do not read each input exactly once."""


def _moved_bytes(
    operation: _Operation, args: Sequence[Any], kwargs: Mapping[str, Any], inputs: Sequence[Any],
    outputs: Sequence[Any],
) -> int:  # fmt: skip
    """Return the bytes that an operation must read and write: each input and each result once."""
    if operation.name in SPECIAL_BYTES:
        return SPECIAL_BYTES[operation.name](inputs, outputs)
    in_place = [argument for argument, written in zip(args, operation.written, strict=False) if written]
    written = _on_gpu((in_place, kwargs.get("out"))) or outputs
    if operation.name in ONLY_WRITES:
        return _sum(written)
    if operation.name == "copy_":
        return _sum(inputs)
    return _sum(inputs) + _sum(written)


def _group_shape(first: Any, second: Any, offsets: Any) -> tuple[int, int, int, int]:
    """Return batch, m, k and n of grouped products, as if all groups had the same size.

    A factor that the groups split has two dimensions: ``first`` is split by rows, ``second`` by columns, or
    both along the summed dimension, as for the gradient of the weights.
    """
    groups = max(1, offsets.shape[0] if offsets is not None else max(first.shape[0], 1))
    m, k, n = first.shape[-2], first.shape[-1], second.shape[-1]
    if first.dim() == 2 and second.dim() == 3:
        m = -(-m // groups)
    elif first.dim() == 3 and second.dim() == 2:
        n = -(-n // groups)
    elif first.dim() == 2:
        k = -(-k // groups)
    return groups, m, k, n


def _attention_shape(
    name: str, query: Any, key: Any, named: Mapping[str, Any]
) -> tuple[int, int, int, int, int]:
    """Return batch, heads, query length, key length and head width.

    scaled_dot_product operations put heads before positions. All other attention operations put heads after
    positions, and expect a single row of packed sequences if the sequences' lengths are given.
    """
    width = query.shape[-1]
    if "scaled_dot_product" in name:
        batch, heads, query_length = query.shape[:3]
        return batch, heads, query_length, key.shape[2], width
    lengths = named.get("cum_seq_q", named.get("cu_seqlens_q"))
    if lengths is None:
        batch, query_length, heads = query.shape[:3]
        return batch, heads, query_length, key.shape[1], width
    sequences = max(1, lengths.shape[0] - 1)
    longest = named.get("max_q", named.get("max_seqlen_q"))
    query_length = int(longest) if longest else query.shape[-3] // sequences
    return sequences, query.shape[-2], query_length, query_length, width
