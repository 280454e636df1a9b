"""Reads rows of the published compilation of runs as run settings.

The compilation names GPUs, models, frameworks and parallelism in free text. Settings that a row leaves open
are listed in its assumptions.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from pipeline.contracts.training import ADAPTER_METHODS, METHODS
from pipeline.model.frameworks import Framework, reject_other_methods, set_framework
from pipeline.model.model_names import Architecture, RunError
from pipeline.model.run_settings import MOST, Row, RunRow, Settings, number, set_model

Meaning = TypeVar("Meaning")

_MARKS = {"id", "framework", "parallelism", "precision", "grad_checkpointing"}
PUBLISHED_COLUMNS = {
    *_MARKS, "source", "source_url_or_repo_path", "date", "model", "params_b", "active_params_b", "method",
    "lora_rank", "lora_targets", "quant_bits", "gpu", "gpu_count", "nodes", "interconnect", "seq_len",
    "micro_batch_per_gpu", "grad_accum_or_global_batch", "optimizer", "flash_attention",
    "tokens_per_s_per_gpu", "tokens_per_s_total", "mfu_pct", "peak_mem_gb_per_gpu", "fits", "notes", "tier",
    "memory_kind", "tokens_per_s_kind",
}  # fmt: skip


def is_published_layout(columns: list[str]) -> bool:
    """True if a file has the columns of the published compilation."""
    return set(columns) >= _MARKS


_PARALLEL_SIZES = {
    # Virtual pipeline stages (VP, VPP) and sequence parallelism (SP) do not split anything counted here.
    "tp": r"(?<![a-z])tp[ =:-]?(\d+)|tensor[ -](?:model[ -])?parallel(?:ism)?(?: size)?[ =:]*(\d+)",
    "pp": r"(?<![a-z])pp[ =:-]?(\d+)|pipeline[ -](?:model[ -])?parallel(?:ism)?(?: size)?[ =:]*(\d+)",
    "cp": r"(?<![a-z])cp[ =-]?(\d+)"
    r"|(?:sequence parallel|context[ -]parallel(?:ism)?(?: size)?|ulysses|ring attention)[ =:]+(\d+)",
    "dp": r"(?<![a-z])dp[ =-]?(\d+)",
    "ep": r"(?<![a-z])ep[ =-]?(\d+)",
}


def _parallelism(text: str, notes: str) -> dict[str, float]:
    """Return the sizes of tensor, pipeline, context, data and expert groups, keyed by two-letter names."""
    config = re.search(r"config (\S+)", notes)
    # Ulysses and ring attention split the sequence, as context parallelism does.
    stated = f"{text} | {notes}" if re.search(r"sequence parallel \d|ulysses", notes) else text
    found: dict[str, float] = {}
    for key, pattern in _PARALLEL_SIZES.items():
        match = re.search(pattern, stated)
        if match is None and config is not None:
            match = re.search(rf"{key}(\d+)", config.group(1))
        if match:
            found[key] = float(next(size for size in match.groups() if size))
            if not 1 <= found[key] <= MOST:
                raise RunError(f"parallelism: {key}{found[key]:g} is not the size of a group")
    return found


_SHARDINGS = (
    (r"zero-?3|zero.*fsdp|fsdp.*zero", "zero3"),
    (r"fsdp", "fsdp"),
    (r"zero-?2", "zero2"),
    (r"zero-?1|\bddp\b", "ddp"),
    (r"single(?![ -]node)", "none"),
)
_NOT_ESTIMATED = (
    (
        r"(tensor|pipeline|expert)[ -]((model|data)[ -])?parallel(ism)?(?! size)(?![ =:]*\d)",
        "the size of the group is missing",
    ),
    (r"nvme", "offloading to NVMe is not estimated"),
    (r"naive|device_map", "layers spread over GPUs that wait for each other are not estimated"),
)


def _meant(meanings: Iterable[tuple[str, Meaning]], text: str) -> Meaning | None:
    """Return the meaning of the first pattern found in the text; None if none is found."""
    return next((meaning for pattern, meaning in meanings if re.search(pattern, text)), None)


def _sharding(text: str, framework: str, gpus: float, nodes: float | None) -> str | None:
    if problem := _meant(_NOT_ESTIMATED, text):
        raise RunError(f"parallelism '{text}': {problem}")
    if re.search(r"hsdp|hybrid[ _-]?shard", text):
        if gpus > 8 or (nodes or 1) > 1:
            raise RunError(f"parallelism '{text}': shards within each of several nodes are not estimated")
        return "fsdp"
    if found := _meant(_SHARDINGS, text):
        return found
    if "zero-1" in framework.lower():
        return "zero1"
    if re.search(r"(?<!megatron-)deepspeed", framework.lower()):
        return "zero3" if gpus > 1 else "none"
    return "none" if text == "none" and gpus == 1 else None


def _network_gbps(text: str) -> float | None:
    """Return a node's network Gbit/s from text such as '8x ConnectX-7 IB NDR 400Gb/s' or '1600 Gbps/node'."""
    lanes = re.findall(
        r"(\d+)\s*x\s*(?:[A-Za-z][\w\- ]*?\s)?(?:IB |NDR |InfiniBand )*(\d+)\s*G(?:bE|b/s|bps|be)", text
    )
    lanes += re.findall(r"(\d+)\s*x\s*Omni-Path (\d+)", text)
    if lanes:
        return max(float(count) * float(rate) for count, rate in lanes)
    per_node = re.search(r"(\d+)\s*Gbps/node", text)
    return float(per_node.group(1)) if per_node else None


