"""Reads a row of a run file as the settings of a run, named like the columns of catalog/measured_runs.csv."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from pipeline.contracts.training import CHECKPOINTINGS, METHODS, STACKS
from pipeline.model.model_names import Architecture, RunError, Size, find_model, vocabulary_of

Row = Mapping[str, str]
Settings = dict[str, str | float | None]

OPTIMIZERS = {
    **{each: each for each in ("adamw", "adamw_foreach", "adamw_fused", "adamw8bit")},
    **{each: each for each in ("adamw_inbwd", "adamw8bit_inbwd")},
    **{each: each for each in ("paged8bit", "paged32", "paged8bit_inbwd", "paged32_inbwd")},
    "adamw_torch": "adamw", "adamw_torch_fused": "adamw_fused", "adamw_8bit": "adamw8bit",
    "adamw_bnb_8bit": "adamw8bit", "paged_adamw_8bit": "paged8bit", "paged_adamw_32bit": "paged32",
}  # fmt: skip
"""The names that people and the Transformers Trainer give to optimizers, mapped to the names in sql/model."""
MODEL_COLUMNS = ("params_b", "active_params_b")
"""Columns that give the size, in 10^9 parameters, of a model that is missing from the catalogue."""
TEXTS: Mapping[str, Collection[str]] = {
    "run_id": (),
    "model": (),
    "gpu": (),
    "lora_targets": (),
    "method": METHODS,
    "quantization": ("none", "nf4", "nf4dq", "gptq", "int8"),
    "training_precision": ("bf16", "amp", "deepspeed_bf16", "fp32", "fp16"),
    "optimizer": set(OPTIMIZERS.values()),
    "sharding": ("none", "ddp", "zero1", "zero2", "zero3", "fsdp"),
    "checkpointing": CHECKPOINTINGS,
    "stack": STACKS,
    "loss_kernel": ("hf", "fp32std", "16bit", "liger", "fused", "chunked", "litgpt", "titan", "outside"),
    "offload": ("act", "cpu", "cpu+act"),
    "cuda_graph": ("none", "parts", "step"),
    "memory_metric": ("alloc", "reserved", "smi"),
}
"""The settings of a run that memory_of and speed_of take as strings, with the values allowed (empty: any)."""
_WHOLE = (
    "gpu_count", "node_count", "lora_rank", "tensor_parallel", "pipeline_parallel", "virtual_pipeline",
    "context_parallel", "expert_parallel", "micro_batch", "seq_len", "grad_accum",
)  # fmt: skip
_SWITCHES = {"kbit_upcast": 1, "autocast": 1, "flash_attention": 2, "fp8": 2}
"""The settings whose values are numbered choices, each with its largest value."""
_MAY_BE_ZERO = {*_SWITCHES, "lora_rank", "lora_dropout"}
SETTINGS = (
    *TEXTS,
    "software_date",
    *_WHOLE,
    *_SWITCHES,
    "lora_dropout",
    "adapter_bytes",
    "weight_bytes",
    "node_network_gbps",
    "looped_sequences",
)
"""All settings of a run."""
LORA_TARGETS = (
    "q_proj", "k_proj", "v_proj", "o_proj", "qkv_fused", "gate_proj", "up_proj", "down_proj", "lm_head",
)  # fmt: skip
"""The layers that ``adapted_sides`` in sql/model knows, and the head."""
MOST = 1e9
"""The largest plausible value of a setting: more GPUs, tokens or steps must be a typo."""


@dataclass(slots=True)
class RunRow:
    """Settings in the model's layout, and the assumptions made, each as a setting's name and a description.

    ``scaled_to`` is set if the model's shape is unknown and ``settings['model']`` is its likeness;
    ``extrapolated`` is True if anything else is unknown, so that no published run gives evidence for it.
    """

    settings: Settings
    assumptions: list[tuple[str, str]] = field(default_factory=list)
    scaled_to: Size | None = None
    vocab: int | None = None
    """The tokens in the vocabulary of a model of unknown shape, if its family is known by its name."""
    extrapolated: bool = False
    at_once: float | None = None
    """The micro-batches on which all GPUs work at a time, if GPUs may have to share them."""


def number(row: Row, column: str) -> float | None:
    """Return a positive number; None if the column is empty or absent. Raises RunError for anything else."""
    text = (row.get(column) or "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise RunError(f"{column}: '{text}' is not a number") from None
    if not math.isfinite(value) or value <= 0:
        raise RunError(f"{column}: {text} is not a positive number")
    if value > MOST:
        raise RunError(f"{column}: {text} is more than in any run")
    if column in _WHOLE and value != int(value):
        raise RunError(f"{column}: {text} is not a whole number")
    return value


def set_model(read: RunRow, name: str, row: Row, known: Mapping[str, Architecture]) -> None:
    """Set the row's model: one of known shape, or the model nearest in size, with the size to scale it to.

    Raises RunError if neither the shape nor the size is known.
    """
    model, size = find_model(name, number(row, "params_b"), known, number(row, "active_params_b"))
    read.settings["model"] = model
    if size is not None:
        read.scaled_to = size
        family = vocabulary_of(name, model, known)
        read.vocab = family.vocab if family else None
        said = f"the vocabulary of {family.model}" if family else "vocabulary, too"
        scaled = "layers and experts" if size.active_b < size.params_b else "layers"
        active = f", {size.active_b:.3g}B active" if size.active_b < size.params_b else ""
        read.assumptions.append(
            (
                "model",
                f"'{name}' is not in the catalogue, shaped like {model} scaled to {size.params_b:.4g}B"
                f"{active}: extrapolated, bands doubled ({scaled} scaled, width and heads as there, {said})",
            )
        )


def software_date(text: str) -> str:
    """Return the first day of a month given as YYYY-MM or YYYY-MM-DD. Raises RunError for anything else, and
    for a month after today's."""
    try:
        day = date.fromisoformat(f"{text}-01" if len(text) == len("2026-01") else text)
    except ValueError:
        raise RunError(f"software_date: '{text}' is not a month such as 2026-08") from None
    if day.replace(day=1) > datetime.now(UTC).date():
        raise RunError(f"software_date: {text} is in the future")
    return day.replace(day=1).isoformat()


