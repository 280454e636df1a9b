"""One row of catalog/traces.csv per trace: the memory of each phase and moment by category."""

from gpufare_tracer.result import Trace
from gpufare_tracer.timeline import Category, Moment, Phase

PHASES = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)

KEYS = ("recipe", "model", "layers", "micro_batch", "seq_len", "compute_capability")
"""Columns that identify a trace."""


def columns() -> tuple[str, ...]:
    """Return the table's columns, in order; values are bytes unless the column's name says otherwise."""
    memory = tuple(
        f"{phase}_{name}"
        for phase in PHASES
        for name in ("allocated_bytes", "reserved_bytes", *(f"{category}_bytes" for category in Category))
    )
    moments = tuple(
        f"{moment}_{name}"
        for moment in Moment
        for name in ("allocated_bytes", "operation", *(f"{category}_bytes" for category in Category))
    )
    return (*KEYS, "resident_bytes", "trainable_parameters", *memory, *moments)


def row(trace: Trace) -> dict[str, str | int]:
    """Return a trace of a cut model as a row, with 0 for phases that the step never entered."""
    major, minor = trace.shape.compute_capability
    values: dict[str, str | int] = {name: "" if name.endswith("_operation") else 0 for name in columns()}
    values |= {
        "recipe": trace.recipe.name, "model": trace.shape.model, "layers": trace.shape.layers or 0,
        "micro_batch": trace.shape.micro_batch, "seq_len": trace.shape.seq_len,
        "compute_capability": f"{major}.{minor}", "resident_bytes": trace.resident_bytes,
        "trainable_parameters": trace.trainable_parameters,
    }  # fmt: skip
    for phase in trace.phases:
        values[f"{phase.phase}_allocated_bytes"] = phase.allocated_bytes
        values[f"{phase.phase}_reserved_bytes"] = phase.reserved_bytes
        for category, size in phase.by_category.items():
            values[f"{phase.phase}_{category}_bytes"] = size
    for moment in trace.moments:
        values[f"{moment.moment}_allocated_bytes"] = moment.allocated_bytes
        values[f"{moment.moment}_operation"] = moment.operation
        for category, size in moment.by_category.items():
            values[f"{moment.moment}_{category}_bytes"] = size
    return values
