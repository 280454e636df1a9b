"""Reads rows of the published compilation of runs as run settings.

The compilation names GPUs, models, frameworks and parallelism in free text. Settings that a row leaves open
are listed in its assumptions.
"""

import calendar
import re
from collections.abc import Callable, Mapping

from pipeline.contracts.training import ADAPTER_METHODS, METHODS
from pipeline.model.denials import affirmed, denied
from pipeline.model.frameworks import Framework, reject_other_methods, set_framework
from pipeline.model.model_names import Architecture, RunError
from pipeline.model.parallelism import group_sizes, meant, network_gbps, read_batch, sharding_of
from pipeline.model.run_settings import Row, RunRow, Settings, number, set_model, software_date
from pipeline.model.unread_words import unread_words

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


# Maps words to the form of checkpointing and its offload. Megatron's selective recomputation of attention,
# norms and activation functions counts as no checkpointing: flash attention and fused kernels do the same.
# Patterns that end in .* leave nothing behind them that could deny them.
_CHECKPOINTING: tuple[tuple[str, tuple[str | None, str | None]], ...] = (
    (r"^(unknown|not stated|recipe|no \(not stated|n/a|default|auto).*|^$", (None, None)),
    (r"^selective: *(.*[+, ])?(mlp|moe)\b.*", ("sac", None)),
    (r"^selective:.*", ("none", None)),
    (r"^unsloth", ("full", "act")),
    (r"^(partial|selective|sac\b)", ("sac", None)),
    (r"^((yes|true|full|enabled|on|all)\b|(y|1|1\.0)$|fsdp activation)", ("full", None)),
    (r"^((no|none|false|disabled|off|without|not used|not enabled)\b.*|(n|0|0\.0)$)", ("none", None)),
)
_STORED_ELSEWHERE = r"\bunsloth\b|\boff-?loaded to cpu"
_OPEN = r"^(unknown|not stated|n/a)|^$"
_FAST_ATTENTION = r"flash|\bfa-?[234]\b|sdpa|cudnn|flex|xformers"
_FLASH_ATTENTION = (
    (_OPEN, 1.0),
    (r"^((no|none|false|off|disabled|eager|math|naive|vanilla|without)\b|(n|0|0\.0)$)|\bmath\b", 0.0),
    (rf"^((yes|true|on|enabled|auto|te|fa-?[234])\b|(y|1|1\.0)$)|{_FAST_ATTENTION}", 1.0),
)
_ACTIVATIONS_OFFLOADED = re.compile(
    r"\bactivations?(?:[ _-]checkpoint(?:s|ing)?)?(?:[ _-]cpu)?[ _-]off-?load(?:ed|ing)?\b"
    r"|\boffload(?:s|ed|ing)?(?: of)?(?: the)? (?:activations|checkpoints)\b"
)
_WEIGHTS_OFFLOADED = re.compile(
    r"\b(?:cpu|param(?:eter)?s?|weights?|optimizer(?:[ _-]states?)?)[ _-]off-?load"
    r"|\boffload(?:s|ed|ing)?(?: of)?(?: the)? (?:param(?:eter)?s|weights|optimizer)\b"
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
    if optimizer := meant(_OPTIMIZERS, lowered):
        return optimizer
    raise RunError(f"optimizer '{text}': the size of its state is not known (AdamW and its 8-bit forms are)")


_OPTIMIZER_IN_NOTES = re.compile(r"\bpaged[ _-]?adamw?(?:[ _-]?(?:8|32)[ -]?bit)?\b")


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = affirmed(pattern, text)
    return found[0] if found else ""


# Under FSDP, accelerate holds them in fp32 all the same.
_WEIGHTS_IN_BF16 = r"\bweights (?:in )?b(?:f|float)16|\bb(?:f|float)16 (?:master )?weights"


def _policy(text: str, method: str, framework: Framework | None, is_fsdp: bool) -> str:
    """Return the precision policy that a row states, or else the policy of its framework and method."""
    if text.startswith("fp32"):
        return "fp32"
    if affirmed(r"fp16|float16", text) and "bf16" not in text and "bfloat16" not in text:
        return "fp16"
    if method in ADAPTER_METHODS or affirmed(r"pure|-true", text):
        return "bf16"
    if affirmed(_WEIGHTS_IN_BF16, text) and not affirmed("fp32", text) and not is_fsdp:
        return "bf16"
    if method == "pretrain" or affirmed(r"autocast|mixed", text):
        return "amp"
    return framework.full_precision if framework else "bf16"


# Frozen weights as the precision column names them, and their bits.
_FROZEN = ((r"\bnf4|\bint4\b|(?<!\d)4[ -]?bit", "4"), (r"\bint8\b|(?<!\d)8[ -]?bit", "8"))
_NOT_FROZEN = r"awq|aqlm|hqq|\bint3\b|(?<!\d)3[ -]?bit"
_QUANTIZED = "|".join((_NOT_FROZEN, r"gptq|(?<!un)quanti[sz]ed", *(pattern for pattern, _ in _FROZEN)))


def _method_and_bits(row: Row) -> tuple[str, str]:
    """Return the method (qlora if adapters train over weights of 4 or 8 bits) and the bits, "" if not stated.

    Raises RunError for an unknown method, other bits, and bits that the precision column contradicts.
    """
    method = (row.get("method") or "").strip().lower()
    if method not in METHODS:
        raise RunError(f"method '{method}' is not one of {', '.join(METHODS)}")
    bits = (row.get("quant_bits") or "").strip()
    if bits not in ("", "4", "8", "16", "32"):
        raise RunError(f"quant_bits: '{bits}' is not 4 or 8")
    if method in ADAPTER_METHODS:
        precision = row.get("precision") or ""
        named = meant(_FROZEN, precision.lower())
        if named and bits not in ("", named):
            raise RunError(f"precision '{precision}' goes with quant_bits {named}, not with {bits}")
        bits = bits or named or ""
    if bits in ("4", "8"):
        if method not in ADAPTER_METHODS:
            raise RunError(f"quant_bits: {bits} goes with adapters, not with method {method}")
        method = "qlora"
    return method, bits


def _freezes_fp8(row: Row, settings: Settings) -> bool:
    """True if frozen weights are held in fp8: those of MLPerf's entries are (fp8_params follows FP8 in
    mlcommons/training_results_v4.0: NVIDIA/benchmarks/llama2_70b_lora), other engines' are on request."""
    said = " | ".join(row.get(column) or "" for column in ("precision", "framework", "notes")).lower()
    of_mlperf = (row.get("source") or "").lower().startswith("mlperf") and settings["stack"] == "te"
    return of_mlperf or bool(affirmed(r"\bfp8[ _](?:frozen |base )?(?:param|weight)s?", said))


def _precision(row: Row, method: str, framework: Framework | None, settings: Settings) -> None:
    text = row.get("precision") or ""
    lowered, is_fsdp = text.lower(), "fsdp" in (row.get("parallelism") or "").lower()
    if affirmed(_NOT_FROZEN if method == "qlora" else _QUANTIZED, lowered):
        raise RunError(f"precision '{text}': quantized weights are method qlora with column quant_bits")
    if affirmed("tf32", lowered):
        raise RunError(f"precision '{text}': products in TF32 are not estimated")
    settings["training_precision"] = _policy(lowered, method, framework, is_fsdp)
    if method in ADAPTER_METHODS and affirmed(r"autocast|mixed", lowered):
        settings["autocast"] = 1.0
    if affirmed("fp8", lowered):
        settings["fp8"] = 1.0
    if affirmed("fp4", lowered) and "nf4" not in lowered:
        settings["fp8"] = 2.0
    if affirmed("fp32", lowered):
        settings["weight_bytes"] = 4.0
    if settings.get("fp8") == 1.0 and method == "lora" and _freezes_fp8(row, settings):
        settings["weight_bytes"] = 1.0


_ABOUT = re.compile(r"^(?:~|≈|about|approx(?:imately|\.)?|ca\.?|circa) *(?=\d)")
_GPUS_IN_TEXT = (
    r"(?<![\w.~/-])(\d+)(?: ?[x*×] ?|[ -])(?:[a-z0-9]+ )?(?:gpus?|cards?|accelerators?)\b",
    r"(?<![\w.~/-])(\d+) ?[x*×] ?(?:nvidia |amd |rtx |mi)*[a-z]{0,3}\d{2,4}",
    r"\bgpu count[^\d;,]*(\d+)",
)


def _length(row: Row, read: RunRow) -> float | None:
    """Return the tokens in a sequence; a length that a row calls approximate is an assumption."""
    text = (row.get("seq_len") or "").strip().lower()
    rounded = _ABOUT.sub("", text)
    length = number({"seq_len": rounded}, "seq_len")
    if rounded != text:
        read.assumptions.append(("seq_len", f"{rounded}, given as '{text}'"))
    return length


def _gpu_count(row: Row, read: RunRow) -> float:
    gpus = number(row, "gpu_count")
    if gpus is not None:
        return gpus
    text = (row.get("parallelism") or "").strip().lower()
    words = f"{text} | {row.get('notes') or ''}".lower()
    named = {found for pattern in _GPUS_IN_TEXT for found in re.findall(pattern, words)}
    if len(named) == 1 and (number(row, "nodes") or 1) == 1:
        count = named.pop()
        read.assumptions.append(("gpu_count", f"{count}, from the text"))
        return number({"gpu_count": count}, "gpu_count") or 1.0
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
    text = (row.get("parallelism") or "").strip().lower()
    source, named, notes = row.get("source") or "", row.get("framework") or "", row.get("notes") or ""
    reject_other_methods(row.get("method") or "", named, notes)
    method, bits = _method_and_bits(row)
    read = RunRow({"run_id": row.get("id"), "method": method})
    settings = read.settings
    if month := _month_of(row):
        settings["software_date"] = software_date(month)
    elif date := (row.get("date") or "").strip():
        read.assumptions.append(("software_date", f"date '{date}' has no month or year: left out"))
    set_model(read, row.get("model") or "", row, known)
    settings["gpu"] = gpu_of(row.get("gpu") or "", read)
    settings["gpu_count"] = gpus = _gpu_count(row, read)
    settings["node_count"] = number(row, "nodes")
    settings["seq_len"] = _length(row, read)
    settings["micro_batch"] = number(row, "micro_batch_per_gpu")
    is_mixture = known[str(settings["model"])].experts > 1
    framework = set_framework(read, named, source, notes, is_mixture)
    # Within one rack of GB200 or GB300, NVLink connects the nodes, so the network named in a row is unused.
    if not (str(settings["gpu"]).startswith(("gb200", "gb300")) and gpus <= 72):
        settings["node_network_gbps"] = network_gbps(f"{row.get('interconnect') or ''} | {notes}")
    _precision(row, method, framework, settings)
    settings["optimizer"] = _optimizer(row.get("optimizer") or _first(_OPTIMIZER_IN_NOTES, notes.lower()))
    settings["memory_metric"] = _memory_metric(row.get("memory_kind") or "")
    _read_parallelism(row, read, text, notes.lower(), framework)
    if method in ADAPTER_METHODS:
        _read_adapters(row, read, bits, framework)
    _read_deepspeed(read)
    _read_switches(row, read, framework)
    for column, words in unread_words(row):
        read.assumptions.append((column, f"'{words}' is not understood: bands doubled"))
        read.extrapolated = True
    return read


FRAMEWORK_SETTINGS = (
    "stack", "loss_kernel", "training_precision", "autocast", "adapter_bytes", "weight_bytes", "quantization",
    "kbit_upcast", "lora_dropout", "sharding", "tensor_parallel", "pipeline_parallel", "checkpointing",
    "offload",
)  # fmt: skip
"""Settings for which frameworks have defaults."""
_IN_WORDS = {"checkpointing": {"none": "no", "sac": "partial", "full": "yes"}, "quantization": {"int8": "8"}}
_COLUMNS_OF = {
    "method": "method", "model": "model", "gpu": "gpu", "gpu_count": "gpu_count", "node_count": "nodes",
    "software_date": "date", "sharding": "parallelism", "training_precision": "precision",
    "checkpointing": "grad_checkpointing", "quantization": "quant_bits",
}  # fmt: skip


def framework_settings(
    framework: str, run: Row, known: Mapping[str, Architecture], gpu_of: Callable[[str, RunRow], str]
) -> Settings:
    """Return what ``read_published`` takes for the settings of a framework that ``run``, a row in the layout
    of catalog/measured_runs.csv, leaves open. Raises RunError."""
    row = {column: run.get(name) or "" for name, column in _COLUMNS_OF.items()}
    for name, words in _IN_WORDS.items():
        row[_COLUMNS_OF[name]] = words.get(run.get(name) or "", "")
    read = read_published(row | {"framework": framework}, known, gpu_of)
    found = ((name, read.settings.get(name)) for name in FRAMEWORK_SETTINGS)
    return {name: value for name, value in found if value is not None and not run.get(name)}


_SHARDING_IN_NOTES = re.compile(r"\b(?:zero[ -]?[123]|fsdp2?|ddp)\b")
_STACKS_WITH_CONTEXT_PARALLELISM = ("te", "compile", "hf", "liger")


def _read_parallelism(row: Row, read: RunRow, text: str, notes: str, framework: Framework | None) -> None:
    settings = read.settings
    named = row.get("framework") or ""
    sizes = group_sizes(text, notes, str(settings["stack"]))
    gpus = float(settings["gpu_count"] or 1)
    settings["tensor_parallel"], settings["pipeline_parallel"] = sizes.get("tp", 1.0), sizes.get("pp", 1.0)
    settings["context_parallel"], settings["expert_parallel"] = sizes.get("cp"), sizes.get("ep")
    batch = read_batch(row.get("grad_accum_or_global_batch") or "", float(settings["seq_len"] or 0))
    micro_batch = float(settings["micro_batch"] or 1)
    if not sizes and batch.micro_steps and batch.at_once(micro_batch) == gpus:
        # Each GPU has its own sequences.
        sizes = {"tp": 1.0}
    said = text or _first(_SHARDING_IN_NOTES, notes)
    settings["sharding"] = sharding_of(said, named, gpus, number(row, "nodes"))
    if settings["sharding"] is None and framework and gpus > 1:
        settings["sharding"] = framework.sharding
    shards = settings["sharding"] in ("fsdp", "zero3")
    if "tp" not in sizes and settings["stack"] == "te" and gpus > 1 and not shards:
        settings["tensor_parallel"] = settings["pipeline_parallel"] = None
        read.assumptions.append(("tensor_parallel", "the least with which the weights fit"))
    settings["offload"] = _offload_of(row, f"{named} | {notes}".lower())
    model_parallel = sizes.get("tp", 1.0) * sizes.get("pp", 1.0) * sizes.get("cp", 1.0)
    if gpus % model_parallel:
        raise RunError(f"parallelism '{text}': {gpus:g} GPUs are not a multiple of its {model_parallel:g}")
    data_parallel = sizes.get("dp") or max(1.0, gpus / model_parallel)
    settings["grad_accum"] = batch.steps_on(data_parallel, micro_batch)
    if settings["grad_accum"] is None and (stages := sizes.get("pp", 1.0)) > 1:
        # With four micro-batches for each stage, few wait (Huang et al. 2019, GPipe, section 2.3).
        settings["grad_accum"] = 4.0 * stages
        read.assumptions.append(("grad_accum", f"{4 * stages:g}, four for each pipeline stage"))
    if settings["stack"] in _STACKS_WITH_CONTEXT_PARALLELISM and not {"cp", "dp"} & set(sizes):
        read.at_once = batch.at_once(micro_batch)


def _offload_of(row: Row, elsewhere: str) -> str | None:
    """Return what a row says to be kept in host memory: weights (cpu), stored activations (act) or both."""
    text, optimizer = ((row.get(column) or "").lower() for column in ("parallelism", "optimizer"))
    acts = any(affirmed(_ACTIVATIONS_OFFLOADED, each) for each in (text, elsewhere))
    rest = _ACTIVATIONS_OFFLOADED.sub("", text)
    weights = (
        affirmed(r"\boff-?load(?!\w* setting)|(?<=_)offload", rest)
        or affirmed(r"\(cpu", optimizer)
        or affirmed(_WEIGHTS_OFFLOADED, elsewhere)
    )
    return "+".join(name for name, found in (("cpu", weights), ("act", acts)) if found) or None


_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if number}
_NAMED_MONTH = re.compile(rf"\b({'|'.join(_MONTHS)})[a-z]*\.?,? (?:\d\d?,? )?(20\d\d)\b")


