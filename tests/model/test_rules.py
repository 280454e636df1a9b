"""The rules of the model's small macros at their limits, on both sides, and what settings are refused."""

import json
import math
from typing import Any

import duckdb
import pytest

from tests.model.conftest import Row, answers, ask

RULES: dict[str, Any] = {
    # Megatron splits a model until its weights take at most 80% of the memory of a card.
    "least_tensor_parallel(64, 80, 8)": 1, "least_tensor_parallel(64.1, 80, 8)": 2,
    "least_tensor_parallel(128, 80, 64)": 2, "least_tensor_parallel(129, 80, 64)": 4,
    # Racks of four-GPU nodes are one NVLink domain of 72 GPUs.
    "usual_network_gbps('switched', 4, 72, 2025)": 14400, "usual_network_gbps('switched', 4, 73, 2025)": 3200,
    "impossible_groups(8, 4, 2, 2, 2, 1, 32, 1)": None,
    "impossible_groups(8, NULL, NULL, NULL, NULL, NULL, 32, 1)": None,
    "impossible_groups(8, 3, 1, 1, 1, 1, 32, 1)": "node_count: 8 GPUs are not spread evenly over 3 nodes",
    "impossible_groups(64, 8, 1, 32, 1, 1, 32, 1)": None,
    "impossible_groups(33, 1, 1, 33, 1, 1, 32, 1)":
        "pipeline_parallel: 33 stages, but the model has 32 layers",
    "impossible_groups(8, 1, 1, 1, 1, 8, 32, 8)": None,
    "impossible_groups(8, 1, 1, 1, 1, 2, 32, 1)":
        "expert_parallel: 2 ranks, but the model has 1 expert: it is dense",
    "impossible_groups(16, 1, 1, 1, 1, 9, 32, 8)": "expert_parallel: 9 ranks, but the model has 8 experts",
    "impossible_groups(8, 1, 1, 2, 1, 4, 32, 8)": None,
    "impossible_groups(8, 1, 1, 2, 1, 5, 32, 8)":
        "expert_parallel: 5 ranks, but a pipeline stage has 4 GPUs",
    "impossible_groups(8, 1, NULL, NULL, NULL, 9, 32, 64)":
        "expert_parallel: 9 ranks, but a pipeline stage has 8 GPUs",
    "impossible_groups(8, 1, 4, 1, 4, 1, 32, 1)":
        "tensor_parallel 4 x context_parallel 4: does not divide gpu_count 8",
    "impossible_groups(8, 1, 1, 3, 1, 1, 32, 1)": "pipeline_parallel 3: does not divide gpu_count 8",
    "impossible_groups(8, 1, 64, NULL, NULL, 1, 32, 1)": "tensor_parallel 64: does not divide gpu_count 8",
    "impossible_groups(8, 1, 2, 2, 4, 1, 32, 1)":
        "tensor_parallel 2 x pipeline_parallel 2 x context_parallel 4: does not divide gpu_count 8",
    # Families whose experts PEFT does not adapt, in the Transformers Trainer only.
    "adapts_experts(TRUE, 'our-moe')": True, "adapts_experts(TRUE, 'GPT-OSS-20B')": False,
    "adapts_experts(FALSE, 'gpt-oss-20b')": True, "adapts_experts(NULL, 'gpt-oss-20b')": True,
    "adapts_experts(TRUE, 'qwen3.5-35b-a3b')": False, "runs_every_expert(NULL, 'llama-4-scout')": False,
    # Classes of cards, for error bands.
    "gpu_class('amd', 'Hopper', 'datacenter', 'SXM')": "other vendor",
    "gpu_class('nvidia', 'Blackwell', 'consumer', NULL)": "blackwell",
    "gpu_class('nvidia', 'Blackwell Ultra', 'datacenter', 'SXM')": "blackwell",
    "gpu_class('nvidia', 'Hopper', 'datacenter', 'SXM')": "hopper and a100 sxm",
    "gpu_class('nvidia', 'Ampere', 'datacenter', 'SXM')": "hopper and a100 sxm",
    "gpu_class('nvidia', 'Hopper', 'datacenter', 'PCIe')": "pcie",
    "gpu_class('nvidia', 'Hopper', 'datacenter', NULL)": "pcie",
    "gpu_class('nvidia', 'Ada', 'workstation', 'SXM')": "pcie",
    "gpu_class('nvidia', 'Ada', 'consumer', NULL)": "consumer",
    **{f"gpu_class('nvidia', '{name}', 'consumer', 'SXM')": "before ampere"
       for name in ("Kepler", "Maxwell", "Pascal", "Volta", "Turing")},
    "weight_form('lora', 'nf4')": "whole", "weight_form('qlora', NULL)": "nf4",
    "weight_form('qlora', 'none')": "nf4", "weight_form('qlora', 'nf4dq')": "nf4",
    "weight_form('qlora', 'gptq')": "gptq", "weight_form('qlora', 'int8')": "int8",
    "memory_evidence('measured', TRUE)": "measured", "memory_evidence('interpolated', TRUE)": "traced",
    "memory_evidence('extrapolated', TRUE)": "traced",
    "memory_evidence('extrapolated', FALSE)": "extrapolated",
    # The estimate is the median; p90 just fits: 64 x 1.25 = 80; twice as far: odds of 81 to 1.
    "fit_probability(80, 80, 0.8, 1.25)": 0.5, "fit_probability(80, 64, 0.8, 1.25)": 0.9,
    "fit_probability(80, 51.2, 0.8, 1.25)": 81 / 82, "fit_probability(64, 80, 0.8, 1.25)": 0.1,
    "fit_probability(80, 80 / 1.25**0.5, 0.5, 1.25)": 0.75,
    "fit_probability(80, 80 / exp(0.0005), 0.7, 1.0)": 0.75,
    "fit_probability(80, 80, 0.7, 1.0)": 0.5, "fit_probability(80, 160, 1.0, 1.2)": 0.0,
    "plan_verdict(80, 80, 0.9)": "fits", "plan_verdict(80, 80, 0.8999)": "tight",
    "plan_verdict(80.1, 80, 0.99)": "does_not_fit",
    "high_memory_gib(50, 64, 80, 1.25)": 62.5, "high_memory_gib(70, 64, 80, 1.25)": 80,
    "high_memory_gib(70, 64.1, 80, 1.25)": 87.5,
    "infeasible_on('Pascal', 'nvidia', FALSE, FALSE, 'lora', 0, 'fp16')": "unsupported_architecture",
    "infeasible_on('Kepler', 'nvidia', TRUE, TRUE, 'lora', 0, NULL)": "unsupported_architecture",
    "infeasible_on('Maxwell', 'nvidia', TRUE, TRUE, 'lora', 0, NULL)": "unsupported_architecture",
    "infeasible_on('Volta', 'nvidia', FALSE, FALSE, 'lora', 0, 'fp16')": None,
    "infeasible_on('Ampere', 'nvidia', TRUE, FALSE, 'lora', 1, NULL)": "no_fp8",
    "infeasible_on('Ampere', 'nvidia', TRUE, FALSE, 'lora', 0, 'bf16')": None,
    "infeasible_on('Hopper', 'nvidia', TRUE, TRUE, 'lora', 1, NULL)": None,
    **{f"infeasible_on('Volta', 'nvidia', FALSE, FALSE, 'full', 0, '{form}')": "no_bf16"
       for form in ("bf16", "amp", "deepspeed_bf16")},
    "infeasible_on('Gaudi', 'intel', TRUE, TRUE, 'qlora', 0, NULL)": "no_4bit_kernels",
    "infeasible_on('Gaudi', 'intel', TRUE, TRUE, 'lora', 0, NULL)": None,
    # JSON of assumptions.
    """json_text('a"b\\c' || chr(10))""": r'"a\"b\\c "',
    "json_member('a', 1.5::DOUBLE)": '"a":1.5', "json_member('a', TRUE)": '"a":true',
    "json_member('a', 'b')": '"a":"b"', "json_member('a', NULL::VARCHAR)": None,
    "json_names('a', ['b', 'c'])": '"a":["b","c"]', "json_names('a', []::VARCHAR[])": None,
    "json_with('{}', NULL)": "{}", "json_with('{}', '\"a\":1')": '{"a":1}',
    "json_with('{\"b\":2}', '\"a\":1')": '{"b":2,"a":1}', "json_with('{\"b\":2}', NULL)": '{"b":2}',
    "assumed(TRUE, 'a', NULL, 2)": '"a":2', "assumed(TRUE, 'a', 1, 2)": None,
    "assumed(FALSE, 'a', NULL, 2)": None,
    "log_distance(2, 8)": math.log(4), "log_distance(8, 2)": math.log(4),
    "gpu_family('Blackwell Ultra', 'datacenter')": "Blackwell datacenter",
}  # fmt: skip


