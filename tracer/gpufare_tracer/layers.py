"""Records in a timeline when a step leaves the last layer, and which layer its backward pass is in."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from gpufare_tracer.timeline import Moment, Phase, Timeline


def layers_of(model: Any, depth: int) -> list[Any]:
    """Return a model's layers, from first to last: the members of its outermost lists of ``depth`` modules.

    An encoder-decoder has two such lists. The result is empty if the model has no such list.
    """
    import torch

    found: dict[str, list[Any]] = {}
    for name, module in model.named_modules():
        is_list = isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict)) and len(module) == depth
        if is_list and not any(name.startswith(f"{outer}.") for outer in found):
            found[name] = list(module.children())
    return [layer for layers in found.values() for layer in layers]


def mark_layers(model: Any, depth: int, timeline: Timeline) -> None:
    """Hook the layers of a model so that a step marks the moments of its loss and of its backward pass."""
    layers = layers_of(model, depth)
    for index, layer in enumerate(layers):
        moment = _moment_of(index, len(layers))
        # A checkpointed layer runs its forward pass again before its backward pass.
        layer.register_forward_pre_hook(lambda *_, moment=moment: _enter_backward(timeline, moment))
        layer.register_forward_hook(partial(_leave_layer, timeline, moment, index == len(layers) - 1))


def _moment_of(index: int, count: int) -> Moment | None:
    if index == 0:
        return Moment.FIRST_LAYER_BACKWARD
    return Moment.LAST_LAYER_BACKWARD if index == count - 1 else None


def _leave_layer(
    timeline: Timeline, moment: Moment | None, is_last: bool, _module: Any, _inputs: Any, output: Any
) -> None:
    if is_last and timeline.phase is Phase.FORWARD:
        timeline.enter(Moment.LOSS)
    for tensor in _tensors(output):
        if tensor.requires_grad:
            tensor.register_hook(lambda _: _enter_backward(timeline, moment))
            return


def _enter_backward(timeline: Timeline, moment: Moment | None) -> None:
    if timeline.phase is Phase.BACKWARD:
        timeline.enter(moment)


def _tensors(output: Any) -> Iterable[Any]:
    import torch
    from torch.utils._pytree import tree_iter

    return (leaf for leaf in tree_iter(output) if isinstance(leaf, torch.Tensor))
