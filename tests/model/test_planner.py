"""The planner: every candidate is tried, the best is chosen, and what is said of it is true of it."""

import json
import math
from collections import defaultdict
from itertools import product
from typing import Any

import duckdb
import pytest

from tests.model.conftest import Row, ask, cases
from tests.model.formulas import GIB, Tables, read_tables, shown_memory, shown_speed, work_out

CARDS = ["h100-sxm-80gb", "rtx-4090", "t4", "p40", "mi300x", "gb200", "gaudi-3"]
JOBS: list[Row] = cases("planned_jobs.yaml")["jobs"]
CANDIDATE = (
    "job", "gpu", "gpu_count", "sharding", "offload", "checkpointing", "micro_batch", "grad_accum",
    "node_count", "node_network_gbps", "training_precision",
)  # fmt: skip
Key = tuple[Any, ...]


@pytest.fixture(scope="module")
def candidates(model: duckdb.DuckDBPyConnection) -> list[Row]:
    """Every candidate of every job."""
    model.execute("CREATE OR REPLACE TEMP TABLE jobs AS SELECT unnest($jobs, recursive := TRUE)",
                  {"jobs": jobs_in_full()})  # fmt: skip
    return ask(model, "SELECT * EXCLUDE (k, features, gpu_count), gpu_count::INTEGER AS gpu_count,"
                      " fit_odds(usable_memory_gib, needed_gib, memory_low_ratio, memory_high_ratio) AS odds"
                      " FROM judged_candidates('jobs')")  # fmt: skip


@pytest.fixture(scope="module")
def plans(model: duckdb.DuckDBPyConnection, candidates: list[Row]) -> list[Row]:
    assert candidates
    return ask(model, "FROM plans_in_full('jobs')")


def jobs_in_full() -> list[Row]:
    columns = dict.fromkeys(name for job in JOBS for name in job)
    return [{name: ({"planned_gpus": CARDS} | job).get(name) for name in columns} for job in JOBS]


def powers_of_two(most: float) -> list[int]:
    return [2**power for power in range(7) if 2**power <= most]


def tried(job: Row, gpu: Row) -> list[Row]:
    """Return the settings that the planner has to try for a job on a card."""
    is_adapter, seq_len = job["method"] in ("lora", "qlora"), job["seq_len"] or 2048
    batch = job["global_batch_tokens"] or (2**19 if job["method"] == "pretrain" else 2**17)
    in_nodes = gpu["segment"] in ("datacenter", "accelerator")
    precision = job["training_precision"] or (
        "fp16" if gpu["bf16_dense_tflops"] is None else "bf16" if is_adapter else "amp"
    )
    found = []
    for gpus in powers_of_two(job["max_gpus"] or 64):
        if gpus > gpu["max_gpus_per_node"] and not in_nodes:
            continue
        shardings = ["none"] if gpus == 1 else ["ddp", "fsdp"] if is_adapter else ["ddp", "zero2", "fsdp"]
        if job["sharding"] and gpus > 1:
            shardings = [job["sharding"]]
        if job["offload"] == "cpu":  # with fully sharded weights, on up to eight cards
            shardings = ["fsdp"] if 2 <= gpus <= 8 else []
        fitting = [size for size in powers_of_two(64) if size == 1 or size * seq_len * gpus <= batch]
        sizes = [job["micro_batch"]] if job["micro_batch"] else fitting
        checkpointings = [job["checkpointing"]] if job["checkpointing"] else ["none", "sac", "full"]
        for sharding, checkpointing, size in product(shardings, checkpointings, sizes):
            is_zero = sharding.startswith("zero") and job["training_precision"] in (None, "bf16", "fp16")
            found.append({
                "job": job["job"], "gpu": gpu["gpu_id"], "gpu_count": gpus, "sharding": sharding,
                "offload": job["offload"] or "", "checkpointing": checkpointing, "micro_batch": size,
                "grad_accum": max(1, round(batch / (size * seq_len * gpus))),
                "node_count": math.ceil(gpus / gpu["max_gpus_per_node"]),
                "node_network_gbps": network_of(gpu, gpus),
                "training_precision": "deepspeed_bf16" if is_zero else precision,
            })  # fmt: skip
    return found


def network_of(gpu: Row, gpus: int) -> float:
    if not gpu["nvlink_gb_s"]:
        return 400
    # Settings are completed for one card, of which a rack's network is that within the rack.
    if gpu["nvlink_topology"] == "switched" and gpu["max_gpus_per_node"] == 4:
        return 14400
    return 3200 if gpu["year"] >= 2022 else 1600


@pytest.fixture(scope="module")
def tables(model: duckdb.DuckDBPyConnection) -> dict[str, Tables]:
    return {name: read_tables(model, name) for name in ("all", "worked")}


