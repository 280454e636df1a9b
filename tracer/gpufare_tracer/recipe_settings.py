"""catalog/recipe_settings.csv: the traced recipe that stands for a run, keyed by the run's settings.

A run describes its software and switches more coarsely than a recipe does. If several recipes have the same
run settings, the plainest stands for all of them, and the others apply only to runs that name them.
"""

from collections.abc import Mapping
from typing import Any

from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape
from gpufare_tracer.settings import run_settings

SETTINGS_FILE = "recipe_settings.csv"

KEYS = (
    "stack", "method", "quantization", "kbit_upcast", "training_precision", "loss_kernel", "checkpointing",
    "flash_attention", "adapter_bytes", "adapts_mlp", "sharding", "offload",
)  # fmt: skip
"""Settings by which a recipe is found. Empty values mean the stack's own loss_kernel, or no adapters."""

COLUMNS = (
    "recipe", "is_mapped", *KEYS, "optimizer", "grad_accum", "lora_dropout", "double_quantization",
    "agreeing_runs", "proving_family",
)  # fmt: skip

LEAST_AGREEING_RUNS = 3
"""The same number as least_agreeing_runs() in sql/model/15_recipes.sql."""

MLP_TARGETS = {"gate_proj", "up_proj", "down_proj"}
UNSHARDED = {"none", "ddp"}
"""Kinds of sharding without terms that depend on the GPU count: a trace covers only one GPU count."""


def setting_rows(
    recipes: Mapping[str, Recipe], agreeing_runs: Mapping[str, Mapping[str, int]] | None = None
) -> list[dict[str, Any]]:
    """Return one row per recipe, in the order of ``recipes``; ``is_mapped`` is 1 if a recipe stands for runs.

    ``agreeing_runs`` is the number of measured runs that agree with their traces, by recipe and family.
    """
    keys = {name: keys_of(recipe) for name, recipe in recipes.items()}
    chosen: dict[tuple[Any, ...], str] = {}
    for name in sorted(recipes, key=lambda name: _oddities(recipes[name])):
        if _stands_for_its_stack(recipes[name]):
            chosen.setdefault(tuple(keys[name].values()), name)
    mapped = set(chosen.values())
    return [
        {
            "recipe": name, "is_mapped": int(name in mapped), **keys[name],
            **{key: _settings(recipe)[key] for key in ("optimizer", "grad_accum")},
            "lora_dropout": _settings(recipe).get("lora_dropout", ""),
            "double_quantization": int(recipe.quantization == "nf4dq"),
            **_agreement((agreeing_runs or {}).get(name, {})),
        }
        for name, recipe in recipes.items()
    ]  # fmt: skip


def _agreement(runs: Mapping[str, int]) -> dict[str, Any]:
    """Return the number of agreeing runs, and the family without which too few runs would agree."""
    total = sum(runs.values())
    largest = max(runs, key=lambda family: (runs[family], family), default="")
    is_alone = total >= LEAST_AGREEING_RUNS > total - runs.get(largest, 0)
    return {"agreeing_runs": total, "proving_family": largest if is_alone else ""}


def keys_of(recipe: Recipe) -> dict[str, Any]:
    """Return the settings by which a recipe is found, one for each of ``KEYS``."""
    settings = _settings(recipe)
    has_adapters = recipe.method != "full"
    offload = "+".join(
        name for name, used in (("cpu", recipe.cpu_offload), ("act", recipe.activation_offload)) if used
    )
    return {key: settings.get(key, "") for key in KEYS} | {
        "quantization": "nf4" if recipe.quantization == "nf4dq" else recipe.quantization,
        "adapts_mlp": int(not MLP_TARGETS.isdisjoint(recipe.lora_targets)) if has_adapters else "",
        "offload": offload,
    }


def _settings(recipe: Recipe) -> dict[str, Any]:
    return run_settings(recipe, TraceShape(model=""), "")


def _stands_for_its_stack(recipe: Recipe) -> bool:
    """True if a run that states only its settings may be assumed to use this recipe.

    The recipe's sharding must be in ``UNSHARDED``, and its batches must contain nothing besides tokens.
    """
    return not recipe.attention_mask and recipe.sharding in UNSHARDED


def _oddities(recipe: Recipe) -> tuple[bool, bool]:
    """Return a key that sorts plain recipes first: no dropout, then no autocast over 16-bit weights."""
    return recipe.lora_dropout > 0, recipe.autocast is not None and recipe.weight_dtype != "fp32"
