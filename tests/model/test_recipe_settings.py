"""The traced recipe as which a run is estimated."""

import csv

import duckdb
import pytest

from pipeline.home import paths
from pipeline.model.tracing.coefficients import agreeing_runs
from pipeline.model.tracing.recipe_settings import COLUMNS, SETTINGS_FILE, setting_rows
from pipeline.model.tracing.recipes import Recipe, read_recipes


def recipe_of(model: duckdb.DuckDBPyConnection, **settings: object) -> str | None:
    given = {"model": "llama-3.1-8b", "gpu": "h100-sxm-80gb", **settings}
    columns = ", ".join(f"${name} AS {name}" for name in given)
    row = model.execute(
        f"WITH my_run AS (SELECT {columns}) SELECT recipe FROM settings_of('my_run')",
        given,
    ).fetchone()
    assert row is not None
    return row[0]  # type: ignore[no-any-return]


def test_the_table_is_what_the_recipes_say() -> None:
    with (paths.CATALOG_DIR / SETTINGS_FILE).open(newline="", encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    recipes = read_recipes()
    expected = setting_rows(recipes, agreeing_runs(recipes))
    assert tuple(written[0]) == COLUMNS
    assert written == [{name: str(row[name]) for name in COLUMNS} for row in expected], "gpufare learn-traces"


@pytest.mark.parametrize(
    ("settings", "recipe"),
    [
        ({"method": "lora"}, "hf-lora"),
        ({"method": "lora", "checkpointing": "none"}, "hf-lora-no-checkpointing"),
        ({"method": "lora", "checkpointing": "none", "flash_attention": 0}, "hf-lora-eager"),
        ({"method": "qlora"}, "hf-qlora-no-autocast"),
        ({"method": "qlora", "quantization": "nf4dq"}, "hf-qlora-no-autocast"),
        ({"method": "qlora", "quantization": "gptq"}, None),
        ({"method": "full"}, "hf-full-pure-bf16"),
        ({"method": "full", "training_precision": "amp"}, "hf-full-amp"),
        ({"method": "pretrain"}, "hf-full-amp"),
        ({"method": "full", "gpu_count": 8}, None),
        ({"method": "lora", "fp8": 1}, None),
        ({"method": "full", "stack": "torchtune", "optimizer": "adamw_inbwd"}, "torchtune-full"),
        ({"method": "full", "stack": "torchtune"}, None),
        ({"method": "lora", "stack": "te"}, None),
        ({"method": "lora", "recipe": "trl-lora"}, "trl-lora"),
        ({"method": "lora", "recipe": ""}, "hf-lora"),
    ],
)
def test_a_run_is_the_recipe_whose_settings_it_has_or_that_it_names(
    model: duckdb.DuckDBPyConnection, settings: dict[str, object], recipe: str | None
) -> None:
    assert recipe_of(model, **settings) == recipe


def test_an_unknown_recipe_is_an_error_that_names_those_there_are(model: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match=r"recipe: my-own is not one of .*hf-lora, .*trl-lora"):
        recipe_of(model, method="lora", recipe="my-own")


def test_of_recipes_alike_in_a_runs_settings_the_plainest_stands_for_them() -> None:
    rows = setting_rows(
        {
            recipe.name: recipe
            for recipe in (
                Recipe(name="dropout", framework="transformers", lora_dropout=0.1),
                Recipe(name="autocast", framework="transformers", autocast="bf16"),
                Recipe(name="plain", framework="transformers"),
                Recipe(name="masked", framework="transformers", attention_mask=True, checkpointing="full"),
                Recipe(name="trainer", framework="trl", checkpointing="full"),
                Recipe(name="sharded", framework="transformers", sharding="fsdp", gpu_count=8),
            )
        }
    )
    assert [row["recipe"] for row in rows if row["is_mapped"]] == ["plain"]
