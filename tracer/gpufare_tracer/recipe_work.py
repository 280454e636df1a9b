"""catalog/recipe_work.csv: the work of a training step, as linear functions of the architecture, by recipe.

    python -m gpufare_tracer.recipe_work

This command traces small models of several architectures, depths and shapes for every recipe below and fits,
for each quantity, one coefficient per feature of the architecture (``FEATURES``). The counts of a trace are
sums over layers, tokens and tensors, so the fit is almost exact; the table gives the largest error of each
fit. The speed model in SQL multiplies the coefficients by the features of a whole model.

Steps are traced with every layer recomputed. The part ``recompute`` is the forward pass of the layers, and
the part ``step`` is everything else. torch stops recomputing a layer once nothing more of it is
needed, so a layer's last matrix product is not repeated unless an adapter on its ``down_proj`` follows.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from gpufare_tracer.architectures import Architecture, architecture_of
from gpufare_tracer.kept import write_table
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape
from gpufare_tracer.timeline import Phase
from pipeline.home import paths

TABLE_FILE = "recipe_work.csv"

RECIPES: Mapping[str, Mapping[str, Any]] = {
    "full": {"method": "full"},
    "full-amp": {"method": "full", "weight_dtype": "fp32", "autocast": "bf16"},
    "full-fp32": {"method": "full", "weight_dtype": "fp32"},
    "lora": {"method": "lora"},
    "lora-autocast": {"method": "lora", "autocast": "bf16"},
    "lora-16bit-adapters": {"method": "lora", "adapter_dtype": "bf16"},
    "qlora": {"method": "qlora", "quantization": "nf4"},
    "qlora-autocast": {"method": "qlora", "quantization": "nf4", "autocast": "bf16"},
    "qlora-16bit-adapters": {"method": "qlora", "quantization": "nf4", "adapter_dtype": "bf16"},
    "qlora-upcast": {"method": "qlora", "quantization": "nf4", "kbit_upcast": True},
    "qlora-upcast-autocast": {
        "method": "qlora", "quantization": "nf4", "kbit_upcast": True, "autocast": "bf16",
    },
}  # fmt: skip
"""Settings that decide the work of a step with transformers and PEFT, besides architecture, shape and kernel.

They set which weights are trained and in which type, and the compute types of adapters, norms and head."""

ATTENTION: Mapping[str, tuple[str, tuple[int, int]]] = {
    "flash": ("flash_attention_2", (8, 0)), "efficient": ("sdpa", (7, 5)), "eager": ("eager", (8, 0)),
}  # fmt: skip
"""For each attention kernel, the implementation and the compute capability of a card that uses the kernel."""

MODELS = (
    "llama-3.2-1b", "mistral-7b", "qwen2.5-1.5b", "llama-2-7b", "smollm2-1.7b", "llama-3-70b",
    "deepseek-coder-1.3b", "qwen2.5-7b", "tinyllama-1.1b",
)  # fmt: skip
SHAPES = ((1, 1024), (4, 512), (2, 2048))
ATTENTION_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj")
TARGETS = (
    (ATTENTION_TARGETS, 32), ((*ATTENTION_TARGETS, "gate_proj", "up_proj", "down_proj"), 16),
    (("q_proj", "v_proj"), 8),
)  # fmt: skip

BYTE_FEATURES = (
    "layer_token_hidden", "layer_token_query", "layer_token_key_value", "layer_token_intermediate",
    "layer_token_adapted_in", "layer_token_adapted_out", "layer_token_adapter_rank", "layer_token_scores",
    "layer_token_grouped_query", "layer_token_unadapted_down", "token_hidden", "token_vocab", "layer_weights",
    "unadapted_down_weights", "head_weights", "tied_head_weights", "adapter_weights",
)  # fmt: skip
FLOP_FEATURES = (
    "token_layer_weights", "token_unadapted_down_weights", "token_head_weights", "token_adapter_weights",
    "layer_token_attention",
)  # fmt: skip
COUNT_FEATURES = ("layers", "layer_adapters", "grouped_layers", "unadapted_down_layers", "once")
FEATURES = (*BYTE_FEATURES, *FLOP_FEATURES, *COUNT_FEATURES)
"""Factors of a step's work; recomputation skips a down projection without an adapter (``unadapted_down``)."""
NOT_REPEATED = frozenset({
    "token_hidden", "token_vocab", "head_weights", "tied_head_weights", "token_head_weights", "once",
})  # fmt: skip
"""Features of the work outside the layers, which is not recomputed."""
LEFT_OUT = frozenset(name for name in FEATURES if "unadapted" in name)
"""Features that reduce work."""

