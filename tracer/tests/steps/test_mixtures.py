"""LoRA on mixtures of experts: traces and the SQL model adapt the same layers."""

import duckdb
import pytest

from gpufare_tracer.architectures import catalogue_configs
from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.frameworks.transformers_step import MLP_TARGETS, names_of_experts
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import Trace, TraceShape
from gpufare_tracer.timeline import Category, Phase
from gpufare_tracer.trace import trace

LAYERS = 2


def lora(**changes: object) -> Recipe:
    return Recipe.model_validate({"name": "lora", "framework": "transformers", "method": "lora"} | changes)


def traced(model: str, **changes: object) -> Trace:
    return trace(lora(**changes), TraceShape(model=model, layers=LAYERS, micro_batch=1, seq_len=64))


def of_a_layer(connection: duckdb.DuckDBPyConnection, quantity: str, model: str, recipe: Recipe) -> float:
    """Return a quantity of the SQL model for LoRA by the Trainer, over its layers."""
    (row,) = connection.execute(
        "WITH _job AS (SELECT $model AS model, 'h100-sxm-80gb' AS gpu, 'lora' AS method, 'liger' AS stack, "
        "$rank AS lora_rank, "
        f"$targets AS lora_targets) SELECT {quantity} / layers FROM settings_of('_job')",
        {"model": model, "rank": recipe.lora_rank, "targets": "+".join(recipe.lora_targets)},
    ).fetchall()
    return float(row[0])


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("mixtral-8x7b", {}),
        ("mixtral-8x7b", {"lora_targets": ["q_proj", "v_proj"]}),
        ("qwen3-30b-a3b", {}),
        ("llama-4-scout", {}),
        ("gpt-oss-20b", {"attention": "eager"}),
    ],
)
def test_a_mixture_has_the_adapters_of_the_sql_model(
    model: duckdb.DuckDBPyConnection, name: str, changes: dict[str, object]
) -> None:
    expected = LAYERS * of_a_layer(model, "adapter_params", name, lora(**changes))
    assert traced(name, **changes).trainable_parameters == expected


def test_the_sql_model_knows_whose_experts_peft_adapts(model: duckdb.DuckDBPyConnection) -> None:
    rows = model.execute("SELECT model, adapts_experts(TRUE, model) FROM main.models WHERE experts > 1")
    found = dict(rows.fetchall())
    kinds = {name: catalogue_configs()[name]["config"]["model_type"] for name in found}
    assert found == {name: bool(names_of_experts(kind)) for name, kind in kinds.items()}


@pytest.mark.parametrize(
    ("checkpointing", "category", "layers"),
    [("none", Category.STORED_ACTIVATIONS, LAYERS), ("full", Category.WORKING_SET, 1)],
)
def test_the_experts_with_their_adapters_added_are_there_once_more(
    model: duckdb.DuckDBPyConnection, checkpointing: str, category: Category, layers: int
) -> None:
    experts, attention = (
        traced("mixtral-8x7b", checkpointing=checkpointing, lora_targets=["q_proj", *targets])
        .phase(Phase.FORWARD)
        .by_category.get(category, 0)
        for targets in (MLP_TARGETS, ())
    )
    folded = of_a_layer(model, "folded_bytes", "mixtral-8x7b", lora())
    assert experts - attention == pytest.approx(layers * folded, rel=0.02)


def test_fused_experts_stay_in_16_bits_under_qlora(model: duckdb.DuckDBPyConnection) -> None:
    changes = {"method": "qlora", "quantization": "nf4dq", "kernels": "liger"}
    weights = traced("mixtral-8x7b", **changes).phase(Phase.FORWARD).by_category[Category.WEIGHTS]
    ((per_layer, others),) = model.execute(
        "WITH _job AS (SELECT 'mixtral-8x7b' AS model, 'h100-sxm-80gb' AS gpu, 'qlora' AS method, "
        "'liger' AS stack, 'nf4dq' AS quantization) "
        "SELECT params_linear * linear_width / layers, 2 * params_unquantized FROM settings_of('_job')"
    ).fetchall()
    assert weights == pytest.approx(LAYERS * per_layer + others, rel=1e-3)


def test_adapters_of_experts_that_peft_refuses_are_refused() -> None:
    with pytest.raises(CannotTraceError, match=r"PEFT refuses its adapters: .*lora_dropout != 0"):
        traced("mixtral-8x7b", lora_dropout=0.1)
    with pytest.raises(CannotTraceError, match="without also targeting w3"):
        traced("mixtral-8x7b", lora_targets=["q_proj", "gate_proj"])
