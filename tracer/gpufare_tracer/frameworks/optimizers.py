"""A recipe's optimizer: either torch's, or bitsandbytes' with its real operations."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import bitsandbytes
import torch

from gpufare_tracer.recipes import Recipe

LEARNING_RATE = 1e-4


def optimizer_of(recipe: Recipe, model: Any, undo: ExitStack) -> Any:
    """Return the optimizer for ``model``'s trained parameters; ``undo`` resets bitsandbytes' settings."""
    if "8bit" in recipe.optimizer:
        _keep_embeddings_in_32_bits(model, undo)
    return OPTIMIZERS[recipe.optimizer]([p for p in model.parameters() if p.requires_grad])


def _keep_embeddings_in_32_bits(model: Any, undo: ExitStack) -> None:
    """Register embeddings for 32-bit optimizer state, as transformers' Trainer.create_optimizer does."""
    manager = bitsandbytes.optim.GlobalOptimManager.get_instance()
    for name in ("module_weight_config_triple", "pid2config", "index2config"):
        undo.enter_context(patch.object(manager, name, type(getattr(manager, name))()))
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            manager.register_module_override(module, "weight", {"optim_bits": 32})


def _adamw(parameters: list[Any]) -> Any:
    return torch.optim.AdamW(parameters, lr=LEARNING_RATE, foreach=True)


def _fused(parameters: list[Any]) -> Any:
    return torch.optim.AdamW(parameters, lr=LEARNING_RATE, fused=True)


def _sgd(parameters: list[Any]) -> Any:
    """Return SGD without momentum; by default, torch uses foreach on a GPU, but not for fake tensors."""
    return torch.optim.SGD(parameters, lr=LEARNING_RATE, foreach=True)


def _adamw8bit(parameters: list[Any]) -> Any:
    return bitsandbytes.optim.AdamW8bit(parameters, lr=LEARNING_RATE)


def _paged_adamw8bit(parameters: list[Any]) -> Any:
    return bitsandbytes.optim.PagedAdamW8bit(parameters, lr=LEARNING_RATE)


def _paged_adamw32(parameters: list[Any]) -> Any:
    return bitsandbytes.optim.PagedAdamW32bit(parameters, lr=LEARNING_RATE)


OPTIMIZERS: dict[str, Callable[[list[Any]], Any]] = {
    "adamw": _adamw,
    "adamw_fused": _fused,
    "sgd": _sgd,
    "adamw8bit": _adamw8bit,
    "paged_adamw8bit": _paged_adamw8bit,
    "paged_adamw32": _paged_adamw32,
}


def _managed(*shape: int, dtype: Any = torch.float32, device: Any = None) -> Any:
    """Return a paged optimizer's state in managed memory, which the caching allocator does not count."""
    state = torch.empty(shape, dtype=dtype, device="cpu")
    state.is_paged = True  # type: ignore[attr-defined]
    state.page_deviceid = 0  # type: ignore[attr-defined]
    return state


@contextmanager
def without_managed_memory() -> Iterator[None]:
    """Replace bitsandbytes' requests to the driver for managed memory: a tracing process has no driver."""
    with patch.multiple(
        bitsandbytes.functional,
        get_paged=_managed,
        fill=lambda *_, **__: None,
        prefetch_tensor=lambda *_, **__: None,
    ):
        yield