def _month_of(row: Row) -> str | None:
    """Return the month of a row's date as YYYY-MM, July if only the year or a quarter is known; None if the
    date has no year at a place where dates have it."""
    date = (row.get("date") or "").strip().lower()
    if release := re.match(r"(\d\d)\.(0\d|1[0-2])(?!\d)", date):
        # NVIDIA's containers are named after the month.
        return f"20{release[1]}-{release[2]}"
    if named := _NAMED_MONTH.search(date):
        return f"{named[2]}-{_MONTHS[named[1]]:02d}"
    if quarter := re.match(r"q[1-4][ /-]*(20\d\d)\b|(20\d\d)[ /-]*q[1-4]\b", date):
        return f"{quarter[1] or quarter[2]}-07"
    found = re.match(r"(20\d\d)(?:[-/](0[1-9]|1[0-2]|[1-9](?!\d)))?(?!\d)", date)
    return f"{found[1]}-{(found[2] or '7').zfill(2)}" if found else None


_DOUBLE = r"nf4-dq|double[ _-]quant"


def _read_adapters(row: Row, read: RunRow, bits: str, framework: Framework | None) -> None:
    settings = read.settings
    settings["lora_rank"] = number(row, "lora_rank")
    targets = (row.get("lora_targets") or "").strip()
    settings["lora_targets"] = lora_targets_of(targets)
    if targets and settings["lora_targets"] is None and not _ALL_LINEAR.match(targets.lower()):
        read.assumptions.append(("lora_targets", f"'{targets}' read as all linear layers"))
    settings["lora_dropout"] = framework.lora_dropout if framework else None
    if settings["method"] != "qlora":
        return
    notes = f"{row.get('framework') or ''} {row.get('notes') or ''} {row.get('precision') or ''}".lower()
    if affirmed(r"(nv|mx)fp4", notes):
        raise RunError("frozen weights in NVFP4 or MXFP4 are not estimated")
    settings["kbit_upcast"] = framework.kbit_upcast if framework else None
    if framework and framework.stack == "hf" and settings["kbit_upcast"] is None:
        # Liger's kernels change nothing of how the Trainer prepares a model of 4 or 8 bits.
        settings["kbit_upcast"] = 1.0 if settings["stack"] == "liger" else None
        month = _month_of(row)
        if framework.unprepared_since and month and month >= framework.unprepared_since:
            settings["kbit_upcast"], settings["adapter_bytes"] = 0.0, 2.0
        elif framework.casts_back and settings["training_precision"] == "bf16" and bits != "8":
            settings["kbit_upcast"] = 0.0
    settings["quantization"] = _quantization(bits, notes, framework)


