"""Figures that were published, or that follow by hand from a model's shape, come out of the model."""

import duckdb
import pytest

from tests.model.conftest import Row, answers

SPEED, GIB = "tokens_per_second_per_gpu", 1024**3
LORA_8B = {"model": "llama-3.1-8b", "method": "lora", "micro_batch": 4, "checkpointing": "full"}
MPT_7B = {"model": "mpt-7b", "method": "full", "training_precision": "amp", "stack": "mosaic", "gpu_count": 8,
          "sharding": "fsdp", "micro_batch": 8, "checkpointing": "full"}  # fmt: skip
MEGATRON = {"model": "llama-3-70b", "gpu": "h100-sxm-80gb", "stack": "te", "fp8": 1, "seq_len": 4096,
            "checkpointing": "none", "pipeline_parallel": 4}  # fmt: skip
ON_RTX_4090 = {"model": "llama-2-7b", "method": "lora", "micro_batch": 4, "gpu": "rtx-4090"}
LIGER_8B = {"model": "llama-3.1-8b", "stack": "liger", "micro_batch": 4, "seq_len": 4096}
DDP = LIGER_8B | {"method": "lora", "gpu": "a100-sxm-80gb"}
IN_BACKWARD = {"model": "llama-3.2-3b", "method": "full", "stack": "compile", "optimizer": "adamw8bit_inbwd",
               "gpu": "a100-sxm-80gb", "micro_batch": 2, "seq_len": 4096}  # fmt: skip
MILLION = {"model": "qwen3-8b", "gpu_count": 8, "method": "full", "sharding": "fsdp", "context_parallel": 8,
           "seq_len": 1048576, "loss_kernel": "liger", "offload": "act", "stack": "hf"}  # fmt: skip
TITAN = {"model": "llama-3-8b", "gpu": "h100-sxm-80gb", "gpu_count": 8, "method": "pretrain",
         "stack": "compile",
         "sharding": "fsdp", "seq_len": 8192, "checkpointing": "sac", "loss_kernel": "titan"}  # fmt: skip
GRANITE = {"model": "granite-3.0-3b-a800m", "gpu": "a100-sxm-80gb", "method": "full", "micro_batch": 8,
           "seq_len": 277, "grad_accum": 8, "stack": "hf"}  # fmt: skip
BIGSCIENCE = {"model": "mpt-1b", "gpu": "v100-sxm-16gb", "gpu_count": 8, "method": "pretrain", "stack": "te",
              "training_precision": "deepspeed_bf16", "sharding": "zero1", "flash_attention": 0,
              "micro_batch": 4, "tensor_parallel": 1}  # fmt: skip

