"""The optimizer of a recipe: torch's own, or bitsandbytes' on its real operations."""

from typing import Any

import torch

from pipeline.model.tracing.recipes import Recipe

LEARNING_RATE = 1e-4


def optimizer_of(recipe: Recipe, parameters: list[Any]) -> Any:
    """The optimizer over the parameters that train."""
    if recipe.optimizer == "adamw":
        return torch.optim.AdamW(parameters, lr=LEARNING_RATE, foreach=True)
    if recipe.optimizer == "adamw_fused":
        return torch.optim.AdamW(parameters, lr=LEARNING_RATE, fused=True)
    raise NotImplementedError(recipe.optimizer)
