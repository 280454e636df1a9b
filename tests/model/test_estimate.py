import csv
import io
import math
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.contracts.errors import GpufareError
from pipeline.model.estimate import OUTPUT_COLUMNS, EstimateError, Estimator, estimate_file
from pipeline.model.frameworks import find_framework
from pipeline.model.model_names import Architecture, RunError, Size, find_model
from pipeline.model.published_runs import lora_targets_of, read_published


@pytest.fixture(scope="module")
def estimator() -> Iterator[Estimator]:
    estimator = Estimator()
    yield estimator
    estimator.close()


RUN_HEADER = (
    "run_id,source,model,gpu,gpu_count,method,quantization,kbit_upcast,lora_rank,lora_targets,adapter_bytes,training_precision,"
    "weight_bytes,optimizer,sharding,micro_batch,seq_len,grad_accum,checkpointing,flash_attention,stack,loss_kernel,offload,memory_metric"
)
PUBLISHED_HEADER = (
    "id,source,source_url_or_repo_path,date,model,params_b,active_params_b,method,lora_rank,lora_targets,quant_bits,gpu,gpu_count,nodes,"
    "interconnect,seq_len,micro_batch_per_gpu,grad_accum_or_global_batch,precision,optimizer,grad_checkpointing,flash_attention,framework,"
    "parallelism,notes,memory_kind"
)


def _estimate(tmp_path: Path, text: str) -> list[dict[str, str]]:
    file = tmp_path / "runs.csv"
    file.write_text(text, encoding="utf-8")
    return _estimated(file)


def _estimated(file: Path) -> list[dict[str, str]]:
    with closing(Estimator()) as estimator:
        return estimate_file(estimator, file)


def test_run_is_estimated_and_bad_row_has_its_reason(tmp_path: Path) -> None:
    rows = _estimate(
        tmp_path,
        RUN_HEADER + "\n"
        "good,me,llama-3-8b,a100-sxm-80gb,1,full,none,0,0,,4,bf16,2,adamw,none,4,4096,1,full,1,liger,liger,,alloc\n"
        "model,me,no-such-model,a100-sxm-80gb,1,full,none,0,0,,4,bf16,2,adamw,none,4,4096,1,full,1,liger,liger,,alloc\n"
        "gpu,me,llama-3-8b,voodoo-2,1,full,none,0,0,,4,bf16,2,adamw,none,4,4096,1,full,1,liger,liger,,alloc\n"
        "text,me,llama-3-8b,a100-sxm-80gb,1,full,none,0,0,,4,bf16,2,adamw,none,four,4096,1,full,1,liger,liger,,alloc\n"
        "zero,me,llama-3-8b,a100-sxm-80gb,0,full,none,0,0,,4,bf16,2,adamw,none,4,4096,1,full,1,liger,liger,,alloc\n"
        "method,me,llama-3-8b,a100-sxm-80gb,1,dance,none,0,0,,4,bf16,2,adamw,none,4,4096,1,full,1,liger,liger,,alloc\n"
        "short,me\n"
        "open,me,llama-3-8b,a100-sxm-80gb,,lora,,,,,,,,,,,,,,,,,,\n",
    )
    by_id = {row["run_id"]: row for row in rows}
    assert [row["run_id"] for row in rows] == [
        "good",
        "model",
        "gpu",
        "text",
        "zero",
        "method",
        "short",
        "open",
    ]
    assert tuple(rows[0]) == OUTPUT_COLUMNS
    assert float(by_id["good"]["memory_gib"]) == pytest.approx(74.8, rel=0.02)
    assert by_id["good"]["error"] == ""
    assert by_id["good"]["assumptions"] == ""
    assert "no-such-model" in by_id["model"]["error"]
    assert "voodoo-2" in by_id["gpu"]["error"]
    assert by_id["text"]["error"] == "micro_batch: 'four' is not a number"
    assert by_id["zero"]["error"] == "gpu_count: 0 is not a positive number"
    assert "dance" in by_id["method"]["error"]
    assert by_id["short"]["error"]
    assert float(by_id["open"]["memory_gib"]) > 15
    assert by_id["open"]["fits"] == "true"
    for said in ("micro_batch: 1", "seq_len: 2048", "lora_rank: 16", "stack: hf", "checkpointing: full"):
        assert said in by_id["open"]["assumptions"]


