"""DeepSpeed's ZeRO-2 and ZeRO-3, as rank 0 sees them: DeepSpeed's own engine under the fake process group.

DeepSpeed is not part of ``gpufare[trace]``: it is published as source that builds against the torch at hand.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, field, is_dataclass
from importlib import import_module
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._pytree import tree_leaves

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.frameworks.optimizers import optimizer_of
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.timeline import Category, Phase

STAGES = {"zero2": 2, "zero3": 3}

ENVIRONMENT = {"DS_ACCELERATOR": "cuda", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "localhost"}
"""What a launcher sets, and DeepSpeed's name of the device, which it would otherwise look for."""
INSTALL = "pip install --no-build-isolation deepspeed==0.18.2"
STATEFUL = (
    "deepspeed.comm.comm", "deepspeed.utils.groups", "deepspeed.runtime.zero.partition_parameters",
)  # fmt: skip
"""Modules of DeepSpeed that keep process groups or counters of a run in variables."""
BUFFERS = {
    "averaged_gradients": Category.GRADIENTS, "grad_partitions_flat_buffer": Category.GRADIENTS,
    "single_partition_of_fp32_groups": Category.OPTIMIZER, "fp32_partitioned_groups_flat": Category.OPTIMIZER,
    "ipg_buckets": Category.COMMUNICATION,
    "bit16_groups_flat": Category.WEIGHTS,
}  # fmt: skip
"""Variables of DeepSpeed's optimizers (stage_1_and_2.py and stage3.py of deepspeed/runtime/zero): gradients,
fp32 masters, and the buckets in which gradients are reduced."""


def load(recipe: Recipe) -> None:
    """Import DeepSpeed before the fake device answers, if the recipe runs it.

    Raises ``CannotTraceError`` where it is not installed.
    """
    if recipe.sharding not in STAGES:
        return
    try:
        with patch.dict(os.environ, ENVIRONMENT):
            for name in ("deepspeed", *STATEFUL, "deepspeed.runtime.zero.partitioned_param_coordinator"):
                import_module(name)
    except ModuleNotFoundError as error:
        raise CannotTraceError(
            f"recipe {recipe.name!r} runs DeepSpeed, which is not installed (no module {error.name!r}): "
            f"{INSTALL}, in the environment of gpufare[trace]"
        ) from error


@contextmanager
def as_launched(recipe: Recipe) -> Iterator[None]:
    """What DeepSpeed expects of its surroundings; its own variables are as before afterwards."""
    if recipe.sharding not in STAGES:
        yield
        return
    coordinator = import_module("deepspeed.runtime.zero.partitioned_param_coordinator")
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, {**ENVIRONMENT, "WORLD_SIZE": str(recipe.gpu_count)}))
        for name in STATEFUL:
            stack.enter_context(_as_before(vars(import_module(name))))
        for name in ("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached"):
            stack.enter_context(patch.object(torch.cuda, name, lambda *_: None))
        for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
            stack.enter_context(patch.object(torch.cuda, name, lambda *_: 0))
        for name in ("range_push", "range_pop"):
            stack.enter_context(patch.object(torch.cuda.nvtx, name, lambda *_: None))
        # DeepSpeed looks for its device when it is first imported, perhaps by another.
        accelerator = import_module("deepspeed.accelerator.cuda_accelerator").CUDA_Accelerator()
        stack.enter_context(patch("deepspeed.accelerator.real_accelerator.ds_accelerator", accelerator))
        # A collective through shared memory for CPUs, which DeepSpeed would compile.
        stack.enter_context(patch("deepspeed.comm.torch.build_shm_op", lambda: None))
        # ZeRO-3 compares the order of modules between ranks by value.
        stack.enter_context(patch.object(coordinator, "assert_ints_same_as_other_ranks", lambda *_: None))
        yield


@contextmanager
def _as_before(variables: dict[str, Any]) -> Iterator[None]:
    saved = {
        name: copy(value) if isinstance(value, dict | list) else value for name, value in variables.items()
    }
    try:
        yield
    finally:
        variables.clear()
        variables.update(saved)


