"""Traces a training step: builds it on the fake device, runs two optimizer steps, and reports on them."""

import gc
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from typing import Any

from gpufare_tracer import fake_cuda
from gpufare_tracer.architectures import architecture_of
from gpufare_tracer.caching_allocator import replay
from gpufare_tracer.cuda_kernels import workspace_bytes
from gpufare_tracer.errors import speaking_errors
from gpufare_tracer.layers import mark_layers
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import MomentTrace, PhaseTrace, TensorAtPeak, Trace, TraceShape
from gpufare_tracer.steps import Step, build_step, load_transformers
from gpufare_tracer.timeline import Category, Peak, Timeline

STEPS = 2
"""The first step creates the optimizer's state; the second step finds that state in place."""
LARGEST_SHOWN = 12


def trace(
    recipe: Recipe,
    shape: TraceShape,
    *,
    with_lines: bool = False,
    build: Callable[[Recipe, TraceShape], Step] = build_step,
) -> Trace:
    """Return the memory and work of one training step of ``recipe`` with ``shape``.

    ``with_lines`` adds the lines of code that made the largest tensors. ``build`` makes the step to trace, on
    the fake device. Raises ``CannotTraceError`` naming the obstacle.
    """
    fake_cuda.install()
    from torch._subclasses.fake_tensor import FakeTensorMode

    from gpufare_tracer import cuda_kernels, device, own_step
    from gpufare_tracer.frameworks import sharding
    from gpufare_tracer.frameworks.surroundings import as_on_a_gpu
    from gpufare_tracer.recorder import Recorder

    if recipe.framework != "own":
        load_transformers()  # before the fake device exists: some packages look for a driver on import
    cuda_kernels.keep_whole()
    recorder = _recorder(Recorder, recipe, shape, with_lines)
    with (
        _collecting_only_new_objects(),
        speaking_errors(),
        device.answering(shape.compute_capability),
        cuda_kernels.attention_as_on(shape.compute_capability),
        as_on_a_gpu(recipe),
        sharding.as_rank_zero(recipe, recorder),
        own_step.as_on_a_gpu(recorder.notes) if recipe.framework == "own" else nullcontext(),
        FakeTensorMode(allow_non_fake_inputs=True),
        recorder,
    ):
        step = build(recipe, shape)
        trainable = [p for p in step.parameters if p.requires_grad]
        _claim(recorder, recipe, trainable)
        if recipe.framework != "own":
            mark_layers(step.model, architecture_of(shape).layers, recorder.timeline)
        gc.collect()
        gc.disable()
        try:
            for _ in range(STEPS):
                step.run(recorder.begin)
                if step.optimizer is not None:
                    recorder.own(_tensors(step.optimizer.state), Category.OPTIMIZER)
            gc.collect()
            resident = recorder.timeline.alive_bytes()
        finally:
            gc.enable()
        count = sum(p.numel() for p in trainable)
        packages = ("torch", *step.packages)
        note = "; ".join(filter(None, [step.note, *recorder.notes]))
        del step, trainable
    return Trace(
        recipe=recipe, shape=shape, versions={name: version(name) for name in packages},
        resident_bytes=resident, trainable_parameters=count, operations=recorder.operations,
        phases=_phases(recorder.timeline, with_lines), moments=_moments(recorder.timeline),
        work=recorder.work.work, note=note,
    )  # fmt: skip


@contextmanager
def _collecting_only_new_objects() -> Iterator[None]:
    """Keep the modules of torch and transformers, which hold no tensor of the step, out of the garbage
    collection at the start of every phase: scanning them would take two thirds of a trace's time."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _recorder(kind: Any, recipe: Recipe, shape: TraceShape, with_lines: bool) -> Any:
    """Return a recorder that knows the size of the logits, which is unknown for a user's own step."""
    workspace = workspace_bytes(shape.compute_capability)
    if recipe.framework == "own":
        return kind(sys.maxsize, workspace, with_lines=with_lines, has_stand_ins=False)
    sizes = architecture_of(shape)
    logits_size = shape.micro_batch * (shape.seq_len - 1) * sizes.vocab
    return kind(logits_size, workspace, vocab=sizes.vocab, with_lines=with_lines, experts=sizes.experts)


def _claim(recorder: Any, recipe: Recipe, trainable: list[Any]) -> None:
    """Mark the tensors that are adapters, and those that are gradients."""
    if recipe.method != "full":
        recorder.own(trainable, Category.ADAPTERS)
    for parameter in trainable:
        parameter.register_post_accumulate_grad_hook(lambda p: recorder.own([p.grad], Category.GRADIENTS))


def _tensors(state: Any) -> list[Any]:
    from torch.utils._pytree import tree_leaves

    return [leaf for values in state.values() for leaf in tree_leaves(values)]


def _phases(timeline: Timeline, with_lines: bool) -> tuple[PhaseTrace, ...]:
    replayed = replay(timeline)
    return tuple(
        PhaseTrace(
            phase=phase, allocated_bytes=peak.allocated_bytes, block_bytes=replayed[phase].block_bytes,
            reserved_bytes=replayed[phase].reserved_bytes,
            operation=peak.operation, by_category=timeline.by_category(peak),
            largest=_largest(timeline, peak) if with_lines else (),
        )
        for phase, peak in timeline.peaks().items()
    )  # fmt: skip


def _moments(timeline: Timeline) -> tuple[MomentTrace, ...]:
    return tuple(
        MomentTrace(
            moment=moment, allocated_bytes=peak.allocated_bytes, operation=peak.operation,
            by_category=timeline.by_category(peak),
        )
        for moment, peak in timeline.moment_peaks().items()
    )  # fmt: skip


def _largest(timeline: Timeline, peak: Peak) -> tuple[TensorAtPeak, ...]:
    alike: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for index in peak.alive:
        allocation = timeline.allocations[index]
        category = timeline.category(allocation, peak)
        alike[category, allocation.tensor, allocation.operation, allocation.line].append(
            allocation.size_bytes
        )
    largest = sorted(alike.items(), key=lambda item: -sum(item[1]))[:LARGEST_SHOWN]
    return tuple(
        TensorAtPeak(
            category=category, tensor=tensor, operation=operation, line=line,
            count=len(sizes), size_bytes=sum(sizes),
        )
        for (category, tensor, operation, line), sizes in largest
    )  # fmt: skip