def test_speed_layout_and_bands(tmp_path: Path) -> None:
    (row,) = _estimate(
        tmp_path,
        "run_id,source,model,gpu,gpu_count,node_count,node_network_gbps,method,quantization,kbit_upcast,lora_rank,lora_targets,"
        "training_precision,fp8,optimizer,sharding,tensor_parallel,pipeline_parallel,micro_batch,seq_len,grad_accum,checkpointing,"
        "flash_attention,stack,offload\n"
        "x,me,mpt-7b,h100-sxm-80gb,8,1,3200,full,none,0,0,,amp,0,adamw,fsdp,1,1,8,2048,1,full,1,mosaic,\n",
    )
    low, middle, high = (float(row[f"tokens_per_second_per_gpu{end}"]) for end in ("_low", "", "_high"))
    assert low < middle < high
    assert 8000 < middle < 14000


def test_published_layout_names_gpus_models_and_frameworks_in_free_text(tmp_path: Path) -> None:
    rows = _estimate(
        tmp_path,
        PUBLISHED_HEADER + "\n"
        "a,MLPerf Training v9.9 (Somebody),x,2026,Llama-2-70B,68.977,68.977,lora,16,attention qkv+proj,,NVIDIA H100 SXM 80GB,8,1,NVLink,8192,1,"  # noqa: E501
        "global=8 seqs; GA=4,fp8,AdamW,unknown,yes,NeMo,,config X_1x8x4xtp4pp1cp1,\n"
        "b,Some blog,x,2026,NoSuch-9B,9.1,9.1,qlora,16,q_proj+v_proj,4,NVIDIA RTX 4090,1,1,,2048,2,GA=4,bf16,paged_adamw_8bit,yes,yes,Unsloth,single,,"  # noqa: E501
        "torch max_memory_reserved (GiB)\n"
        "c,Some blog,x,2026,NoSuch,,,qlora,16,,4,NVIDIA RTX 4090,1,1,,2048,2,GA=4,bf16,,yes,yes,Unsloth,single,,\n"  # noqa: E501
        "d,Some blog,x,2026,Llama-3.1-8B,8,8,lora,16,,,NVIDIA A100 80GB (unspecified),,1,,2048,2,,bf16,,unknown,unknown,HF TRL,,,\n"  # noqa: E501
        "e,Some blog,x,2026,Llama-3.1-8B,8,8,unspecified,,,,NVIDIA RTX 4090,1,1,,2048,2,,bf16,,yes,yes,HF,,,\n",  # noqa: E501
    )
    by_id = {row["run_id"]: row for row in rows}
    assert 1700 < float(by_id["a"]["tokens_per_second_per_gpu"]) < 2500
    assert "'NoSuch-9B' is not in the catalogue" in by_id["b"]["assumptions"]
    assert 5 < float(by_id["b"]["memory_gib"]) < 20
    assert "its size is not given" in by_id["c"]["error"]
    assert "taken as a100-sxm-80gb" in by_id["d"]["assumptions"]
    assert "gpu_count: 1" in by_id["d"]["assumptions"]
    assert "method 'unspecified'" in by_id["e"]["error"]


def test_file_without_runs_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(EstimateError, match="no columns model and gpu"):
        _estimated(file)
    with pytest.raises(GpufareError, match="cannot be read"):
        _estimated(tmp_path / "missing.csv")


def test_rows_do_not_influence_each_other() -> None:
    text = (
        RUN_HEADER
        + "\n"
        + "".join(
            f"r{i},me,llama-3-8b,{gpu},1,lora,none,0,16,q_proj,4,bf16,2,adamw,none,{1 + i},1024,1,full,1,hf,hf,,smi\n"  # noqa: E501
            for i, gpu in enumerate(("t4", "rtx-4090", "h100-sxm-80gb"))
        )
    )
    rows = list(csv.DictReader(io.StringIO(text)))
    estimator = Estimator()
    together = estimator.estimate(rows, list(rows[0]))
    alone = [estimator.estimate([row], list(row))[0] for row in rows]
    estimator.close()
    assert together == alone


