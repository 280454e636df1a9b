"""Coefficients of work say what a trace that they were not fitted to counts."""

import csv

import pytest

from gpufare_tracer.recipe_work import FEATURES, traced
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape
from pipeline.home import paths


@pytest.mark.parametrize("name", ["full", "lora"])
def test_a_trace_of_another_model_depth_and_length_counts_what_the_table_says(
    name: str,
) -> None:
    recipe = Recipe.model_validate({
        "name": name, "method": name, "framework": "transformers", "lora_rank": 24,
        "checkpointing": "full",
    })  # fmt: skip
    shape = TraceShape(model="llama-3.2-3b", layers=3, micro_batch=1, seq_len=768)
    found = traced(recipe, shape)
    with (paths.CATALOG_DIR / "recipe_work.csv").open(newline="", encoding="utf-8") as file:
        rows = [
            row for row in csv.DictReader(file)
            if row["recipe"] == name and row["attention"] == "flash"
        ]  # fmt: skip
    for quantity in ("moved_bytes", "flops_16bit", "kernels", "python_operations", "autograd_operations"):
        expected = sum(
            float(row[feature]) * found.features[feature]
            for row in rows
            if row["quantity"] == quantity
            for feature in FEATURES
        )
        assert found.forward[quantity] + found.backward[quantity] == pytest.approx(expected, rel=0.03), (
            quantity
        )