def _setting(row: Row, column: str) -> str | float | None:
    text = (row.get(column) or "").strip()
    if not text:
        return None
    if column == "software_date":
        return software_date(text)
    if column in TEXTS:
        if allowed := TEXTS[column]:
            text = text.lower()
        if column == "optimizer":
            text = OPTIMIZERS.get(text, text)
        if allowed and text not in allowed:
            raise RunError(f"{column}: '{text}' is not one of {', '.join(sorted(allowed))}")
        if column == "lora_targets":
            _check_targets(text)
        return text
    value = 0.0 if column in _MAY_BE_ZERO and text in ("0", "0.0") else number(row, column)
    if value is not None and column in _SWITCHES and value not in range(_SWITCHES[column] + 1):
        raise RunError(f"{column}: {text} is not a whole number from 0 to {_SWITCHES[column]}")
    return value


def _check_targets(text: str) -> None:
    unknown = [target for target in text.split("+") if target not in LORA_TARGETS]
    if unknown:
        raise RunError(f"lora_targets: '{unknown[0]}' is not one of {', '.join(LORA_TARGETS)}, joined with +")


def check_sharding(settings: Settings) -> None:
    """Raise RunError if a run without sharding has more GPUs than its model is split over."""
    gpus = float(settings.get("gpu_count") or 1)
    groups = ("tensor_parallel", "pipeline_parallel", "context_parallel")
    split = math.prod(float(settings.get(column) or 1) for column in groups)
    if settings.get("sharding") == "none" and split < gpus:
        raise RunError(
            f"sharding: none on {gpus:g} GPUs: ddp where each has a copy of the model, else zero1, "
            "zero2, zero3 or fsdp"
        )


def check_quantization(settings: Settings) -> None:
    """Raise RunError for quantized weights with a method other than qlora, and for unquantized qlora."""
    method, quantization = settings.get("method"), settings.get("quantization")
    if quantization not in (None, "none") and method != "qlora":
        raise RunError(f"quantization: {quantization} goes with method qlora, not with {method}")
    if quantization == "none" and method == "qlora":
        raise RunError("quantization: none with method qlora: lora is the method without")


def check_looped_sequences(settings: Settings) -> None:
    """Raise RunError for packed sequences that a stack other than Megatron would loop over, and for more of
    them than tokens."""
    looped = float(settings.get("looped_sequences") or 0)
    if looped and settings.get("stack") != "te":
        raise RunError("looped_sequences: needs stack te (Megatron), whose packed sequences it describes")
    if looped > float(settings.get("seq_len") or MOST):
        raise RunError(f"looped_sequences: {looped:g} in a packed one of {settings['seq_len']:g} tokens")


def read_run(row: Row, known: Mapping[str, Architecture], gpu_of: Callable[[str, RunRow], str]) -> RunRow:
    """Read one row in the layout of catalog/measured_runs.csv; missing settings are left to the macros.
    Raises RunError if the model, GPU or method is missing, or a value is implausible.
    """
    read = RunRow({column: _setting(row, column) for column in SETTINGS if column not in ("model", "gpu")})
    if read.settings["method"] is None:
        raise RunError(f"method is missing: one of {', '.join(METHODS)}")
    for name in ("model", "gpu"):
        if not (row.get(name) or "").strip():
            raise RunError(f"{name} is missing")
    check_quantization(read.settings)
    check_looped_sequences(read.settings)
    set_model(read, (row.get("model") or "").strip(), row, known)
    read.settings["gpu"] = gpu_of((row.get("gpu") or "").strip(), read)
    if read.settings["sharding"] == "none" and (read.settings["gpu_count"] or 1) == 1:
        read.settings["node_count"] = read.settings["node_count"] or 1.0
    return read