@pytest.mark.parametrize(
    ("framework", "source", "stack"),
    [
        ("PyTorch", "MLPerf Training v5.0 (X)", "te"),
        ("NGC PyTorch Deepspeed", "MLPerf Training v4.0 (X)", "hf"),
    ],
)
def test_entries_of_mlperf_run_fused_engines(framework: str, source: str, stack: str) -> None:
    found = find_framework(framework, source)
    assert found is not None
    assert found.stack == stack


@pytest.mark.parametrize(
    ("name", "params_b", "model"),
    [
        ("Llama-3.1-70B", None, "llama-3.1-70b"), ("MPT-70b", 64.9, "mpt-70b"), ("Mistral-7B", 7.24, "mistral-7b"),  # noqa: E501
        ("Llama-4-Scout-109B-A17B", 108.6, "llama-4-scout"), ("Llama-3.3-70B-Instruct", 70.6, "llama-3.3-70b"), ("santacoder-1.1B", 1.1, "santacoder"),  # noqa: E501
    ],
)  # fmt: skip
def test_model_of_a_name(name: str, params_b: float | None, model: str) -> None:
    sizes = {
        "llama-3.1-70b": 70.55e9,
        "mpt-70b": 64.84e9,
        "mistral-7b": 7.24e9,
        "llama-4-scout": 107.8e9,
        "llama-3.3-70b": 70.55e9,
        "santacoder": 1.12e9,
    }
    known = {name: Architecture(name, size) for name, size in sizes.items()}
    assert find_model(name, params_b, known) == (model, None)


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("q_proj+v_proj", "q_proj+v_proj"),
        ("c_attn, attn.c_proj, w1, w2", "qkv_fused+o_proj+gate_proj+down_proj"),
        ("query_key_value", "qkv_fused"),
        ("q_proj+mystery", None),
        ("", None),
    ],
)
def test_lora_targets_under_their_many_names(text: str, targets: str | None) -> None:
    assert lora_targets_of(text) == targets


def test_parallelism_in_free_text() -> None:
    row = {
        "id": "x", "source": "docs", "model": "llama-3-70b", "method": "pretrain", "gpu": "h100-sxm-80gb", "gpu_count": "64", "seq_len": "8192",  # noqa: E501
        "micro_batch_per_gpu": "1", "grad_accum_or_global_batch": "global=128 seqs", "precision": "fp8", "framework": "NeMo/Megatron-Core",  # noqa: E501
        "parallelism": "tp4 pp4 cp2 vp5", "interconnect": "NVLINK | Compute: 8x ConnectX-7 IB NDR 400Gb/s", "memory_kind": "",  # noqa: E501
    }  # fmt: skip
    read = read_published(row, {"llama-3-70b": Architecture("llama-3-70b", 70.55e9)}, lambda label, _: label)
    assert read.settings["tensor_parallel"] == 4
    assert read.settings["context_parallel"] == 2
    assert read.settings["pipeline_parallel"] == 4
    assert read.settings["grad_accum"] == 64
    assert read.settings["node_network_gbps"] == 3200
    assert read.settings["fp8"] == 1
    with pytest.raises(RunError, match="gpu_count"):
        read_published(
            {**row, "gpu_count": "-1"},
            {"llama-3-70b": Architecture("llama-3-70b", 70.55e9)},
            lambda label, _: label,
        )


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


def test_a_bad_row_never_stops_a_file(tmp_path: Path) -> None:
    rng = random.Random(14)
    good = [
        {"run_id": f"good {i}", "model": model, "gpu": gpu, "gpu_count": "1", "method": method}
        for i, (model, gpu, method) in enumerate(
            (model, gpu, method)
            for model in ("llama-3-8b", "qwen3-30b-a3b", "NoSuch-31B")
            for gpu in ("h100-sxm-80gb", "rtx-4090")
            for method in ("full", "lora", "qlora")
        )
    ]
    rows = list(good)
    for i in range(150):
        row = dict(rng.choice(good), run_id=f"bad {i}")
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
        return {row["run_id"]: row for row in _estimated(file)}

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