def test_each_rule_at_its_limits(model: duckdb.DuckDBPyConnection) -> None:
    columns = ", ".join(f'{expression} AS "{number}"' for number, expression in enumerate(RULES))
    (found,) = model.execute(f"SELECT {columns}").fetchall()
    wrong = [
        f"{expression} is {value!r}, not {expected!r}"
        for (expression, expected), value in zip(RULES.items(), found, strict=True)
        if not (value == expected or (is_number(expected) and math.isclose(value, expected, abs_tol=1e-9)))
    ]
    assert wrong == []


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


REFUSED = (
    ({"lora_targets": "q_prj+v_proj"},
     "lora_targets: q_prj is not one of q_proj, k_proj, v_proj, o_proj, qkv_fused, gate_proj, up_proj, "
     "down_proj, lm_head"),
    ({"gpu_count": 8, "node_count": 5}, "node_count: 8 GPUs are not spread evenly over 5 nodes"),
    ({"recipe": "my-own"}, "recipe: my-own is not one of hf-full, hf-full-amp, "),
)  # fmt: skip


def test_settings_that_mean_nothing_are_refused(model: duckdb.DuckDBPyConnection) -> None:
    for settings, message in REFUSED:
        with pytest.raises(duckdb.Error) as caught:
            answers(model, "settings_of", [{"model": "llama-3-8b", "gpu": "h100-sxm-80gb", **settings}])
        assert message in str(caught.value)


