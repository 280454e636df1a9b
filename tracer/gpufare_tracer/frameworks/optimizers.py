"""The optimizer of a recipe: torch's own, or bitsandbytes' on its real operations."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import bitsandbytes
import torch

from gpufare_tracer.recipes import Recipe

LEARNING_RATE = 1e-4


def optimizer_of(recipe: Recipe, parameters: list[Any]) -> Any:
    """The optimizer over the parameters that train."""
    return OPTIMIZERS[recipe.optimizer](parameters)


def _adamw(parameters: list[Any]) -> Any:
    return torch.optim.AdamW(parameters, lr=LEARNING_RATE, foreach=True)


def _fused(parameters: list[Any]) -> Any:
    return torch.optim.AdamW(parameters, lr=LEARNING_RATE, fused=True)


def _sgd(parameters: list[Any]) -> Any:
    """Without momentum; foreach is what torch takes for tensors on a GPU, but not for fake ones."""
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
    """State of a paged optimizer: managed memory, which the caching allocator does not count."""
    state = torch.empty(shape, dtype=dtype, device="cpu")
    state.is_paged = True  # type: ignore[attr-defined]
    state.page_deviceid = 0  # type: ignore[attr-defined]
    return state


@contextmanager
def without_managed_memory() -> Iterator[None]:
    """bitsandbytes asks the driver for managed memory; in a process that traces there is none."""
    with patch.multiple(
        bitsandbytes.functional,
        get_paged=_managed,
        fill=lambda *_, **__: None,
        prefetch_tensor=lambda *_, **__: None,
    ):
        yield