QUANTITIES: Mapping[str, tuple[str, ...]] = {
    "moved_bytes": tuple(name for name in BYTE_FEATURES if name != "unadapted_down_weights"),
    "dequantized_bytes": ("layer_weights", "unadapted_down_weights"),
    "flops_16bit": FLOP_FEATURES, "flops_fp32": FLOP_FEATURES,
    "attention_flops_16bit": ("layer_token_attention",), "attention_flops_fp32": ("layer_token_attention",),
    "kernels": COUNT_FEATURES, "python_operations": COUNT_FEATURES, "autograd_operations": COUNT_FEATURES,
}  # fmt: skip
"""Quantities counted per micro-step, each with the features that it can depend on."""
ONLY_EAGER = frozenset({"layer_token_scores"})
"""Features used only with attention that stores its scores."""
LEAST_SHARE = 1e-4
"""A coefficient that never contributes this share of a quantity is dropped as a rounding error of the fit."""
COLUMNS = ("recipe", "attention", "quantity", "part", *FEATURES, "largest_error")

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Traced:
    """The features of one trace, and the work of its forward and its backward pass."""

    features: Mapping[str, float]
    forward: Mapping[str, float]
    backward: Mapping[str, float]


def features_of(sizes: Architecture, micro_batch: int, seq_len: int, recipe: Recipe) -> dict[str, float]:
    """Return the features of a dense model's step; the tokens counted are those of one micro-batch."""
    query, key_value = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
    hidden, intermediate, layers = sizes.hidden, sizes.intermediate, sizes.layers
    widths = {
        "q_proj": (hidden, query), "k_proj": (hidden, key_value), "v_proj": (hidden, key_value),
        "o_proj": (query, hidden), "gate_proj": (hidden, intermediate), "up_proj": (hidden, intermediate),
        "down_proj": (intermediate, hidden),
    }  # fmt: skip
    adapted = [] if recipe.method == "full" else [widths[target] for target in recipe.lora_targets]
    into, out_of = sum(i for i, _ in adapted), sum(o for _, o in adapted)
    is_grouped = float(key_value < query)
    is_left_out = float(recipe.method == "full" or "down_proj" not in recipe.lora_targets)
    weights = layers * (2 * hidden * (query + key_value) + 3 * hidden * intermediate)
    down = layers * hidden * intermediate * is_left_out
    adapters = layers * recipe.lora_rank * (into + out_of)
    head = sizes.vocab * hidden
    tokens = micro_batch * seq_len
    values = (
        *(layers * tokens * width for width in (hidden, query, key_value, intermediate, into, out_of)),
        layers * tokens * len(adapted) * recipe.lora_rank, layers * tokens * sizes.heads * seq_len,
        layers * tokens * query * is_grouped, layers * tokens * hidden * is_left_out,
        tokens * hidden, tokens * sizes.vocab, weights, down, head, head * sizes.tied_embeddings, adapters,
        tokens * weights, tokens * down, tokens * head, tokens * adapters, tokens * layers * seq_len * query,
        layers, layers * len(adapted), layers * is_grouped, layers * is_left_out, 1,
    )  # fmt: skip
    return {name: float(value) for name, value in zip(FEATURES, values, strict=True)}