def _grad_accum(text: str, tokens_per_row: float, micro_batch: float, data_parallel: float) -> float | None:
    """Return the micro-steps per optimizer step, from ``GA=4`` or a global batch in sequences or tokens."""
    direct = re.search(r"\bGA=(\d+)", text)
    if direct:
        return float(direct.group(1))
    total = re.search(r"\b(?:global|GBS)=(\d+)", text)
    if total:
        return max(1.0, round(float(total.group(1)) / (micro_batch * data_parallel)))
    tokens = re.search(r"(\d+(?:\.\d+)?)(M?) tokens", text)
    if tokens and tokens_per_row:
        batch = float(tokens.group(1)) * (1e6 if tokens.group(2) else 1.0)
        return max(1.0, round(batch / (tokens_per_row * micro_batch * data_parallel)))
    return None


def _fills_the_batch(text: str, micro_batch: float, gpus: float) -> bool:
    """True if each GPU has its own samples, so that the global batch counts all GPUs and micro-steps."""
    total, steps = re.search(r"\bglobal=(\d+)", text), re.search(r"\bGA=(\d+)", text)
    return bool(total and steps and float(total.group(1)) == gpus * micro_batch * float(steps.group(1)))


# Maps words to the form of checkpointing and its offload. Megatron's selective recomputation of attention,
# norms and activation functions counts as no checkpointing: flash attention and fused kernels do the same.
_CHECKPOINTING: tuple[tuple[str, tuple[str | None, str | None]], ...] = (
    (r"^(unknown|not stated|recipe|no \(not stated|n/a|default|auto)|^$", (None, None)),
    (r"^selective: *(.*[+, ])?(mlp|moe)\b", ("sac", None)),
    (r"^selective:", ("none", None)),
    (r"^(unsloth|yes.*(unsloth|offloaded to cpu))", ("full", "act")),
    (r"^(partial|selective|sac\b)", ("sac", None)),
    (r"^((yes|true|full|enabled|on|all)\b|(y|1|1\.0)$|fsdp activation)", ("full", None)),
    (r"^((no|none|false|disabled|off|without|not used|not enabled)\b|(n|0|0\.0)$)", ("none", None)),
)
_OPEN = r"^(unknown|not stated|n/a)|^$"
_FLASH_ATTENTION = (
    (_OPEN, 1.0),
    (r"^((no|none|false|off|disabled|eager|math|naive|vanilla|without)\b|(n|0|0\.0)$)|\bmath\b", 0.0),
    (r"^((yes|true|on|enabled|auto|te|fa-?[234])\b|(y|1|1\.0)$)|flash|sdpa|cudnn|flex|xformers", 1.0),
)
_ALL_LINEAR = re.compile(r"^all([- ]linear)?$")

