"""catalog/recipe_memory.csv: bytes per unit of each memory feature, learned from catalog/traces.csv.

Within one moment of a step, the bytes of a category are linear in a few features of the model and the run
(from the SQL macro features_of): logits in tokens x vocabulary, stored activations in tokens x layers x
width, and gradients in trained parameters. There is one regression for each recipe, moment and category.
Coefficients are non-negative, errors are relative to all bytes allocated at that moment, and features are
added one at a time, as long as each explains something.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from gpufare_tracer.kept import read_table, write_table
from gpufare_tracer.recipe_settings import SETTINGS_FILE, setting_rows
from gpufare_tracer.recipes import Recipe, read_recipes
from gpufare_tracer.result import TraceShape
from gpufare_tracer.settings import cut_to_layers, run_settings
from gpufare_tracer.timeline import Category, Moment
from pipeline.home import paths
from pipeline.warehouse.database import in_memory

TRACES_FILE = "traces.csv"
COEFFICIENTS_FILE = "recipe_memory.csv"

GPU = "a100-sxm-80gb"
"""The catalogue id of the card on which recipes are traced (compute capability 8.0)."""

EXACT_SHARE = 5e-4
"""A category is explained well enough if its root-mean-square error is at most this share of all bytes."""
LEAST_GAIN = 0.1
"""Each further feature must remove at least this share of the remaining error."""
MOST_FEATURES = 8

AGREEMENT = 0.03
"""The largest relative difference at which a measured run and its trace still agree."""

PER_STEP = {
    Category.WEIGHTS, Category.ADAPTERS, Category.GRADIENTS, Category.OPTIMIZER, Category.WORKSPACE,
}  # fmt: skip
"""Categories that do not depend on the number of tokens."""
PIECES = set(Moment) - {Moment.OPTIMIZER}
"""Moments with several operations, any of which can set the peak: attention, MLP, embedding, head or loss."""
SECOND = "_2"
LEAST_ROWS_OF_A_PIECE = 6
LEAST_PIECE_GAIN = 0.3
"""A second piece must remove at least this share of a moment's error."""

Array = npt.NDArray[np.float64]
TraceRow = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Features:
    """Features of runs, one column per feature; per-token features are multiplied by the number of tokens."""

    names: tuple[str, ...]
    values: Array
    per_token: npt.NDArray[np.bool_]


def insert_runs(
    connection: duckdb.DuckDBPyConnection, traces: Sequence[TraceRow], recipes: Mapping[str, Recipe]
) -> None:
    """Create a temporary table ``traced_settings``: one run of a cut model per trace, numbered in ``job``."""
    depths = {(trace["model"], trace["layers"]) for trace in traces}
    cut = {(model, layers): cut_to_layers(connection, model, int(layers)) for model, layers in sorted(depths)}
    rows = []
    for number, trace in enumerate(traces):
        shape = TraceShape(
            model=cut[trace["model"], trace["layers"]], micro_batch=int(trace["micro_batch"]),
            seq_len=int(trace["seq_len"]),
        )  # fmt: skip
        settings = run_settings(recipes[trace["recipe"]], shape, GPU)
        rows.append(settings | {"job": str(number), "recipe": trace["recipe"]})
    names = sorted({name for row in rows for name in row})
    kinds = {name: kind for row in rows for name, kind in ((n, type(v)) for n, v in row.items())}
    types = ", ".join(f"{name} {'VARCHAR' if kinds[name] is str else 'DOUBLE'}" for name in names)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE traced_settings ({types})")
    unnested = ", ".join(
        f"unnest(${index}::{'VARCHAR' if kinds[name] is str else 'DOUBLE'}[])"
        for index, name in enumerate(names, start=1)
    )
    connection.execute(
        f"INSERT INTO traced_settings SELECT {unnested}", [[row.get(name) for row in rows] for name in names]
    )


def features_of(connection: duckdb.DuckDBPyConnection) -> Features:
    """Return the features of the runs in ``traced_settings``, in the order of ``job``."""
    rows = connection.execute(
        "WITH _settings AS (FROM settings_of('traced_settings')) "
        "SELECT micro_batch * seq_len, token_features, fixed_features "
        "FROM features_of('_settings') ORDER BY job::INTEGER"
    ).fetchall()
    values = np.array(
        [[tokens * value for value in token.values()] + [*fixed.values()] for tokens, token, fixed in rows]
    )
    _, per_token, per_run = rows[0]
    return Features(
        (*per_token, *per_run), values, np.array([True] * len(per_token) + [False] * len(per_run))
    )


