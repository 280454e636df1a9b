"""Free text of the published compilation, column by column."""

from pipeline.model.frameworks import find_framework, frameworks
from pipeline.model.model_names import Architecture, RunError
from pipeline.model.published_runs import lora_targets_of, read_published
from pipeline.model.run_settings import RunRow

KNOWN = {
    name: Architecture(name, size)
    for name, size in (("llama-3-8b", 8.03e9), ("llama-3.2-3b", 3.2e9), ("llama-3-70b", 70.55e9))
} | {"moe-12b-a2b": Architecture("moe-12b-a2b", 12e9, 64, 2e9)}
ROW = {
    "id": "x", "source": "docs", "model": "Llama-3-8B", "method": "full", "gpu": "h100-sxm-80gb",
    "gpu_count": "8",
    "framework": "HF TRL", "precision": "bf16", "grad_checkpointing": "no", "flash_attention": "yes",
}  # fmt: skip


def read(**columns: str) -> RunRow:
    return read_published(ROW | columns, KNOWN, lambda label, _: label)


OF_ONE_COLUMN: dict[tuple[str, str], dict[str, str | float | None]] = {
    ("parallelism", "sharding"): {"fsdp full shard": "fsdp", "deepspeed zero-3": "zero3", "zero3": "zero3",
        "zero-2": "zero2", "zero1": "ddp", "ddp": "ddp", "single gpu": "none", "": None, "HSDP": "fsdp"},
    ("framework", "sharding"): {"Something ZeRO-1": "zero1", "DeepSpeed": "zero3",
        "Megatron-DeepSpeed": None},
    ("parallelism", "offload"): {"fsdp, cpu offload": "cpu", "fsdp": None, "zero3 offload": "cpu",
        "zero3, no offload": None},
    ("grad_checkpointing", "offload"): {"yes (Unsloth CPU-offloaded)": "act",
        "yes, offloaded to CPU": "act", "yes, not offloaded": None, "unsloth": "act"},
    ("grad_checkpointing", "checkpointing"): {"yes": "full", "no": "none", "partial": "sac",
        "unknown": "none", "True": "full", "enabled": "full", "1": "full", "false": "none", "off": "none",
        "0": "none", "none": "none", "selective: core_attn": "none", "selective: mlp": "sac",
        "selective: moe_act": "none"},
    ("flash_attention", "flash_attention"): {"eager": 0, "none": 0, "False": 0, "0": 0, "true": 1, "1": 1,
        "sdpa": 1, "FA2": 1, "no": 0, "yes": 1, "unknown": 1},
    ("parallelism", "tensor_parallel"): {"tensor parallel 8": 8, "tp4": 4, "TP2 PP1 CP4": 2},
    ("method", "method"): {"QLoRA": "qlora"},
    ("notes", "method"): {"SFT, no DPO": "full"},
    ("precision", "training_precision"): {"bf16": "bf16", "fp32": "fp32", "bf16 with fp32 weights": "bf16",
        "float16": "fp16", "fp16 or bfloat16": "bf16", "bf16 autocast": "amp"},
    ("precision", "weight_bytes"): {"fp32": 4, "bf16 with fp32 weights": 4},
    ("precision", "fp8"): {"FP8": 1, "NVFP4": 2, "nf4": None},
    ("optimizer", "optimizer"): {"paged_adamw_8bit": "paged8bit", "paged_adamw_32bit": "paged32",
        "AdamW in bwd": "adamw_inbwd", "adamw_8bit": "adamw8bit", "Fused AdamW": "adamw_fused",
        "AdamW": "adamw", "": None, "PagedAdamW, optimizer in backward": "paged32_inbwd",
        "AdamW 8-bit in bwd": "adamw8bit_inbwd"},
    ("optimizer", "offload"): {"adamw (CPU)": "cpu"},
    ("memory_kind", "memory_metric"): {"torch max_memory_allocated (GiB)": "alloc",
        "torch peak (GiB)": "alloc", "torch max_memory_reserved": "reserved",
        "device_mem_reserved": "reserved", "nvidia-smi": "smi",
        "GiB in README (reserved probable)": "reserved", "nvidia-smi reserved (GiB)": "smi"},
    ("interconnect", "node_network_gbps"): {"8x ConnectX-7 IB NDR 400Gb/s": 3200,
        "2x 25GbE or 4x 100GbE": 400, "NVLink": None, "NVLink + 4x Omni-Path 100": 400},
    ("notes", "node_network_gbps"): {"1600 Gbps/node": 1600},
    ("grad_accum_or_global_batch", "grad_accum"): {"GA=4": 4, "unknown": None},
    ("parallelism", "pipeline_parallel"): {"TP2 PP4 VPP5 DP1": 4},
    ("parallelism", "context_parallel"): {"TP2 PP1 CP4": 4},
    ("parallelism", "expert_parallel"): {"TP1 EP8 DP8": 8},
    ("framework", "training_precision"): {"DeepSpeed": "deepspeed_bf16",
        "Megatron-Bridge": "deepspeed_bf16"},
    ("method", "kbit_upcast"): {"qlora": 0},
    ("notes", "tensor_parallel"): {"config X_1x8x4xtp4pp1cp1": 4},
    ("framework", "tensor_parallel"): {"NeMo": None},
    ("method", "quantization"): {"qlora": "nf4", "lora": None},
    ("gpu_count", "gpu_count"): {"": 1},
}  # fmt: skip
"""The column, the setting that its text becomes, and the values of texts."""
OF_SEVERAL: tuple[tuple[dict[str, str], str, str | float | None], ...] = (
    ({"framework": "DeepSpeed", "gpu_count": "1"}, "sharding", "none"),
    ({"grad_checkpointing": "unknown", "framework": "Axolotl"}, "checkpointing", "full"),
    ({"framework": "NeMo", "grad_accum_or_global_batch": "global=8 seqs; GA=1"}, "tensor_parallel", 1),
    ({"framework": "NeMo", "grad_accum_or_global_batch": "global=8 seqs; GA=4"}, "tensor_parallel", None),
    ({"grad_accum_or_global_batch": "global=64", "micro_batch_per_gpu": "2"}, "grad_accum", 4),
    ({"grad_accum_or_global_batch": "global=2", "micro_batch_per_gpu": "2"}, "grad_accum", 1),
    ({"parallelism": "tp4 pp4 cp2 vp5", "gpu_count": "64", "micro_batch_per_gpu": "1",
      "grad_accum_or_global_batch": "global=128 seqs"}, "grad_accum", 64),
    ({"framework": "XTuner (HF + DeepSpeed ZeRO-3)", "parallelism": "zero3 CP8"}, "context_parallel", 8),
    ({"parallelism": "tp2 dp4", "grad_accum_or_global_batch": "global=64"}, "grad_accum", 16),
    ({"parallelism": "zero3", "notes": "sequence parallel 8 (Ulysses)"}, "context_parallel", 8),
    ({"grad_accum_or_global_batch": "0.5M tokens", "seq_len": "2048"}, "grad_accum", 31),
    ({"precision": "bf16-mixed (fp32 weights)", "method": "lora"}, "autocast", 1),
    ({"framework": "ms-swift", "parallelism": "zero-3"}, "training_precision", "deepspeed_bf16"),
    ({"framework": "ms-swift", "parallelism": "DDP"}, "training_precision", "bf16"),
    *(({"gpu": "gb200", "gpu_count": gpus, "interconnect": "4x ConnectX-7 IB NDR 400Gb/s"},
       "node_network_gbps", gbps) for gpus, gbps in (("72", None), ("144", 1600))),
    ({"method": "lora", "parallelism": "DeepSpeed ZeRO-2"}, "adapter_bytes", 2),
    ({"method": "lora", "parallelism": "DeepSpeed ZeRO-2"}, "autocast", 0),
    ({"method": "qlora", "parallelism": "DeepSpeed ZeRO-2"}, "kbit_upcast", 0),
    ({"method": "qlora", "precision": "fp16"}, "kbit_upcast", None),
    ({"precision": "bf16 pure", "method": "pretrain"}, "training_precision", "bf16"),
    ({"method": "qlora", "framework": "Unsloth"}, "quantization", "nf4dq"),
    ({"method": "qlora", "notes": "GPTQ/int checkpoint"}, "quantization", "gptq"),
    ({"method": "lora", "quant_bits": "8"}, "quantization", "int8"),
    ({"method": "lora", "framework": "LitGPT"}, "lora_dropout", 0.05),
    ({"method": "full", "framework": "LitGPT"}, "lora_dropout", None),
    ({"method": "lora", "lora_targets": "q,v,o,mlp,output"}, "lora_targets",
     "q_proj+v_proj+o_proj+gate_proj+up_proj+down_proj+lm_head"),
    ({"framework": "NeMo", "gpu_count": "1"}, "tensor_parallel", 1),
    ({"framework": "NeMo", "parallelism": "fsdp"}, "tensor_parallel", 1),
    ({"method": "qlora", "framework": "FOAK GPTQ-LoRA"}, "quantization", "gptq"),
    ({"method": "full", "lora_rank": "32"}, "lora_rank", None),
    ({"method": "lora", "lora_rank": "32"}, "lora_rank", 32),
    ({"method": "qlora", "framework": "HF PEFT", "parallelism": "DDP"}, "kbit_upcast", None),
)  # fmt: skip


