"""One row of catalog/traces.csv per trace: the memory of each phase by category, and the work of a step."""

from pipeline.model.tracing.result import Trace
from pipeline.model.tracing.timeline import Category, Phase

PHASES = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)

KEYS = ("recipe", "model", "layers", "micro_batch", "seq_len", "compute_capability")
"""Columns that name a trace."""


def columns() -> tuple[str, ...]:
    """Columns of the table, in order; bytes unless the name says otherwise."""
    memory = tuple(
        f"{phase}_{name}"
        for phase in PHASES
        for name in ("allocated_bytes", "reserved_bytes", *(f"{category}_bytes" for category in Category))
    )
    return (*KEYS, "resident_bytes", "trainable_parameters", *memory)


def row(trace: Trace, layers: int) -> dict[str, str | int]:
    """A trace as a row; ``layers`` is the depth that was traced. Phases that the step never entered count 0."""
    major, minor = trace.shape.compute_capability
    values: dict[str, str | int] = dict.fromkeys(columns(), 0)
    values |= {
        "recipe": trace.recipe.name, "model": trace.shape.model, "layers": layers,
        "micro_batch": trace.shape.micro_batch, "seq_len": trace.shape.seq_len,
        "compute_capability": f"{major}.{minor}", "resident_bytes": trace.resident_bytes,
        "trainable_parameters": trace.trainable_parameters,
    }  # fmt: skip
    for phase in trace.phases:
        values[f"{phase.phase}_allocated_bytes"] = phase.allocated_bytes
        values[f"{phase.phase}_reserved_bytes"] = phase.reserved_bytes
        for category, size in phase.by_category.items():
            values[f"{phase.phase}_{category}_bytes"] = size
    return values
