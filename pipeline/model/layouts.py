"""Layouts of run files: reads a row of a published compilation as the settings of a run.

The model speaks one layout, that of catalog/measured_runs.csv. The wider compilation names GPUs, models,
frameworks and parallelism in free text; what a row leaves open is said in its assumptions.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Row = Mapping[str, str]
Settings = dict[str, str | float | None]

# The settings of a run, as memory_of and speed_of take them.
SETTING_TYPES = {
    "run_id": "VARCHAR",
    "model": "VARCHAR",
    "gpu": "VARCHAR",
    "gpu_count": "DOUBLE",
    "node_count": "DOUBLE",
    "node_network_gbps": "DOUBLE",
    "method": "VARCHAR",
    "quantization": "VARCHAR",
    "kbit_upcast": "DOUBLE",
    "lora_rank": "DOUBLE",
    "lora_targets": "VARCHAR",
    "adapter_bytes": "DOUBLE",
    "training_precision": "VARCHAR",
    "weight_bytes": "DOUBLE",
    "fp8": "DOUBLE",
    "optimizer": "VARCHAR",
    "sharding": "VARCHAR",
    "tensor_parallel": "DOUBLE",
    "pipeline_parallel": "DOUBLE",
    "micro_batch": "DOUBLE",
    "seq_len": "DOUBLE",
    "grad_accum": "DOUBLE",
    "checkpointing": "VARCHAR",
    "flash_attention": "DOUBLE",
    "stack": "VARCHAR",
    "loss_kernel": "VARCHAR",
    "offload": "VARCHAR",
    "memory_metric": "VARCHAR",
}
_ALLOWED = {
    "method": {"full", "lora", "qlora", "pretrain"},
    "quantization": {"none", "nf4", "nf4dq", "gptq", "int8"},
    "training_precision": {"bf16", "amp", "deepspeed_bf16", "fp32", "fp16"},
    "sharding": {"none", "ddp", "zero1", "zero2", "zero3", "fsdp"},
    "checkpointing": {"none", "full", "sac"},
    "stack": {"hf", "foak", "liger", "litgpt", "torchtune", "compile", "te", "mosaic"},
    "offload": {"act", "cpu", "cpu+act"},
    "memory_metric": {"alloc", "reserved", "smi"},
}
_MAY_BE_ZERO = {"kbit_upcast", "lora_rank", "fp8", "flash_attention"}

PUBLISHED_COLUMNS = {"id", "framework", "parallelism", "precision", "grad_checkpointing"}


class LayoutError(ValueError):
    """A row that cannot be read as a run; the message says why, for the person who wrote the row."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """The part of a model's shape that reading a row needs."""

    model: str
    params_total: float
    experts: int = 1


@dataclass(frozen=True, slots=True)
class Size:
    """Parameters of a model that the catalogue lacks, in 10^9: all, and those active per token."""

    params_b: float
    active_b: float


@dataclass(slots=True)
class ReadRow:
    """Settings in the model's layout, and what had to be assumed to get there.

    ``scaled_to`` is set where the model is not in the catalogue and ``settings['model']`` is its likeness.
    """

    settings: Settings
    assumptions: list[str] = field(default_factory=list)
    scaled_to: Size | None = None


def is_published_layout(columns: list[str]) -> bool:
    """Whether a file's columns are those of the published compilation."""
    return set(columns) >= PUBLISHED_COLUMNS


