"""What a user keeps in the home beside the catalogue: models.csv, gpus.csv and workloads.csv.

Where a name is the catalogue's, also one that a later version of it brings, the catalogue's row is used.
"""

import csv
import difflib
import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.catalog.own_gpus import OWN_GPUS, OwnGpu
from pipeline.catalog.own_models import OWN_MODELS, OwnModel
from pipeline.catalog.own_workloads import OWN_WORKLOADS, OwnWorkload
from pipeline.catalog.workloads import deadlines, workloads
from pipeline.home import paths
from pipeline.home.paths import Home


@dataclass(slots=True)
class OwnCatalogue:
    """The rows that could be read, and in ``problems`` what could not be: the file, and one line."""

    models: list[OwnModel] = field(default_factory=list)
    gpus: list[OwnGpu] = field(default_factory=list)
    workloads: list[OwnWorkload] = field(default_factory=list)
    problems: list[tuple[Path, str]] = field(default_factory=list)

    def planned(self) -> dict[str, list[dict[str, Any]]]:
        """The rows by table that plans depend on: the GPUs, the workloads, and the models of these."""
        asked = {job.model for job in self.workloads}
        rows = {
            "gpus": [gpu.row() for gpu in self.gpus],
            "models": [model.row() for model in self.models if model.model in asked],
            "workloads": [job.row() for job in self.workloads],
        }
        return {table: found for table, found in rows.items() if found}

    def labels(self) -> dict[str, str]:
        """The GPU that a label of an offer means, where the catalogue knows none."""
        return {label: gpu.gpu_id for gpu in self.gpus for label in gpu.names()}

    def state(self) -> str:
        """Changes when plans, or what offers are of, may change; empty without rows that matter there."""
        decides = (self.planned(), self.labels())
        return hashlib.sha256(repr(decides).encode()).hexdigest()[:16] if any(decides) else ""


def read_own_catalogue(home: Home) -> OwnCatalogue:
    """The user's own rows. Never raises for what the files contain; CatalogError for the catalogue's own."""
    found = OwnCatalogue()
    if not any(path.exists() for path in (home.models, home.gpus, home.workloads)):
        return found
    models = OWN_MODELS.read(home.models, names_of("models"))
    gpus = OWN_GPUS.read(home.gpus, names_of("gpus"))
    jobs = OWN_WORKLOADS.read(home.workloads, names_of("workloads"))
    found.models, found.gpus = models.rows, gpus.rows
    for path, rows in ((home.models, models), (home.gpus, gpus), (home.workloads, jobs)):
        found.problems += [(path, problem) for problem in rows.problems]
    found.problems += [(home.gpus, f"{home.gpus}: {problem}") for problem in _shared_labels(gpus.rows)]
    hours = deadlines()
    context = context_of_models() | {model.model: model.max_context for model in models.rows}
    for job in jobs.rows:
        if problem := why_not_planned(job, context):
            found.problems.append((home.workloads, f"{home.workloads}, {job.workload}: left out: {problem}"))
        else:
            found.workloads.append(job.model_copy(update={"max_hours": job.max_hours or hours(job.tokens)}))
    return found


def why_not_planned(job: OwnWorkload, context: dict[str, int | None]) -> str:
    """Why a workload cannot be planned with these models, each with the longest sequence that it takes."""
    if job.model not in context:
        near = difflib.get_close_matches(job.model, context, 1)
        return f"model '{job.model}' is not known" + (f": did you mean '{near[0]}'?" if near else "")
    longest = context[job.model]
    if longest and job.seq_len > longest:
        return f"seq_len is {job.seq_len}, and {job.model} takes at most {longest}"
    return ""


def _shared_labels(gpus: Collection[OwnGpu]) -> Iterator[str]:
    first: dict[str, str] = {}
    for gpu in gpus:
        for label in gpu.names():
            if first.setdefault(label, gpu.gpu_id) != gpu.gpu_id:
                yield f"label '{label}' is of {first[label]} and {gpu.gpu_id}: it means the latter"


def names_of(table: str) -> set[str]:
    """The names of the catalogue's own models, gpus or workloads."""
    if table == "workloads":
        return {row["workload"] for row in workloads()}
    key = {"models": "model", "gpus": "gpu_id"}[table]
    return {row[key] for row in _rows(table)}


def context_of_models() -> dict[str, int | None]:
    """The catalogue's models, each with the longest sequence that it takes, where it is known."""
    return {row["model"]: int(row["max_context"]) if row["max_context"] else None for row in _rows("models")}


def gpu_like(gpu_id: str) -> dict[str, str] | None:
    """The catalogue's row of a GPU; None where there is none."""
    return next((row for row in _rows("gpus") if row["gpu_id"] == gpu_id), None)


def _rows(table: str) -> list[dict[str, str]]:
    with (paths.CATALOG_DIR / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
