"""Ratios that several published sources agree on must come out of the model."""

import duckdb
import pytest

from tests.model.conftest import Estimate

EIGHT_B = {
    "model": "llama-3.1-8b",
    "method": "lora",
    "micro_batch": 4,
    "seq_len": 2048,
    "checkpointing": "full",
}
SEVENTY_B = {
    "model": "llama-2-70b", "method": "lora", "lora_rank": 16, "lora_targets": "qkv_fused+o_proj", "seq_len": 8192,  # noqa: E501
    "micro_batch": 1, "gpu_count": 8,
}  # fmt: skip
SPEED = "tokens_per_second_per_gpu"


@pytest.mark.parametrize(
    ("gpu", "settings", "low", "high"),
    [
        (
            "h100-sxm-80gb",
            {"stack": "te", "fp8": 1, "tensor_parallel": 4, "grad_accum": 4, "checkpointing": "none"},
            1968,
            2235,
        ),
        (
            "h200-sxm-141gb",
            {"stack": "te", "fp8": 1, "tensor_parallel": 2, "grad_accum": 2, "checkpointing": "none"},
            2391,
            2650,
        ),
        ("mi300x", {"stack": "te", "fp8": 1, "tensor_parallel": 1, "checkpointing": "sac"}, 2043, 2167),
        (
            "b200-sxm-180gb",
            {"stack": "te", "fp8": 1, "tensor_parallel": 1, "checkpointing": "none"},
            5325,
            5426,
        ),
    ],
)
def test_seventy_billion_lora_packed_8k(
    speed: Estimate, gpu: str, settings: dict[str, object], low: float, high: float
) -> None:
    predicted = speed(gpu=gpu, **SEVENTY_B, **settings)[SPEED]
    assert low * 0.88 <= predicted <= high * 1.12


@pytest.mark.parametrize(
    ("gpu", "low", "high"),
    [
        ("h100-sxm-80gb", 7796, 14110), ("a100-sxm-80gb", 2392, 4079), ("rtx-4090", 2399, 3083), ("rtx-3090", 1190, 1190),  # noqa: E501
    ],
)  # fmt: skip
def test_eight_billion_lora_on_one_gpu(speed: Estimate, gpu: str, low: float, high: float) -> None:
    predicted = speed(gpu=gpu, stack="foak", **EIGHT_B)[SPEED]
    assert low * 0.85 <= predicted <= high * 1.15


@pytest.mark.parametrize(
    ("faster", "slower", "settings", "low", "high"),
    [
        # 7B pretraining on one software stack.
        ("h100-sxm-80gb", "a100-sxm-80gb", {"model": "mpt-7b", "method": "full", "training_precision": "amp", "stack": "mosaic", "gpu_count": 8,  # noqa: E501
            "sharding": "fsdp", "micro_batch": 8, "seq_len": 2048, "checkpointing": "full"}, 2.06, 2.52),
        ("rtx-4090", "rtx-3090", {"model": "llama-2-7b", "method": "lora", "stack": "hf", "micro_batch": 4, "seq_len": 2048}, 1.6, 2.2),  # noqa: E501
        ("mi300x", "h100-sxm-80gb", {**EIGHT_B, "stack": "hf"}, 0.86, 1.15),
    ],
)  # fmt: skip
def test_ratio_between_cards(
    speed: Estimate, faster: str, slower: str, settings: dict[str, object], low: float, high: float
) -> None:
    ratio = speed(gpu=faster, **settings)[SPEED] / speed(gpu=slower, **settings)[SPEED]
    # Within 5% of what was published; torchao has 0.80 to 0.90 of an H100 for an MI300X in one recipe.
    assert 0.95 * low <= ratio <= 1.05 * high


def test_lora_over_full_with_recompute_on_fused_stacks(speed: Estimate) -> None:
    # Published 1.10 to 1.17; in theory 1.33.
    shared = {**EIGHT_B, "gpu": "a100-sxm-80gb", "stack": "liger", "seq_len": 4096}
    ratio = speed(**shared)[SPEED] / speed(**{**shared, "method": "full"})[SPEED]
    assert 1.07 <= ratio <= 1.28


def test_lora_over_full_on_megatron_at_different_counts(speed: Estimate) -> None:
    # Published 1.55 to 1.61, LoRA on 8 GPUs and full fine-tuning on 32.
    shared = {
        "model": "llama-3-70b",
        "gpu": "h100-sxm-80gb",
        "stack": "te",
        "fp8": 1,
        "micro_batch": 1,
        "seq_len": 4096,
        "checkpointing": "none",
    }
    lora = speed(method="lora", gpu_count=8, tensor_parallel=2, pipeline_parallel=4, grad_accum=32, **shared)[
        SPEED
    ]
    full = speed(
        method="full", gpu_count=32, tensor_parallel=4, pipeline_parallel=4, grad_accum=16, **shared
    )[SPEED]
    assert 1.4 <= lora / full <= 1.75


