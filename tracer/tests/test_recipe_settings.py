"""Which traced recipe a run is taken to be."""

import csv

from gpufare_tracer.coefficients import agreeing_runs
from gpufare_tracer.recipe_settings import COLUMNS, SETTINGS_FILE, setting_rows
from gpufare_tracer.recipes import Recipe, read_recipes
from pipeline.home import paths


def test_the_table_is_what_the_recipes_say() -> None:
    with (paths.CATALOG_DIR / SETTINGS_FILE).open(newline="", encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    recipes = read_recipes()
    expected = setting_rows(recipes, agreeing_runs(recipes))
    assert tuple(written[0]) == COLUMNS
    assert written == [{name: str(row[name]) for name in COLUMNS} for row in expected], "gpufare learn-traces"


def test_of_recipes_alike_in_a_runs_settings_the_plainest_stands_for_them() -> None:
    rows = setting_rows(
        {
            recipe.name: recipe
            for recipe in (
                Recipe(name="dropout", framework="transformers", lora_dropout=0.1),
                Recipe(name="autocast", framework="transformers", autocast="bf16"),
                Recipe(name="plain", framework="transformers"),
                Recipe(name="masked", framework="transformers", attention_mask=True, checkpointing="full"),
                Recipe(name="sharded", framework="transformers", sharding="fsdp", gpu_count=8),
            )
        }
    )
    assert [row["recipe"] for row in rows if row["is_mapped"]] == ["plain"]