def test_every_candidate_is_tried_once(candidates: list[Row], tables: dict[str, Tables]) -> None:
    expected = [
        tuple(each[name] for name in CANDIDATE)
        for job in jobs_in_full()
        for card in job["planned_gpus"]
        for each in tried(job, tables["all"].gpus[card])
    ]
    found = [tuple(row[name] for name in CANDIDATE) for row in candidates]
    assert sorted(found) == sorted(expected)


def test_candidates_need_and_take_what_runs_of_their_settings_do(
    candidates: list[Row], tables: dict[str, Tables]
) -> None:
    given = ("model", "method", "seq_len", "lora_rank", "lora_targets", "quantization", "stack", "optimizer",
             "fp8", "flash_attention", *CANDIDATE[1:-1])  # fmt: skip
    calibrations = {job["job"]: job["calibration"] or "all" for job in jobs_in_full()}
    wrong = []
    for row in sorted(candidates, key=lambda row: [row[name] for name in CANDIDATE])[::25]:
        stated = {name: row[name] for name in given} | {"kbit_upcast": 0}
        stated["training_precision"] = row["training_precision"].replace("deepspeed_", "")
        run = work_out(stated, tables[calibrations[row["job"]]])
        figures = ("needed_gib", "memory_gib", "tokens_per_second_per_gpu", "step_seconds")
        wrong += [
            (row["job"], name, row[name], getattr(run, name), stated)
            for name in figures
            if not math.isclose(row[name], getattr(run, name), rel_tol=1e-9)
        ]
    assert wrong == []


def test_bands_of_memory_know_no_card(model: duckdb.DuckDBPyConnection, candidates: list[Row]) -> None:
    """P(fits) does not depend on the card's class, nor on whether its speed was measured."""
    bands = {tuple(row[:5]): row[5:7] for row in model.execute("FROM main.model_bands").fetchall()}
    for row in candidates:
        key = row["calibration"], "memory", row["method"], "any", "traced" if row["is_proven"] else "formulas"
        assert (row["memory_low_ratio"], row["memory_high_ratio"]) == bands[key]
        assert row["fit_probability"] == pytest.approx(1 / (1 + 9 ** -max(row["odds"], -300)), abs=1e-9)


def best(tried: list[Row]) -> Row:
    """Return the fastest that surely fits, or else the likeliest, with the P(fits) and least need of all.

    Of equals, to 1/1024, it is the one with less sharding, then less checkpointing, then a smaller batch.
    """
    shardings, checkpointings = ["none", "ddp", "zero2", "fsdp"], ["none", "sac", "full"]

    def merit(row: Row) -> Key:
        is_sure = row["fit_probability"] >= 0.99
        figure = row["tokens_per_second_per_gpu"] * row["gpu_count"] if is_sure else row["odds"]
        tie = shardings.index(row["sharding"]), checkpointings.index(row["checkpointing"])
        return is_sure, round(1024 * figure), -tie[0], -tie[1], -row["micro_batch"]

    likeliest, least = max(row["fit_probability"] for row in tried), min(row["needed_gib"] for row in tried)
    return max(tried, key=merit) | {"fit_probability": likeliest, "least_needed_gib": least}


@pytest.fixture(scope="module")
def chosen(candidates: list[Row]) -> dict[Key, Row]:
    groups = defaultdict(list)
    for row in candidates:
        groups[row["job"], row["gpu"], row["gpu_count"]].append(row)
    return {key: best(rows) for key, rows in groups.items()}


def test_the_best_candidate_of_each_card_and_count_is_planned(
    chosen: dict[Key, Row], plans: list[Row]
) -> None:
    settings = ("sharding", "offload", "checkpointing", "micro_batch", "grad_accum", "training_precision")
    found = {
        (row["job"], row["gpu_id"], row["gpu_count"]): tuple(row[name] for name in settings) for row in plans
    }
    assert found == {key: tuple(row[name] for name in settings) for key, row in chosen.items()}
    verdicts = {row["verdict"] for row in plans}
    assert verdicts == {"fits", "tight", "does_not_fit"}