def _quantization(bits: str, notes: str, framework: Framework | None) -> str:
    if bits == "8":
        return "int8"
    if affirmed(r"gptq|\bint checkpoint", notes):
        return "gptq"
    if affirmed(_DOUBLE, notes):
        return "nf4dq"
    return framework.quantization if framework and not denied(_DOUBLE, notes) else "nf4"


def _read_deepspeed(read: RunRow) -> None:
    """Set DeepSpeed's precision: it casts the module, including adapters and norms, and keeps fp32 copies.

    See deepspeed/runtime/engine.py, _configure_distributed_model.
    """
    settings = read.settings
    if settings["stack"] not in ("hf", "liger") or settings["sharding"] not in ("zero2", "zero3"):
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
    found = meant(_CHECKPOINTING, text)
    if found is None:
        raise RunError(f"grad_checkpointing '{text}' is not understood: yes, no, partial or unknown")
    settings["checkpointing"], offload = found
    if found[0] is None:
        settings["checkpointing"], offload = _checkpointing_of(framework)
        read.assumptions.append(("checkpointing", str(settings["checkpointing"])))
    elsewhere = " | ".join(row.get(column) or "" for column in ("parallelism", "framework", "notes")).lower()
    if denied(_ACTIVATIONS_OFFLOADED, elsewhere) or denied(r"\boff-?load", text):
        settings["offload"] = "cpu" if settings["offload"] in ("cpu", "cpu+act") else None
    elif offload or affirmed(_ACTIVATIONS_OFFLOADED, text) or affirmed(_STORED_ELSEWHERE, text):
        settings["offload"] = "cpu+act" if settings["offload"] in ("cpu", "cpu+act") else "act"
    text = (row.get("flash_attention") or "").strip().lower()
    is_off = denied(_FAST_ATTENTION, text)
    settings["flash_attention"] = 0.0 if is_off else meant(_FLASH_ATTENTION, text)
    if settings["flash_attention"] is None:
        raise RunError(f"flash_attention '{text}' is not understood: yes, no or unknown")
    if re.search(_OPEN, text):
        read.assumptions.append(("flash_attention", "1"))


def _checkpointing_of(framework: Framework | None) -> tuple[str, str | None]:
    return (framework.checkpointing, framework.offload) if framework else ("none", None)