USUAL = {"training_precision": "bf16", "optimizer": "adamw", "micro_batch": 1.0, "grad_accum": 1.0,
         "checkpointing": "full", "flash_attention": 1.0, "stack": "hf"}  # fmt: skip
LORA = {"autocast": "by_stack", "lora_rank": 16.0, "lora_targets": "all_linear"}
ASSUMED: tuple[tuple[Row, Row], ...] = (
    ({}, {"method": "lora", "gpu_count": 1.0, "seq_len": 2048.0, **LORA, **USUAL}),
    ({"method": "qlora", "gpu_count": 2},
     {"quantization": "nf4", "kbit_upcast": "by_stack", "sharding": "by_stack_and_method", "seq_len": 2048.0,
      **LORA, **USUAL}),
    ({"method": "pretrain", "seq_len": 512}, {"gpu_count": 1.0, **USUAL, "training_precision": "amp"}),
    ({"method": "full", "gpu_count": 8, "sharding": "fsdp", "training_precision": "fp32",
      "optimizer": "adamw8bit",
      "micro_batch": 2, "seq_len": 1, "grad_accum": 3, "checkpointing": "sac", "flash_attention": 0,
      "stack": "te"}, {}),
    ({"method": "qlora", "gpu_count": 1, "quantization": "int8", "kbit_upcast": 0, "autocast": 0,
      "lora_rank": 8,
      "lora_targets": "q_proj", "seq_len": 512, **USUAL}, {}),
)  # fmt: skip


def test_each_default_is_stated_if_it_applies(model: duckdb.DuckDBPyConnection) -> None:
    """A column that is no setting is named, in any case, unless it is known to be none."""
    shared = {"model": "llama-3-8b", "gpu": "h100-sxm-80gb", "lora_r": 1, "note": ""}
    runs = [shared | given for given, _ in ASSUMED]
    for macro in ("memory_of", "speed_of"):
        found = [json.loads(answer["assumptions"]) for answer in answers(model, macro, runs)]
        assert found == [assumed | {"ignored_columns": ["lora_r"]} for _, assumed in ASSUMED]


def test_columns_are_known_in_any_case_and_calibrations_have_no_default(
    model: duckdb.DuckDBPyConnection,
) -> None:
    run = {"MODEL": "llama-3-8b", "gpu": "h100-sxm-80gb", "Note": "x", "recipe": "", "carried": True}
    (found,) = ask(model, "SELECT calibration, assumptions FROM memory_of('runs')", [run])
    assert found["calibration"] == "all"
    assert "ignored_columns" not in found["assumptions"]
    assert ask(model, "FROM settings_of('runs')", [run | {"calibration": "unknown"}]) == []


def test_a_family_held_out_proves_no_recipe(scratch: duckdb.DuckDBPyConnection) -> None:
    """Memory counts as traced where three measured runs agree with the traces of its recipe."""
    scratch.execute(
        "UPDATE main.recipe_settings SET agreeing_runs = CASE recipe WHEN 'hf-lora' THEN 3 ELSE 2 END,"
        " proving_family = CASE recipe WHEN 'hf-lora' THEN 'ibm' END"
    )
    shared = {"model": "llama-3.1-8b", "gpu": "rtx-a6000", "seq_len": 65536}
    runs = [shared | {"calibration": name, "checkpointing": kind}
            for name in ("all", "without ibm", "without fitcheck") for kind in ("full", "none")]  # fmt: skip
    found = [answer["is_proven"] for answer in answers(scratch, "memory_terms_of", runs)]
    assert found == [True, False, False, False, True, False]
    memory = [answer["evidence"] for answer in answers(scratch, "memory_of", runs[:2])]
    speed = [answer["evidence"] for answer in answers(scratch, "speed_of", runs[:2])]
    assert (memory[0], "traced" in (memory[1], *speed)) == ("traced", False)


def test_a_cte_named_like_our_tables_is_not_captured(model: duckdb.DuckDBPyConnection) -> None:
    tables = model.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall()
    assert {"gpus", "models", "model_constants", "model_bands", "measured_runs"} <= {
        name for (name,) in tables
    }
    traps = ", ".join(f"{name} AS (SELECT 'trap' AS trap)" for (name,) in tables)
    mine = (
        "mine AS (SELECT 'llama-3.1-8b' AS model, 'lora' AS method, 'rtx-4090' AS gpu, [gpu] AS planned_gpus)"
    )
    for macro in ("memory_of", "speed_of", "plans_for"):
        plain, trapped = (
            ask(model, f"WITH {start} FROM {macro}('mine') ORDER BY ALL")
            for start in (mine, f"{traps}, {mine}")
        )
        assert plain == trapped


def test_every_macro_is_commented(model: duckdb.DuckDBPyConnection) -> None:
    bare = model.execute(
        "SELECT function_name FROM duckdb_functions() WHERE NOT internal AND function_type LIKE '%macro'"
        " AND comment IS NULL"
    ).fetchall()
    assert bare == []