# What was published; the figure; a run, or the two whose ratio it is; the lowest and the highest.
FIGURES: tuple[tuple[str, str, Row, Row | None, float, float], ...] = (
    ("pretraining of 7B on one stack", SPEED, MPT_7B | {"gpu": "h100-sxm-80gb"},
     MPT_7B | {"gpu": "a100-sxm-80gb"}, 0.95 * 2.06, 1.05 * 2.52),
    ("LoRA of 7B on consumer cards", SPEED, ON_RTX_4090, ON_RTX_4090 | {"gpu": "rtx-3090"}, 1.52, 2.31),
    ("torchao: an MI300X to an H100", SPEED, LORA_8B | {"gpu": "mi300x"}, LORA_8B | {"gpu": "h100-sxm-80gb"},
     0.82, 1.21),
    ("LoRA to full on fused stacks: 1.10 to 1.17", SPEED, DDP | {"checkpointing": "full"},
     DDP | {"method": "full"}, 1.07, 1.28),
    ("LoRA on 8 GPUs to full on 32, Megatron: 1.55 to 1.61", SPEED,
     MEGATRON | {"method": "lora", "gpu_count": 8, "tensor_parallel": 2, "grad_accum": 32},
     MEGATRON | {"method": "full", "gpu_count": 32, "tensor_parallel": 4, "grad_accum": 16}, 1.4, 1.75),
    ("checkpointing costs 24 to 46%", SPEED, IN_BACKWARD | {"checkpointing": "none"}, IN_BACKWARD, 1.24,
     1.46),
    ("checkpointing saves 24 to 60%", "memory_gib", IN_BACKWARD, IN_BACKWARD | {"checkpointing": "none"},
     0.4, 0.76),
    ("TRL's million tokens: 606 s, with cuDNN 373 s", SPEED,
     MILLION | {"gpu": "h100-sxm-80gb", "flash_attention": 2}, MILLION | {"gpu": "h100-sxm-80gb"},
     0.8 * 606 / 373, 1.2 * 606 / 373),
    ("cuDNN's attention on the card that FlashAttention was made for", SPEED,
     MILLION | {"gpu": "a100-sxm-80gb", "flash_attention": 2}, MILLION | {"gpu": "a100-sxm-80gb"}, 1.0, 1.25),
    ("torchao: fp8 under torch.compile", SPEED, TITAN | {"fp8": 1}, TITAN, 1.05, 1.3),
    ("IBM's Granite on two GPUs to one: 1840 to 1951", SPEED, GRANITE | {"gpu_count": 2, "sharding": "fsdp"},
     GRANITE, 0.92 * 1840 / 1951, 1.08 * 1840 / 1951),
    ("BigScience's 8 stages to none: 3745 to 4681", SPEED,
     BIGSCIENCE | {"pipeline_parallel": 8, "grad_accum": 128}, BIGSCIENCE | {"grad_accum": 16}, 0.7, 0.97),
    ("AMD's default recipes gain less from engines than NVIDIA's", SPEED,
     DDP | {"gpu": "mi300x", "stack": "te"},
     DDP | {"gpu": "mi300x"}, 1.3, 3.0),
)  # fmt: skip


def test_published_figures_come_out_of_the_model(model: duckdb.DuckDBPyConnection) -> None:
    runs = {tuple(sorted(run.items())): run for _, _, *pair, _, _ in FIGURES for run in pair if run}
    memory = answers(model, "memory_of", list(runs.values()))
    speed = answers(model, "speed_of", list(runs.values()))
    figures = {key: one | other for key, one, other in zip(runs, memory, speed, strict=True)}
    wrong = []
    for what, name, run, other, low, high in FIGURES:
        value = figures[tuple(sorted(run.items()))][name]
        if other is not None:
            value /= figures[tuple(sorted(other.items()))][name]
        if not low <= value <= high:
            wrong.append(f"{what}: {value:.4g} is not from {low:.4g} to {high:.4g}")
    assert wrong == []


LLAMA_3_8B = {"model": "llama-3-8b", "gpu": "a100-sxm-80gb"}
PARAMS, LINEAR, VOCAB = 8_030_261_248, 6_979_321_856, 128_256
BY_HAND: tuple[tuple[Row, str, float], ...] = (
    # Rank 16 on queries and values of 32 layers, in 4 bytes.
    (LLAMA_3_8B | {"lora_targets": "q_proj+v_proj"}, "adapter_gib", 16 * 32 * (8192 + 5120) * 4),
    (LLAMA_3_8B | {"lora_targets": "q_proj+v_proj"}, "optimizer_gib", 16 * 32 * (8192 + 5120) * 8),
    # Embeddings and head are not quantized.
    (LLAMA_3_8B | {"method": "qlora", "kbit_upcast": 0}, "weights_gib",
     LINEAR * 0.5625 + (PARAMS - LINEAR) * 2),
)  # fmt: skip


def test_terms_follow_by_hand_from_the_shape_of_a_model(model: duckdb.DuckDBPyConnection) -> None:
    """To a thousandth, which is how well the traces of many models tell the bytes of each."""
    found = answers(model, "memory_of", [run for run, _, _ in BY_HAND])
    wrong = [
        f"{run}: {name} is {row[name] * GIB:,.0f} bytes, not {expected:,.0f}"
        for row, (run, name, expected) in zip(found, BY_HAND, strict=True)
        if row[name] * GIB != pytest.approx(expected, rel=1e-3)
    ]
    assert wrong == []
