"""Coefficients of work: the table, its fit, and the features that SQL multiplies them by."""

import csv
from typing import Literal

import duckdb
import pytest

from gpufare_tracer.architectures import architecture_of
from gpufare_tracer.recipe_work import (
    ATTENTION,
    COLUMNS,
    LEFT_OUT,
    QUANTITIES,
    RECIPES,
    Traced,
    coefficients,
    design,
    features_of,
)  # fmt: skip
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape
from pipeline.home import paths

LARGEST_ERROR = 0.05
ATTENTION_ONLY = ("q_proj", "k_proj", "v_proj", "o_proj")


def table() -> list[dict[str, str]]:
    with (paths.CATALOG_DIR / "recipe_work.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_recipe_has_work_with_every_attention_kernel_and_the_fit_is_close() -> None:
    rows = table()
    assert tuple(rows[0]) == COLUMNS
    counted = {(row["recipe"], row["attention"]) for row in rows if row["quantity"] == "flops_16bit"}
    expected = {(recipe, kernel) for recipe in RECIPES for kernel in ATTENTION if recipe != "full-fp32"}
    assert counted >= expected
    assert {row["quantity"] for row in rows} <= set(QUANTITIES)
    assert max(float(row["largest_error"]) for row in rows) <= LARGEST_ERROR


def test_a_frozen_layer_costs_four_flops_per_weight_and_a_trained_one_six() -> None:
    found = {
        (row["recipe"], row["part"]): float(row["token_layer_weights"])
        for row in table()
        if row["quantity"] == "flops_16bit" and row["attention"] == "flash"
    }
    assert found["lora", "step"] == pytest.approx(4, rel=0.01)
    assert found["full", "step"] == pytest.approx(6, rel=0.01)
    assert found["lora", "recompute"] == found["full", "recompute"] == pytest.approx(2, rel=0.01)


def test_coefficients_come_back_from_the_work_that_they_make() -> None:
    known = {
        "layers": 90.0,
        "layer_adapters": 14.0,
        "grouped_layers": 4.0,
        "unadapted_down_layers": -2.0,
        "once": 40.0,
    }
    rows = []
    for recipe, shape in design("lora", "flash"):
        features = features_of(architecture_of(shape), shape.micro_batch, shape.seq_len, recipe)
        outside = known["once"]
        forward = sum(known[name] * features[name] for name in known if name not in LEFT_OUT)
        backward = sum(known[name] * features[name] for name in known) - outside
        empty = dict.fromkeys(QUANTITIES, 0.0)
        rows.append(Traced(features, empty | {"kernels": forward}, empty | {"kernels": backward}))
    step, recompute = coefficients(rows, "flash")
    assert (step["quantity"], step["part"], step["largest_error"]) == ("kernels", "step", "0.0000")
    assert {name: float(recompute[name]) for name in known} == pytest.approx(known | {"once": 0.0}, abs=1e-3)
    assert float(step["layers"]) == pytest.approx(known["layers"], rel=1e-3)
    assert float(step["once"]) == pytest.approx(known["once"], rel=1e-2)


@pytest.mark.parametrize("method", ["full", "lora"])
@pytest.mark.parametrize("model_id", ["llama-3.1-8b", "llama-2-7b", "llama-3.2-1b", "qwen2.5-1.5b"])
def test_features_in_sql_are_those_of_the_regression(
    model: duckdb.DuckDBPyConnection, model_id: str, method: Literal["full", "lora"]
) -> None:
    recipe = Recipe(
        name="x", framework="transformers", method=method, lora_rank=32, lora_targets=ATTENTION_ONLY
    )
    shape = TraceShape(model=model_id, micro_batch=2, seq_len=1024)
    expected = features_of(architecture_of(shape), shape.micro_batch, shape.seq_len, recipe)
    tokens = shape.micro_batch * shape.seq_len
    rows = model.execute(
        """
        WITH my_run AS (
            SELECT $model AS model, 'a100-sxm-80gb' AS gpu, $method AS method,
                32 AS lora_rank, 'none' AS checkpointing,
                $targets AS lora_targets, 2 AS micro_batch, 1024 AS seq_len, 'hf' AS stack
        ),
        my_settings AS (SELECT * FROM settings_of('my_run'))
        SELECT features FROM work_features('my_settings')
        """,
        {"model": model_id, "method": method, "targets": "+".join(ATTENTION_ONLY)},
    ).fetchall()
    found = {name: value * (tokens if "token" in name else 1) for name, value in rows[0][0].items()}
    # Rank counts for nothing without adapters, and the catalogue counts norms and biases as weights.
    assert found == pytest.approx(expected, rel=2e-3)