def sparse_fit(features: Array, target: Array) -> dict[int, float]:
    """Return non-negative coefficients for the few columns that explain ``target``, from weighted rows."""
    chosen: list[int] = []
    best: dict[int, float] = {}
    error = float(np.sqrt(np.mean(target**2)))
    scale = np.abs(features).max(axis=0)
    usable = [int(index) for index in np.flatnonzero(scale > 0)]
    scaled = np.divide(features, scale, where=scale > 0, out=np.zeros_like(features))
    while error > EXACT_SHARE and len(chosen) < MOST_FEATURES:
        tried = []
        for index in usable:
            if index not in chosen:
                solution, residual = nnls(scaled[:, [*chosen, index]], target)
                tried.append((residual / np.sqrt(len(target)), index, solution))
        if not tried:
            break
        next_error, index, solution = min(tried, key=lambda each: each[:2])
        if next_error > (1 - LEAST_GAIN) * error:
            break
        chosen.append(index)
        error = float(next_error)
        best = {i: float(c / scale[i]) for i, c in zip(chosen, solution, strict=True) if c > 0}
    return best


def learn(traces: Sequence[TraceRow], recipes: Mapping[str, Recipe] | None = None) -> list[dict[str, Any]]:
    """Return the rows of catalog/recipe_memory.csv, learned deterministically from catalog/traces.csv."""
    connection = in_memory("settings_of", "features_of")
    try:
        insert_runs(connection, traces, recipes or read_recipes())
        features = features_of(connection)
    finally:
        connection.close()
    names = np.array([trace["recipe"] for trace in traces])
    rows = [
        row
        for recipe in sorted(set(names))
        for moment in Moment
        for row in _learn_moment(traces, features, np.flatnonzero(names == recipe), recipe, moment)
    ]
    # An optimizer that steps in the backward pass has no later step: its state is that of the forward pass.
    stepping = {row["recipe"] for row in rows if row["moment"] == Moment.OPTIMIZER}
    state = [row for row in rows if row["moment"] == Moment.FORWARD and row["category"] in PER_STEP]
    return rows + [row | {"moment": str(Moment.OPTIMIZER)} for row in state if row["recipe"] not in stepping]


def _learn_moment(
    traces: Sequence[TraceRow], features: Features, rows: npt.NDArray[np.int_], recipe: str, moment: Moment
) -> list[dict[str, Any]]:
    total = np.array([float(traces[i][f"{moment}_allocated_bytes"]) for i in rows])
    rows, total = rows[total > 0], total[total > 0]
    if not len(rows):
        return []
    sizes = {c: np.array([float(traces[i][f"{moment}_{c}_bytes"]) for i in rows]) / total for c in Category}
    weighted = features.values[rows] / total[:, None]
    operations = np.array([traces[i][f"{moment}_operation"] for i in rows])
    pieces = _pieces(weighted, features.per_token, sizes, operations if moment in PIECES else operations[:0])
    return [
        {
            "recipe": recipe, "moment": f"{moment}{suffix}", "category": category,
            "feature": features.names[index], "bytes": f"{size:.5g}",
        }
        for suffix, piece in zip(("", SECOND), pieces, strict=False)
        for category, found in piece.items()
        for index, size in sorted(found.items())
    ]  # fmt: skip


Piece = dict[Category, dict[int, float]]
"""The coefficients of one linear piece of a moment, keyed by category and column."""


def _pieces(
    weighted: Array,
    per_token: npt.NDArray[np.bool_],
    sizes: dict[Category, Array],
    operations: npt.NDArray[Any],
) -> list[Piece]:
    """Return one linear piece, or two if the maximum of two pieces fits much better.

    Two pieces are first fitted to one operation's rows and to all others; rows then join the higher piece.
    """
    everything = np.ones(len(weighted), dtype=bool)
    best = [_piece(weighted, per_token, sizes, everything)]
    least = (1 - LEAST_PIECE_GAIN) * _error(best, weighted)
    for operation in sorted(set(operations)):
        part = operations == operation
        for _ in range(3):
            if min(part.sum(), (~part).sum()) < LEAST_ROWS_OF_A_PIECE:
                break
            pieces = [_piece(weighted, per_token, sizes, rows) for rows in (~part, part)]
            error = _error(pieces, weighted)
            if error < least:
                best, least = pieces, error
            part = _total(pieces[1], weighted) > _total(pieces[0], weighted)
    return best


