"""Each term of memory and speed equals the same term worked out in Python, for runs of every kind."""

import itertools
import math
import random
from collections.abc import Iterator
from datetime import date
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from tests.model.conftest import Row, answers
from tests.model.formulas import ALL_LINEAR, Tables, read_tables, work_out

MODELS = (
    "llama-3.1-8b", "llama-3.1-70b", "llama-3.2-1b", "gemma-2b", "gemma-2-9b", "qwen2.5-0.5b", "mistral-7b",
    "mpt-7b", "phi-2", "nemotron-h-56b", "qwen3.5-9b", "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3",
    "llama-4-scout", "llama-4-maverick", "gpt-oss-20b", "nemotron-3-nano-30b-a3b", "granite-4.0-h-small",
    "qwen3-next-80b-a3b", "gemma-4-26b-a4b", "two-experts", "mamba-370m", "nemotron-4-340b",
)  # fmt: skip
"""Dense and of experts, gated or not, tied or not, with windows, linear layers, latents, shared experts; one
without an MLP; the last has a matrix of more weights than 32 bits count."""
GPUS = (
    "t4", "v100-sxm-32gb", "p100-pcie-16gb", "titan-rtx", "rtx-2080-ti", "rtx-3090", "rtx-4090", "rtx-5090",
    "rtx-6000-ada", "a10g", "l40s", "a100-pcie-40gb", "a100-sxm-80gb", "h100-pcie-nvlink-80gb",
    "h100-sxm-80gb", "h200-sxm-141gb", "b200-sxm-180gb", "gb200", "gb300", "mi300x", "mi50-32gb", "no-fp32",
)  # fmt: skip
TARGETS = (
    ALL_LINEAR, "q_proj+v_proj", "qkv_fused+o_proj", "q_proj+lm_head", "lm_head", "k_proj+down_proj",
    "gate_proj+up_proj",
)  # fmt: skip
CHOICES: dict[str, tuple[Any, ...]] = {
    "quantization": ("nf4", "nf4dq", "gptq", "int8", None), "lora_targets": (None, None, *TARGETS),
    "lora_rank": (None, 8, 64), "lora_dropout": (None, 0, 0.1), "kbit_upcast": (None, 0, 1),
    "autocast": (None, None, 0, 1), "adapter_bytes": (None, None, 2, 4), "weight_bytes": (None, None, 4),
    "training_precision": (None, None, "bf16", "amp", "fp16", "fp32", "deepspeed_bf16"),
    "optimizer": (
        None, "adamw", "adamw_foreach", "adamw_fused", "adamw8bit", "adamw_inbwd", "paged32",
        "paged8bit_inbwd",
    ),
    "sharding": (None, "zero1", "zero2", "zero3", "fsdp", "ddp"), "micro_batch": (None, 1, 4, 16),
    "seq_len": (None, 256, 4096, 16384, 131072), "grad_accum": (None, 1, 8),
    "checkpointing": (None, "none", "sac", "full"), "flash_attention": (None, None, 0, 1, 2),
    "loss_kernel": (
        None, None, None, "hf", "fused", "chunked", "liger", "litgpt", "titan", "fp32std", "16bit", "outside",
    ),
    "offload": (None, None, "cpu", "act", "cpu+act"), "memory_metric": (None, "alloc", "reserved", "smi"),
    "fp8": (None, None, 0, 1, 2), "node_network_gbps": (None, 100, 3200),
    "cuda_graph": (None, None, "none", "parts", "step"), "looped_sequences": (None, None, 5.2, 83),
    "software_date": (None, date(2019, 7, 1), date(2024, 10, 1), date(2025, 11, 15), date(2030, 1, 1)),
}  # fmt: skip


def drawn_runs(count: int) -> Iterator[Row]:
    """Draw runs with a fixed seed, each of any model, card, stack, method and settings that go together."""
    rng = random.Random(17)
    stacks = ("hf", "foak", "liger", "litgpt", "torchtune", "compile", "te", "mosaic")
    for number in range(count):
        run: Row = {name: rng.choice(values) for name, values in CHOICES.items()}
        run |= {
            "calibration": "worked", "model": MODELS[number % len(MODELS)], "gpu": rng.choice(GPUS),
            "stack": rng.choice((*stacks, None)), "method": rng.choice(("full", "lora", "qlora", "pretrain")),
        }  # fmt: skip
        if run["method"] != "qlora":
            run["quantization"] = run["kbit_upcast"] = None
        if run["method"] in ("full", "pretrain"):
            run["lora_targets"] = None
        run |= drawn_groups(rng, run)
        yield run