def _number(row: Row, column: str) -> float | None:
    text = (row.get(column) or "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise LayoutError(f"{column}: '{text}' is not a number") from None
    if not math.isfinite(value) or value <= 0:
        raise LayoutError(f"{column}: {text} is not a positive number")
    return value


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


def _canonical(name: str) -> str:
    text = re.sub(r"\(.*?\)", "", name.lower()).strip()
    text = re.sub(r"[\s_/]+", "-", text)
    text = re.sub(r"-(instruct|base|it|pt|chat|hf|like|unsloth|bnb|4bit|v\d+\.\d+|25\d\d)(?=-|$)", "", text)
    return re.sub(r"[^a-z0-9.\-]", "", text).strip("-")


def _aliases(model: str) -> set[str]:
    return {model, model.replace("-", ""), re.sub(r"-\d+(\.\d+)?b(-.*)?$", "", model)}


def find_model(
    name: str, params_b: float | None, known: Mapping[str, Architecture]
) -> tuple[str, float | None]:
    """Return (model id, None) for a model named in free text, or (its likeness, its size in 10^9 parameters).

    The likeness is the known dense model nearest in size. Raises LayoutError where neither the name nor a
    size is given.
    """
    wanted = _canonical(name)
    if wanted in known:
        return wanted, None
    squeezed = wanted.replace("-", "")
    same = [m for m in known if m.replace("-", "") == squeezed]
    if same:
        return same[0], None
    # A name with its sizes spelled out: Llama-4-Scout-109B-A17B is llama-4-scout.
    stem = re.sub(r"-(\d+(\.\d+)?b|a\d+(\.\d+)?b|\d+b-a\d+b)", "", wanted)
    stems = [
        m
        for m, a in known.items()
        if re.sub(r"-\d+(\.\d+)?b(-.*)?$", "", m) == stem
        and (params_b is None or abs(math.log(a.params_total / (params_b * 1e9))) < 0.12)
    ]
    if stems:
        return sorted(stems)[0], None
    if params_b is None:
        size = re.search(r"(\d+(?:\.\d+)?)b\b", wanted)
        if size is None:
            raise LayoutError(f"model '{name}' is not in the catalogue and its size is not given")
        params_b = float(size.group(1))
    nearest = min(
        (a for a in known.values() if a.experts == 1),
        key=lambda a: (abs(math.log(a.params_total / (params_b * 1e9))), a.model),
    )
    return nearest.model, params_b


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
    "q,k,v,o": "q_proj+k_proj+v_proj+o_proj",
    "query+value": "q_proj+v_proj",
    "q+v+output+mlp": "q_proj+v_proj+o_proj+gate_proj+up_proj+down_proj",
    "q_proj+k_proj+v_proj+o_proj+c_attn": "q_proj+k_proj+v_proj+o_proj",
    "q_proj+k_proj+v_proj+o_proj": "q_proj+k_proj+v_proj+o_proj",
    "q_proj+v_proj": "q_proj+v_proj",
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


def _set_model(read: ReadRow, name: str, row: Row, known: Mapping[str, Architecture]) -> None:
    model, size = find_model(name, _number(row, "params_b"), known)
    read.settings["model"] = model
    if size is not None:
        read.scaled_to = Size(size, min(size, _number(row, "active_params_b") or size))
        read.assumptions.append(
            f"model: '{name}' is not in the catalogue, shaped like {model} scaled to {size:g}B"
        )


def _setting(row: Row, column: str) -> str | float | None:
    text = (row.get(column) or "").strip()
    if not text:
        return None
    if SETTING_TYPES[column] == "VARCHAR":
        if text not in _ALLOWED.get(column, {text}):
            raise LayoutError(f"{column}: '{text}' is not one of {', '.join(sorted(_ALLOWED[column]))}")
        return text
    if column in _MAY_BE_ZERO and text in ("0", "0.0"):
        return 0.0
    return _number(row, column)


def read_run(row: Row, known: Mapping[str, Architecture], gpu_of: Callable[[str, "ReadRow"], str]) -> ReadRow:
    """Read one row of the layout of catalog/measured_runs.csv; missing settings stay open for the macros.

    Raises LayoutError where model, GPU or method are missing or a value cannot be meant.
    """
    read = ReadRow(
        {column: _setting(row, column) for column in SETTING_TYPES if column not in ("model", "gpu")}
    )
    if read.settings["method"] is None:
        raise LayoutError("method is missing: full, lora, qlora or pretrain")
    for name in ("model", "gpu"):
        if not (row.get(name) or "").strip():
            raise LayoutError(f"{name} is missing")
    _set_model(read, (row.get("model") or "").strip(), row, known)
    read.settings["gpu"] = gpu_of((row.get("gpu") or "").strip(), read)
    if read.settings["sharding"] == "none" and (read.settings["gpu_count"] or 1) == 1:
        read.settings["node_count"] = read.settings["node_count"] or 1.0
    return read


def read_published(
    row: Row, known: Mapping[str, Architecture], gpu_of: Callable[[str, "ReadRow"], str]
) -> ReadRow:
    """Read one row of the published compilation as settings of a run.

    Raises LayoutError where model, method or GPU are not given or not known.
    """
    method = (row.get("method") or "").strip()
    if method not in ("full", "lora", "qlora", "pretrain"):
        raise LayoutError(f"method '{method}' is not one of full, lora, qlora, pretrain")
    source, framework = row.get("source") or "", row.get("framework") or ""
    text, notes = row.get("parallelism") or "", row.get("notes") or ""
    read = ReadRow({"run_id": row.get("id"), "method": method})
    settings = read.settings
    _set_model(read, row.get("model") or "", row, known)
    settings["gpu"] = gpu_of(row.get("gpu") or "", read)
    gpus = _number(row, "gpu_count")
    if gpus is None:
        read.assumptions.append("gpu_count: 1")
    settings["gpu_count"] = gpus or 1.0
    settings["node_count"] = _number(row, "nodes")
    settings["seq_len"] = _number(row, "seq_len")
    settings["micro_batch"] = _number(row, "micro_batch_per_gpu")
    settings["stack"], settings["loss_kernel"] = stack_of(framework, source)
    settings["node_network_gbps"] = _network_gbps(f"{row.get('interconnect') or ''} | {notes}")
    _precision(row.get("precision") or "", method, settings)
    settings["optimizer"] = _optimizer(row.get("optimizer") or "")
    settings["memory_metric"] = _memory_metric(row.get("memory_kind") or "")
    _read_parallelism(row, read, text, notes, framework)
    _read_method(row, read, method)
    _read_switches(row, read)
    return read


def _read_parallelism(row: Row, read: ReadRow, text: str, notes: str, framework: str) -> None:
    settings = read.settings
    sizes = _parallelism(text, notes)
    gpus = float(settings["gpu_count"] or 1)
    tensor = sizes.get("tp", 1.0) * sizes.get("cp", 1.0)
    if sizes.get("cp", 1.0) > 1:
        read.assumptions.append("context parallelism counted as tensor parallelism")
    settings["tensor_parallel"], settings["pipeline_parallel"] = tensor, sizes.get("pp", 1.0)
    if "tp" not in sizes and settings["stack"] == "te" and gpus > 1 and "fsdp" not in text:
        settings["tensor_parallel"] = settings["pipeline_parallel"] = None
        read.assumptions.append("tensor_parallel: the least that holds the weights")
    settings["sharding"] = _sharding(text, framework)
    if re.search(r"(?<!megatron-)deepspeed", framework.lower()) and settings["sharding"] is None:
        settings["sharding"] = "zero3" if gpus > 1 else "none"
    settings["offload"] = "cpu" if "cpu offload" in text else None
    data_parallel = sizes.get("dp") or max(1.0, gpus / (tensor * sizes.get("pp", 1.0)))
    settings["grad_accum"] = _grad_accum(
        row.get("grad_accum_or_global_batch") or "", float(settings["micro_batch"] or 1), data_parallel
    )


def _read_method(row: Row, read: ReadRow, method: str) -> None:
    settings = read.settings
    if method not in ("lora", "qlora"):
        return
    settings["lora_rank"] = _number(row, "lora_rank")
    targets = (row.get("lora_targets") or "").strip()
    settings["lora_targets"] = _TARGETS.get(targets) or lora_targets_of(targets)
    if targets and settings["lora_targets"] is None and targets != "all linear":
        read.assumptions.append(f"lora_targets: '{targets}' read as all linear layers")
    if method == "qlora":
        framework = (row.get("framework") or "").lower()
        gptq = "gptq" in framework
        settings["quantization"] = "int8" if row.get("quant_bits") == "8" else "gptq" if gptq else "nf4"


def _read_switches(row: Row, read: ReadRow) -> None:
    settings = read.settings
    checkpointing = (row.get("grad_checkpointing") or "").strip()
    settings["checkpointing"] = _CHECKPOINTING.get(checkpointing)
    if settings["checkpointing"] is None:
        # Recipes that checkpoint unless told otherwise; scripts and benchmarks of others do not.
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