def _piece(
    weighted: Array,
    per_token: npt.NDArray[np.bool_],
    sizes: dict[Category, Array],
    rows: npt.NDArray[np.bool_],
) -> Piece:
    piece = {}
    for category, target in sizes.items():
        left_out = per_token & (category in PER_STEP)
        piece[category] = sparse_fit(np.where(left_out, 0.0, weighted)[rows], target[rows])
    return piece


def _total(piece: Piece, weighted: Array) -> Array:
    total = np.zeros(len(weighted))
    for found in piece.values():
        for index, size in found.items():
            total += size * weighted[:, index]
    return total


def _error(pieces: list[Piece], weighted: Array) -> float:
    """Return the root mean square of the relative error in all allocated bytes."""
    total = np.max([_total(piece, weighted) for piece in pieces], axis=0)
    return float(np.sqrt(np.mean((total - 1) ** 2)))


def learn_catalogue(folder: Path | None = None) -> str:
    """Write recipe_settings.csv, and recipe_memory.csv if there are traces; return a one-line summary."""
    folder = folder or paths.CATALOG_DIR
    recipes = read_recipes()
    settings = setting_rows(recipes, agreeing_runs(recipes))
    write_table(folder / SETTINGS_FILE, list(settings[0]), settings)
    said = f"{SETTINGS_FILE}: {len(recipes)} recipes"
    traces = read_table(paths.CATALOG_DIR / TRACES_FILE)
    if not traces:
        return f"{said}; no {TRACES_FILE} to learn from: gpufare trace-grid makes it"
    coefficients = learn(traces, recipes)
    write_table(folder / COEFFICIENTS_FILE, list(coefficients[0]), coefficients)
    return f"{said}; {COEFFICIENTS_FILE}: {len(coefficients)} coefficients from {len(traces)} traces"


def compare_with_measured(connection: duckdb.DuckDBPyConnection) -> None:
    """Create trace_accuracy: traced and measured memory from catalog/traced_runs.csv, in GiB, one row per run
    and quantity. ``connection`` must provide the model's tables and macros."""
    for name in ("traced_runs", "measured_phase_peaks"):
        connection.execute(
            f"CREATE TABLE main.{name} AS FROM read_csv($1, nullstr := '', sample_size := -1)",
            [str(paths.CATALOG_DIR / f"{name}.csv")],
        )
    query = Path(__file__).with_name("trace_accuracy.sql").read_text(encoding="utf-8")
    connection.execute(f"CREATE TABLE main.trace_accuracy AS {query}")


def agreeing_runs(recipes: Mapping[str, Recipe]) -> dict[str, dict[str, int]]:
    """Count the measured runs of identified software that agree with their traces, by recipe and family.

    One figure per run counts: the first one measured, in the order allocated, reserved, process memory.
    """
    with in_memory("settings_of", "measured_sources", "constants", "gib") as connection:
        connection.execute("DELETE FROM main.recipe_settings")
        for row in setting_rows(recipes):
            connection.execute(
                f"INSERT INTO main.recipe_settings ({', '.join(row)}) "  # noqa: S608
                f"VALUES ({', '.join('?' * len(row))})",
                [None if value == "" else value for value in row.values()],
            )
        compare_with_measured(connection)
        found = connection.execute(
            """
            WITH _figures AS (
                SELECT run_id, arg_min(abs(error), position) AS error
                FROM (
                    SELECT *, list_position(['allocated', 'reserved', 'process'], quantity) AS position
                    FROM main.trace_accuracy WHERE is_identified
                )
                WHERE position IS NOT NULL
                GROUP BY run_id
            )
            SELECT s.recipe, f.family, count(*)
            FROM _figures JOIN settings_of('main.measured_runs') AS s USING (run_id)
            JOIN main.measured_runs AS r USING (run_id) JOIN main.measured_sources AS f USING (source)
            WHERE error <= $1 AND s.recipe IS NOT NULL
            GROUP BY s.recipe, f.family
            ORDER BY ALL
            """,
            [AGREEMENT],
        ).fetchall()
    by_recipe: dict[str, dict[str, int]] = {}
    for recipe, family, runs in found:
        by_recipe.setdefault(recipe, {})[family] = runs
    return by_recipe
