"""Rows of the published compilation of runs as settings of a run.

The compilation names GPUs, models, frameworks and parallelism in free text. Whatever a row leaves open is
listed in its assumptions.
"""

import re
from collections.abc import Callable, Mapping

from pipeline.contracts.training import ADAPTER_METHODS, METHODS
from pipeline.model.model_names import Architecture
from pipeline.model.run_settings import (
    Row,
    RunError,
    RunRow,
    Settings,
    number,
    set_model,
)

PUBLISHED_COLUMNS = {"id", "framework", "parallelism", "precision", "grad_checkpointing"}


def is_published_layout(columns: list[str]) -> bool:
    """Whether a file's columns are those of the published compilation."""
    return set(columns) >= PUBLISHED_COLUMNS


_FRAMEWORK_STACKS = (
    (r"unsloth", "foak", "liger"),
    (r"torchtitan", "compile", "titan"),
    (r"torchtune", "compile", "chunked"),
    (r"thunder", "compile", "litgpt"),
    (r"lit-?gpt", "litgpt", "litgpt"),
    (r"llm-foundry|composer", "mosaic", "hf"),
    (r"foak|fms-acceleration.*foak", "foak", "fused"),
    (r"transformerengine layer|nemo|megatron|primus|flashattention training|picotron", "te", "fused"),
    (r"liger", "liger", "liger"),
)


def stack_of(framework: str, source: str) -> tuple[str, str | None]:
    """Return (stack, loss kernel) of a framework named in free text; MLPerf entries run fused engines."""
    text = framework.lower()
    for pattern, stack, loss in _FRAMEWORK_STACKS:
        if re.search(pattern, text):
            return stack, loss
    if source.lower().startswith("mlperf") and "deepspeed" not in text:
        return "te", "fused"
    return "hf", None


