"""catalog/recipes.yaml: every preset is whole, named after what it says, and documented."""

from pathlib import Path
from typing import Any

import pytest

from gpufare_tracer.recipes import Recipe, read_recipes

RECIPES = read_recipes()
ADDRESS = "https://github.com/"


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_every_recipe_has_a_title_and_a_source(recipe: Recipe) -> None:
    assert recipe.title
    assert recipe.source.startswith(ADDRESS)
    assert "/blob/" in recipe.source
    assert "/blob/main/" not in recipe.source  # a branch moves on; a commit or a tag does not


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_switches_agree_with_each_other(recipe: Recipe) -> None:
    assert (recipe.method == "qlora") == (recipe.quantization != "none")
    assert (recipe.sharding == "none") == (recipe.gpu_count == 1)
    assert recipe.kernels != "unsloth" or recipe.emulates


@pytest.mark.parametrize(
    ("switches", "problem"),
    [
        ({"method": "qlora"}, "method=qlora with quantization=none"),
        ({"method": "lora", "quantization": "nf4"}, "method=lora with quantization=nf4"),
        ({"method": "full", "quantization": "nf4"}, "method=full with quantization=nf4"),
        ({"gpu_count": 2}, "gpu_count=2 with sharding=none"),
        ({"cpu_offload": True}, "cpu_offload=true with sharding=none"),
    ],
)
def test_switches_that_contradict_each_other_are_refused(switches: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"{problem}.*: set "):
        Recipe.model_validate({"name": "mine", "framework": "transformers", **switches})


def test_no_two_recipes_are_the_same() -> None:
    seen: dict[str, str] = {}
    for recipe in RECIPES.values():
        switches = recipe.model_dump_json(exclude={"name", "title", "source", "emulates"})
        assert switches not in seen, f"{recipe.name} is {seen[switches]}"
        seen[switches] = recipe.name


def test_a_recipe_takes_the_switches_of_its_base(tmp_path: Path) -> None:
    path = tmp_path / "recipes.yaml"
    path.write_text(
        "first: {framework: transformers, lora_rank: 4}\nsecond: {base: first, method: full}\n",
        encoding="utf-8",
    )
    second = read_recipes(path)["second"]
    assert (second.framework, second.lora_rank, second.method) == ("transformers", 4, "full")


def test_an_unknown_switch_or_base_is_named(tmp_path: Path) -> None:
    path = tmp_path / "recipes.yaml"
    path.write_text("mine: {framework: transformers, lora_rnk: 4}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="lora_rnk"):
        read_recipes(path)
    path.write_text("mine: {base: other}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no recipe 'other'"):
        read_recipes(path)
