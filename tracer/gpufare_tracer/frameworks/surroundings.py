"""Stubs for parts of a real GPU machine that recipes expect and a fake device lacks.

A fake tensor has no values, kernels written in Triton need a driver, and building FlashAttention needs a
CUDA compiler. While a step runs, ``as_on_a_gpu`` patches in stand-ins for values, drivers and FlashAttention.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch

from gpufare_tracer.frameworks import liger
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.work import count_launch

aten = torch.ops.aten


@dataclass(frozen=True)
class Surroundings:
    """Surroundings in which a step is built and run."""

    undo: ExitStack
    """Callbacks that undo patches at the end; each framework module adds callbacks for its own patches."""
    device: str = "cuda"
    is_real: bool = False
    """True if tensors have values; False in a trace."""


_surroundings: list[Surroundings] = []


def here() -> Surroundings:
    """Return the surroundings of the current step."""
    return _surroundings[-1]


@contextmanager
def as_on_a_gpu(recipe: Recipe) -> Iterator[None]:
    """Make the libraries of a recipe take the code paths that they take with real values and kernels."""
    with _in_surroundings(recipe) as stack:
        if "bitsandbytes" in sys.modules:
            from gpufare_tracer.frameworks.optimizers import without_managed_memory

            stack.enter_context(without_managed_memory())
        if "transformers" in sys.modules:
            stack.enter_context(_transformers_with_values())
            if recipe.attention == "flash_attention_2":
                stack.enter_context(_flash_attention_in_transformers())
        if "triton" in sys.modules:
            stack.enter_context(_triton_without_a_driver())
        yield


@contextmanager
def on_a_real_device(recipe: Recipe, device: str = "cuda") -> Iterator[None]:
    """Make framework modules build steps that compute on this machine, with random weights and tokens."""
    with _in_surroundings(recipe, device=device, is_real=True):
        yield


@contextmanager
def _in_surroundings(recipe: Recipe, **settings: Any) -> Iterator[ExitStack]:
    with ExitStack() as stack:
        _surroundings.append(Surroundings(stack, **settings))
        stack.callback(_surroundings.pop)
        if liger.wanted(recipe):
            liger.load()
        yield stack


@contextmanager
def _transformers_with_values() -> Iterator[None]:
    """Tell transformers that no examples are packed; otherwise it would find out from position ids.

    For a fake tensor, transformers would assume the worst, e.g. that a mask is needed.
    """
    from transformers import masking_utils
    from transformers.utils import import_utils

    with (
        patch.object(import_utils, "is_fake_tensor", lambda _: False, create=True),  # not in transformers 4
        patch.object(masking_utils, "find_packed_sequence_indices", lambda ids: None),
    ):
        yield


@contextmanager
def _triton_without_a_driver() -> Iterator[None]:
    """Count Triton launches instead of running them: only the Python wrappers of kernels allocate memory."""
    from triton.runtime import autotuner, jit

    def launch(_kernel: Any, *args: Any, **kwargs: Any) -> None:
        count_launch(*args, **kwargs)

    with (
        patch.object(jit.JITFunction, "run", launch),
        patch.object(autotuner.Autotuner, "run", launch),
        patch.object(autotuner.Heuristics, "run", launch),
    ):
        yield


@contextmanager
def _flash_attention_in_transformers() -> Iterator[None]:
    """Make transformers find an emulation of FlashAttention 2 that makes the same allocations."""
    from transformers import PreTrainedModel
    from transformers import modeling_flash_attention_utils as utils

    functions = {
        "_loaded_implementation": "flash_attention_2", "_flash_fn": flash_attn_func,
        "_flash_varlen_fn": flash_attn_func, "_flash_with_kvcache_fn": None,
        "_pad_fn": utils._pad_input, "_unpad_fn": utils._unpad_input,
        "_process_flash_kwargs_fn": utils._lazy_define_process_function(flash_attn_func),
        "_process_with_kvcache_kwargs_fn": dict,
        "_is_packed_sequence": lambda *_: False,  # the original reads the values of position ids
    }  # fmt: skip
    with (
        patch.multiple(utils, **functions),
        patch.dict(
            utils.FLASH_ATTENTION_COMPATIBILITY_MATRIX[2], {"general_availability_check": lambda **_: True}
        ),
        patch.object(PreTrainedModel, "_flash_attn_import_error", lambda *_, **__: None),
    ):
        yield


def flash_attn_func(
    q: Any, k: Any, v: Any, dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
    window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0, alibi_slopes: Any = None,
    deterministic: bool = False, return_attn_probs: bool = False,
) -> Any:  # fmt: skip
    """Make the allocations of flash_attn.flash_attn_func on shapes (batch, positions, heads, width).

    This is an emulation: torch's own operation keeps and allocates the same tensors as flash-attention's
    flash_attn/flash_attn_interface.py (FlashAttnFunc: query, key, value, output and fp32 log-sums are kept)
    and csrc/flash_attn/flash_api.cpp (mha_bwd), from which torch's copy was made. Windows, soft caps and
    slopes do not change allocations.
    """
    del window_size, softcap, alibi_slopes, deterministic, return_attn_probs
    width = q.shape[-1]
    q, k, v = (_to_multiple_of_8(t).transpose(1, 2) for t in (q, k, v))
    out = aten._scaled_dot_product_flash_attention(q, k, v, dropout_p, causal, scale=softmax_scale)[0]
    return out.transpose(1, 2)[..., :width]


def _to_multiple_of_8(tensor: Any) -> Any:
    missing = -tensor.shape[-1] % 8
    return torch.nn.functional.pad(tensor, (0, missing)) if missing else tensor