def _parallelism(text: str, notes: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for key in ("tp", "pp", "cp", "dp", "ep"):
        match = re.search(rf"(?<![a-z]){key}(\d+)", text) or re.search(rf"config \S*?{key}(\d+)", notes)
        if match:
            found[key] = float(match.group(1))
    return found


def _sharding(text: str, framework: str) -> str | None:
    for pattern, sharding in (
        (r"zero-?3|fsdp", "fsdp"),
        (r"zero-?2", "zero2"),
        (r"zero-?1|\bddp\b", "ddp"),
        (r"single", "none"),
    ):
        if re.search(pattern, text):
            return "zero3" if sharding == "fsdp" and "zero" in text else sharding
    if "zero-1" in framework.lower():
        return "zero1"
    return None


def _network_gbps(text: str) -> float | None:
    """Network per node in Gbit/s from words like '8x ConnectX-7 IB NDR 400Gb/s' or '1600 Gbps/node'."""
    lanes = re.findall(
        r"(\d+)\s*x\s*(?:[A-Za-z][\w\- ]*?\s)?(?:IB |NDR |InfiniBand )*(\d+)\s*G(?:bE|b/s|bps|be)", text
    )
    if lanes:
        return max(float(count) * float(rate) for count, rate in lanes)
    per_node = re.search(r"(\d+)\s*Gbps/node", text)
    return float(per_node.group(1)) if per_node else None


def _grad_accum(text: str, micro_batch: float, data_parallel: float) -> float | None:
    direct = re.search(r"GA=(\d+)", text)
    if direct:
        return float(direct.group(1))
    total = re.search(r"global=(\d+)", text)
    if total:
        return max(1.0, round(float(total.group(1)) / (micro_batch * data_parallel)))
    return None


_CHECKPOINTING = {"yes": "full", "no": "none", "partial": "sac", "yes (Unsloth CPU-offloaded)": "full"}
_TARGETS = {
    "attention qkv+proj": "qkv_fused+o_proj",
    "q+v+output+mlp": "q_proj+v_proj+o_proj+gate_proj+up_proj+down_proj",
    "q_proj+k_proj+v_proj+o_proj+c_attn": "q_proj+k_proj+v_proj+o_proj",
}

# Names that model families and tools give the same layers.
_MODULES = {
    "qkv_fused": "qkv_fused c_attn w_pack query_key_value qkv_proj wqkv qkv attn.wqkv",
    "q_proj": "q_proj wq query q attn.q",
    "k_proj": "k_proj wk key k",
    "v_proj": "v_proj wv value v",
    "o_proj": "o_proj wo out_proj dense attn.c_proj output_proj o proj",
    "gate_proj": "gate_proj w1 gate mlp.gate",
    "up_proj": "up_proj w3 fc1 fc_in dense_h_to_4h c_fc up",
    "down_proj": "down_proj w2 fc2 fc_out dense_4h_to_h mlp.c_proj down c_proj",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def lora_targets_of(text: str) -> str | None:
    """The ``+``-joined targets in the model's names; None (all linear layers) where a name is not known."""
    names = [name.strip().lower() for name in re.split(r"[+,\s]+", text) if name.strip()]
    found = [_MODULE_OF.get(name) for name in names]
    return None if None in found or not found else "+".join(dict.fromkeys(str(module) for module in found))


def _memory_metric(kind: str) -> str:
    if "allocated" in kind or kind.startswith("torch peak (GiB"):
        return "alloc"
    if "torch" in kind or "device_mem_reserved" in kind:
        return "reserved"
    return "smi"


def _optimizer(text: str) -> str | None:
    lowered = text.lower()
    for pattern, optimizer in (
        (r"paged.*8", "paged8bit"),
        (r"paged", "paged32"),
        (r"in bwd", "adamw_inbwd"),
        (r"8.?bit|4.?bit", "adamw8bit"),
        (r"fused", "adamw_fused"),
        (r"adamw", "adamw"),
    ):
        if re.search(pattern, lowered):
            return optimizer
    return None


def _precision(text: str, method: str, settings: Settings) -> None:
    lowered = text.lower()
    settings["training_precision"] = "amp" if method == "pretrain" else "bf16"
    if "fp8" in lowered:
        settings["fp8"] = 1.0
    if "fp4" in lowered and "nf4" not in lowered:
        settings["fp8"] = 2.0
    if "fp32" in lowered:
        settings["weight_bytes"] = 4.0
    if lowered.startswith("fp32"):
        settings["training_precision"] = "fp32"
    elif re.search(r"fp16|float16", lowered) and "bf16" not in lowered and "bfloat16" not in lowered:
        settings["training_precision"] = "fp16"


def read_published(
    row: Row, known: Mapping[str, Architecture], gpu_of: Callable[[str, RunRow], str]
) -> RunRow:
    """Read one row of the published compilation as settings of a run.

    Raises RunError where model, method or GPU are not given or not known.
    """
    method = (row.get("method") or "").strip()
    if method not in METHODS:
        raise RunError(f"method '{method}' is not one of {', '.join(METHODS)}")
    source, framework = row.get("source") or "", row.get("framework") or ""
    text, notes = row.get("parallelism") or "", row.get("notes") or ""
    read = RunRow({"run_id": row.get("id"), "method": method})
    settings = read.settings
    set_model(read, row.get("model") or "", row, known)
    settings["gpu"] = gpu_of(row.get("gpu") or "", read)
    gpus = number(row, "gpu_count")
    if gpus is None:
        read.assumptions.append("gpu_count: 1")
    settings["gpu_count"] = gpus or 1.0
    settings["node_count"] = number(row, "nodes")
    settings["seq_len"] = number(row, "seq_len")
    settings["micro_batch"] = number(row, "micro_batch_per_gpu")
    settings["stack"], settings["loss_kernel"] = stack_of(framework, source)
    settings["node_network_gbps"] = _network_gbps(f"{row.get('interconnect') or ''} | {notes}")
    _precision(row.get("precision") or "", method, settings)
    settings["optimizer"] = _optimizer(row.get("optimizer") or "")
    settings["memory_metric"] = _memory_metric(row.get("memory_kind") or "")
    _read_parallelism(row, read, text, notes, framework)
    _read_method(row, read, method)
    _read_switches(row, read)
    return read


def _read_parallelism(row: Row, read: RunRow, text: str, notes: str, framework: str) -> None:
    settings = read.settings
    sizes = _parallelism(text, notes)
    gpus = float(settings["gpu_count"] or 1)
    tensor = sizes.get("tp", 1.0) * sizes.get("cp", 1.0)
    if sizes.get("cp", 1.0) > 1:
        read.assumptions.append("context parallelism counted as tensor parallelism")
    settings["tensor_parallel"], settings["pipeline_parallel"] = tensor, sizes.get("pp", 1.0)
    if "tp" not in sizes and settings["stack"] == "te" and gpus > 1 and "fsdp" not in text:
        settings["tensor_parallel"] = settings["pipeline_parallel"] = None
        read.assumptions.append("tensor_parallel: the least with which the weights fit")
    settings["sharding"] = _sharding(text, framework)
    if re.search(r"(?<!megatron-)deepspeed", framework.lower()) and settings["sharding"] is None:
        settings["sharding"] = "zero3" if gpus > 1 else "none"
    settings["offload"] = "cpu" if "cpu offload" in text else None
    data_parallel = sizes.get("dp") or max(1.0, gpus / (tensor * sizes.get("pp", 1.0)))
    settings["grad_accum"] = _grad_accum(
        row.get("grad_accum_or_global_batch") or "", float(settings["micro_batch"] or 1), data_parallel
    )


def _read_method(row: Row, read: RunRow, method: str) -> None:
    settings = read.settings
    if method not in ADAPTER_METHODS:
        return
    settings["lora_rank"] = number(row, "lora_rank")
    targets = (row.get("lora_targets") or "").strip()
    settings["lora_targets"] = _TARGETS.get(targets) or lora_targets_of(targets)
    if targets and settings["lora_targets"] is None and targets != "all linear":
        read.assumptions.append(f"lora_targets: '{targets}' read as all linear layers")
    if method == "qlora":
        framework = (row.get("framework") or "").lower()
        gptq = "gptq" in framework
        settings["quantization"] = "int8" if row.get("quant_bits") == "8" else "gptq" if gptq else "nf4"


def _read_switches(row: Row, read: RunRow) -> None:
    settings = read.settings
    checkpointing = (row.get("grad_checkpointing") or "").strip()
    settings["checkpointing"] = _CHECKPOINTING.get(checkpointing)
    if settings["checkpointing"] is None:
        # Recipes of these frameworks checkpoint by default; other scripts and benchmarks do not.
        by_default = re.search(
            r"torchtune|unsloth|axolotl|llama-?factory|deepspeed", (row.get("framework") or "").lower()
        )
        settings["checkpointing"] = "full" if by_default else "none"
        read.assumptions.append(f"checkpointing: {settings['checkpointing']}")
    if checkpointing.startswith("yes (Unsloth"):
        settings["offload"] = "act"
    settings["flash_attention"] = 0.0 if row.get("flash_attention") == "no" else 1.0
    if (row.get("flash_attention") or "unknown") == "unknown":
        read.assumptions.append("flash_attention: 1")
