"""Error bands, calibrated on predictions of runs whose family of sources was held out.

A stranger's runs are of a family that the model has not seen, so a band must be right for families, not for
runs: each counts alike, however many runs it published (conformal prediction over groups: Dunn, Wasserman and
Ramdas 2018, arXiv 1809.07441).
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from pipeline.contracts.training import EVIDENCES, METHODS
from pipeline.model.fitting import Array, Calibrations, Mask, group_weights

GPU_CLASSES = ("hopper and a100 sxm", "pcie", "consumer", "before ampere", "blackwell", "other vendor")
COLUMNS = ("calibration", "quantity", "method", "gpu_class", "evidence", "low_ratio", "high_ratio", "runs")
"""Of model_bands.csv."""

_EVIDENCE = {"memory": "memory_evidence(e.evidence, t.is_proven)", "speed": "e.evidence"}
LOW, HIGH = 0.1, 0.9
PRIOR_BAND = (-0.3, 0.3)
"""Logarithms of the band that the widest group is mixed with, as if it were of one family more."""
PARENT_FAMILIES = 4
"""A group of n families counts n parts, its parent group so many: with two, bands of few families were too
narrow for unseen ones."""
LEAST_FAMILIES = 3
"""With fewer families of one evidence level the widening of all levels is taken."""
WIDENINGS = np.round(np.arange(0.5, 4.001, 0.05), 2)

Names = npt.NDArray[np.str_]
Group = tuple[str, str, str]
"""Method, GPU class, evidence."""


@dataclass(frozen=True, slots=True)
class Residuals:
    """Held-out runs: their groups, their families and ln(measured / predicted)."""

    method: Names
    gpu_class: Names
    evidence: Names
    family: Names
    value: Array

    def __len__(self) -> int:
        return len(self.value)

    def where(self, mask: Mask) -> "Residuals":
        """The runs of the mask."""
        return Residuals(*(getattr(self, field.name)[mask] for field in fields(self)))

    def without(self, *families: str) -> "Residuals":
        """The runs of the other families."""
        return self.where(~np.isin(self.family, families))

    def families(self) -> list[str]:
        """The families, sorted."""
        return [str(family) for family in np.unique(self.family)]

    def groups(self) -> list[Group]:
        """The group of each run."""
        return list(zip(self.method, self.gpu_class, self.evidence, strict=True))


def weighted_quantile(values: Array, weights: Array, share: float) -> float:
    """Quantile of weighted values, interpolated between midpoints of the cumulated weights."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(share * weights.sum(), cumulated, values[order]))


def family_weights(families: Names) -> Array:
    """One weight per run, such that each family has the same in all."""
    return group_weights(families, 1)


def residuals_of(
    connection: duckdb.DuckDBPyConnection, quantity: str, calibrations: Calibrations
) -> Residuals:
    """Held-out residuals with the groups that a band is looked up by, as an unseen run would meet them."""
    fitter = calibrations.fitter
    groups: dict[str, Group] = {
        run_id: (method, gpu_class, evidence)
        for run_id, method, gpu_class, evidence in connection.execute(
            "WITH _held_out AS (SELECT r.*, 'without ' || s.family AS calibration "  # noqa: S608
            f"FROM runs_{quantity} r JOIN main.measured_sources s USING (source)), "
            f"_terms AS (SELECT * FROM {fitter.quantity.macro}('_held_out')), "
            f"_evidence AS (SELECT * FROM evidence_of('_terms', '{quantity}')) "
            f"SELECT t.run_id, t.method, e.class, {_EVIDENCE[quantity]} FROM _terms t JOIN _evidence e "
            "ON e.calibration = t.calibration AND e.gpu = t.gpu AND e.method = t.method "
            "AND e.params = t.params_total AND e.gpu_count = t.gpu_count AND e.stack = t.stack "
            "AND e.seq_len = t.seq_len AND e.is_mixture = (t.experts > 1) "
            "AND e.weight_form = weight_form(t.method, t.quantization)"
        ).fetchall()
    }
    methods, classes, evidences = np.array([groups[run_id] for run_id in fitter.run_ids]).T
    return Residuals(methods, classes, evidences, fitter.families, fitter.measured - calibrations.held_out)


@dataclass(frozen=True, slots=True)
class Band:
    """p10 and p90 of ln(measured / predicted), and the runs of the very group behind them."""

    low: float
    high: float
    runs: int

    def widened(self, factor: float) -> "Band":
        """Stretched about its middle."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2 * factor
        return Band(middle - half, middle + half, self.runs)


def _quantiles(residuals: Residuals, parent: tuple[float, float]) -> tuple[float, float]:
    if not len(residuals):
        return parent
    weights = family_weights(residuals.family)
    families = len(residuals.families())
    share = families / (families + PARENT_FAMILIES)
    own = (weighted_quantile(residuals.value, weights, level) for level in (LOW, HIGH))
    low, high = (share * at + (1 - share) * above for at, above in zip(own, parent, strict=True))
    return low, high


def band(residuals: Residuals, group: Group) -> Band:
    """The band of a group: of few families it is mixed with the group's parents."""
    method, gpu_class, evidence = group
    low, high = _quantiles(residuals, PRIOR_BAND)
    for column, value in (("evidence", evidence), ("gpu_class", gpu_class), ("method", method)):
        residuals = residuals.where(getattr(residuals, column) == value)
        low, high = _quantiles(residuals, (low, high))
    return Band(low, high, len(residuals))