def engine_of(model: Any, recipe: Recipe) -> Any:
    """DeepSpeed's engine around a model; its parameters are those that the optimizer shards.

    Raises ``CannotTraceError`` for switches that contradict what DeepSpeed does by itself.
    """
    import deepspeed

    if recipe.weight_dtype == "fp16" or recipe.autocast is not None:
        raise CannotTraceError(
            f"recipe {recipe.name!r}: DeepSpeed casts the weights itself; set weight_dtype to bf16 and leave "
            "autocast out (fp16 takes as many bytes, and skips steps by values that a trace does not have)"
        )
    if recipe.cpu_offload:
        raise CannotTraceError(
            f"recipe {recipe.name!r}: DeepSpeed offloads into pinned memory, which a trace has not: set "
            "cpu_offload to false"
        )
    if recipe.gradient_scaling or recipe.optimizer == "adamw_in_backward":
        raise CannotTraceError(
            f"recipe {recipe.name!r}: DeepSpeed reduces and scales the gradients itself; leave "
            "gradient_scaling out and take an optimizer that steps after the backward pass"
        )

    def optimizer(_: Any) -> Any:  # called after the cast, which replaces fake parameters
        return optimizer_of(recipe, [p for p in model.parameters() if p.requires_grad])

    engine, *_ = deepspeed.initialize(
        model=model, optimizer=optimizer, config=_config(model, recipe),
        dist_init_required=False,
    )  # fmt: skip
    engine.destroy = lambda: None  # called when it is collected, when its process group is gone
    return engine


def _config(model: Any, recipe: Recipe) -> dict[str, Any]:
    """DeepSpeed's configuration; what it does not name has DeepSpeed's defaults (runtime/zero/config.py)."""
    zero: dict[str, Any] = {"stage": STAGES[recipe.sharding]}
    if recipe.zero_overlap is not None:
        zero["overlap_comm"] = recipe.zero_overlap
    if recipe.zero_buckets == "auto":
        # transformers/integrations/deepspeed.py, HfTrainerDeepSpeedConfig.trainer_config_finalize
        hidden = model.config.get_text_config().hidden_size
        zero["reduce_bucket_size"] = hidden * hidden
        if recipe.sharding == "zero3":
            zero["stage3_prefetch_bucket_size"] = int(0.9 * hidden * hidden)
            zero["stage3_param_persistence_threshold"] = 10 * hidden
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 2 if recipe.gradient_accumulation else 1,
        "bf16": {"enabled": recipe.weight_dtype == "bf16"},
        "gradient_clipping": 1.0 if recipe.gradient_clipping else 0.0,
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
    }


@dataclass
class ZeroStep:
    """A step that DeepSpeed's engine runs. ``loss`` runs one micro-batch and returns its loss."""

    engine: Any
    loss: Callable[[], Any]
    packages: tuple[str, ...]
    trainable_parameters: int
    """Before they were sharded."""
    gradient_accumulation: bool = False
    held: list[Any] = field(default_factory=list)
    """What the loop keeps until the step ends."""
    note: str = ""
    """In what the traced code differs from the model's own."""
    steps_in_run: int = 1
    claim: Callable[[Iterable[Any], Category], None] | None = None
    """Says what tensors are for."""

    @property
    def model(self) -> Any:
        """The engine, a module."""
        return self.engine

    @property
    def parameters(self) -> Iterable[Any]:
        """All parameters of the model."""
        return self.engine.parameters()  # type: ignore[no-any-return]

    @property
    def optimizer(self) -> Any:
        """The torch optimizer within DeepSpeed's."""
        return self.engine.optimizer.optimizer

    def run(self, begin: Callable[[Phase], None]) -> None:
        """Forward and backward, twice where gradients accumulate, then the optimizer."""
        micro_steps = 2 if self.gradient_accumulation else 1
        for step in range(micro_steps):
            begin(Phase.FORWARD)
            loss = self.loss()
            begin(Phase.BACKWARD)
            self.engine.set_gradient_accumulation_boundary(step == micro_steps - 1)
            self.engine.backward(loss)
            del loss
            self._claim_buffers()
        begin(Phase.OPTIMIZER)
        self.engine.step()
        self._claim_buffers()  # the step gathers weights in their own buffers
        self.held.clear()

    def _claim_buffers(self) -> None:
        if self.claim is None:
            return
        sharded = vars(self.engine.optimizer)
        for name, category in BUFFERS.items():
            self.claim(_leaves(sharded.get(name)), category)


def _leaves(value: Any) -> list[Any]:
    """Tensors of a variable of DeepSpeed's optimizer; a bucket keeps them in its fields."""
    leaves = tree_leaves(value)
    return [inner for leaf in leaves for inner in (tree_leaves(vars(leaf)) if is_dataclass(leaf) else [leaf])]
