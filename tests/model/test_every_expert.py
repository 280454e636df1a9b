"""Training code that runs every expert of a mixture on every token."""

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
