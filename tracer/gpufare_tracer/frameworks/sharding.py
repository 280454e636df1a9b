"""Training steps sharded over several GPUs, as rank 0 sees them: DDP and FSDP.

The frameworks' own code runs under torch's fake process group, whose collectives move nothing. Side streams
never wait: their memory is allocated when the host asks for it, which is also when the caching allocator
counts it (``record_stream`` delays only the reuse of a block).
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import _disable_current_modes

from gpufare_tracer import device
from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.recipes import Recipe

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@contextlib.contextmanager
def as_rank_zero(recipe: Recipe, recorder: Any) -> Iterator[None]:
    """Act as rank 0 of ``recipe.gpu_count`` GPUs, with streams; tell ``recorder`` about resized storages.

    The process group is destroyed afterwards. Recipes that are not sharded run unchanged. Raises
    ``CannotTraceError`` if this process already has a process group.
    """
    if recipe.sharding == "none":
        yield
        return
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if dist.is_initialized():
        raise CannotTraceError(
            "a process group is already there: trace sharded steps in a process of their own"
        )
    with device.idle_streams() as stack:
        for owner, name, answer in _answers(recorder):
            stack.enter_context(patch.object(owner, name, answer))
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=recipe.gpu_count)
        stack.callback(dist.destroy_process_group)
        yield


def _answers(recorder: Any) -> list[tuple[Any, str, Any]]:
    from torch.distributed.tensor._sharding_prop import ShardingPropagator

    resize = torch.UntypedStorage.resize_
    propagate = ShardingPropagator._propagate_tensor_meta_non_cached

    def resize_(storage: Any, size: int) -> Any:
        recorder.resized(storage, size)
        return resize(storage, size)

    def unseen(self: Any, schema: Any) -> Any:
        with _disable_current_modes():
            return propagate(self, schema)

    return [
        (torch.Tensor, "record_stream", lambda *_: None),
        (torch.UntypedStorage, "resize_", resize_),
        # DTensor runs an operation on tensors of the full shape to learn the shape of the result.
        (ShardingPropagator, "_propagate_tensor_meta_non_cached", unseen),
        # DDP compares the shapes of its parameters across ranks, in C++ and by value.
        (torch.nn.parallel.distributed, "_verify_param_shape_across_processes", lambda *_: None),
    ]


def decoder_layers(model: Any) -> tuple[type[Any], ...]:
    """Return the classes that transformers says must not be split: a model's decoder layers."""
    names = set(model._no_split_modules or ())
    return tuple({type(module) for module in model.modules() if type(module).__name__ in names})


def shard(model: Any, recipe: Recipe, layers: type[Any] | tuple[type[Any], ...]) -> Any:
    """Return the model as the recipe shards it; the optimizer gets the sharded model's parameters.

    ``layers`` are the classes of the model's decoder layers.
    """
    layers = layers if isinstance(layers, tuple) else (layers,)
    match recipe.sharding:
        case "none":
            return model
        case "ddp":
            return _ddp(model)
        case "fsdp":
            return _fsdp(model, recipe, layers)


def _ddp(model: Any) -> Any:
    """Return the model wrapped in DistributedDataParallel, whose buckets are final from the first step on.

    DDP starts with one bucket and reorders parameters once it has seen the order of their gradients, which
    it compares across ranks by value. Here, the order is the reverse of the parameters' own order.
    """
    assign = dist._compute_bucket_assignment_by_size
    cap_bytes = torch.nn.parallel.distributed._DEFAULT_BUCKET_CAP_MB << 20

    def as_rebuilt(parameters: Any, _: Any, is_sparse: Any, *more: Any) -> tuple[Any, Any]:
        caps = [dist._DEFAULT_FIRST_BUCKET_BYTES, cap_bytes]
        buckets, limits = assign(parameters[::-1], caps, is_sparse[::-1], *more)
        last = len(parameters) - 1
        return [[last - i for i in bucket] for bucket in buckets][::-1], limits[::-1]

    with patch.object(dist, "_compute_bucket_assignment_by_size", as_rebuilt):
        wrapped = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0], init_sync=False)
    wrapped.register_comm_hook(None, _all_reduce)
    wrapped.logger = _NoLogger()
    wrapped.reducer = _Reducer(wrapped.reducer)
    return wrapped