def test_a_column_becomes_a_setting() -> None:
    alone = [
        ({column: text}, setting, value)
        for (column, setting), values in OF_ONE_COLUMN.items()
        for text, value in values.items()
    ]
    wrong = [
        (columns, setting, found, value)
        for columns, setting, value in (*alone, *OF_SEVERAL)
        if (found := read(**columns).settings.get(setting)) != value
    ]
    assert wrong == []


ASSUMED: tuple[tuple[dict[str, str], str | None], ...] = (
    ({}, None), ({"method": "lora", "lora_targets": "All linear"}, None),
    ({"gpu_count": ""}, "gpu_count: 1"), ({"flash_attention": "unknown"}, "flash_attention: 1"),
    ({"flash_attention": ""}, "flash_attention: 1"),
    ({"grad_checkpointing": "unknown"}, "checkpointing: none"),
    ({"framework": "Homegrown"},
     "framework: 'Homegrown' is not known, read as the Transformers Trainer: bands doubled"),
    ({"framework": ""}, "framework: none given, read as the Transformers Trainer: bands doubled"),
    ({"framework": "NeMo"}, "tensor_parallel: the least with which the weights fit"),
    ({"method": "lora", "lora_targets": "mystery"}, "lora_targets: 'mystery' read as all linear layers"),
)  # fmt: skip


