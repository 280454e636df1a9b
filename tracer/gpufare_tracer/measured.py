"""Maps measured runs to traced recipes, with the help of catalog/traced_stacks.yaml.

A run's columns give most of a recipe; the entry for the run's source adds the switches that the publisher's
own script, configuration and library versions determine, with the evidence.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from gpufare_tracer.card import COMPUTE_CAPABILITIES
from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.kept import read_table
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape
from pipeline.home import paths

STACKS_FILE = "traced_stacks.yaml"


class Rule(BaseModel):
    """A rule for some runs of a source."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    when: dict[str, str | tuple[str, ...]] = {}
    """Maps a column of catalog/measured_runs.csv to the value it must have, or to several allowed values."""
    runs: tuple[tuple[str, str], ...] = ()
    """Ranges of run ids (first, last), one of which must contain the run; empty for all runs."""
    switches: dict[str, Any] = {}
    left_out: str = ""
    """Why these runs cannot be traced; empty if they can."""

    def applies(self, run: Mapping[str, str]) -> bool:
        """Return True if the rule applies to a run."""
        if self.runs and not any(first <= run["run_id"] <= last for first, last in self.runs):
            return False
        return all(
            run.get(column) in ((values,) if isinstance(values, str) else values)
            for column, values in self.when.items()
        )


class Stack(BaseModel):
    """The software behind a source, and the switches that the software adds to a run's columns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    software: dict[str, str] = {}
    """The version of each package that the publisher ran, where known."""
    evidence: str
    """Where the switches and versions were found."""
    switches: dict[str, Any] = {}
    rules: tuple[Rule, ...] = ()


KERNELS = {"hf": "eager", "liger": "liger", "foak": "unsloth"}
OPTIMIZERS = {
    "adamw": "adamw", "adamw_fused": "adamw_fused", "adamw8bit": "adamw8bit", "sgd": "sgd",
    "paged8bit": "paged_adamw8bit", "paged32": "paged_adamw32",
}  # fmt: skip
CHECKPOINTING = {"none": "none", "full": "full"}
LOSSES = {"liger": "fused_linear"}
DTYPES = {"2": "bf16", "4": "fp32"}
FUSED_QKV = ("q_proj", "k_proj", "v_proj")
"""Targets that together stand for one adapter on a fused layer, if the model has such a layer."""


def read_stacks(path: Path | None = None) -> dict[str, Stack]:
    """Return the identified software stacks in catalog/traced_stacks.yaml, keyed by source.

    Raises ``ValueError`` naming the source of an invalid entry.
    """
    raw = yaml.safe_load((path or paths.CATALOG_DIR / STACKS_FILE).read_text(encoding="utf-8"))
    stacks = {}
    for source, entry in raw.items():
        try:
            stacks[source] = Stack.model_validate(entry)
        except ValidationError as error:
            raise ValueError(f"{STACKS_FILE}: {source}: {error}") from error
    return stacks


def recipe_of(run: Mapping[str, str], stacks: Mapping[str, Stack]) -> tuple[Recipe, TraceShape]:
    """Return the recipe and the shape for a row of catalog/measured_runs.csv.

    Raises ``CannotTraceError``, with the reason, if the run's stack is unknown or the run cannot be traced.
    """
    name = f"{run.get('source')}, {run.get('run_id')}"
    stack = stacks.get(run["source"])
    if stack is None:
        raise CannotTraceError(f"{name}: the software of this source is not identified in {STACKS_FILE}")
    switches = _column_switches(run) | stack.switches
    for rule in stack.rules:
        if rule.applies(run):
            if rule.left_out:
                raise CannotTraceError(f"{name}: {rule.left_out}")
            switches |= rule.switches
    try:
        recipe = Recipe.model_validate({"name": run["source"], **switches})
    except ValidationError as error:
        raise CannotTraceError(f"{name}: {error}") from error
    return recipe, TraceShape(
        model=run["model"], micro_batch=int(run["micro_batch"]), seq_len=int(run["seq_len"]),
        compute_capability=_compute_capability(name, run["gpu"]),
    )  # fmt: skip


def _column_switches(run: Mapping[str, str]) -> dict[str, Any]:
    """Return the switches given by a run's columns; an empty column gets the SQL model's default."""
    dtype = DTYPES[run["weight_bytes"] or "2"]
    switches: dict[str, Any] = {
        "framework": "transformers",
        "kernels": _known(KERNELS, run, "stack"),
        "loss": LOSSES.get(run["loss_kernel"], "framework"),
        "method": run["method"],
        "quantization": run["quantization"] or "none",
        "kbit_upcast": run["kbit_upcast"] == "1",
        "weight_dtype": dtype,
        "attention": "sdpa" if run["flash_attention"] == "1" else "eager",
        "optimizer": _known(OPTIMIZERS, run, "optimizer"),
        "checkpointing": _known(CHECKPOINTING, run, "checkpointing"),
        "gradient_accumulation": int(run["grad_accum"] or 1) > 1,
        "sharding": run["sharding"] or "none",
        "gpu_count": int(run["gpu_count"]),
        "cpu_offload": "cpu" in run["offload"].split("+"),
        "activation_offload": "act" in run["offload"].split("+"),
    }
    if run["training_precision"] == "amp":
        switches |= {"weight_dtype": "fp32", "autocast": "bf16"}
    if run["method"] != "full":
        switches["adapter_dtype"] = DTYPES[run["adapter_bytes"] or "4"]
        if run.get("lora_dropout"):
            switches["lora_dropout"] = float(run["lora_dropout"])
        if run["lora_rank"]:
            switches["lora_rank"] = int(run["lora_rank"])
        if run["lora_targets"]:
            switches["lora_targets"] = _targets(run["lora_targets"])
    return switches


def _targets(column: str) -> list[str]:
    names: list[str] = []
    for name in column.split("+"):
        names += FUSED_QKV if name == "qkv_fused" else (name,)
    return names


def _known(names: Mapping[str, str], run: Mapping[str, str], column: str) -> str:
    if run[column] not in names:
        raise CannotTraceError(
            f"{run['source']}, {run['run_id']}: no recipe has {column} {run[column]!r}, "
            f"only {', '.join(sorted(names))}"
        )
    return names[run[column]]


@cache
def _architectures() -> dict[str, str]:
    return {row["gpu_id"]: row["architecture"] for row in read_table(paths.CATALOG_DIR / "gpus.csv")}


def _compute_capability(name: str, gpu: str) -> tuple[int, int]:
    architecture = _architectures().get(gpu, "")
    if architecture not in COMPUTE_CAPABILITIES:
        raise CannotTraceError(f"{name}: {gpu!r} is no CUDA card of catalog/gpus.csv")
    return COMPUTE_CAPABILITIES[architecture]