@pytest.mark.slow
def test_free_text_never_stops_a_file(estimator: Estimator) -> None:
    rng = random.Random(3)
    columns = PUBLISHED_HEADER.split(",")
    good = dict.fromkeys(columns, "") | {
        "id": "good", "model": "Llama-3.1-8B", "method": "lora", "gpu": "NVIDIA A100 80GB", "gpu_count": "1",
        "seq_len": "2048", "micro_batch_per_gpu": "1", "framework": "HF TRL", "precision": "bf16",
    }  # fmt: skip
    rows = [good]
    for i in range(200):
        row = good | {"id": str(i)}
        for column in rng.sample(columns[1:], rng.randint(1, 4)):
            row[column] = rng.choice(FREE_TEXT)
        rows.append(row)
    answers = estimator.estimate([*rows, good], columns)
    assert answers[0] == answers[-1] == estimator.estimate([good], columns)[0]
    assert all(bool(row["error"]) != bool(row["memory_gib"]) for row in answers)


def test_groups_that_gpus_cannot_form_are_refused(estimator: Estimator) -> None:
    good = {"run_id": "a", "model": "llama-3-8b", "gpu": "t4", "gpu_count": "8", "method": "lora"}
    changes: list[dict[str, str]] = [
        {},
        {"node_count": "3"},
        {"pipeline_parallel": "8"},
        {"expert_parallel": "2"},
    ]
    rows = [
        dict.fromkeys({*good, *changes[1], *changes[2], *changes[3]}, "") | good | more for more in changes
    ]
    answers = estimator.estimate(rows, list(rows[0]))
    assert answers[0] == estimator.estimate(rows[:1], list(rows[0]))[0]
    assert [row["error"] for row in answers] == [
        "", "node_count: 8 GPUs are not spread evenly over 3 nodes", "",
        "expert_parallel: 2 ranks, but the model has 1 expert: it is dense",
    ]  # fmt: skip


def test_rows_with_which_the_model_fails_do_not_stop_the_others() -> None:
    with closing(Estimator()) as estimator:
        estimator.connection.execute(
            "CREATE OR REPLACE MACRO adapted_sides(target, hidden, query, key_value, width, mlps, fused) "
            "AS CASE WHEN hidden = 3072 THEN error('the model\x1b failed') ELSE [hidden, width] END"
        )
        names = ["llama-3-8b", "llama-3.2-3b", "llama-3.2-3b"]
        rows = [
            {"run_id": str(i), "model": name, "gpu": "t4", "method": "lora"} for i, name in enumerate(names)
        ]
        answers = estimator.estimate(rows, list(rows[0]))
        (alone,) = estimator.estimate(rows[:1], list(rows[0]))
    assert answers[0] == alone
    assert [bool(row["memory_gib"]) for row in answers] == [True, False, False]
    assert "the model cannot be evaluated: Invalid Input Error: the model\ufffd failed" in answers[1]["error"]


def test_a_damaged_row_is_its_own_error(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_bytes(
        b"run_id,model,gpu,method\n"
        b"good,llama-3-8b,t4,lora\nbytes,llama-3-\xff8b,t4,lora\nlong,llama-3-8b,t4,lora,more,,\n"
    )
    good, unreadable, long = _estimated(file)
    assert not good["error"]
    assert unreadable["error"] == "line 3: it has bytes that are not UTF-8"
    assert long["error"] == "line 4: it has 7 values for 4 columns"


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("somebody/new-31b", 31, 31),
        ("new-48b-a3b", 48, 3),
        ("New-397B-A17B", 397, 17),
        ("new-1t-a32b", 1000, 32),
        ("new-700m", 0.7, 0.7),
        ("new-8x7b", 46.7, 12.9),
        ("new-8x22b", 140.6, 39.2),
    ],
)
def test_size_of_an_unknown_model(estimator: Estimator, name: str, total: float, active: float) -> None:
    like, size = find_model(name, None, estimator.models)
    assert size is not None
    assert (size.params_b, size.active_b) == pytest.approx((total, active), rel=0.05)
    assert (estimator.models[like].experts > 1) == (active < total)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("new", "its size is not given"),
        ("new-e4b", "its size is not given"),
        ("new-17b-16e", "its size is not given"),
        ("qwen3", "say which"),
        ("new-99999b", "not the size of a language model"),
        ("new-3b-a30b", ""),
    ],
)
def test_a_model_of_unknown_size_is_refused(estimator: Estimator, name: str, words: str) -> None:
    if words:
        with pytest.raises(RunError, match=words):
            find_model(name, None, estimator.models)
    else:
        assert find_model(name, None, estimator.models)[1] == Size(3, 3)


