"""The optimizer of a recipe: torch's own, or bitsandbytes' on its real operations."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import bitsandbytes
import torch

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.recipes import Recipe

LEARNING_RATE = 1e-4


def optimizer_of(recipe: Recipe, parameters: list[Any]) -> Any:
    """The optimizer over the parameters that train.

    Raises ``CannotTraceError`` where the recipe asks of an optimizer what it cannot do.
    """
    if recipe.optimizer == "adamw_in_backward":
        _check_in_backward(recipe)
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


class InBackward:
    """An AdamW per parameter, stepped as soon as its gradient is there, which is then freed.

    After PyTorch's tutorial "How to save memory by fusing the optimizer step into the backward pass".
    """

    def __init__(self, parameters: list[Any]) -> None:
        self.optimizers = {p: torch.optim.AdamW([p], lr=LEARNING_RATE, foreach=True) for p in parameters}
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._step)

    def _step(self, parameter: Any) -> None:
        optimizer = self.optimizers[parameter]
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    @property
    def state(self) -> dict[Any, Any]:
        """The state of all optimizers, by parameter."""
        return {p: optimizer.state[p] for p, optimizer in self.optimizers.items()}

    def step(self) -> None:
        """Nothing: each parameter was stepped in the backward pass."""


def _check_in_backward(recipe: Recipe) -> None:
    for switch in ("gradient_clipping", "gradient_accumulation"):
        if getattr(recipe, switch):
            raise CannotTraceError(
                f"recipe {recipe.name!r}: adamw_in_backward frees each gradient in the backward "
                f"pass, so {switch} is not possible: set it to false"
            )


OPTIMIZERS: dict[str, Callable[[list[Any]], Any]] = {
    "adamw": _adamw,
    "adamw_fused": _fused,
    "sgd": _sgd,
    "adamw8bit": _adamw8bit,
    "paged_adamw8bit": _paged_adamw8bit,
    "paged_adamw32": _paged_adamw32,
    "adamw_in_backward": InBackward,
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
