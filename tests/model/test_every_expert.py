"""Training code that treats the experts of a mixture differently from linear layers."""

import duckdb


def test_llama_4_costs_all_its_experts_in_transformers_and_its_active_ones_elsewhere(
    model: duckdb.DuckDBPyConnection,
) -> None:
    """Axolotl published 519 tokens per second of Llama 4 Scout on an H100, a fifth of one expert's speed."""
    seconds = {}
    for stack in ("hf", "te", "torchtune", "litgpt"):
        query = (
            "WITH job AS (SELECT 'llama-4-scout' AS model, 'h100-sxm-80gb' AS gpu, 8 AS gpu_count, "
            f"'lora' AS method, 4096 AS seq_len, '{stack}' AS stack) "
            "SELECT matmul_seconds, experts_active FROM speed_terms_of('job')"
        )
        seconds[stack], experts = model.execute(query).fetchall()[0]
        assert experts == (16 if stack == "hf" else 1)
    assert seconds["hf"] > 3 * max(seconds[stack] for stack in ("te", "torchtune", "litgpt"))


def test_qlora_quantizes_experts_that_are_linear_layers_only(model: duckdb.DuckDBPyConnection) -> None:
    """The experts of Mixtral 8x7B are 45.1 billion of its 46.7 billion parameters."""
    gib = {}
    for stack in ("foak", "hf", "liger"):
        query = (
            "WITH job AS (SELECT 'mixtral-8x7b' AS model, 'h100-sxm-80gb' AS gpu, 'qlora' AS method, "
            f"'{stack}' AS stack) SELECT weights_gib FROM memory_of('job')"
        )
        ((gib[stack],),) = model.execute(query).fetchall()
    assert 22 < gib["foak"] < gib["hf"] < 27
    assert 84 < gib["liger"] < 87


def test_a_mixture_of_unknown_family_adapts_its_experts(model: duckdb.DuckDBPyConnection) -> None:
    query = (
        "SELECT adapts_experts(TRUE, 'our-moe'), adapts_experts(TRUE, 'GPT-OSS-20B'), "
        "adapts_experts(FALSE, 'gpt-oss-20b')"
    )
    assert model.execute(query).fetchall() == [(True, False, True)]


def test_qlora_plans_of_mixtures_say_that_experts_are_not_quantized(model: duckdb.DuckDBPyConnection) -> None:
    said = {}
    for name, stack in (("mixtral-8x7b", "liger"), ("mixtral-8x7b", "foak"), ("llama-3.1-8b", "liger")):
        query = (
            f"WITH job AS (SELECT '{name}' AS model, 'qlora' AS method, '{stack}' AS stack, 1 AS max_gpus, "
            "['h100-sxm-80gb'] AS planned_gpus) SELECT assumptions FROM plans_for('job')"
        )
        ((assumptions,),) = model.execute(query).fetchall()
        said[name, stack] = '"unquantized":"experts"' in assumptions
    assert said == {
        ("mixtral-8x7b", "liger"): True,
        ("mixtral-8x7b", "foak"): False,
        ("llama-3.1-8b", "liger"): False,
    }