# Layers, and their names in model families and tools.
_MODULES = {
    "qkv_fused": "qkv_fused c_attn w_pack query_key_value qkv_proj wqkv qkv attn.wqkv attention_qkv",
    "q_proj": "q_proj wq query q attn.q",
    "k_proj": "k_proj wk key k",
    "v_proj": "v_proj wv value v",
    "o_proj": "o_proj wo out_proj dense attn.c_proj output_proj o proj output projection",
    "gate_proj": "gate_proj w1 gate mlp.gate",
    "up_proj": "up_proj w3 fc1 fc_in dense_h_to_4h c_fc up",
    "down_proj": "down_proj w2 fc2 fc_out dense_4h_to_h mlp.c_proj down c_proj",
    "gate_proj+up_proj+down_proj": "mlp",
    "lm_head": "lm_head head",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def lora_targets_of(text: str) -> str | None:
    """Return targets as sql/model names them, joined with +; None (all linear layers) if any is unknown."""
    names = [name.strip().lower() for name in re.split(r"[+,\s]+", text.replace("attention qkv", "qkv"))]
    names = [name for name in names if name]
    if {"output", "o"} <= set(names):
        # torchtune's "output" is the head if the attention's output projection is named beside it.
        names[names.index("output")] = "lm_head"
    if "c_attn" in names and "attn.c_proj" not in names and "mlp.c_proj" not in names and "c_proj" in names:
        # Qwen 1 gives two layers the name c_proj.
        names[names.index("c_proj")] = "attn.c_proj"
        names.append("mlp.c_proj")
    found = [_MODULE_OF.get(name) for name in names]
    if None in found or not found:
        return None
    return "+".join(dict.fromkeys("+".join(str(module) for module in found).split("+")))


def _memory_metric(kind: str) -> str:
    if "allocated" in kind or kind.startswith("torch peak"):
        return "alloc"
    if "torch" in kind or "reserved" in kind:
        return "smi" if "nvidia-smi" in kind else "reserved"
    return "smi"


_OPTIMIZERS = (
    # Optimizers whose state is not AdamW's: row and column sums, one moment or none, or a preconditioner.
    (r"adafactor|sgd|lion|muon|soap|shampoo|sophia|adagrad|rmsprop|galore|lomo|schedule|apollo|came", ""),
    (r"paged.*8.*(in bwd|in backward)", "paged8bit_inbwd"),
    (r"paged.*(in bwd|in backward)", "paged32_inbwd"),
    (r"paged.*8", "paged8bit"),
    (r"paged", "paged32"),
    (r"8.?bit.*(in bwd|in backward)", "adamw8bit_inbwd"),
    (r"in bwd|in backward", "adamw_inbwd"),
    (r"8.?bit|4.?bit", "adamw8bit"),
    (r"fused", "adamw_fused"),
    (r"adam", "adamw"),
)


def _optimizer(text: str) -> str | None:
    """Return the optimizer's name in the formulas. Raises RunError for an optimizer without formulas."""
    lowered = text.strip().lower()
    if lowered in ("", "unknown", "not stated"):
        return None
    if optimizer := _meant(_OPTIMIZERS, lowered):
        return optimizer
    raise RunError(f"optimizer '{text}': the size of its state is not known (AdamW and its 8-bit forms are)")


def _policy(text: str, method: str, framework: Framework | None) -> str:
    """Return the precision policy that a row states, or else the policy of its framework and method."""
    if text.startswith("fp32"):
        return "fp32"
    if re.search(r"fp16|float16", text) and "bf16" not in text and "bfloat16" not in text:
        return "fp16"
    if method in ADAPTER_METHODS or re.search(r"pure|-true", text):
        return "bf16"
    if method == "pretrain" or re.search(r"autocast|mixed", text):
        return "amp"
    return framework.full_precision if framework else "bf16"


def _precision(text: str, method: str, framework: Framework | None, settings: Settings) -> None:
    lowered = text.lower()
    if re.search(r"awq|gptq|aqlm|hqq|\bint[348]\b|(?<!\d)[348][ -]?bit|quanti[sz]ed", lowered):
        raise RunError(f"precision '{text}': quantized weights are method qlora with column quant_bits")
    if "tf32" in lowered:
        raise RunError(f"precision '{text}': products in TF32 are not estimated")
    settings["training_precision"] = _policy(lowered, method, framework)
    if method in ADAPTER_METHODS and re.search(r"autocast|mixed", lowered):
        settings["autocast"] = 1.0
    if "fp8" in lowered:
        settings["fp8"] = 1.0
    if "fp4" in lowered and "nf4" not in lowered:
        settings["fp8"] = 2.0
    if "fp32" in lowered:
        settings["weight_bytes"] = 4.0


def _gpu_count(row: Row, read: RunRow) -> float:
    gpus = number(row, "gpu_count")
    if gpus is not None:
        return gpus
    text = (row.get("parallelism") or "").strip().lower()
    if text and not re.search(r"single|none", text):
        raise RunError(f"gpu_count is missing, and parallelism '{text}' names more than one GPU")
    read.assumptions.append(("gpu_count", "1"))
    return 1.0


def read_published(
    row: Row, known: Mapping[str, Architecture], gpu_of: Callable[[str, RunRow], str]
) -> RunRow:
    """Read one row of the published compilation as the settings of a run.

    Raises RunError if the model, method or GPU is missing or unknown, and for a run that the settings cannot
    describe: another method, another optimizer's state, or layers spread over GPUs that wait for each other.
    """
    method = (row.get("method") or "").strip().lower()
    text = (row.get("parallelism") or "").strip().lower()
    source, named, notes = row.get("source") or "", row.get("framework") or "", row.get("notes") or ""
    reject_other_methods(method, named, notes)
    if method not in METHODS:
        raise RunError(f"method '{method}' is not one of {', '.join(METHODS)}")
    bits = (row.get("quant_bits") or "").strip()
    if bits not in ("", "4", "8", "16", "32"):
        raise RunError(f"quant_bits: '{bits}' is not 4 or 8")
    if bits in ("4", "8"):
        if method not in ADAPTER_METHODS:
            raise RunError(f"quant_bits: {bits} goes with adapters, not with method {method}")
        method = "qlora"
    read = RunRow({"run_id": row.get("id"), "method": method})
    settings = read.settings
    set_model(read, row.get("model") or "", row, known)
    settings["gpu"] = gpu_of(row.get("gpu") or "", read)
    settings["gpu_count"] = gpus = _gpu_count(row, read)
    settings["node_count"] = number(row, "nodes")
    settings["seq_len"] = number(row, "seq_len")
    settings["micro_batch"] = number(row, "micro_batch_per_gpu")
    framework = set_framework(read, named, source)
    # Within one rack of GB200 or GB300, NVLink connects the nodes, so the network named in a row is unused.
    if not (str(settings["gpu"]).startswith(("gb200", "gb300")) and gpus <= 72):
        settings["node_network_gbps"] = _network_gbps(f"{row.get('interconnect') or ''} | {notes}")
    _precision(row.get("precision") or "", method, framework, settings)
    settings["optimizer"] = _optimizer(row.get("optimizer") or "")
    settings["memory_metric"] = _memory_metric(row.get("memory_kind") or "")
    _read_parallelism(row, read, text, notes.lower(), named)
    if method in ADAPTER_METHODS:
        _read_adapters(row, read, method, framework)
    _read_deepspeed(read)
    _read_switches(row, read, framework)
    return read


def _read_parallelism(row: Row, read: RunRow, text: str, notes: str, framework: str) -> None:
    settings = read.settings
    sizes = _parallelism(text, notes)
    gpus = float(settings["gpu_count"] or 1)
    settings["tensor_parallel"], settings["pipeline_parallel"] = sizes.get("tp", 1.0), sizes.get("pp", 1.0)
    settings["context_parallel"], settings["expert_parallel"] = sizes.get("cp"), sizes.get("ep")
    batch = row.get("grad_accum_or_global_batch") or ""
    if not sizes and _fills_the_batch(batch, float(settings["micro_batch"] or 1), gpus):
        sizes = {"tp": 1.0}
    if "tp" not in sizes and settings["stack"] == "te" and gpus > 1 and "fsdp" not in text:
        settings["tensor_parallel"] = settings["pipeline_parallel"] = None
        read.assumptions.append(("tensor_parallel", "the least with which the weights fit"))
    settings["sharding"] = _sharding(text, framework, gpus, number(row, "nodes"))
    offloaded = re.search(r"(?<!no )(?<!without )(?<!not )\boffload(?!\w* setting)", text) or re.search(
        r"\(cpu", (row.get("optimizer") or "").lower()
    )
    settings["offload"] = "cpu" if offloaded else None
    model_parallel = sizes.get("tp", 1.0) * sizes.get("pp", 1.0) * sizes.get("cp", 1.0)
    if gpus % model_parallel:
        raise RunError(f"parallelism '{text}': {gpus:g} GPUs are not a multiple of its {model_parallel:g}")
    settings["grad_accum"] = _grad_accum(
        batch,
        float(settings["seq_len"] or 0),
        float(settings["micro_batch"] or 1),
        sizes.get("dp") or max(1.0, gpus / model_parallel),
    )


def _read_adapters(row: Row, read: RunRow, method: str, framework: Framework | None) -> None:
    settings = read.settings
    settings["lora_rank"] = number(row, "lora_rank")
    targets = (row.get("lora_targets") or "").strip()
    settings["lora_targets"] = lora_targets_of(targets)
    if targets and settings["lora_targets"] is None and not _ALL_LINEAR.match(targets.lower()):
        read.assumptions.append(("lora_targets", f"'{targets}' read as all linear layers"))
    settings["lora_dropout"] = framework.lora_dropout if framework else None
    if method != "qlora":
        return
    notes = f"{row.get('framework') or ''} {row.get('notes') or ''} {row.get('precision') or ''}".lower()
    if re.search(r"(nv|mx)fp4", notes):
        raise RunError("frozen weights in NVFP4 or MXFP4 are not estimated")
    settings["kbit_upcast"] = framework.kbit_upcast if framework else None
    if framework and framework.casts_back and settings["training_precision"] == "bf16":
        settings["kbit_upcast"] = 0.0
    if row.get("quant_bits") == "8":
        settings["quantization"] = "int8"
    elif re.search(r"gptq|\bint checkpoint", notes):
        settings["quantization"] = "gptq"
    elif re.search(r"nf4-dq|double quant", notes):
        settings["quantization"] = "nf4dq"
    else:
        settings["quantization"] = framework.quantization if framework else "nf4"


def _read_deepspeed(read: RunRow) -> None:
    """Set DeepSpeed's precision: it casts the module, including adapters and norms, and keeps fp32 copies.

    See deepspeed/runtime/engine.py, _configure_distributed_model.
    """
    settings = read.settings
    if settings["stack"] != "hf" or settings["sharding"] not in ("zero2", "zero3"):
        return
    if settings["method"] == "full" and settings["training_precision"] == "bf16":
        settings["training_precision"] = "deepspeed_bf16"
    elif settings["method"] in ADAPTER_METHODS:
        settings["adapter_bytes"], settings["autocast"] = 2.0, 0.0
        if settings["method"] == "qlora":
            settings["kbit_upcast"] = 0.0


def _read_switches(row: Row, read: RunRow, framework: Framework | None) -> None:
    settings = read.settings
    text = (row.get("grad_checkpointing") or "").strip().lower()
    found = _meant(_CHECKPOINTING, text)
    if found is None:
        raise RunError(f"grad_checkpointing '{text}' is not understood: yes, no, partial or unknown")
    settings["checkpointing"], offload = found
    if found[0] is None:
        settings["checkpointing"], offload = _checkpointing_of(framework)
        read.assumptions.append(("checkpointing", str(settings["checkpointing"])))
    if offload:
        settings["offload"] = "cpu+act" if settings["offload"] == "cpu" else offload
    text = (row.get("flash_attention") or "").strip().lower()
    settings["flash_attention"] = _meant(_FLASH_ATTENTION, text)
    if settings["flash_attention"] is None:
        raise RunError(f"flash_attention '{text}' is not understood: yes, no or unknown")
    if re.search(_OPEN, text):
        read.assumptions.append(("flash_attention", "1"))


def _checkpointing_of(framework: Framework | None) -> tuple[str, str | None]:
    return (framework.checkpointing, framework.offload) if framework else ("none", None)
