"""catalog/traced_runs.csv: measured runs of known software, traced as their publishers ran them.

    gpufare trace-runs --jobs 2

Each run is traced at its full depth. Interrupted, it goes on where it was: every finished trace is kept in a
journal beside the table, and traced again only where its recipe, its shape or a package changed.
"""

import csv
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pipeline.contracts import paths
from pipeline.model.tracing.grid import installed_versions, quietly, reason_of, versions_text
from pipeline.model.tracing.measured import read_stacks, recipe_of
from pipeline.model.tracing.recipes import Recipe
from pipeline.model.tracing.result import Trace, TraceShape
from pipeline.model.tracing.table import PHASES

TRACED_RUNS_FILE = "traced_runs.csv"
JOURNAL_FILE = "traced_runs.journal"
RUNS_PER_PROCESS = 40

Row = dict[str, Any]
Job = tuple[Recipe, TraceShape]


def columns() -> tuple[str, ...]:
    """Columns of the table, in order."""
    phases = tuple(f"{phase}_allocated_bytes" for phase in PHASES)
    return (
        "run_id", "recipe", "is_identified", "versions", "trainable_parameters", "resident_bytes", *phases,
        "allocated_bytes", "reserved_bytes", "problem",
    )  # fmt: skip


def trace_runs(only: str | None, jobs: int, say: Callable[[str], None]) -> Path:
    """Trace the measured runs of one source, or of all known ones, and write the table. Returns its path."""
    stacks = read_stacks()
    wanted: dict[str, list[tuple[str, bool]]] = {}
    work: dict[str, Job] = {}
    for run in _measured_runs():
        if run["source"] in stacks and only in (None, run["source"]):
            recipe, shape = recipe_of(run, stacks)
            key = digest_of(recipe, shape)
            work[key] = recipe, shape
            wanted.setdefault(key, []).append((run["run_id"], stacks[run["source"]].is_identified))
    journal = _Journal(paths.CATALOG_DIR / JOURNAL_FILE)
    missing = {key: job for key, job in work.items() if not journal.has(key)}
    say(f"{len(work)} recipes and shapes of {sum(map(len, wanted.values()))} runs, {len(missing)} to trace")
    for done, (key, values) in enumerate(_traced(missing, jobs), start=1):
        journal.add(key, values)
        recipe, shape = work[key]
        told = values["problem"] or f"{values['allocated_bytes'] / 2**30:.3f} GiB"
        say(
            f"{done}/{len(missing)} {recipe.name} {shape.model} {shape.micro_batch} x {shape.seq_len}: {told}"
        )
    rows = [
        {"run_id": run_id, "is_identified": str(identified).lower(), **journal.values[key]}
        for key, runs in wanted.items()
        for run_id, identified in runs
    ]
    return _write(rows, None if only is None else {row["run_id"] for row in rows})


def digest_of(recipe: Recipe, shape: TraceShape) -> str:
    """Names what is traced: the switches and the shape."""
    switches = recipe.model_dump(mode="json", exclude_defaults=True, exclude={"title", "source", "emulates"})
    text = json.dumps([switches, shape.model_dump(mode="json", exclude_defaults=True)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _measured_runs() -> list[dict[str, str]]:
    with (paths.CATALOG_DIR / "measured_runs.csv").open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["measured_memory_gib"]]


def _traced(work: Mapping[str, Job], jobs: int) -> Iterator[tuple[str, Row]]:
    """Trace in other processes, each for a few runs: torch keeps some memory for ever."""
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, context, quietly, max_tasks_per_child=RUNS_PER_PROCESS) as pool:
        futures = {pool.submit(_values, *job): key for key, job in work.items()}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _values(recipe: Recipe, shape: TraceShape) -> Row:
    """The columns of one traced recipe and shape; what prevents it is named in ``problem``."""
    from pipeline.model.tracing.trace import trace

    values: Row = dict.fromkeys(columns()[3:], "") | {"recipe": recipe.name}
    try:
        found = trace(recipe, shape)
    except Exception as error:  # any framework's own error
        return values | {"problem": reason_of(error)}
    return values | _found(found)


def _found(trace: Trace) -> Row:
    peaks = {f"{phase.phase}_allocated_bytes": phase.allocated_bytes for phase in trace.phases}
    return peaks | {
        "versions": versions_text(trace.versions), "trainable_parameters": trace.trainable_parameters,
        "resident_bytes": trace.resident_bytes, "allocated_bytes": trace.peak.allocated_bytes,
        "reserved_bytes": max(phase.reserved_bytes for phase in trace.phases),
    }  # fmt: skip


class _Journal:
    """Finished traces by digest, one JSON line each; those of other package versions do not count."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values: dict[str, Row] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                key, values = json.loads(line)
                self.values[key] = values

    def has(self, key: str) -> bool:
        """Whether a trace is known and would be the same today; one that failed is tried again."""
        values = self.values.get(key)
        if not values or values["problem"]:
            return False
        return installed_versions(values["versions"]) == values["versions"]

    def add(self, key: str, values: Row) -> None:
        """Keep a trace on disk before the next one begins."""
        self.values[key] = values
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, values]) + "\n")


def _write(rows: Iterable[Row], replaced: set[str] | None) -> Path:
    """Write the table, sorted; rows of other sources are kept where only some runs were traced."""
    path = paths.CATALOG_DIR / TRACED_RUNS_FILE
    rows = list(rows)
    if replaced is not None and path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            rows += [row for row in csv.DictReader(file) if row["run_id"] not in replaced]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: row["run_id"]))
    return path
