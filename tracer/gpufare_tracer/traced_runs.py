"""catalog/traced_runs.csv: measured runs of known software, traced as their publishers ran them.

    gpufare trace-runs --jobs 2

Each run is traced at its full depth. Interrupted, it goes on where it was: every finished trace is kept in a
journal beside the table, and traced again only where its recipe, its shape, a package or the tracer (kept.py)
changed.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from gpufare_tracer.architectures import architecture_of
from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.kept import (
    Journal,
    digest_of,
    installed_versions,
    read_table,
    reason_of,
    versions_text,
    write_table,
)
from gpufare_tracer.measured import read_stacks, recipe_of
from gpufare_tracer.processes import in_processes
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import Trace, TraceShape
from gpufare_tracer.table import PHASES
from pipeline.home import paths

TRACED_RUNS_FILE = "traced_runs.csv"
JOURNAL_FILE = "traced_runs.journal"
EMULATED_KERNELS = ("unsloth",)
"""Kernels that are emulated: a run with them does not show that its own code was traced."""

Row = dict[str, Any]
Job = tuple[Recipe, TraceShape]


def columns() -> tuple[str, ...]:
    """Columns of the table, in order."""
    phases = tuple(f"{phase}_allocated_bytes" for phase in PHASES)
    return (
        "run_id", "recipe", "digest", "is_identified", "versions", "trainable_parameters",
        "resident_bytes", *phases,
        "allocated_bytes", "reserved_bytes", "problem",
    )  # fmt: skip


def trace_runs(only: str | None, jobs: int, say: Callable[[str], None], limit: int | None = None) -> Path:
    """Trace the measured runs of one source, or of all known ones, and write the table. Returns its path.

    At most ``limit`` recipes and shapes are traced, one of each kind first; the others are left out.
    """
    stacks = read_stacks()
    runs = [run for run in _measured_runs() if run["source"] in stacks and only in (None, run["source"])]
    rows: list[Row] = []
    keys: dict[str, str] = {}
    identified: dict[str, str] = {}
    work: dict[str, Job] = {}
    for run in runs:
        try:
            job = recipe_of(run, stacks)
        except CannotTraceError as error:
            rows.append(_empty(run["source"]) | {"run_id": run["run_id"], "problem": str(error)})
        else:
            is_identified = bool(stacks[run["source"]].software) and job[0].kernels not in EMULATED_KERNELS
            identified[run["run_id"]] = str(is_identified).lower()
            keys[run["run_id"]] = digest_of(*job)
            work[digest_of(*job)] = job
    traces = _Traces(paths.CATALOG_DIR)
    missing = {key: work[key] for key in _ordered(work) if not traces.has(key)}
    say(f"{len(runs)} runs, {len(work)} recipes and shapes, {len(missing)} of them to trace")
    wanted = list(missing.values())[:limit]
    for done, (index, values) in enumerate(in_processes(_values, wanted, jobs), start=1):
        key, (recipe, shape) = list(missing.items())[index]
        traces.add(key, values)
        told = values["problem"] or f"{values['allocated_bytes'] / 2**30:.3f} GiB"
        size = f"{shape.micro_batch} x {shape.seq_len}"
        say(f"{done}/{len(wanted)} {recipe.name} {shape.model} {size}: {told}")
    sources = {run["run_id"]: run["source"] for run in runs}
    rows += [
        traces.values[digest] | {"run_id": run_id, "digest": digest, "recipe": sources[run_id]}
        for run_id, digest in keys.items()
        if digest in traces.values
    ]
    return _write(
        [row | {"is_identified": identified.get(row["run_id"], "false")} for row in rows],
        None if only is None else {run["run_id"] for run in runs},
    )


def _ordered(work: Mapping[str, Job]) -> list[str]:
    """One shape of each recipe and model first, then a second of each, and so on: a part says most."""
    seen: Counter[str] = Counter()
    turns = {}
    for key in sorted(work, key=lambda key: _order(*work[key])):
        recipe, shape = work[key]
        alike = f"{recipe} {shape.model}"
        turns[key] = seen[alike]
        seen[alike] += 1
    return sorted(turns, key=lambda key: turns[key])  # stable: plain ones first in each turn


def _order(recipe: Recipe, shape: TraceShape) -> tuple[Any, ...]:
    """Plain steps of one GPU first, small ones before large ones."""
    sizes = architecture_of(shape)
    tokens = shape.micro_batch * shape.seq_len
    return recipe.sharding != "none", recipe.kernels != "eager", sizes.layers * sizes.experts, tokens


def _empty(recipe: str) -> Row:
    return dict.fromkeys(columns(), "") | {"recipe": recipe}


def _measured_runs() -> list[dict[str, str]]:
    with (paths.CATALOG_DIR / "measured_runs.csv").open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["measured_memory_gib"]]


def _values(recipe: Recipe, shape: TraceShape) -> Row:
    """The columns of one traced recipe and shape; what prevents it is named in ``problem``."""
    from gpufare_tracer.trace import trace

    values = _empty(recipe.name)
    try:
        found = trace(recipe, shape)
    except Exception as error:  # any framework's own error
        return values | {"problem": reason_of(error)}
    return values | _found(found)


def _found(trace: Trace) -> Row:
    peaks = {f"{phase.phase}_allocated_bytes": phase.block_bytes for phase in trace.phases}
    return peaks | {
        "versions": versions_text(trace.versions), "trainable_parameters": trace.trainable_parameters,
        "resident_bytes": trace.resident_bytes, "allocated_bytes": trace.peak.block_bytes,
        "reserved_bytes": max(phase.reserved_bytes for phase in trace.phases),
    }  # fmt: skip


class _Traces:
    """Finished traces by digest: those of the table, and since it was written those of the journal."""

    def __init__(self, folder: Path) -> None:
        self.journal = Journal(folder / JOURNAL_FILE)
        rows = read_table(folder / TRACED_RUNS_FILE, columns())
        self.values: dict[str, Row] = {row["digest"]: row for row in rows if row["digest"]}
        self.values |= dict(self.journal.lines())

    def has(self, key: str) -> bool:
        """Return True if a trace is known and would be the same today; a failed one is repeated."""
        values = self.values.get(key)
        if not values or values["problem"]:
            return False
        return bool(installed_versions(values["versions"]) == values["versions"])

    def add(self, key: str, values: Row) -> None:
        """Keep a trace on disk before the next one begins."""
        self.values[key] = values
        self.journal.add([key, values])


def _write(rows: Iterable[Row], replaced: set[str] | None) -> Path:
    """Write the table, sorted, and end the journal; rows of other sources stay where only one was traced."""
    path = paths.CATALOG_DIR / TRACED_RUNS_FILE
    rows = list(rows)
    if replaced is not None:
        rows += [row for row in read_table(path, columns()) if row["run_id"] not in replaced]
    write_table(path, columns(), sorted(rows, key=lambda row: row["run_id"]))
    Journal(paths.CATALOG_DIR / JOURNAL_FILE).end()
    return path