def coverage(inside: Mask, families: Names) -> float:
    """Share of runs inside their bands, the mean over families."""
    return float(np.average(inside, weights=family_weights(families))) if len(inside) else float("nan")


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """Runs with the unwidened band that they would have had without their own family."""

    residuals: Residuals
    middle: Array
    half: Array

    def inside(self, widening: float) -> Mask:
        return np.asarray(np.abs(self.residuals.value - self.middle) <= self.half * widening)


def _bands_of(residuals: Residuals, seen: Residuals) -> list[Band]:
    """The band of each run's group, made of the runs seen."""
    groups = residuals.groups()
    found = {group: band(seen, group) for group in set(groups)}
    return [found[group] for group in groups]


def _left_out(residuals: Residuals) -> _LeftOut:
    edges = np.empty((len(residuals), 2))
    for family in residuals.families():
        mask = residuals.family == family
        made = _bands_of(residuals.where(mask), residuals.without(family))
        edges[mask] = [(at.low, at.high) for at in made]
    return _LeftOut(residuals, edges.mean(axis=1), (edges[:, 1] - edges[:, 0]) / 2)


def _best_widening(left_out: _LeftOut, mask: Mask) -> float:
    families = left_out.residuals.family[mask]
    missed = {
        float(w): abs(coverage(left_out.inside(float(w))[mask], families) - (HIGH - LOW)) for w in WIDENINGS
    }
    return min(missed, key=lambda w: (round(missed[w], 6), w))


def widenings(residuals: Residuals) -> dict[str, float]:
    """By evidence level: the stretch with which bands hold four fifths of the runs of unseen families."""
    left_out = _left_out(residuals)
    everywhere = _best_widening(left_out, np.ones(len(residuals), dtype=bool))
    found = {}
    for evidence in EVIDENCES:
        mask = residuals.evidence == evidence
        enough = len(np.unique(residuals.family[mask])) >= LEAST_FAMILIES
        found[evidence] = _best_widening(left_out, mask) if enough else everywhere
    return found


def _band_rows(
    residuals: Residuals, calibration: str, quantity: str, stretched: Mapping[str, float]
) -> Iterator[list[Any]]:
    for group in itertools.product(METHODS, GPU_CLASSES, EVIDENCES):
        at = band(residuals, group).widened(stretched[group[2]])
        # The estimate itself always lies in its band.
        ratios = f"{min(1.0, np.exp(at.low)):.4f}", f"{max(1.0, np.exp(at.high)):.4f}"
        yield [calibration, quantity, *group, *ratios, at.runs]


def _record(inside: Mask, residuals: Residuals) -> dict[str, Any]:
    by_evidence = {
        evidence: round(coverage(inside[mask], residuals.family[mask]), 4)
        for evidence in EVIDENCES
        if (mask := residuals.evidence == evidence).any()
    }
    return {
        "held_out_coverage": round(float(inside.mean()), 4),
        "held_out_coverage_by_family": round(coverage(inside, residuals.family), 4),
        "held_out_coverage_by_family_and_evidence": by_evidence,
        "runs": len(residuals),
    }


def calibrate_bands(
    connection: duckdb.DuckDBPyConnection, calibrations: Mapping[str, Calibrations], others: Sequence[str]
) -> tuple[list[list[Any]], dict[str, Any]]:
    """Rows of model_bands.csv for every group that can be asked for, and how often the bands hold.

    For each calibration without a family there are bands without it, whose coverage of that family's runs is
    what is recorded. Those runs' own residuals had no part in them; the other families' residuals are by
    constants that each left out its own family, and only that. ``others`` are the calibrations beside all;
    those that hold out no runs of a quantity take the bands of all.
    """
    rows: list[list[Any]] = []
    record: dict[str, Any] = {}
    for quantity, fitted in calibrations.items():
        residuals = residuals_of(connection, quantity, fitted)
        stretched = widenings(residuals)
        unseen = {f"without {family}" for family in residuals.families()}
        for calibration in ("all", *(name for name in others if name not in unseen)):
            rows += _band_rows(residuals, calibration, quantity, stretched)
        inside = np.empty(len(residuals), dtype=bool)
        for family in residuals.families():
            seen, mask = residuals.without(family), residuals.family == family
            stretched_here = widenings(seen)
            rows += _band_rows(seen, f"without {family}", quantity, stretched_here)
            here = residuals.where(mask)
            stretches = [stretched_here[evidence] for evidence in here.evidence]
            made = [at.widened(by) for at, by in zip(_bands_of(here, seen), stretches, strict=True)]
            inside[mask] = [at.low <= value <= at.high for at, value in zip(made, here.value, strict=True)]
        record[quantity] = {"widening": stretched, **_record(inside, residuals)}
    return rows, record
