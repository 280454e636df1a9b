"""Liger's kernels: its real Python code, with launches of Triton kernels stubbed out (surroundings.py).

The memory of a Liger kernel is allocated by its Python wrapper: for example, the fused head-and-loss
kernel loops in Python over chunks of tokens, and keeps the gradients of the head and the hidden states
instead of logits (liger_kernel/ops/fused_linear_cross_entropy.py).
"""

import logging
import sys
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.recipes import Recipe


def wanted(recipe: Recipe) -> bool:
    """Return True if a recipe runs any of Liger's kernels, which work on transformers' models."""
    return recipe.kernels == "liger" or recipe.loss == "fused_linear"


def load() -> None:
    """Import Liger while the fake device is active: Liger looks for its device once, on import.

    Raises ``CannotTraceError`` if Liger was imported without a device.
    """
    from liger_kernel.ops.utils import amp_custom_fwd

    if amp_custom_fwd.keywords["device_type"] != "cuda":
        raise CannotTraceError("liger_kernel was imported before the trace began: trace in a fresh process")


def apply(model: Any, recipe: Recipe, undo: ExitStack) -> None:
    """Make Liger replace the parts of a model that the recipe names; ``undo`` restores the model's module.

    With ``kernels: liger``, Liger's defaults apply, which fuse the head and the loss as well.
    Raises ``CannotTraceError`` if Liger has no kernels for the model, which Liger itself only logs.
    """
    from liger_kernel.transformers.monkey_patch import (
        MODEL_TYPE_TO_APPLY_LIGER_FN,
        _apply_liger_kernel_to_instance,
    )

    kind = model.config.model_type
    if kind not in MODEL_TYPE_TO_APPLY_LIGER_FN:
        raise CannotTraceError(
            f"Liger has no kernels for model_type {kind!r} (recipe: kernels: eager and loss: framework)"
        )
    module = sys.modules[type(model).__module__]
    # Liger logs the backends that it could not import, with errors whose frames would keep tensors alive.
    undo.enter_context(patch.object(logging.getLogger("liger_kernel.backends.registry"), "disabled", True))
    undo.enter_context(patch.dict(vars(module)))
    undo.enter_context(patch.object(type(model), "forward", type(model).forward))
    whole = recipe.kernels == "liger"
    _apply_liger_kernel_to_instance(
        model, rope=whole, rms_norm=whole, swiglu=whole, geglu=whole, layer_norm=whole,
        cross_entropy=False, fused_linear_cross_entropy=True,
    )  # fmt: skip