def test_no_size_of_a_family_is_mistaken_for_another(estimator: Estimator) -> None:
    assert find_model("Qwen/Qwen3-30B-A3B", None, estimator.models) == ("qwen3-30b-a3b", None)
    assert find_model("meta-llama/Llama-4-Scout-17B-16E", None, estimator.models) == ("llama-4-scout", None)
    like, size = find_model("qwen3-77b", None, estimator.models)
    assert size == Size(77, 77)
    assert estimator.models[like].experts == 1


def test_a_likeness_is_extrapolated_and_its_bands_are_doubled(estimator: Estimator) -> None:
    run = {"gpu": "h100-sxm-80gb", "method": "qlora", "micro_batch": "8"}
    rows = [{"model": "llama-3-8b", **run}, {"model": "NoSuch-8.03b", **run}, {"model": "no-35b-a3b", **run}]
    known, dense, mixture = estimator.estimate(rows, list(rows[0]))
    for quantity in ("memory_gib", "tokens_per_second_per_gpu"):
        assert float(dense[quantity]) == pytest.approx(float(known[quantity]), rel=0.05)
        for end in ("_low", "_high"):
            band, wide = (
                abs(math.log(float(row[quantity + end]) / float(row[quantity]))) for row in (known, dense)
            )
            assert wide > 1.99 * band
    assert "extrapolated" in dense["assumptions"]
    # 3B of 35B active: faster than a dense 34B though a loop goes through the experts, in little less memory.
    (slow,) = estimator.estimate([{"model": "no-35b", **run}], list(rows[0]))
    assert "shaped like qwen3-30b-a3b scaled to 35B, 3B active" in mixture["assumptions"]
    assert float(mixture["tokens_per_second_per_gpu"]) > 1.1 * float(slow["tokens_per_second_per_gpu"])
    assert float(mixture["memory_gib"]) > 17


def test_row_states_once_its_distance_from_published_runs(estimator: Estimator) -> None:
    rows = [
        {"model": "llama-3-8b", "method": "full", "gpu": "a100-sxm-80gb"},
        {"model": "llama-3-8b", "method": "full", "gpu": "l40s"},
        {"model": "deepseek-v3", "method": "lora", "gpu": "l40s"},
    ]
    near, half, far = (answer["assumptions"] for answer in estimator.estimate(rows, list(rows[0])))
    assert "far from" not in near
    assert half.endswith("; speed: far from any published run")
    assert far.endswith("; far from any published run")
    assert far.count("far from") == half.count("far from") == 1


def test_parts_of_a_run_that_do_not_go_together_are_refused(estimator: Estimator) -> None:
    row = {"model": "llama-3-8b", "gpu": "t4", "method": "lora", "gpu_count": "2", "tensor_parallel": "8"}
    (answer,) = estimator.estimate([row], list(row))
    assert answer["error"] == "tensor_parallel 8: does not divide gpu_count 2"


def test_a_framework_that_is_not_known_has_bands_twice_as_wide(estimator: Estimator) -> None:
    row = {
        "id": "x", "source": "docs", "model": "llama-3-8b", "method": "lora", "gpu": "h100-sxm-80gb",
        "gpu_count": "1", "micro_batch_per_gpu": "1", "seq_len": "2048", "parallelism": "single",
        "precision": "bf16",
        "grad_checkpointing": "yes", "flash_attention": "yes", "framework": "",
    }  # fmt: skip
    known, unknown = estimator.estimate(
        [row | {"framework": name} for name in ("TRL", "Homegrown")], list(row)
    )
    for name in ("memory_gib", "tokens_per_second_per_gpu"):
        assert known[name] == unknown[name]
        for side in ("low", "high"):
            near, far = (
                math.log(float(each[f"{name}_{side}"]) / float(each[name])) for each in (known, unknown)
            )
            assert abs(far) >= 2 * abs(near) - 1e-3
    assert "'Homegrown' is not known" in unknown["assumptions"]


RUN = {"model": "llama-3-8b", "gpu": "h100-sxm-80gb", "method": "lora"}


