"""The rules of the model's small macros at their limits, on both sides, and what settings are refused."""

import json
import math
from typing import Any

import duckdb
import pytest

from tests.model.conftest import Row, answers, ask
from tests.model.formulas import ALL_LINEAR

RULES: dict[str, Any] = {
    # Megatron splits a model until its weights take at most 80% of the memory of a card.
    "least_tensor_parallel(64, 80, 8)": 1, "least_tensor_parallel(64.1, 80, 8)": 2,
    "least_tensor_parallel(128, 80, 64)": 2, "least_tensor_parallel(129, 80, 64)": 4,
    "least_tensor_parallel(9999, 80, 64)": 8, "least_tensor_parallel(9999, 80, 4)": 4,
    "least_tensor_parallel(1, 80, 8)": 1,
    # Racks of four-GPU nodes are one NVLink domain of 72 GPUs.
    "usual_network_gbps('switched', 4, 72, 2025)": 14400, "usual_network_gbps('switched', 4, 73, 2025)": 3200,
    "usual_network_gbps('switched', 8, 64, 2022)": 3200, "usual_network_gbps('bridge', 4, 8, 2021)": 1600,
    "usual_network_gbps(NULL, 8, 8, 2021)": 1600,
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
    "adapts_experts(TRUE, 'qwen3-30b-a3b')": True, "adapts_experts(TRUE, 'qwen3.5-35b-a3b')": False,
    "adapts_experts(TRUE, 'my-granite')": True, "runs_every_expert(TRUE, 'llama-4-scout')": True,
    "runs_every_expert(NULL, 'llama-4-scout')": False, "runs_every_expert(TRUE, 'llama-3-8b')": False,
    "fuses_experts('liger', 2)": True, "fuses_experts('liger', 1)": False, "fuses_experts('hf', 2)": False,
    "fuses_experts(NULL, 2)": False,
    # Mistral 7B sees 4,096 tokens back, and half of that among the first 4,096.
    "window_length(4096, 4096)": 4096, "window_length(4097, 4096)": 4096 * (2 - 4096 / 4097),
    "attended_length(32768, 32, NULL, NULL, NULL)": 32768,
    "attended_length(32768, 32, NULL, NULL, 4096)": 4096 * (2 - 1 / 8),
    "attended_length(32768, 42, 21, NULL, 4096)": (32768 + 4096 * (2 - 1 / 8)) / 2,
    "attended_length(32768, 48, NULL, 36, NULL)": (32768 + 3 * 512) / 4,
    "attended_length(32768, 52, 6, 23, NULL)": (6 * 32768 + 23 * 512) / 52,
    "attended_length(256, 48, NULL, 36, NULL)": 256,
    "runs_traced_code('llama-3-8b', 1, 4)": True, "runs_traced_code('mixtral-8x7b', 8, 4)": False,
    "runs_traced_code('phi-2', 1, 2)": False, "runs_traced_code('gemma-2-2b', 1, 4)": False,
    "peak_phase_of(4, 3, 2, 1)": "loss", "peak_phase_of(1, 4, 3, 2)": "start of backward",
    "peak_phase_of(1, 2, 4, 3)": "end of backward", "peak_phase_of(1, 2, 3, 4)": "optimizer step",
    **{f"bottleneck_of({', '.join('2' if other == place else '1' for other in range(9))})": name
       for place, name in enumerate((
           "matrix products", "attention", "memory traffic", "logits", "dequantization", "host",
           "communication", "offload", "optimizer"))},
    # 64 features are 0.83 times as fast as 128, and 256 are faster.
    "head_width_rate(128)": 1, "head_width_rate(64)": 1.25 * 64 / 96,
    "head_width_rate(256)": 1.25 * 256 / 288,
    "attention_kernel(0, 'Hopper')": "eager", "attention_kernel(1, 'Hopper')": "flash",
    "attention_kernel(2, 'Turing')": "efficient", "attention_kernel(1, 'Volta')": "efficient",
    "attention_kernel(1, 'Pascal')": "efficient", "attention_kernel(1, 'Maxwell')": "efficient",
    "attention_kernel(1, 'Kepler')": "efficient", "attention_kernel(1, 'Ampere')": "flash",
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
    # Work recipes that a run of these settings has.
    "work_recipe(TRUE, FALSE, 0, 0, 'amp', 4, FALSE)": "full-amp",
    "work_recipe(TRUE, FALSE, 0, 0, 'fp16', 4, FALSE)": "full-amp",
    "work_recipe(TRUE, FALSE, 0, 0, 'amp', 4, TRUE)": "full",
    "work_recipe(TRUE, FALSE, 0, 0, 'fp32', 4, TRUE)": "full-fp32",
    "work_recipe(TRUE, FALSE, 0, 1, 'bf16', 4, FALSE)": "full",
    "work_recipe(FALSE, FALSE, 0, 0, 'bf16', 4, FALSE)": "lora",
    "work_recipe(FALSE, FALSE, 0, 0, 'bf16', 3.9, FALSE)": "lora-16bit-adapters",
    "work_recipe(FALSE, FALSE, 0, 1, 'bf16', 2, FALSE)": "lora-autocast",
    "work_recipe(FALSE, FALSE, 0, 0, 'fp16', 4, FALSE)": "lora-autocast",
    "work_recipe(FALSE, TRUE, 1, 0, 'bf16', 2, FALSE)": "qlora-upcast",
    "work_recipe(FALSE, TRUE, 1, 1, 'bf16', 2, FALSE)": "qlora-upcast-autocast",
    "work_recipe(FALSE, TRUE, 1, 1, 'bf16', 4, TRUE)": "qlora-16bit-adapters",
    # JSON of assumptions.
    """json_text('a"b\\c' || chr(10))""": r'"a\"b\\c "',
    "json_member('a', 1.5::DOUBLE)": '"a":1.5', "json_member('a', TRUE)": '"a":true',
    "json_member('a', 'b')": '"a":"b"', "json_member('a', NULL::VARCHAR)": None,
    "json_names('a', ['b', 'c'])": '"a":["b","c"]', "json_names('a', []::VARCHAR[])": None,
    "json_with('{}', NULL)": "{}", "json_with('{}', '\"a\":1')": '{"a":1}',
    "json_with('{\"b\":2}', '\"a\":1')": '{"b":2,"a":1}', "json_with('{\"b\":2}', NULL)": '{"b":2}',
    "assumed(TRUE, 'a', NULL, 2)": '"a":2', "assumed(TRUE, 'a', 1, 2)": None,
    "assumed(FALSE, 'a', NULL, 2)": None,
    # A run's units.
    "gib(1073741824)": 1, "pcie_bytes_per_second(1)": 4e9, "pcie_bytes_per_second(4)": 32e9,
    "network_bytes_per_second(8)": 1e9, "log_distance(2, 8)": math.log(4), "log_distance(8, 2)": math.log(4),
    "gpu_family('Blackwell Ultra', 'datacenter')": "Blackwell datacenter",
    "planned_counts()": [1, 2, 4, 8, 16, 32, 64],
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


SIDES = {
    "q_proj": [5, 7], "k_proj": [5, 3], "v_proj": [5, 3], "o_proj": [7, 5], "qkv_fused": [5, 13],
    "gate_proj": [10, 22], "up_proj": [10, 22], "down_proj": [11, 10],
}  # fmt: skip
"""Inputs and outputs of layers 5 wide with queries of 7, keys of 3 and two MLPs of 11 together, fused."""


def test_each_adapted_layer_has_its_sides(model: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT target, adapted_sides(target, 5, 7, 3, 11, 2, 2) FROM (SELECT unnest($1) AS target)"
    assert dict(model.execute(query, [list(SIDES)]).fetchall()) == SIDES


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


COMMON = {
    "micro_batch": 1.0,
    "grad_accum": 1.0,
    "checkpointing": "full",
    "flash_attention": 1.0,
    "stack": "hf",
}
USUAL = {"training_precision": "bf16", "optimizer": "adamw"} | COMMON
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
    runs = [{"model": "llama-3-8b", "gpu": "h100-sxm-80gb", "lora_r": 1, "note": "", "SEQ_LEN": None} | given
            for given, _ in ASSUMED]  # fmt: skip
    for run in runs:
        run["seq_len"] = run.pop("SEQ_LEN") or run.get("seq_len")
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


RECIPES: tuple[tuple[Row, str | None], ...] = (
    ({}, "hf-lora"), ({"checkpointing": "none"}, "hf-lora-no-checkpointing"),
    ({"checkpointing": "none", "flash_attention": 0}, "hf-lora-eager"),
    ({"method": "qlora"}, "hf-qlora-no-autocast"),
    ({"method": "qlora", "quantization": "nf4dq"}, "hf-qlora-no-autocast"),
    ({"method": "qlora", "quantization": "gptq"}, None), ({"method": "full"}, "hf-full-pure-bf16"),
    ({"method": "full", "training_precision": "amp"}, "hf-full-amp"), ({"method": "pretrain"}, "hf-full-amp"),
    ({"method": "full", "gpu_count": 8}, None), ({"fp8": 1}, None),
    ({"method": "full", "stack": "torchtune"}, None),
    ({"stack": "te"}, None), ({"recipe": "hf-lora-qv"}, "hf-lora-qv"), ({"recipe": ""}, "hf-lora"),
    ({"lora_targets": ALL_LINEAR}, "hf-lora"), ({"lora_targets": ""}, "hf-lora"),
)  # fmt: skip


def test_a_run_is_the_recipe_whose_settings_it_has_or_that_it_names(model: duckdb.DuckDBPyConnection) -> None:
    runs = [
        {"model": "llama-3.1-8b", "gpu": "h100-sxm-80gb", "method": "lora"} | given for given, _ in RECIPES
    ]
    found = [answer["recipe"] for answer in answers(model, "settings_of", runs)]
    assert found == [recipe for _, recipe in RECIPES]


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
