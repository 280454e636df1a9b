"""The traced recipe as which a run is estimated."""

import duckdb
import pytest


def recipe_of(model: duckdb.DuckDBPyConnection, **settings: object) -> str | None:
    given = {"model": "llama-3.1-8b", "gpu": "h100-sxm-80gb", **settings}
    columns = ", ".join(f"${name} AS {name}" for name in given)
    row = model.execute(
        f"WITH my_run AS (SELECT {columns}) SELECT recipe FROM settings_of('my_run')",
        given,
    ).fetchone()
    assert row is not None
    return row[0]  # type: ignore[no-any-return]


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
        ({"method": "full", "stack": "torchtune"}, None),
        ({"method": "lora", "stack": "te"}, None),
        ({"method": "lora", "recipe": "hf-lora-qv"}, "hf-lora-qv"),
        ({"method": "lora", "recipe": ""}, "hf-lora"),
    ],
)
def test_a_run_is_the_recipe_whose_settings_it_has_or_that_it_names(
    model: duckdb.DuckDBPyConnection, settings: dict[str, object], recipe: str | None
) -> None:
    assert recipe_of(model, **settings) == recipe


def test_an_unknown_recipe_is_an_error_that_lists_the_recipes(model: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match=r"recipe: my-own is not one of .*hf-lora, .*unsloth-lora"):
        recipe_of(model, method="lora", recipe="my-own")
