"""catalog/traced_runs.csv: measured runs of known software, traced as their publishers ran them.

    gpufare trace-runs --jobs 2

Each run is traced at full depth. After an interruption, the command resumes.
"""

from collections.abc import Callable
from pathlib import Path

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.kept import Job, Kept, Row, digest_of, read_table, write_table
from gpufare_tracer.measured import read_stacks, recipe_of
from gpufare_tracer.result import Trace
from gpufare_tracer.table import PHASES
from pipeline.home import paths

TRACED_RUNS_FILE = "traced_runs.csv"
EMULATED_KERNELS = ("unsloth",)
"""Kernels that are only emulated: a trace with such kernels does not run the code that was measured."""


def columns() -> tuple[str, ...]:
    """Return the table's columns, in order."""
    phases = tuple(f"{phase}_allocated_bytes" for phase in PHASES)
    return (
        "run_id", "recipe", "digest", "is_identified", "versions", "trainable_parameters",
        "resident_bytes", *phases,
        "allocated_bytes", "reserved_bytes", "problem",
    )  # fmt: skip


def trace_runs(jobs: int, show: Callable[[str], None]) -> Path:
    """Trace the measured runs of known software, write the table, and return the table's path."""
    path = paths.CATALOG_DIR / TRACED_RUNS_FILE
    stacks = read_stacks()
    work: dict[str, Job] = {}
    runs: list[Row] = []
    for run in read_table(paths.CATALOG_DIR / "measured_runs.csv"):
        if run["source"] not in stacks or not run["measured_memory_gib"]:
            continue
        row = {"run_id": run["run_id"], "recipe": run["source"], "digest": "", "is_identified": "false"}
        try:
            job = recipe_of(run, stacks)
        except CannotTraceError as error:
            row["problem"] = str(error)
        else:
            is_identified = bool(stacks[run["source"]].software) and job[0].kernels not in EMULATED_KERNELS
            row |= {"digest": digest_of(*job), "is_identified": str(is_identified).lower()}
            work[row["digest"]] = job
        runs.append(row)
    before = {row["digest"]: row for row in read_table(path, columns()) if row["digest"]}
    kept = Kept(path.with_suffix(".journal"), before, _values)
    kept.trace(work.values(), jobs, show)
    rows = [kept.rows.get(row["digest"], {}) | row for row in runs]
    write_table(path, columns(), sorted(rows, key=lambda row: row["run_id"]))
    kept.end()
    return path


def _values(trace: Trace) -> dict[str, int]:
    """Return the columns of the table that come from a trace."""
    peaks = {f"{phase.phase}_allocated_bytes": phase.block_bytes for phase in trace.phases}
    return peaks | {
        "trainable_parameters": trace.trainable_parameters, "resident_bytes": trace.resident_bytes,
        "allocated_bytes": trace.peak.block_bytes,
        "reserved_bytes": max(phase.reserved_bytes for phase in trace.phases),
    }  # fmt: skip
