"""A recipe and a shape as the settings of a run: the columns that the SQL model reads."""

from typing import Any

import duckdb

from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape

BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
OPTIMIZERS = {"paged_adamw8bit": "paged8bit", "paged_adamw32": "paged32"}
STACKS = {"eager": "hf", "liger": "liger", "unsloth": "foak"}
"""The software stack for each value of a recipe's ``kernels``."""


def run_settings(recipe: Recipe, shape: TraceShape, gpu: str) -> dict[str, Any]:
    """Return the settings that apply to a run, keyed by column of catalog/measured_runs.csv."""
    settings: dict[str, Any] = {
        "model": shape.model, "gpu": gpu, "gpu_count": recipe.gpu_count, "method": recipe.method,
        "quantization": recipe.quantization, "kbit_upcast": int(recipe.kbit_upcast),
        "autocast": int(recipe.autocast is not None),
        "training_precision": training_precision(recipe), "weight_bytes": BYTES[recipe.weight_dtype],
        "optimizer": OPTIMIZERS.get(recipe.optimizer, recipe.optimizer),
        "sharding": recipe.sharding,
        "micro_batch": shape.micro_batch, "seq_len": shape.seq_len,
        "grad_accum": 2 if recipe.gradient_accumulation else 1,
        "checkpointing": recipe.checkpointing,
        "flash_attention": int(recipe.attention != "eager"),
        "stack": STACKS[recipe.kernels],
        "memory_metric": "alloc",
    }  # fmt: skip
    if recipe.method != "full":
        settings |= {
            "lora_rank": recipe.lora_rank, "lora_targets": "+".join(recipe.lora_targets),
            "lora_dropout": recipe.lora_dropout, "adapter_bytes": BYTES[recipe.adapter_dtype],
        }  # fmt: skip
    if recipe.loss == "fused_linear":
        settings["loss_kernel"] = "liger"
    return settings


def training_precision(recipe: Recipe) -> str:
    """Return amp for fp32 weights under autocast, fp32 for other fp32 weights and bf16 for 16-bit weights."""
    if recipe.weight_dtype != "fp32":
        return "bf16"
    return "amp" if recipe.autocast else "fp32"


CUT = """
INSERT INTO main.models BY NAME
SELECT * REPLACE (
    $name AS model, $layers AS layers,
    params_total - round(params_linear * (1 - $layers / layers)) AS params_total,
    round(params_linear * $layers / layers) AS params_linear,
    params_active - round((params_active - (params_total - params_linear)) * (1 - $layers / layers))
        AS params_active,
    floor(full_attention_layers * $layers / layers) AS full_attention_layers,
    floor(linear_attention_layers * $layers / layers) AS linear_attention_layers,
    floor(cross_attention_layers * $layers / layers) AS cross_attention_layers,
    round(extra_linear_params * $layers / layers) AS extra_linear_params,
    if(dense_layers > $layers, $layers, dense_layers) AS dense_layers
)
FROM main.models WHERE model = $model
"""


def cut_to_layers(connection: duckdb.DuckDBPyConnection, model: str, layers: int) -> str:
    """Add a copy of a catalogue model, cut to ``layers`` layers, and return the copy's id."""
    name = f"{model}-cut-to-{layers}-layers"
    connection.execute(CUT, {"name": name, "model": model, "layers": layers})
    return name