def design(name: str, attention: str) -> Iterable[tuple[Recipe, TraceShape]]:
    """Yield the traces to make for a recipe's coefficients, at two depths, alternating shapes and targets."""
    implementation, capability = ATTENTION[attention]
    if name == "full-fp32" and attention == "flash":
        implementation = "sdpa"  # FlashAttention supports only 16-bit types
    for number, model in enumerate(MODELS):
        for which, layers in enumerate((2, 4)):
            if which and number % 2:
                continue
            micro_batch, seq_len = SHAPES[(number + which) % len(SHAPES)]
            targets, rank = TARGETS[(number + 2 * which) % len(TARGETS)]
            recipe = Recipe.model_validate({
                "name": name, "framework": "transformers", "attention": implementation,
                "checkpointing": "full", "lora_targets": targets, "lora_rank": rank, **RECIPES[name],
            })  # fmt: skip
            yield recipe, TraceShape(
                model=model, layers=layers, micro_batch=micro_batch, seq_len=seq_len,
                compute_capability=capability,
            )  # fmt: skip


def traced(recipe: Recipe, shape: TraceShape) -> Traced:
    """Return one trace as a row of the regression."""
    from gpufare_tracer.trace import trace

    work = trace(recipe, shape).work
    features = features_of(architecture_of(shape), shape.micro_batch, shape.seq_len, recipe)
    forward, backward = (
        {quantity: float(work[phase].get(quantity, 0)) for quantity in QUANTITIES}
        for phase in (Phase.FORWARD, Phase.BACKWARD)
    )
    return Traced(features, forward, backward)


def coefficients(rows: Sequence[Traced], attention: str) -> list[dict[str, Any]]:
    """Return the coefficients of every quantity and part, from traces of one recipe and attention kernel."""
    fitted = []
    for quantity, possible in QUANTITIES.items():
        names = [name for name in possible if attention == "eager" or name not in ONLY_EAGER]
        features = np.array([[row.features[name] for name in names] for row in rows])
        signs = np.array([-1.0 if name in LEFT_OUT else 1.0 for name in names])
        forward = _fit(features * signs, np.array([row.forward[quantity] for row in rows])) * signs
        backward = _fit(features * signs, np.array([row.backward[quantity] for row in rows])) * signs
        total = np.array([row.forward[quantity] + row.backward[quantity] for row in rows])
        if not total.any():
            continue
        error = np.abs(features @ (forward + backward) - total).max() / total.max()
        repeated = np.array([name not in NOT_REPEATED for name in names])
        left_out = np.array([name in LEFT_OUT for name in names])
        recompute = np.where(left_out, backward, forward) * repeated
        if quantity == "autograd_operations":
            recompute = np.zeros_like(recompute)
        if quantity == "python_operations":
            recompute = backward * repeated  # in a backward pass, Python runs only the recomputation
        parts = {"step": forward + backward - recompute, "recompute": recompute}
        for part, values in parts.items():
            if values.any():
                known = dict(zip(names, values, strict=True))
                fitted.append({
                    "quantity": quantity, "part": part, "largest_error": f"{error:.4f}",
                    **{name: f"{known.get(name, 0.0):.6g}" for name in FEATURES},
                })  # fmt: skip
    return fitted


def _fit(features: Array, counted: Array) -> Array:
    """Return the non-negative coefficients that explain the counts with the least relative error."""
    if not counted.any():
        return np.zeros(features.shape[1])
    weights = 1 / np.maximum(counted, counted.max() / 1e3)
    weighted = features * weights[:, None]
    scale = np.abs(weighted).max(axis=0)
    scale[scale == 0] = 1
    solution, _ = nnls(weighted / scale, counted * weights, maxiter=1000)
    found = np.asarray(solution / scale)
    shares = np.abs(features * found).max(axis=0) / counted.max()
    return np.where(shares < LEAST_SHARE, 0.0, found)


def main(path: Path | None = None) -> None:
    """Trace everything and write the table."""
    path = path or paths.CATALOG_DIR / TABLE_FILE
    rows: list[dict[str, Any]] = []
    for attention in ATTENTION:
        for name in RECIPES:
            traces = [traced(recipe, shape) for recipe, shape in design(name, attention)]
            rows += [
                {"recipe": name, "attention": attention, **row} for row in coefficients(traces, attention)
            ]
            print(f"{name} with {attention} attention: {len(traces)} traces", file=sys.stderr)
    write_table(path, COLUMNS, rows)


if __name__ == "__main__":
    main()
