"""Memory and work of runs that are traced recipes, and of those that are not."""

import duckdb
import pytest

from tests.model.conftest import Estimate


@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen2.5-0.5b", "mistral-7b", "llama-3.1-70b"])
def test_the_same_is_true_at_full_depth(name: str, memory: Estimate) -> None:
    def allocated(**settings: object) -> float:
        return float(memory(model=name, gpu="a100-sxm-80gb", method="lora", **settings)["allocated_gib"])

    for length in (512, 4096, 16384):
        checkpointed = allocated(seq_len=length, checkpointing="full")
        kept = allocated(seq_len=length, checkpointing="none")
        eager = allocated(seq_len=length, checkpointing="none", flash_attention=0)
        assert checkpointed <= kept * 1.005 <= eager * 1.01
        assert allocated(seq_len=2 * length, checkpointing="full") > checkpointed


def test_a_run_of_no_traced_recipe_keeps_the_formula(model: duckdb.DuckDBPyConnection) -> None:
    rows = model.execute(
        "WITH my_run AS (SELECT unnest(['hf', 'te']) AS stack, 'lora' AS method, 'llama-3.1-8b' AS model, "
        "'h100-sxm-80gb' AS gpu), _mixture AS (SELECT * REPLACE ('mixtral-8x7b' AS model) FROM my_run "
        "WHERE stack = 'hf') SELECT stack, traced_fixed IS NOT NULL FROM memory_terms_of('my_run') UNION ALL "
        "SELECT 'mixture', traced_fixed IS NOT NULL FROM memory_terms_of('_mixture')"
    ).fetchall()
    assert sorted(rows) == [("hf", True), ("mixture", False), ("te", False)]


def test_speed_needs_no_coefficients_where_none_were_traced(model: duckdb.DuckDBPyConnection) -> None:
    counted = model.execute(
        """
        WITH my_runs AS (
            SELECT 'llama-3.1-8b' AS model, 'a100-sxm-80gb' AS gpu, 'lora' AS method, stack
            FROM (VALUES ('hf'), ('foak'), ('te')) AS s (stack)
        ),
        my_settings AS (SELECT * FROM settings_of('my_runs'))
        SELECT stack, is_counted, kernel_launches > 0 FROM with_work('my_settings') ORDER BY stack
        """
    ).fetchall()
    assert counted == [("foak", False, False), ("hf", True, True), ("te", False, False)]
