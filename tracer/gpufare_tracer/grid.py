"""catalog/traces.csv: the recipes in catalog/recipes.yaml, traced on a grid of models, depths and shapes.

    gpufare trace-grid --jobs 2

Models are cut to a few layers, because memory is linear in depth. An interrupted run resumes.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gpufare_tracer.kept import (
    Job,
    Kept,
    Row,
    digest_of,
    installed_versions,
    read_table,
    traced_row,
    write_table,
)
from gpufare_tracer.processes import in_processes
from gpufare_tracer.recipes import Recipe, read_recipes
from gpufare_tracer.result import TraceShape
from gpufare_tracer.table import PHASES, columns, row
from pipeline.contracts.errors import GpufareError
from pipeline.home import paths

TRACES_FILE = "traces.csv"
RECIPES_FILE = "traced_recipes.csv"
JOURNAL_FILE = "traces.journal"

FEWER_MODELS = ("llama-3.1-8b", "qwen2.5-0.5b", "llama-2-7b", "gemma-2b")
"""Models for recipes that change the framework or its kernels, but not the work of an architecture."""
MODELS = (*FEWER_MODELS, "llama-3.2-1b", "smollm2-135m", "llama-3.1-70b", "tinyllama-1.1b")
"""Models of 0.1B to 70B parameters with multi-head, grouped-query and multi-query attention, wide heads,
large vocabularies, biases and tied embeddings. Models with other code (mixtures, latent attention and capped
scores) are not used: see ``runs_traced_code`` in sql/model/25_traced_memory.sql."""
DEPTHS = (2, 4)
SHAPES = ((1, 512), (2, 2048), (1, 8192))
"""Micro-batches and sequence lengths that separate per-token, per-squared-length and fixed terms."""

CHANGES_SHOWN = 40

RECIPE_COLUMNS = (
    "recipe", "title", "framework", "emulates", "source", "switches", "recipe_digest", "cells", "traces",
    "versions",
)  # fmt: skip


class Cell(NamedTuple):
    """One trace in the grid."""

    recipe: str
    model: str
    layers: int
    micro_batch: int
    seq_len: int


Table = dict[Cell, Row]
Show = Callable[[str], None]


class GridError(GpufareError):
    """The grid cannot be traced or repeated; the message says why."""


def cells(recipes: Iterable[Recipe]) -> list[Cell]:
    """Return the recipes' cells, model by model, so that an interrupted grid contains complete models."""
    chosen = [(recipe.name, models_of(recipe)) for recipe in recipes]
    return [
        Cell(recipe, model, layers, micro_batch, seq_len)
        for model in MODELS
        for micro_batch, seq_len in SHAPES
        for layers in DEPTHS
        for recipe, own in chosen
        if model in own
    ]


def models_of(recipe: Recipe) -> tuple[str, ...]:
    """Return the models for a recipe's traces: all for transformers' own code on one GPU, otherwise fewer."""
    is_plain = recipe.emulates is None and recipe.sharding == "none" and recipe.kernels == "eager"
    return MODELS if is_plain else FEWER_MODELS


def job_of(recipe: Recipe, cell: Cell) -> Job:
    """Return the trace to make for a cell."""
    return recipe, TraceShape(
        model=cell.model, layers=cell.layers, micro_batch=cell.micro_batch, seq_len=cell.seq_len
    )


def read(folder: Path, recipes: Mapping[str, Recipe] | None = None) -> Table:
    """Read the traces in a folder, with the versions of the packages that made the traces.

    If ``recipes`` is given, traces of recipes that have changed are omitted.
    """
    packages = {each["recipe"]: each for each in read_table(folder / RECIPES_FILE)}
    current = set(packages)
    if recipes is not None:
        current = {name for name, recipe in recipes.items() if digest_of(recipe) == _digest(packages, name)}
    return {
        _cell(each): each | {"versions": packages[each["recipe"]]["versions"], "problem": ""}
        for each in read_table(folder / TRACES_FILE, columns())
        if each["recipe"] in current
    }


def _digest(packages: Mapping[str, Row], recipe: str) -> str:
    return packages.get(recipe, {}).get("recipe_digest", "")


def write(folder: Path, table: Table) -> None:
    """Write the traces and the recipes behind them, sorted."""
    write_table(folder / TRACES_FILE, columns(), (table[cell] for cell in sorted(table)))
    rows = []
    for name, recipe in sorted(read_recipes().items()):
        traced = [each for cell, each in table.items() if cell.recipe == name]
        named = recipe.model_dump(include={"title", "framework", "emulates", "source"})
        switches = recipe.model_dump(exclude={"name", *named})
        rows.append(named | {
            "recipe": name, "switches": json.dumps(switches, sort_keys=True),
            "recipe_digest": digest_of(recipe) if traced else "", "cells": len(cells([recipe])),
            "traces": len(traced), "versions": "; ".join(sorted({each["versions"] for each in traced})),
        })  # fmt: skip
    write_table(folder / RECIPES_FILE, RECIPE_COLUMNS, rows)


