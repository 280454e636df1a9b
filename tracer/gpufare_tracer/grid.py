"""catalog/traces.csv: the recipes of catalog/recipes.yaml on a grid of architectures, depths and shapes.

    gpufare trace-grid --jobs 2

Models are cut to a few layers: memory and work are linear in depth. A grid that was interrupted goes on where
it was: every finished trace is kept in a journal beside the table, and rows are traced again only where their
recipe, a package that they ran, the tracer (kept.py), or the columns of the table changed. What cannot be
traced is tried again.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from gpufare_tracer.kept import (
    Journal,
    Row,
    digest_of,
    installed_versions,
    read_table,
    reason_of,
    versions_text,
    write_table,
)
from gpufare_tracer.processes import in_processes
from gpufare_tracer.recipes import Recipe, read_recipes
from gpufare_tracer.result import TraceShape
from gpufare_tracer.table import PHASES, columns
from pipeline.contracts.errors import GpufareError
from pipeline.home import paths

TRACES_FILE = "traces.csv"
RECIPES_FILE = "traced_recipes.csv"
FAILURES_FILE = "traces_failed.csv"
JOURNAL_FILE = "traces.journal"

FEWER_MODELS = ("llama-3.1-8b", "qwen2.5-0.5b", "llama-2-7b", "gemma-2b")
"""For recipes that change the framework or its kernels, not what an architecture does."""
MODELS = (
    *FEWER_MODELS, "mixtral-8x7b", "llama-3.2-1b", "deepseek-v3", "gemma-2-9b", "smollm2-135m",
    "qwen3-30b-a3b", "llama-3.1-70b", "tinyllama-1.1b",
)  # fmt: skip
"""Multi-head, grouped and multi-query attention, wide heads, soft-caps, large vocabularies, biases, tied
embeddings, two mixtures of experts and latent attention; 0.1B to 671B."""
ONLY_EAGER = ("gemma-2-9b",)
"""Soft-capped scores, which no other attention of transformers has."""
DEPTHS = (2, 4)
DEPTHS_OF = {"deepseek-v3": (4, 6)}
"""Its first three layers are dense; the others' layers are alike, or alternate by two."""
SHAPES = ((1, 512), (2, 2048), (1, 8192))
"""Micro-batch and sequence length: they tell apart terms per token, per squared length, and fixed ones."""

SAMPLE_PER_RECIPE = 1
CHANGES_SHOWN = 40


RECIPE_COLUMNS = (
    "recipe", "title", "framework", "emulates", "source", "switches", "recipe_digest", "cells", "traces",
    "versions",
)  # fmt: skip


class Cell(NamedTuple):
    """One trace of the grid."""

    recipe: str
    model: str
    layers: int
    micro_batch: int
    seq_len: int


class GridError(GpufareError):
    """A grid that cannot be traced or does not reproduce."""


@dataclass(frozen=True)
class Traced:
    """The result of tracing a cell: a row with its packages, or the reason for the failure."""

    cell: Cell
    digest: str
    row: Row | None = None
    versions: str = ""
    reason: str = ""


def cells(recipes: Iterable[Recipe], models: Sequence[str] = MODELS) -> list[Cell]:
    """The cells of the grid for some recipes, model by model, so that an interrupted grid has whole ones."""
    chosen = [(recipe.name, models_of(recipe)) for recipe in recipes]
    return [
        Cell(recipe, model, DEPTHS_OF.get(model, DEPTHS)[depth], micro_batch, seq_len)
        for model in models
        for micro_batch, seq_len in SHAPES
        for depth in range(len(DEPTHS))
        for recipe, own in chosen
        if model in own
    ]


def models_of(recipe: Recipe) -> tuple[str, ...]:
    """Models on which a recipe is traced: all for transformers' own code on one GPU, fewer for the others."""
    if recipe.emulates is not None or recipe.sharding != "none" or recipe.kernels != "eager":
        return FEWER_MODELS
    return tuple(model for model in MODELS if recipe.attention == "eager" or model not in ONLY_EAGER)


def trace_cell(recipe: Recipe, cell: Cell) -> Traced:
    """Trace one cell; what prevents it is returned as the reason."""
    import warnings

    from gpufare_tracer.table import row
    from gpufare_tracer.trace import trace

    shape = TraceShape(
        model=cell.model, layers=cell.layers, micro_batch=cell.micro_batch, seq_len=cell.seq_len
    )
    digest = digest_of(recipe)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = trace(recipe, shape)
        values = {name: str(value) for name, value in row(found, cell.layers).items()}
    except Exception as error:  # any framework's own error: named in the table of failures
        return Traced(cell, digest, reason=reason_of(error))
    return Traced(cell, digest, row=values, versions=versions_text(found.versions))