class _Reducer:
    """DDP's own reducer, which already has its final buckets and times nothing."""

    def __init__(self, reducer: Any) -> None:
        self._reducer = reducer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reducer, name)

    def _rebuild_buckets(self) -> bool:
        return False

    def prepare_for_forward(self) -> None:
        """Do nothing: DDP would time the first ten steps, with CUDA events in a CUDA build."""


class _NoLogger:
    """A logger that does nothing: DDP's own would read the timer of a CUDA build."""

    def set_runtime_stats_and_log(self) -> None:
        """Do nothing: nothing was timed."""


def _all_reduce(_: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Reduce as DDP does without a hook; a fake work object holds no result for the reducer to read."""
    buffer = bucket.buffer()
    dist.all_reduce(buffer)
    future: Any = torch.futures.Future()
    future.set_result(buffer)
    return future


def _fsdp(model: Any, recipe: Recipe, layers: tuple[type[Any], ...]) -> Any:
    """Return the model wrapped in FullyShardedDataParallel, as accelerate.Accelerator.prepare_model wraps it.

    Frozen models have a unit for each trained leaf, as in peft.utils.other.fsdp_auto_wrap_policy. Under mixed
    precision, trained parameters are kept in fp32 and gathered in the autocast type.
    """
    from torch.distributed.fsdp import CPUOffload, MixedPrecision, ShardingStrategy
    from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp

    precision = DTYPES[recipe.autocast] if recipe.autocast else None
    wrapped = Fsdp(
        model,
        sharding_strategy=ShardingStrategy.FULL_SHARD,
        cpu_offload=CPUOffload(offload_params=recipe.cpu_offload) if recipe.cpu_offload else None,
        auto_wrap_policy=functools.partial(_is_unit, layers=layers, trained_leaves=recipe.method != "full"),
        mixed_precision=MixedPrecision(precision, precision, precision) if precision else None,
        device_id=torch.device("cuda", 0),
        use_orig_params=True,
    )
    if precision:
        for unit in Fsdp.fsdp_modules(wrapped):
            if unit._has_params and unit._flat_param.requires_grad:
                unit._flat_param.data = unit._flat_param.data.float()
                unit._handle._orig_param_dtype = torch.float32
    if recipe.checkpoint_around_unit:
        _checkpoint_around_units(wrapped)
    return wrapped


class _Checkpointed(torch.nn.Module):
    """A checkpointed FSDP unit of one layer, which gathers its weights again when the layer is recomputed."""

    def __init__(self, unit: Any, checkpoint: Callable[..., Any]) -> None:
        super().__init__()
        self.unit, self.checkpoint = unit, checkpoint

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.unit, name)

    def forward(self, *arguments: Any, **named: Any) -> Any:
        return self.checkpoint(functools.partial(self.unit, **named), *arguments)


def _checkpoint_around_units(model: Any) -> None:
    """Checkpoint around each FSDP unit instead of inside its layer, where transformers 5 does it."""
    for parent in list(model.modules()):
        for name, unit in list(parent.named_children()):
            layer = getattr(unit, "_fsdp_wrapped_module", None)
            if layer is not None and getattr(layer, "gradient_checkpointing", False):
                layer.gradient_checkpointing = False
                setattr(parent, name, _Checkpointed(unit, layer._gradient_checkpointing_func))


def _is_unit(
    module: Any, recurse: bool, nonwrapped_numel: int, layers: tuple[type[Any], ...], trained_leaves: bool
) -> bool:
    if recurse or isinstance(module, layers):
        return True
    if not trained_leaves:
        return False
    weight = getattr(module, "weight", None)
    return weight is not None and weight.requires_grad and not list(module.children())