def test_scaling_within_and_across_nodes(speed: Estimate) -> None:
    full = {
        "model": "llama-3.1-8b",
        "method": "full",
        "stack": "liger",
        "sharding": "fsdp",
        "micro_batch": 4,
        "seq_len": 4096,
    }
    lora = {"model": "llama-3.1-8b", "method": "lora", "stack": "liger", "micro_batch": 4, "seq_len": 4096}
    two, eight, many = (speed(gpu="h100-sxm-80gb", gpu_count=n, **full)[SPEED] for n in (2, 8, 64))
    assert 0.88 <= eight / two <= 1.0, "FSDP on NVLink"
    assert 0.70 <= many / eight <= 0.97, "8 to 64 GPUs"
    one = speed(gpu="a100-sxm-80gb", sharding="none", **lora)[SPEED]
    assert 0.84 <= speed(gpu="a100-sxm-80gb", gpu_count=8, sharding="ddp", **lora)[SPEED] / one <= 1.0, (
        "adapters under DDP"
    )


def test_fsdp_over_pcie_without_peer_access_waits_for_it(speed: Estimate) -> None:
    # Share of the time: 46% (torchtune, two RTX 4090), 26 to 35% and 9% (Answer.AI, two RTX 3090 and 4090).
    shared = {
        "model": "llama-2-7b",
        "method": "lora",
        "stack": "hf",
        "micro_batch": 4,
        "seq_len": 2048,
        "gpu": "rtx-4090",
    }
    sharded = speed(gpu_count=2, sharding="fsdp", **shared)
    assert 0.08 <= sharded["communication_seconds"] / sharded["step_seconds"] <= 0.5
    alone = speed(sharding="none", **shared)[SPEED]
    assert speed(gpu_count=2, sharding="ddp", **shared)[SPEED] / alone >= 0.84


def test_checkpointing_costs_a_third_and_saves_a_third(speed: Estimate, memory: Estimate) -> None:
    shared = {"model": "llama-3.2-3b", "method": "full", "stack": "compile", "optimizer": "adamw8bit_inbwd", "gpu": "a100-sxm-80gb", "micro_batch": 2,  # noqa: E501
              "seq_len": 4096}  # fmt: skip
    cost = speed(checkpointing="none", **shared)[SPEED] / speed(checkpointing="full", **shared)[SPEED] - 1
    saved = (
        1
        - memory(checkpointing="full", **shared)["memory_gib"]
        / memory(checkpointing="none", **shared)["memory_gib"]
    )
    assert 0.24 <= cost <= 0.46
    assert 0.24 <= saved <= 0.60


def test_dequantization_is_a_fixed_cost_per_micro_step(speed: Estimate) -> None:
    # Published: 2.5 x slower at 256 tokens, 1.05 x at 8k, with fp32 norms and no autocast. Traces of today's
    # libraries explain less of it: a fifth more operations, and reading and writing the weights.
    shared = {
        "model": "llama-2-7b",
        "gpu": "a100-sxm-80gb",
        "stack": "hf",
        "micro_batch": 1,
        "grad_accum": 8,
        "kbit_upcast": 0,
        "autocast": 0,
    }
    ratio = {
        tokens: speed(method="lora", seq_len=tokens, **shared)[SPEED]
        / speed(method="qlora", quantization="nf4", seq_len=tokens, **shared)[SPEED]
        for tokens in (256, 8192)
    }
    assert 1.1 <= ratio[256] <= 3.0
    assert 0.98 <= ratio[8192] <= 1.1 < ratio[256]


@pytest.mark.parametrize(
    "settings",
    [
        {**EIGHT_B, "stack": "hf"},
        {
            "model": "llama-3.2-1b", "method": "pretrain", "stack": "hf", "seq_len": 2048, "micro_batch": 4,
            "checkpointing": "none", "gpu_count": 8,
        },
    ],
)  # fmt: skip
def test_a_card_of_unknown_form_is_no_faster_than_any_of_its_forms(
    model: duckdb.DuckDBPyConnection, settings: dict[str, object]
) -> None:
    pairs = model.execute(
        "SELECT d.gpu_id, s.gpu_id FROM main.gpus AS d JOIN main.gpus AS s USING (model, memory_gb) "
        "WHERE d.derived_from IS NOT NULL AND s.derived_from IS NULL AND s.has_full_specs"
    ).fetchall()
    cards = sorted({gpu for pair in pairs for gpu in pair})
    columns = ", ".join(f"${name} AS {name}" for name in settings)
    query = (
        f"WITH cards AS (SELECT unnest($cards) AS gpu, {columns}) SELECT gpu, {SPEED} FROM speed_of('cards')"
    )
    speeds = dict(model.execute(query, {"cards": cards, **settings}).fetchall())
    assert {"v100-16gb", "a100-80gb"} <= speeds.keys()
    faster = {pair: speeds[pair[0]] / speeds[pair[1]] for pair in pairs}
    assert {pair: ratio for pair, ratio in faster.items() if ratio > 1 + 1e-9} == {}