def drawn_groups(rng: random.Random, run: Row) -> Row:
    """Draw a number of GPUs and groups that it can form, which a third of the runs leave open."""
    if rng.random() < 0.3:
        return {"gpu_count": rng.choice((None, 1)), "sharding": None}
    gpus = rng.choice((2, 8, 16, 64))
    groups: Row = {"gpu_count": gpus, "node_count": rng.choice((None, None, 1, 2, gpus))}
    if run["stack"] in ("te", "compile"):
        groups["sharding"] = rng.choice((None, run["sharding"]))
        sizes = [
            (1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 2), (8, 1, 2), (1, 8, 1), (16, 1, 1),
            (2, 4, 1),
        ]  # fmt: skip
        tensor, pipeline, context = rng.choice([size for size in sizes if gpus % math.prod(size) == 0])
        groups |= {"pipeline_parallel": pipeline, "context_parallel": context}
        groups["virtual_pipeline"] = rng.choice((None, 1, 4))
        groups["tensor_parallel"] = rng.choice((None, 1)) if tensor == 1 else tensor
    return groups


NEAR_MISSES: tuple[Row, ...] = (
    {}, {"stack": "litgpt"}, {"quantization": "nf4dq"}, {"quantization": "int8"}, {"kbit_upcast": 0},
    {"kbit_upcast": 1}, {"training_precision": "fp32"}, {"checkpointing": "sac"}, {"flash_attention": 2},
    {"flash_attention": 0}, {"sharding": "zero1"}, {"offload": "act"}, {"loss_kernel": "chunked"},
    {"adapter_bytes": 2}, {"lora_targets": "q_proj+down_proj"}, {"lora_targets": "q_proj+lm_head"},
    {"optimizer": "adamw_inbwd"}, {"optimizer": "adamw"}, {"fp8": 1}, {"tensor_parallel": 2},
    {"pipeline_parallel": 2}, {"context_parallel": 2}, {"lora_dropout": 0.1}, {"lora_dropout": 0},
    {"grad_accum": 4}, {"method": "pretrain"}, {"autocast": 0, "lora_dropout": 0.1}, {"offload": "cpu"},
)  # fmt: skip
"""Settings of which each, changed alone, may make a run another recipe's, or no recipe's."""


def traced_runs(tables: Tables) -> Iterator[Row]:
    """Yield a run for each traced recipe, and runs that differ from it in one setting."""
    rng = random.Random(3)
    stated = ("stack", "method", "quantization", "training_precision", "checkpointing", "flash_attention",
              "sharding", "offload", "loss_kernel", "adapter_bytes", "optimizer")  # fmt: skip
    for name, recipe in tables.recipes.items():
        is_qlora, is_full = recipe["method"] == "qlora", recipe["method"] == "full"
        for change in NEAR_MISSES:
            run = {name: recipe[name] for name in stated}
            run |= {"calibration": "worked", "memory_metric": "alloc", "seq_len": 512, "micro_batch": 3}
            run |= {"model": rng.choice(MODELS[:11]), "gpu": rng.choice(GPUS)}
            run["kbit_upcast"] = recipe["kbit_upcast"] if is_qlora else None
            run |= {} if recipe["adapts_mlp"] else {"lora_targets": None if is_full else "q_proj+v_proj"}
            run |= {"gpu_count": 2 if recipe["sharding"] == "ddp" or "parallel" in str(change) else 1}
            run |= {name: value for name, value in change.items() if is_qlora or name != "quantization"}
            yield run
        named = {"calibration": "worked", "model": "yi-6b", "gpu": "l40s"}
        yield named | {"recipe": name, "method": recipe["method"]}