def _answer(estimator: Estimator, **columns: str) -> dict[str, str]:
    row = RUN | columns
    (answer,) = estimator.estimate([row], list(row))
    return answer


@pytest.mark.parametrize(
    "label",
    [
        "h100-sxm-80gb MIG 1g.10gb", "A100-SXM4-40GB MIG 1g.5gb", "0.5x H100 SXM", "1/2 H100 SXM",
        "H100 SXM fraction 0.5", "half an H100 SXM", "vGPU A40-8Q", "0.25 A100 80GB SXM",
        "50% of an H100 SXM", "H100 SXM (time-sliced)",
    ],
)  # fmt: skip
def test_a_part_of_a_card_is_refused(estimator: Estimator, label: str) -> None:
    assert "is a part of a card: only whole cards are estimated" in _answer(estimator, gpu=label)["error"]


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("H100 SXM (power capped 400W)", "gpu: the cap of 400 W is not modelled, estimated at 700 W"),
        ("RTX 3090 @ 250W", "gpu: the cap of 250 W is not modelled, estimated at 350 W"),
        ("RTX 3090 power limited", "gpu: the power cap is not modelled, estimated at 350 W"),
        ("H100 PCIe 350W", ""),
        ("NVIDIA H100 SXM 80GB", ""),
    ],
)
def test_a_power_cap_is_an_assumption(estimator: Estimator, label: str, said: str) -> None:
    answer = _answer(estimator, gpu=label)
    assert answer["error"] == ""
    assert said in answer["assumptions"]
    assert ("gpu:" in answer["assumptions"]) == bool(said)


@pytest.mark.parametrize("method", ["QLoRA", "LORA", " full "])
def test_a_method_is_read_in_any_case(estimator: Estimator, method: str) -> None:
    given, plain = (_answer(estimator, method=each) for each in (method, method.strip().lower()))
    assert given == plain
    assert given["memory_gib"]


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"loss_kernel": "lgier"}, "loss_kernel: 'lgier' is not one of"),
        ({"gpu": "a100-sxm-80gb", "fp8": "1"}, "fp8: a100-sxm-80gb has no fp8"),
        ({"fp8": "2"}, "fp8: h100-sxm-80gb has no fp4"),
        (
            {"method": "full", "quantization": "nf4"},
            "quantization: nf4 goes with method qlora, not with full",
        ),
        ({"quantization": "int8"}, "goes with method qlora, not with lora"),
        ({"method": "qlora", "quantization": "none"}, "quantization: none with method qlora"),
        ({"gpu_count": "8", "sharding": "none"}, "sharding: none on 8 GPUs"),
    ],
)
def test_settings_that_would_be_ignored_are_refused(
    estimator: Estimator, columns: dict[str, str], error: str
) -> None:
    assert error in _answer(estimator, **columns)["error"]


def test_a_model_split_over_all_gpus_needs_no_sharding(estimator: Estimator) -> None:
    split = {"gpu_count": "8", "tensor_parallel": "8", "sharding": "none", "stack": "te"}
    assert _answer(estimator, **split)["error"] == ""


def test_bf16_on_a_card_without_it_is_an_assumption(estimator: Estimator) -> None:
    emulated = "training_precision: bf16, which v100-sxm-16gb only emulates"
    assert emulated in _answer(estimator, gpu="v100-sxm-16gb")["assumptions"]
    assert emulated in _answer(estimator, gpu="v100-sxm-16gb", training_precision="bf16")["assumptions"]
    assert "emulates" not in _answer(estimator, gpu="v100-sxm-16gb", training_precision="fp16")["assumptions"]
    assert "emulates" not in _answer(estimator)["assumptions"]


