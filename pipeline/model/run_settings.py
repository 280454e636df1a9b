"""A row of a run file as the settings of a run, in the columns of catalog/measured_runs.csv."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pipeline.contracts.training import CHECKPOINTINGS, METHODS, STACKS

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
    "autocast": "DOUBLE",
    "lora_rank": "DOUBLE",
    "lora_targets": "VARCHAR",
    "lora_dropout": "DOUBLE",
    "adapter_bytes": "DOUBLE",
    "training_precision": "VARCHAR",
    "weight_bytes": "DOUBLE",
    "fp8": "DOUBLE",
    "optimizer": "VARCHAR",
    "sharding": "VARCHAR",
    "tensor_parallel": "DOUBLE",
    "pipeline_parallel": "DOUBLE",
    "context_parallel": "DOUBLE",
    "expert_parallel": "DOUBLE",
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
_ALLOWED: Mapping[str, set[str]] = {
    "method": set(METHODS),
    "quantization": {"none", "nf4", "nf4dq", "gptq", "int8"},
    "training_precision": {"bf16", "amp", "deepspeed_bf16", "fp32", "fp16"},
    "sharding": {"none", "ddp", "zero1", "zero2", "zero3", "fsdp"},
    "checkpointing": set(CHECKPOINTINGS),
    "stack": set(STACKS),
    "offload": {"act", "cpu", "cpu+act"},
    "memory_metric": {"alloc", "reserved", "smi"},
}
_MAY_BE_ZERO = {"kbit_upcast", "autocast", "lora_rank", "lora_dropout", "fp8", "flash_attention"}


class RunError(ValueError):
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
class RunRow:
    """Settings in the model's layout, and what had to be assumed to get there.

    ``scaled_to`` is set where the model is not in the catalogue and ``settings['model']`` is its likeness.
    """

    settings: Settings
    assumptions: list[str] = field(default_factory=list)
    scaled_to: Size | None = None


def number(row: Row, column: str) -> float | None:
    """A positive number, None where the column is empty or absent. Raises RunError for anything else."""
    text = (row.get(column) or "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise RunError(f"{column}: '{text}' is not a number") from None
    if not math.isfinite(value) or value <= 0:
        raise RunError(f"{column}: {text} is not a positive number")
    return value


def _canonical(name: str) -> str:
    text = re.sub(r"\(.*?\)", "", name.lower()).strip()
    text = re.sub(r"[\s_/]+", "-", text)
    text = re.sub(r"-(instruct|base|it|pt|chat|hf|like|unsloth|bnb|4bit|v\d+\.\d+|25\d\d)(?=-|$)", "", text)
    return re.sub(r"[^a-z0-9.\-]", "", text).strip("-")


def find_model(
    name: str, params_b: float | None, known: Mapping[str, Architecture]
) -> tuple[str, float | None]:
    """Return (model id, None) for a model named in free text, or (its likeness, its size in 10^9 parameters).

    The likeness is the known dense model nearest in size. Raises RunError where neither the name nor a
    size is given.
    """
    wanted = _canonical(name)
    if wanted in known:
        return wanted, None
    without_dashes = wanted.replace("-", "")
    same = [m for m in known if m.replace("-", "") == without_dashes]
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
            raise RunError(f"model '{name}' is not in the catalogue and its size is not given")
        params_b = float(size.group(1))
    nearest = min(
        (a for a in known.values() if a.experts == 1),
        key=lambda a: (abs(math.log(a.params_total / (params_b * 1e9))), a.model),
    )
    return nearest.model, params_b


def set_model(read: RunRow, name: str, row: Row, known: Mapping[str, Architecture]) -> None:
    """Set the row's model: the catalogue's own, or the nearest in size with the size to scale it to."""
    model, size = find_model(name, number(row, "params_b"), known)
    read.settings["model"] = model
    if size is not None:
        read.scaled_to = Size(size, min(size, number(row, "active_params_b") or size))
        read.assumptions.append(
            f"model: '{name}' is not in the catalogue, shaped like {model} scaled to {size:g}B"
        )


def _setting(row: Row, column: str) -> str | float | None:
    text = (row.get(column) or "").strip()
    if not text:
        return None
    if SETTING_TYPES[column] == "VARCHAR":
        if text not in _ALLOWED.get(column, {text}):
            raise RunError(f"{column}: '{text}' is not one of {', '.join(sorted(_ALLOWED[column]))}")
        return text
    if column in _MAY_BE_ZERO and text in ("0", "0.0"):
        return 0.0
    return number(row, column)


def read_run(row: Row, known: Mapping[str, Architecture], gpu_of: Callable[[str, RunRow], str]) -> RunRow:
    """Read one row of the layout of catalog/measured_runs.csv; missing settings stay open for the macros.

    Raises RunError where model, GPU or method are missing or a value cannot be meant.
    """
    read = RunRow(
        {column: _setting(row, column) for column in SETTING_TYPES if column not in ("model", "gpu")}
    )
    if read.settings["method"] is None:
        raise RunError(f"method is missing: one of {', '.join(METHODS)}")
    for name in ("model", "gpu"):
        if not (row.get(name) or "").strip():
            raise RunError(f"{name} is missing")
    set_model(read, (row.get("model") or "").strip(), row, known)
    read.settings["gpu"] = gpu_of((row.get("gpu") or "").strip(), read)
    if read.settings["sharding"] == "none" and (read.settings["gpu_count"] or 1) == 1:
        read.settings["node_count"] = read.settings["node_count"] or 1.0
    return read
