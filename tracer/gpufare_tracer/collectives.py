"""The collectives of a sharded step, and the purposes of their tensors."""

from collections.abc import Iterable, Sequence
from typing import Any

from torch.utils._pytree import tree_iter

from gpufare_tracer.timeline import Category

COLLECTIVES = {
    "_allgather_base_": ("all_gather", 1, 0), "allgather_": ("all_gather", 1, 0),
    "allgather_into_tensor_coalesced_": ("all_gather", 1, 0),
    "all_gather_into_tensor": ("all_gather", 0, None),
    "all_gather_into_tensor_out": ("all_gather", 0, None),
    "_reduce_scatter_base_": ("reduce_scatter", 1, 0), "reduce_scatter_": ("reduce_scatter", 1, 0),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter", 1, 0),
    "reduce_scatter_tensor": ("reduce_scatter", 0, None),
    "allreduce_": ("all_reduce", 0, 0), "allreduce_coalesced_": ("all_reduce", 0, 0),
    "all_reduce": ("all_reduce", 0, None), "all_reduce_": ("all_reduce", 0, None),
    "broadcast_": ("broadcast", 0, 0), "reduce_": ("reduce", 0, 0),
    "alltoall_base_": ("all_to_all", 1, 0), "alltoall_": ("all_to_all", 1, 0),
    "all_to_all_single": ("all_to_all", 0, None),
}  # fmt: skip
"""For each operation of c10d and its functional form: the collective, and the positions of input and output
among the arguments, where None means that the output is returned."""


def _known(func: Any) -> tuple[str, int, int | None] | None:
    if func.namespace not in ("c10d", "_c10d_functional"):
        return None
    return COLLECTIVES.get(func._schema.name.split("::")[1])


def claim(recorder: Any, func: Any, args: Sequence[Any], out: Any) -> None:
    """Mark a collective's tensors by purpose: a gradient shard as a gradient, all others as buffers."""
    known = _known(func)
    if known is None:
        return
    name, source, place = known
    result: Iterable[Any] = tree_iter(out if place is None else args[place])
    if name == "all_gather":
        recorder.own(result, Category.COMMUNICATION)
    elif name == "reduce_scatter":
        recorder.own(tree_iter(args[source]), Category.COMMUNICATION)
        recorder.own(result, Category.GRADIENTS)
    elif name == "all_reduce":
        recorder.own(result, Category.COMMUNICATION)
