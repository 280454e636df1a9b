"""Error bands, calibrated on held-out predictions."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from pipeline.contracts.training import METHODS
from pipeline.model.fitting import Array, Calibrations, source_weights

GPU_CLASSES = ("hopper and a100 sxm", "pcie", "consumer", "before ampere", "blackwell", "other vendor")
COLUMNS = ("quantity", "method", "gpu_class", "evidence", "low_ratio", "high_ratio", "runs")
"""Of model_bands.csv."""

EVIDENCES = ("measured", "traced", "interpolated", "extrapolated")
_EVIDENCE = {"memory": "memory_evidence(e.evidence, t.is_proven)", "speed": "e.evidence"}
LOW, HIGH = 0.1, 0.9
# A group with fewer runs is mixed with its parent group.
FULL_GROUP = 20
WIDENINGS = np.round(np.arange(0.8, 3.001, 0.05), 2)


@dataclass(frozen=True, slots=True)
class Residual:
    """A held-out run: its group and ln(measured / predicted), weighted so that no source drowns the rest."""

    method: str
    gpu_class: str
    evidence: str
    source: str
    value: float
    weight: float


def weighted_quantile(values: Array, weights: Array, share: float) -> float:
    """Quantile of weighted values, interpolated between midpoints of the cumulated weights."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(share * weights.sum(), cumulated, values[order]))


def residuals_of(
    connection: duckdb.DuckDBPyConnection, held_out: Array, calibrations: Calibrations
) -> list[Residual]:
    """Held-out residuals with the groups that a band is looked up by, as an unseen run would meet them."""
    fitter = calibrations.fitter
    groups: dict[str, tuple[str, str, str]] = {
        run_id: (method, gpu_class, evidence)
        for run_id, method, gpu_class, evidence in connection.execute(
            f"WITH _held_out AS (SELECT r.*, 'without ' || r.source AS calibration, m.params_total "  # noqa: S608
            f"FROM runs_{fitter.quantity.name} r JOIN main.models m USING (model)), "
            f"_terms AS (SELECT * FROM {fitter.quantity.macro}('_held_out')), "
            "_evidence AS (SELECT * FROM evidence_of('_held_out')) "
            f"SELECT h.run_id, h.method, e.class, {_EVIDENCE[fitter.quantity.name]} FROM _held_out h "
            "JOIN _terms t USING (run_id) JOIN _evidence e "
            "ON e.calibration = h.calibration AND e.gpu = h.gpu AND e.method = h.method "
            "AND e.params = h.params_total AND e.gpu_count = h.gpu_count"
        ).fetchall()
    }
    weights = source_weights(fitter.sources)
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
    own_share = min(1.0, len(residuals) / FULL_GROUP)
    return (
        own_share * weighted_quantile(values, weights, LOW) + (1 - own_share) * parent[0],
        own_share * weighted_quantile(values, weights, HIGH) + (1 - own_share) * parent[1],
    )


def band(
    residuals: Iterable[Residual], group: tuple[str, str, str], widening: float
) -> tuple[float, float, int]:
    """Band of ln(measured / predicted) for a group (method, GPU class, evidence) and the runs behind it.

    A small group is mixed with its parents; ``widening`` stretches the band about its middle.
    """
    method, gpu_class, evidence = group
    members = list(residuals)
    low, high = _quantiles(members, (-0.3, 0.3))
    members = [r for r in members if r.evidence == evidence]
    low, high = _quantiles(members, (low, high))
    members = [r for r in members if r.gpu_class == gpu_class]
    low, high = _quantiles(members, (low, high))
    members = [r for r in members if r.method == method]
    low, high = _quantiles(members, (low, high))
    middle, half = (low + high) / 2, (high - low) / 2 * widening
    return middle - half, middle + half, len(members)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Share of runs inside bands made without their source: each run alike, and each source by its root."""

    by_run: float
    by_source_root: float


def coverage_of(residuals: list[Residual], widening: float) -> Coverage:
    """How often the runs of a source lie in bands made without that source."""
    inside = np.zeros(len(residuals))
    cache: dict[tuple[str, tuple[str, str, str]], tuple[float, float, int]] = {}
    for index, r in enumerate(residuals):
        key = (r.source, (r.method, r.gpu_class, r.evidence))
        if key not in cache:
            cache[key] = band([o for o in residuals if o.source != r.source], key[1], widening)
        inside[index] = cache[key][0] <= r.value <= cache[key][1]
    weights = np.array([r.weight for r in residuals])
    return Coverage(float(inside.mean()), float(inside @ weights / weights.sum()))


def calibrate_bands(
    connection: duckdb.DuckDBPyConnection, held_out: dict[str, Array], calibrations: dict[str, Calibrations]
) -> tuple[list[list[Any]], dict[str, Any]]:
    """Rows of model_bands.csv for every group that can be asked for, and the bands' own held-out coverage.

    Runs of a source never seen lie further out than runs of sources seen: the bands are widened until
    they contain four runs in five, as promised, of sources left out of the bands as well as of the constants.
    """
    rows: list[list[Any]] = []
    record: dict[str, Any] = {}
    for quantity, predictions in held_out.items():
        residuals = residuals_of(connection, predictions, calibrations[quantity])
        tried = {float(w): coverage_of(residuals, float(w)) for w in WIDENINGS}
        widening = min(tried, key=lambda w: (abs(tried[w].by_source_root - (HIGH - LOW)), w))
        record[quantity] = {
            "widening": widening,
            "held_out_coverage": round(tried[widening].by_run, 4),
            "held_out_coverage_by_source": round(tried[widening].by_source_root, 4),
            "runs": len(residuals),
        }
        for group in itertools.product(METHODS, GPU_CLASSES, EVIDENCES):
            low, high, runs = band(residuals, group, widening)
            # The estimate itself always lies in its band.
            ratios = f"{min(1.0, np.exp(low)):.4f}", f"{max(1.0, np.exp(high)):.4f}"
            rows.append([quantity, *group, *ratios, runs])
    return rows, record