def chosen_recipes(names: Sequence[str]) -> dict[str, Recipe]:
    """Return the named recipes, or all if no names are given. Raises ``GridError`` for an unknown name."""
    recipes = read_recipes()
    if unknown := sorted(set(names) - recipes.keys()):
        raise GridError(f"no recipe {', '.join(unknown)} in catalog/recipes.yaml: {', '.join(recipes)}")
    return {name: recipe for name, recipe in recipes.items() if not names or name in names}


def fill(
    recipes: Mapping[str, Recipe],
    *,
    folder: Path | None = None,
    jobs: int = 1,
    show: Show = lambda line: None,
) -> Table:
    """Trace the missing and stale cells of the given recipes, and write the table.

    ``show`` gets a line for each trace and each changed peak. Raises ``GridError`` if any cell fails.
    """
    folder = folder or paths.CATALOG_DIR
    known = read_recipes()
    before, current = read(folder), read(folder, known)
    digests = {cell: digest_of(*job_of(known[cell.recipe], cell)) for cell in cells(known.values())}
    rows = {digests[cell]: each for cell, each in current.items() if cell in digests}
    kept = Kept(folder / JOURNAL_FILE, rows, row)
    kept.trace([job_of(recipes[cell.recipe], cell) for cell in cells(recipes.values())], jobs, show)
    found = {cell: kept.rows[digest] for cell, digest in digests.items() if digest in kept.rows}
    table = {cell: each for cell, each in found.items() if not each["problem"]}
    write(folder, table)
    kept.end()
    for line in peak_changes(before, table)[:CHANGES_SHOWN]:
        show(line)
    if failed := [f"{_where(cell)}: {each['problem']}" for cell, each in found.items() if each["problem"]]:
        raise GridError(f"{len(failed)} cells cannot be traced, for one {failed[0]}")
    return table


def peak_changes(before: Table, after: Table) -> list[str]:
    """Return a line for each cell and phase whose peak changed, with the largest change first."""
    changes = []
    for cell in before.keys() & after.keys():
        for phase in PHASES:
            name = f"{phase}_allocated_bytes"
            was, now = int(before[cell][name]), int(after[cell][name])
            if was != now:
                change = now / was - 1 if was else math.inf
                line = f"{_where(cell)}: {phase} {was} to {now} bytes, {change:+.1%}"
                changes.append((-abs(change), line))
    return [line for _, line in sorted(changes)]


def sample(table: Table) -> list[Cell]:
    """Return one cell for each recipe that can be traced here, from varying models, depths and shapes."""
    chosen = []
    for number, name in enumerate(sorted({cell.recipe for cell in table})):
        own = sorted(cell for cell in table if cell.recipe == name)
        cell = own[7 * number % len(own)]
        if installed_versions(table[cell]["versions"]) == table[cell]["versions"]:
            chosen.append(cell)
    return chosen


def check(*, folder: Path | None = None, jobs: int = 1) -> list[str]:
    """Trace a sample of the table again, and return the differences as ``row: column was A, is B``.

    Raises ``GridError`` if no row of the table can be traced here.
    """
    folder = folder or paths.CATALOG_DIR
    recipes = read_recipes()
    table = read(folder, recipes)
    wanted = sample(table)
    if not wanted:
        raise GridError(
            f"none of the traces can be repeated here: {folder / RECIPES_FILE} names the versions of "
            "the packages that made them"
        )
    calls = [(row, *job_of(recipes[cell.recipe], cell)) for cell in wanted]
    found = {wanted[index]: traced for index, traced in in_processes(traced_row, calls, jobs)}
    return [line for cell in wanted for line in differences(cell, table[cell], found[cell])]


def differences(cell: Cell, kept: Row, traced: Row) -> list[str]:
    """Return the columns in which a new trace differs from the stored row, with both values."""
    if traced["problem"]:
        return [f"{_where(cell)}: cannot be traced any more: {traced['problem']}"]
    return [
        f"{_where(cell)}: {name} was {kept[name]}, is {traced[name]}"
        for name in columns()
        if kept[name] != traced[name]
    ]


def _where(cell: Cell) -> str:
    return " ".join(str(part) for part in cell)


def _cell(row: Mapping[str, str]) -> Cell:
    return Cell(row["recipe"], row["model"], int(row["layers"]), int(row["micro_batch"]), int(row["seq_len"]))