def test_misspelt_columns_are_named(estimator: Estimator) -> None:
    answer = _answer(estimator, gpus="8", batch_size="16", lora_r="256", source="me", note="")
    assert answer["assumptions"].endswith("; ignored columns: gpus, batch_size, lora_r, note")
    published = dict.fromkeys(PUBLISHED_HEADER.split(","), "") | {"micro_batch": "2", "batch_size": "16"}
    (answer,) = estimator.estimate([published], list(published))
    assert answer["assumptions"] == "ignored columns: batch_size"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("model,gpu,method\n".encode("utf-16"), "is UTF-16: save it as CSV in UTF-8"),
        ("model,gpu,method\n".encode("utf-16-le"), "is UTF-16"),
        (b"model,gpu,method,Model\n", "has the column 'model' more than once"),
        (b'"model,gpu\nx,y\n', "line 1"),
        (b"", "no columns model and gpu"),
    ],
)
def test_the_error_names_the_form_of_another_file(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "runs.csv"
    file.write_bytes(content)
    with pytest.raises(GpufareError, match=reason):
        _estimated(file)


def test_a_file_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    (answer,) = _estimate(tmp_path, "run_id;model;gpu;method\r\nx;llama-3-8b;t4;lora\r\n")
    assert (answer["run_id"], answer["error"]) == ("x", "")


def test_columns_are_read_in_any_case(tmp_path: Path) -> None:
    (answer,) = _estimate(tmp_path, "Run_ID, Model,GPU,method\nx,llama-3-8b,t4,lora\n")
    assert (answer["run_id"], answer["error"]) == ("x", "")


def test_an_unclosed_quote_is_its_lines_error(tmp_path: Path) -> None:
    answers = _estimate(
        tmp_path,
        "run_id,model,gpu,method,source\n"
        'a,llama-3-8b,t4,lora,"two\nlines"\n'
        'b,"llama-3-8b,t4,lora,me\n'
        "c,llama-3-8b,t4,lora,me\n"
        'd,llama-3-8b,t4,"lora"x,me\n'
        'e,llama-3-8b,t4,lora,"me"\n',
    )
    assert [row["run_id"] for row in answers] == ["a", "b", "c", "d", "e"]
    assert [row["error"] for row in answers] == [
        "", "line 4: a quote is not closed", "",
        "line 6: not CSV (',' expected after '\"')", "",
    ]  # fmt: skip
    assert all(answers[place]["memory_gib"] for place in (0, 2, 4))


def test_cells_are_safe_to_print_and_to_open_in_a_spreadsheet(tmp_path: Path) -> None:
    answers = _estimate(
        tmp_path,
        "run_id,model,gpu,method\n=cmd|' /C calc'!A0,llama-3-8b,t4,lora\n"
        "\x1b[31mred,llama-3-8b,\x1b[2J,lora\n",
    )
    assert [row["run_id"] for row in answers] == ["'=cmd|' /C calc'!A0", "\ufffd[31mred"]
    assert answers[1]["error"] == "gpu '\ufffd[2J' is not one card of the catalogue"


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", "qwen2.5-7b"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "qwen2.5-7b"),
        ("DeepSeek-R1-Distill-Qwen-14B", "qwen2.5-14b"),
        ("DeepSeek-R1-Distill-Llama-8B", "llama-3.1-8b"),
        ("DeepSeek-R1-0528-Qwen3-8B", "qwen3-8b"),
        ("llama-3.1-9b", "llama-3.1-8b"),
        ("qwen2-7b", "qwen2.5-7b"),
        ("qwen3.5-10b", "qwen3.5-9b"),
        ("nous-mixtral-8x10b", "mixtral-8x7b"),
        ("gemma-9b", "gemma-7b"),
        ("deepseek-67b", "llama-65b"),
        ("weird-49b", "llama-65b"),
        ("weird-7b", "mistral-7b-v0.3"),
        ("weird-35b-a3b", "qwen3-30b-a3b"),
    ],
)
def test_a_likeness_is_of_the_family_or_plain(estimator: Estimator, name: str, like: str) -> None:
    assert find_model(name, None, estimator.models)[0] == like


@pytest.mark.parametrize(
    "name",
    [
        "flux-12b", "black-forest-labs/FLUX.1-dev-12b", "mamba-2.8b", "falcon-mamba-7b", "sdxl-2.6b",
        "whisper-1.5b", "stable-diffusion-3.5-8b", "Qwen-Image-20B", "rwkv-7-3b", "jamba-52b-a12b",
        "flan-t5-11b", "ModernBERT-0.4b", "Wan2.2-T2V-14B",
    ],
)  # fmt: skip
def test_a_model_that_is_not_a_decoder_of_text_is_refused(estimator: Estimator, name: str) -> None:
    with pytest.raises(RunError, match="no attention-based language model is like"):
        find_model(name, None, estimator.models)