def test_open_settings_of_a_row_are_assumptions() -> None:
    found = [[": ".join(each) for each in read(**columns).assumptions] for columns, _ in ASSUMED]
    assert found == [[assumption] if assumption else [] for _, assumption in ASSUMED]


def test_a_model_outside_the_catalogue_takes_the_shape_of_the_nearest_in_size() -> None:
    found = read(model="NoSuch-9B", params_b="9.1", active_params_b="2.5")
    assert found.settings["model"] == "moe-12b-a2b"
    assert found.scaled_to is not None
    assert (found.scaled_to.params_b, found.scaled_to.active_b) == (9.1, 2.5)
    assert read(model="NoSuch-4B").settings["model"] == "llama-3.2-3b"  # its name gives the size
    dense = read(model="NoSuch-9B", params_b="9.1", active_params_b="20").scaled_to
    assert dense is not None
    assert dense.active_b == 9.1


FRAMEWORKS = (
    ("HF TRL SFTTrainer", "TRL", "hf", "hf"), ("TRL SFTTrainer, chunked NLL loss", "TRL", "hf", "liger"),
    ("HF Trainer + PEFT", "transformers and PEFT", "hf", "hf"),
    ("Unsloth SFTTrainer", "Unsloth", "foak", "liger"),
    ("Axolotl + cut cross entropy", "Axolotl", "hf", "liger"),
    ("LLaMA-Factory HF+FA2", "LLaMA-Factory", "hf", "hf"),
    ("LLaMA-Factory Unsloth+FA2", "Unsloth", "foak", "liger"),
    ("ms-swift 2.x (HF Trainer + PEFT)", "ms-swift", "hf", "hf"),
    ("Megatron-SWIFT (Megatron-LM)", "Megatron-SWIFT", "te", "fused"),
    ("XTuner (HF + DeepSpeed ZeRO-3)", "XTuner", "hf", "hf"), ("LitGPT", "LitGPT", "litgpt", "litgpt"),
    ("torchtune", "torchtune", "torchtune", "chunked"),
    ("torchtune, +compile", "torchtune", "compile", "chunked"),
    ("torchtune (no compile, unpacked Alpaca)", "torchtune", "torchtune", "chunked"),
    ("milabench", "torchtune", "torchtune", "chunked"), ("torchtitan", "torchtitan", "compile", "titan"),
    ("NeMo (Megatron-Core)", "Megatron and NeMo", "te", "fused"),
    ("PyTorch NVIDIA Release 25.04", "Megatron and NeMo", "te", "fused"),
    ("PyTorch 2.6.0, ROCm 6.4", "Megatron and NeMo", "te", "fused"),
    ("LLMBoost 1.1.0", "Megatron and NeMo", "te", "fused"),
    ("DeepSpeed (HF) + FlashAttention", "DeepSpeed", "hf", "hf"), ("prime-rl", "prime-rl", "compile", "hf"),
    ("llm-foundry/Composer", "MosaicML llm-foundry", "mosaic", "hf"),
    ("optimum-habana", "optimum-habana", "hf", "hf"),
)  # fmt: skip