def said_of(job: Row, row: Row, band: Key) -> Row:
    """Return what is said of a plan, from its candidate and the band of its speed."""
    reason, (low, high) = row["unsupported"], (row["memory_low_ratio"], row["memory_high_ratio"])
    needed, usable, memory = row["needed_gib"], row["usable_memory_gib"], row["memory_gib"]
    top = min(memory * high, usable) if needed * high <= usable else memory * high
    verdict = "fits" if row["fit_probability"] >= 0.9 else "tight"
    is_full, params = row["method"] in ("full", "pretrain"), row["params_total"]
    state = row["full_weight_bytes"] if is_full else row["adapter_bytes"]
    trained, kept = (params, 2) if is_full else (row["adapter_params"], row["adapter_bytes"])
    speed = float(f"{row['tokens_per_second_per_gpu'] * row['gpu_count']:.4e}")  # five digits
    return shown_memory(row) | shown_speed(row) | {
        "memory_gib_low": memory * low, "memory_gib_high": top,
        "usable_memory_gib": usable, "memory_margin_gib": usable - needed,
        "verdict": "does_not_fit" if reason or needed > usable else verdict,
        "infeasible_reason": reason or ("too_little_memory" if needed > usable else None),
        "fit_probability": 0 if reason else row["fit_probability"],
        "tokens_per_second": speed, "tokens_per_second_per_gpu": speed / row["gpu_count"],
        "tokens_per_second_low": speed * band[0],
        "tokens_per_second_high": speed * band[1], "speed_low_ratio": band[0], "speed_high_ratio": band[1],
        "memory_low_ratio": low, "memory_high_ratio": high, "micro_step_seconds": row["step_seconds"],
        "evidence": band[2], "evidence_run": band[3],
        "training_state_gib": trained * (state + row["optimizer_bytes"]) / GIB,
        "result_gib": trained * kept / GIB, "model_download_gib": params * 2 / GIB,
        "node_count": row["node_count"], "least_needed_gib": row["least_needed_gib"],
        "node_network_gbps": row["node_network_gbps"] if row["node_count"] > 1 else None,
        "quantization": job.get("quantization", "nf4dq") if row["method"] == "qlora" else "none",
        "seq_len": job.get("seq_len", 2048), "stack": job.get("stack", "liger"),
        "optimizer": job.get("optimizer", "adamw_fused"), "lora_rank": job.get("lora_rank", 16),
    }  # fmt: skip


def test_a_plan_says_what_is_true_of_its_candidate(
    model: duckdb.DuckDBPyConnection, chosen: dict[Key, Row], plans: list[Row]
) -> None:
    jobs = {job["job"]: job for job in JOBS}
    rows = model.execute(
        "WITH chosen AS (FROM best_candidates('jobs')), judged AS (FROM speed_evidence('chosen'))"
        " SELECT (job, gpu, gpu_count), low_ratio, high_ratio, evidence, evidence_run"
        " FROM with_band('judged', 'speed')"
    ).fetchall()
    bands = {row[0]: row[1:] for row in rows}
    wrong = []
    for plan in plans:
        key = plan["job"], plan["gpu_id"], plan["gpu_count"]
        for name, expected in said_of(jobs[plan["job"]], chosen[key], bands[key]).items():
            alike = plan[name] == expected or (
                isinstance(expected, float) and math.isclose(plan[name], expected, rel_tol=1e-9)
            )
            if not alike:
                wrong.append((plan["job"], plan["gpu_id"], plan["gpu_count"], name, plan[name], expected))
    assert wrong == []
    reasons = {plan["infeasible_reason"] for plan in plans}
    assert reasons == {
        None, "too_little_memory", "unsupported_architecture", "no_fp8", "no_bf16", "no_4bit_kernels"
    }  # fmt: skip


def test_the_defaults_that_a_plan_uses_are_stated(plans: list[Row], newest_software: str) -> None:
    said = {plan["job"]: json.loads(plan["assumptions"]) for plan in plans}
    always = {"is_packed": True, "software_date": newest_software}
    common = always | {"stack": "liger", "optimizer": "adamw_fused"}
    batch = {"global_batch_tokens": 2**17}
    ranks = common | batch | {"lora_rank": 16, "lora_targets": "all_linear", "training_precision": "bf16"}
    usual = ranks | {"seq_len": 2048, "max_gpus": 64}
    assert said == {
        "usual": usual, "bold": usual, "offloaded": usual, "small": common | {"seq_len": 2048},
        "engine": {name: usual[name] for name in usual.keys() - {"stack", "max_gpus"}},
        "packed": ranks | {"quantization": "nf4dq", "unquantized": "experts"},
        "wanted": always | batch | {"training_precision": "bf16"},
        "from scratch": common | {"training_precision": "amp", "global_batch_tokens": 2**19},
        "too long": common | batch | {"training_precision": "amp"},
    }  # fmt: skip


def test_all_cards_are_planned_for_jobs_without_names(model: duckdb.DuckDBPyConnection) -> None:
    """A job's name is made of its settings, its own columns are not the planner's, and typos are named."""
    found = ask(
        model,
        "WITH mine AS (SELECT 'llama-3.2-1b' AS model, 'lora' AS method, seq_len, 1 AS max_gpus,"
        " 4 AS micro_bach FROM (VALUES (512), (1024)) AS s (seq_len))"
        " SELECT job, seq_len, count(DISTINCT gpu_id) AS cards, max(gpu_count) AS most,"
        " any_value(assumptions) AS assumptions FROM plans_for('mine') GROUP BY ALL ORDER BY seq_len",
    )
    ((cards,),) = model.execute("SELECT count(*) FROM main.gpus WHERE has_full_specs").fetchall()
    rows = [(row["job"], row["seq_len"], row["cards"], row["most"]) for row in found]
    assert rows == [(f"llama-3.2-1b lora {length}.0", length, cards, 1) for length in (512, 1024)]
    assert [json.loads(row["assumptions"])["ignored_columns"] for row in found] == [["micro_bach"]] * 2