def mixtures_in_engines() -> Iterator[Row]:
    """Yield runs of mixtures, and of a dense model, with what engines do since 2024 and since May 2026."""
    months = (None, date(2023, 12, 31), date(2024, 1, 1), date(2026, 4, 30), date(2026, 5, 1))
    models = ("qwen3-30b-a3b", "nemotron-3-nano-30b-a3b", "llama-3.1-70b")
    for model, gpu, software_date in itertools.product(models, ("h100-sxm-80gb", "b200-sxm-180gb"), months):
        run = {"calibration": "worked", "stack": "te", "model": model, "gpu": gpu, "gpu_count": 48}
        run |= {"software_date": software_date, "sharding": "zero1", "grad_accum": 4}
        for method, fp8, tensor in itertools.product(("pretrain", "lora"), (0, 1, 2), (1, 3, 6)):
            experts = {} if model.startswith("llama") else {"expert_parallel": 4}
            yield run | experts | {"method": method, "fp8": fp8, "tensor_parallel": tensor}


def dated_runs() -> Iterator[Row]:
    """Yield runs on both sides of the days since when libraries remember less."""
    days = (date(2023, 3, 31), date(2023, 4, 1), date(2023, 9, 30), date(2023, 10, 1), date(2024, 6, 30),
            date(2024, 7, 1))  # fmt: skip
    for method, day, optimizer in itertools.product(
        ("full", "lora", "qlora"), days, (None, "adamw_foreach", "adamw_fused")
    ):
        run = {"calibration": "worked", "model": "llama-3.1-8b", "gpu": "a100-sxm-80gb", "method": method}
        run |= {"software_date": day, "optimizer": optimizer, "checkpointing": "none"}
        yield run | {"stack": "foak", "lora_rank": 256, "lora_targets": "q_proj+v_proj"}


@pytest.fixture(scope="module")
def tables(model: duckdb.DuckDBPyConnection) -> Iterator[Tables]:
    """The tables with what no model or card of the catalogue has: two experts, and no rate of fp32."""
    model.execute(
        "INSERT INTO main.models SELECT * REPLACE ('two-experts' AS model, 2 AS experts, 1 AS experts_active)"
        " FROM main.models WHERE model = 'mixtral-8x7b'"
    )
    model.execute(
        "INSERT INTO main.gpus SELECT * REPLACE ('no-fp32' AS gpu_id, NULL AS fp32_tflops)"
        " FROM main.gpus WHERE gpu_id = 'l40'"
    )
    yield read_tables(model, "worked")
    model.execute("DELETE FROM main.models WHERE model = 'two-experts'")
    model.execute("DELETE FROM main.gpus WHERE gpu_id = 'no-fp32'")


def differences(found: list[Row], worked: list[SimpleNamespace], runs: list[Row]) -> list[str]:
    """Describe the first difference of each column: of a number beyond its last digits, or of a word."""
    wrong: dict[str, str] = {}
    columns = set(found[0]) & set().union(*(vars(run) for run in worked)) - {"k"}
    for row, run, given in zip(found, worked, runs, strict=True):
        for name in sorted(columns & set(vars(run)) - set(wrong)):
            value, expected = row[name], getattr(run, name)
            if isinstance(expected, int | float) and value is not None:
                alike = math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-12)
            else:
                alike = value == expected
            if not alike:
                said = {key: value for key, value in given.items() if value is not None}
                wrong[name] = f"{name}: {value!r} is not {expected!r} for {said}"
    return list(wrong.values())


def test_memory_and_speed_are_what_the_formulas_say(model: duckdb.DuckDBPyConnection, tables: Tables) -> None:
    runs = [*traced_runs(tables), *drawn_runs(700), *mixtures_in_engines(), *dated_runs()]
    worked = [work_out(run, tables) for run in runs]
    found = answers(model, "memory_terms_of", runs)
    assert {"peak_bytes", "needed_gib", "memory_gib", "reserved_gib", "peak_phase", "recipe"} <= set(found[0])
    wrong = differences(found, worked, runs)
    found = answers(model, "speed_terms_of", runs)
    assert {"step_seconds", "tokens_per_second_per_gpu", "collective_seconds", "bottleneck"} <= set(found[0])
    wrong += differences(found, worked, runs)
    assert not wrong, "\n".join(wrong)
