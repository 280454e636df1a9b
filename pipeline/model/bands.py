"""Error bands and fit verdicts, calibrated on held-out predictions."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pipeline.model.calibrate import Fits, Fitter

Array = npt.NDArray[np.float64]

METHODS = ("full", "lora", "qlora", "pretrain")
GPU_CLASSES = ("hopper and a100 sxm", "pcie", "consumer", "before ampere", "blackwell", "other vendor")
EVIDENCES = ("measured", "interpolated", "extrapolated")
LOW, HIGH = 0.1, 0.9
# A group with fewer runs leans on its parent group.
FULL_GROUP = 20
RESERVED_RATIOS = np.round(np.arange(0.90, 1.2001, 0.01), 2)
PROCESS_MARGINS_GIB = (-0.5, -0.25, 0.0, 0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Residual:
    """A held-out run: its group and ln(measured / predicted), weighted so that no source drowns the rest."""

    method: str
    gpu_class: str
    evidence: str
    source: str
    value: float
    weight: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision threshold for "fits", and the record of how well it decides."""

    constants: dict[str, float]
    record: dict[str, Any]


def weighted_quantile(values: Array, weights: Array, share: float) -> float:
    """Quantile of weighted values, interpolated between midpoints of the cumulated weights."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(share * weights.sum(), cumulated, values[order]))


def safety_ratio(held_out: Array, fitter: Fitter) -> float:
    """p90 of measured over predicted memory: what a plan leaves free so that nine of ten fit."""
    residual = fitter.measured - held_out
    weights = _source_weights(list(fitter.sources))
    return float(np.exp(weighted_quantile(residual, weights, HIGH)))


def _source_weights(sources: list[str]) -> Array:
    counts = {source: sources.count(source) for source in set(sources)}
    return np.array([counts[source] ** -0.5 for source in sources])


def calibrate_verdict(
    connection: duckdb.DuckDBPyConnection,
    sets: dict[str, dict[str, float]],
    insert: Callable[[dict[str, dict[str, float]]], None],
) -> Verdict:
    """Choose the margin at which a predicted peak counts as fitting, on all runs held out by source."""
    insert(sets)
    rows = connection.execute(
        "WITH _held_out AS (SELECT * EXCLUDE (fit), coalesce(k.fit, 'all') AS fit FROM main.measured_runs r "
        "LEFT JOIN (SELECT DISTINCT fit FROM main.model_constants) k ON k.fit = 'without ' || r.source "
        "WHERE r.out_of_memory = 1 OR r.measured_memory_gib IS NOT NULL) "
        "SELECT t.allocated_gib, t.process_gib, t.usable_memory_gib, r.out_of_memory = 1 "
        "FROM memory_terms_of('_held_out') t JOIN main.measured_runs r USING (run_id) ORDER BY run_id"
    ).fetchall()
    allocated, process, usable, died = (np.array(column) for column in zip(*rows, strict=True))
    scores: dict[tuple[float, float], float] = {}
    for ratio, margin in itertools.product(RESERVED_RATIOS, PROCESS_MARGINS_GIB):
        fits = allocated * ratio + process + margin <= usable
        scores[float(ratio), margin] = float((np.mean(fits[~died]) + np.mean(~fits[died])) / 2)
    best = max(scores.values())
    # The middle of the plateau of best thresholds is the one least tied to single runs.
    plateau = [key for key, score in scores.items() if score >= best - 0.002]
    middle = np.median(np.array(plateau), axis=0)
    chosen = min(plateau, key=lambda key: (abs(key[0] - middle[0]) * 20 + abs(key[1] - middle[1]), key))
    fits = allocated * chosen[0] + process + chosen[1] <= usable
    return Verdict(
        {"fit_reserved_ratio": chosen[0], "fit_margin_gib": chosen[1]},
        {
            "balanced_accuracy": round(float((np.mean(fits[~died]) + np.mean(~fits[died])) / 2), 4),
            "died": int(died.sum()),
            "died_and_said_so": int((~fits[died]).sum()),
            "ran": int((~died).sum()),
            "ran_and_said_so": int(fits[~died].sum()),
        },
    )


def residuals_of(connection: duckdb.DuckDBPyConnection, held_out: Array, fits: Fits) -> list[Residual]:
    """Held-out residuals with the groups that a band is looked up by, as an unseen run would meet them."""
    fitter = fits.fitter
    groups = dict(
        (run_id, (method, gpu_class, evidence))
        for run_id, method, gpu_class, evidence in connection.execute(
            f"WITH _held_out AS (SELECT r.*, 'without ' || r.source AS fit, m.params_total "  # noqa: S608
            f"FROM runs_{fitter.quantity.name} r JOIN main.models m USING (model)), "
            "_evidence AS (SELECT * FROM evidence_of('_held_out')) "
            "SELECT h.run_id, h.method, e.class, e.evidence FROM _held_out h JOIN _evidence e "
            "ON e.fit = h.fit AND e.gpu = h.gpu AND e.method = h.method AND e.params = h.params_total "
            "AND e.gpu_count = h.gpu_count"
        ).fetchall()
    )
    weights = _source_weights(list(fitter.sources))
    return [
        Residual(*groups[run_id], str(source), float(residual), float(weight))
        for run_id, source, residual, weight in zip(
            fitter.run_ids, fitter.sources, fitter.measured - held_out, weights, strict=True
        )
    ]


def _quantiles(residuals: list[Residual], parent: tuple[float, float]) -> tuple[float, float]:
    if not residuals:
        return parent
    values = np.array([r.value for r in residuals])
    weights = np.array([r.weight for r in residuals])
    lean = min(1.0, len(residuals) / FULL_GROUP)
    return (
        lean * weighted_quantile(values, weights, LOW) + (1 - lean) * parent[0],
        lean * weighted_quantile(values, weights, HIGH) + (1 - lean) * parent[1],
    )


def band(residuals: Iterable[Residual], method: str, gpu_class: str, evidence: str) -> tuple[float, float, int]:
    """p10 and p90 of ln(measured / predicted) for a group, leaning on its parents where it is small."""
    group = list(residuals)
    quantiles = _quantiles(group, (-0.3, 0.3))
    for matches in (
        lambda r: r.evidence == evidence,
        lambda r: r.gpu_class == gpu_class,
        lambda r: r.method == method,
    ):
        group = [r for r in group if matches(r)]
        quantiles = _quantiles(group, quantiles)
    return *quantiles, len(group)


def _coverage(residuals: list[Residual]) -> float:
    """Share of runs inside the band that was made without their source."""
    inside = 0
    for source in sorted({r.source for r in residuals}):
        others = [r for r in residuals if r.source != source]
        cache: dict[tuple[str, str, str], tuple[float, float, int]] = {}
        for r in (r for r in residuals if r.source == source):
            key = (r.method, r.gpu_class, r.evidence)
            if key not in cache:
                cache[key] = band(others, *key)
            inside += cache[key][0] <= r.value <= cache[key][1]
    return inside / len(residuals)


def calibrate_bands(
    connection: duckdb.DuckDBPyConnection, held_out: dict[str, Array], fits: dict[str, Fits]
) -> tuple[list[list[Any]], dict[str, Any]]:
    """Rows of model_bands.csv for every group that can be asked for, and the bands' own held-out coverage."""
    rows: list[list[Any]] = []
    record: dict[str, Any] = {}
    for quantity, predictions in held_out.items():
        residuals = residuals_of(connection, predictions, fits[quantity])
        record[quantity] = {"held_out_coverage": round(_coverage(residuals), 4), "runs": len(residuals)}
        for method, gpu_class, evidence in itertools.product(METHODS, GPU_CLASSES, EVIDENCES):
            low, high, runs = band(residuals, method, gpu_class, evidence)
            rows.append([quantity, method, gpu_class, evidence, f"{np.exp(low):.4f}", f"{np.exp(high):.4f}", runs])
    return rows, record


def write(path: Path, rows: list[list[Any]]) -> None:
    """Write model_bands.csv."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["quantity", "method", "gpu_class", "evidence", "low_ratio", "high_ratio", "runs"])
        writer.writerows(rows)