def test_framework_is_recognized_by_its_text() -> None:
    found = []
    for text, *_ in FRAMEWORKS:
        framework, settings = find_framework(text), read(framework=text).settings
        found.append((text, framework and framework.name, settings["stack"], settings["loss_kernel"]))
    assert tuple(found) == FRAMEWORKS
    assert len({framework.name for framework in frameworks()}) == len(frameworks())
    # What MLPerf's entries do not name is a fused engine.
    stacks = {
        text: (found := find_framework(text, source)) and found.stack
        for text, source in (
            ("PyTorch", "MLPerf Training v5.0 (X)"), ("NGC PyTorch Deepspeed", "MLPerf Training v4.0 (X)"),
            ("PyTorch 1", "a blog"),
        )
    }  # fmt: skip
    assert stacks == {"PyTorch": "te", "NGC PyTorch Deepspeed": "hf", "PyTorch 1": None}


REFUSED = (
    ({"method": "grpo"}, "reinforcement learning"),
    ({"method": "lora", "framework": "Unsloth DPOTrainer"}, "reinforcement learning"),
    ({"framework": "NeMo RL v0.4 (Megatron-core + vLLM)"}, "reinforcement learning"),
    ({"optimizer": "SGD"}, "optimizer 'SGD'"), ({"optimizer": "Muon + AdamW"}, "optimizer 'Muon"),
    ({"precision": "tf32"}, "TF32"), ({"parallelism": "device_map naive pipeline"}, "wait for each other"),
    ({"parallelism": "fsdp over all GPUs of the node", "gpu_count": ""}, "gpu_count is missing"),
    ({"parallelism": "TP3"}, "not a multiple"), ({"method": "qlora", "notes": "NVFP4 base experts"}, "NVFP4"),
    ({"framework": "TRL RewardTrainer"}, "reinforcement learning"),
    ({"framework": "sentence-transformers"}, "another objective"),
    ({"notes": "DPO, beta 0.1"}, "reinforcement learning"),
    ({"grad_checkpointing": "sometimes"}, "grad_checkpointing 'sometimes'"),
    ({"flash_attention": "sometimes"}, "flash_attention 'sometimes'"),
    ({"precision": "int4 awq"}, "quantized weights"), ({"quant_bits": "4"}, "not with method full"),
    ({"method": "lora", "quant_bits": "3"}, "is not 4 or 8"),
    ({"parallelism": "tensor parallel"}, "size of the group"),
    ({"parallelism": "HSDP", "gpu_count": "16", "nodes": "2"}, "several nodes"),
    ({"parallelism": "offload to NVMe"}, "NVMe"), ({"parallelism": "tp0"}, "tp0 is not the size of a group"),
    ({"gpu_count": "-1"}, "gpu_count: -1 is not a positive number"),
    ({"gpu_count": "1.5"}, "not a whole number"),
    ({"method": "dance"}, "method 'dance' is not one of full, lora, qlora, pretrain"),
)  # fmt: skip


def test_values_that_no_setting_means_are_refused() -> None:
    wrong = []
    for columns, reason in REFUSED:
        try:
            wrong.append((columns, reason, read(**columns).settings))
        except RunError as error:
            if reason not in str(error):
                wrong.append((columns, reason, str(error)))
    assert wrong == []


TARGETS = {
    "wq, value": "q_proj+v_proj", "q_proj+v_proj": "q_proj+v_proj", "query_key_value": "qkv_fused",
    "q_proj+mystery": None, "": None,
    "c_attn, attn.c_proj, w1, w2": "qkv_fused+o_proj+gate_proj+down_proj",
    "c_attn c_proj": "qkv_fused+o_proj+down_proj",  # Qwen 1 gives two layers one name
    "mlp, w1": "gate_proj+up_proj+down_proj", "q,v,output": "q_proj+v_proj+o_proj",
}  # fmt: skip


def test_lora_targets_under_their_many_names() -> None:
    assert {text: lora_targets_of(text) for text in TARGETS} == TARGETS