@dataclass
class Table:
    """catalog/traces.csv with the packages of each recipe and the cells that could not be traced."""

    folder: Path
    rows: dict[Cell, Row]
    digests: dict[str, str]
    versions: dict[str, str]
    failures: Counter[tuple[str, str, str]]
    """Cells that could not be traced, by recipe, model and reason."""

    @classmethod
    def read(cls, folder: Path | None = None) -> "Table":
        """The table of a folder (the catalogue); empty if there is none or its columns changed."""
        folder = folder or paths.CATALOG_DIR
        rows = {_cell(row): row for row in read_table(folder / TRACES_FILE, columns())}
        packages = read_table(folder / RECIPES_FILE) if rows else []
        table = cls(
            folder, rows,
            digests={row["recipe"]: row["recipe_digest"] for row in packages if row["versions"]},
            versions={row["recipe"]: row["versions"] for row in packages if row["versions"]},
            failures=Counter({
                (row["recipe"], row["model"], row["reason"]): int(row["traces"])
                for row in read_table(folder / FAILURES_FILE)
            }),
        )  # fmt: skip
        for line in _journal(folder):
            table.add(line)
        return table

    def add(self, traced: Traced) -> None:
        """Take a result; those of another version of the recipe or of its packages leave."""
        cell = traced.cell
        if traced.row is None:
            self.failures[cell.recipe, cell.model, traced.reason] += 1
            return
        now = traced.digest, traced.versions
        before = self.digests.get(cell.recipe), self.versions.get(cell.recipe)
        if cell.recipe in self.digests and now != before:
            self.forget(cell.recipe)
        self.digests[cell.recipe], self.versions[cell.recipe] = now
        self.rows[cell] = traced.row

    def forget(self, recipe: str) -> None:
        """Drop all rows of a recipe."""
        self.rows = {cell: row for cell, row in self.rows.items() if cell.recipe != recipe}
        self.digests.pop(recipe, None)
        self.versions.pop(recipe, None)

    def forgive(self, recipes: Iterable[str], models: Iterable[str]) -> None:
        """Drop the failures of cells that are tried again."""
        tried = set(recipes), set(models)
        for recipe, model, reason in list(self.failures):
            if recipe in tried[0] and model in tried[1]:
                del self.failures[recipe, model, reason]

    def write(self) -> None:
        """Write the three files, sorted, and end the journal."""
        write_table(self.folder / TRACES_FILE, columns(), (self.rows[cell] for cell in sorted(self.rows)))
        counts = Counter(cell.recipe for cell in self.rows)
        recipes = read_recipes()
        write_table(
            self.folder / RECIPES_FILE, RECIPE_COLUMNS,
            (
                _recipe_row(recipe) | {
                    "recipe_digest": self.digests.get(name, ""), "cells": len(cells([recipe])),
                    "traces": counts[name], "versions": self.versions.get(name, ""),
                }
                for name, recipe in sorted(recipes.items())
            ),
        )  # fmt: skip
        failures = [
            {"recipe": recipe, "model": model, "traces": count, "reason": reason}
            for (recipe, model, reason), count in sorted(self.failures.items())
        ]
        write_table(self.folder / FAILURES_FILE, ("recipe", "model", "traces", "reason"), failures)
        Journal(self.folder / JOURNAL_FILE).end()


def chosen_recipes(names: Sequence[str]) -> dict[str, Recipe]:
    """The recipes of these names, or all; raises ``GridError`` for a name that catalog/recipes.yaml lacks."""
    recipes = read_recipes()
    if unknown := sorted(set(names) - recipes.keys()):
        raise GridError(f"no recipe {', '.join(unknown)} in catalog/recipes.yaml: {', '.join(recipes)}")
    return {name: recipe for name, recipe in recipes.items() if not names or name in names}


def chosen_models(names: Sequence[str]) -> tuple[str, ...]:
    """The models of these names, or all; raises ``GridError`` for one that is not of the grid."""
    if unknown := sorted(set(names) - set(MODELS)):
        raise GridError(f"no model {', '.join(unknown)} in the grid: {', '.join(MODELS)}")
    return tuple(model for model in MODELS if not names or model in names)


def fill(
    recipes: Mapping[str, Recipe],
    *,
    folder: Path | None = None,
    models: Sequence[str] = MODELS,
    jobs: int = 1,
    fresh: bool = False,
    show: Callable[[str], None] = lambda line: None,
) -> Table:
    """Trace the cells of some recipes that the table lacks, and write it.

    ``fresh`` traces all of them again. Rows of a recipe whose packages are not installed here are kept, and
    ``show`` says so, as it does of peaks that changed. Recipes that the catalogue lacks leave the table.
    """
    table = Table.read(folder)
    before = dict(table.rows)
    known = read_recipes()
    for gone in table.digests.keys() - known.keys():
        table.forget(gone)
    table.forgive({recipe for recipe, _, _ in table.failures} - known.keys(), MODELS)
    traceable = list(_stale_dropped(table, recipes, fresh, show))
    table.forgive(traceable, models)
    wanted = cells([recipes[name] for name in traceable], models)
    missing = [cell for cell in wanted if cell not in table.rows]
    show(f"{len(table.rows)} traces are there, {len(missing)} to make")
    journal = Journal(table.folder / JOURNAL_FILE)
    for number, traced in enumerate(trace_cells(recipes, missing, jobs), start=1):
        journal.add([traced.cell, traced.digest, traced.row, traced.versions, traced.reason])
        table.add(traced)
        if number % 20 == 0 or number == len(missing):
            show(f"{number} of {len(missing)}, {table.failures.total()} of all could not be traced")
    table.write()
    for line in peak_changes(before, table.rows)[:CHANGES_SHOWN]:
        show(line)
    return table


