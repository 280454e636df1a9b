"""Rows of nonsense, drawn at random: each has an estimate or a reason, and changes no other row."""

import csv
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from pipeline.model.estimate import Estimator, estimate_file


@pytest.fixture(scope="module")
def estimator() -> Iterator[Estimator]:
    estimator = Estimator()
    yield estimator
    estimator.close()


METHODS = ("full", "lora", "qlora")
COLUMNS = """id source source_url_or_repo_path date model params_b active_params_b method lora_rank
    lora_targets quant_bits gpu gpu_count nodes interconnect seq_len micro_batch_per_gpu
    grad_accum_or_global_batch precision optimizer grad_checkpointing flash_attention framework parallelism
    notes memory_kind"""
NONSENSE = {
    "model": ("", "foo", "30b-a3b", "e4b", "x" * 5000, "\x00", "1e99b", "0b"),
    "gpu": ("", "voodoo-2", "8x", "\x1b[31m"),
    "gpu_count": ("0", "-1", "0.5", "nan", "inf", "1e300", "many"),
    "method": ("", "dance", "LORA"),
    "quantization": ("nf5", "0"),
    "lora_targets": ("lm_head", "mystery", "q_proj+", "q_proj,v_proj", "+", "lm_head+lm_head", "'; DROP x"),
    "lora_rank": ("-16", "1e12", "0", "sixteen"),
    "micro_batch": ("1e-300", "0", "1e300", "99999999999999999999", "0x10"),
    "seq_len": ("1e8", "2048.5", "-1"),
    "optimizer": ("magic", "'"),
    "sharding": ("zero9",),
    "checkpointing": ("some",),
    "flash_attention": ("0.5", "3"),
    "stack": ("jax",),
    "offload": ("disk",),
    "params_b": ("1e300", "0", "-7", "1e-9"),
}  # fmt: skip


def test_a_bad_row_never_stops_a_file(estimator: Estimator, tmp_path: Path) -> None:
    rng = random.Random(14)
    every = product(("llama-3-8b", "qwen3-30b-a3b", "NoSuch-31B"), ("h100-sxm-80gb", "rtx-4090"), METHODS)
    good = [
        {"run_id": f"good {i}", "model": model, "gpu": gpu, "gpu_count": "1", "method": method}
        for i, (model, gpu, method) in enumerate(every)
    ]
    rows = list(good)
    for i in range(150):
        row = rng.choice(good) | {"run_id": f"bad {i}"}
        for column in rng.sample(sorted(NONSENSE), rng.randint(1, 4)):
            row[column] = rng.choice(NONSENSE[column])
        rows.insert(rng.randint(0, len(rows)), row)
    header = ["run_id", *NONSENSE]

    def answers(name: str, asked: list[dict[str, str]]) -> dict[str, dict[str, str]]:
        file = tmp_path / name
        with file.open("w", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, header)
            writer.writeheader()
            writer.writerows(asked)
        return {row["run_id"]: row for row in estimate_file(estimator, file)}

    mixed = answers("mixed.csv", rows)
    assert list(mixed) == [row["run_id"] for row in rows]
    assert {name: row for name, row in mixed.items() if name.startswith("good")} == answers("good.csv", good)
    assert all(bool(row["error"]) != bool(row["memory_gib"]) for row in mixed.values())
    refused = [row["error"] for row in mixed.values() if row["error"]]
    assert len(refused) > 100
    assert all(len(error) < 1000 for error in refused)


FREE_TEXT = (
    "", "foo", "0", "-1", "1e300", "nan", "tp0 pp0", "tp99999999999999999999", "GA=0", "global=0 seqs", "dp0",
    "GA=99999999999999999999999", "zero-9", "8 x", "8", "q_proj+lm_head", "lm_head", "'; DROP x", "\x1b[31m",
    "fp8", "nvfp4", "cp0 tp1", "9999999x 400Gb/s", "tp2 pp2 cp2", "qlora", "grpo", "unsloth", "zero-3",
)  # fmt: skip


def test_free_text_never_stops_a_file(estimator: Estimator) -> None:
    rng = random.Random(3)
    good = dict.fromkeys(COLUMNS.split(), "") | {
        "id": "good", "model": "Llama-3.1-8B", "method": "lora", "gpu": "NVIDIA A100 80GB", "gpu_count": "1",
        "seq_len": "2048", "micro_batch_per_gpu": "1", "framework": "HF TRL", "precision": "bf16",
    }  # fmt: skip
    bad = [
        good | {column: rng.choice(FREE_TEXT) for column in rng.sample(sorted(good), rng.randint(1, 4))}
        for _ in range(200)
    ]
    answers = estimator.estimate([good, *bad, good], list(good))
    assert answers[0] == answers[-1] == estimator.estimate([good], list(good))[0]
    assert all(bool(row["error"]) != bool(row["memory_gib"]) for row in answers)