def peak_changes(before: Mapping[Cell, Row], after: Mapping[Cell, Row]) -> list[str]:
    """Cells whose peak of a phase is another one now, those that changed most first."""
    changes = []
    for cell in before.keys() & after.keys():
        for phase in PHASES:
            name = f"{phase}_allocated_bytes"
            was, now = int(before[cell][name]), int(after[cell][name])
            if was != now:
                change = now / was - 1 if was else math.inf
                where = " ".join(str(part) for part in cell)
                changes.append((-abs(change), f"{where}: {phase} {was} to {now} bytes, {change:+.1%}"))
    return [line for _, line in sorted(changes)]


def _stale_dropped(
    table: Table, recipes: Mapping[str, Recipe], fresh: bool, show: Callable[[str], None]
) -> Iterator[str]:
    """Recipes to trace here, whose outdated rows are dropped."""
    for name, recipe in recipes.items():
        before = table.versions.get(name)
        if before is not None:
            here = installed_versions(before)
            if here is None:
                show(f"{name}: kept as it is, for not all of {before} is installed here")
                continue
            if fresh or here != before or table.digests[name] != digest_of(recipe):
                table.forget(name)
        yield name


def trace_cells(recipes: Mapping[str, Recipe], wanted: Sequence[Cell], jobs: int) -> Iterator[Traced]:
    """Trace cells in ``jobs`` processes, as they come."""
    calls = [(recipes[cell.recipe], cell) for cell in wanted]
    for _, traced in in_processes(trace_cell, calls, jobs):
        yield traced


def sample(table: Table) -> list[Cell]:
    """A few cells of each recipe that can be traced here, spread over models, depths and shapes."""
    chosen: list[Cell] = []
    for number, name in enumerate(sorted(table.digests)):
        own = sorted(cell for cell in table.rows if cell.recipe == name)
        if own and installed_versions(table.versions[name]) == table.versions[name]:
            chosen += {
                own[(7 * number + turn * len(own) // 2) % len(own)] for turn in range(SAMPLE_PER_RECIPE)
            }
    return sorted(chosen)


def check(
    *, folder: Path | None = None, jobs: int = 1, show: Callable[[str], None] = lambda line: None
) -> list[str]:
    """Trace a sample of the table again; what differs, each as ``row: column, was, is``.

    Raises ``GridError`` where nothing of the table can be traced here.
    """
    table = Table.read(folder)
    recipes = read_recipes()
    wanted = sample(table)
    if not wanted:
        raise GridError(
            f"none of the traces can be repeated here: {table.folder / RECIPES_FILE} names the versions of "
            "the packages that made them"
        )
    for name in sorted(table.digests.keys() - {cell.recipe for cell in wanted}):
        show(f"{name}: not checked, for {table.versions[name]} is not what is installed here")
    return [
        line
        for traced in sorted(trace_cells(recipes, wanted, jobs), key=lambda traced: traced.cell)
        for line in differences(table.rows[traced.cell], traced)
    ]


def differences(row: Row, traced: Traced) -> list[str]:
    """Columns in which a new trace differs from a row."""
    where = " ".join(str(part) for part in traced.cell)
    if traced.row is None:
        return [f"{where}: cannot be traced any more: {traced.reason}"]
    return [
        f"{where}: {name} was {row[name]}, is {traced.row[name]}"
        for name in columns()
        if row[name] != traced.row[name]
    ]


def _recipe_row(recipe: Recipe) -> dict[str, Any]:
    """A recipe as a row; its switches as JSON."""
    named = {"name", "title", "framework", "emulates", "source"}
    switches = json.dumps(recipe.model_dump(exclude=named), sort_keys=True)
    return {"recipe": recipe.name, "switches": switches} | recipe.model_dump(include=named - {"name"})


def _cell(row: Mapping[str, str]) -> Cell:
    return Cell(row["recipe"], row["model"], int(row["layers"]), int(row["micro_batch"]), int(row["seq_len"]))


def _journal(folder: Path) -> Iterator[Traced]:
    for cell, digest, row, versions, reason in Journal(folder / JOURNAL_FILE).lines():
        if row is None or row.keys() == set(columns()):
            yield Traced(Cell(*cell), digest, row, versions, reason)
