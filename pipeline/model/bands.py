"""Error bands, calibrated on predictions of runs whose family of sources was held out.

A stranger's runs belong to a family that the model has not seen, so a band must be right for families, not
for runs: every family counts the same, however many runs it published (conformal prediction over groups:
Dunn, Wasserman and Ramdas 2018, arXiv 1809.07441).
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.contracts.training import METHODS
from pipeline.model.fitting import Array, Fit, Mask, Quantity, group_weights

CLASSES_AND_EVIDENCES = {
    "memory": (("any",), ("traced", "formulas")),
    "speed": (
        ("hopper and a100 sxm", "pcie", "consumer", "before ampere", "blackwell", "other vendor"),
        ("measured", "interpolated", "extrapolated"),
    ),
}
"""The classes of GPUs and the kinds of evidence by which the bands of a quantity differ."""
COLUMNS = ("calibration", "quantity", "method", "gpu_class", "evidence", "low_ratio", "high_ratio", "runs")
"""Columns of model_bands.csv."""

LOW, HIGH = 0.1, 0.9
PRIOR_BAND = (-0.3, 0.3)
"""The prior band, as logarithms of ratios: the parent of all groups, mixed into the widest group's band."""
PARENT_FAMILIES = 4
"""The weight of the parent group; a group of n families has weight n. With a weight of 2, the bands of groups
with few families were too narrow for unseen families."""
LEAST_FAMILIES = 3
"""If an evidence level has fewer families than this, the widening fitted to all levels together is used."""
WIDENINGS = np.round(np.arange(0.5, 4.001, 0.05), 2)

Names = npt.NDArray[np.str_]
Group = tuple[str, str, str]
"""A group of runs: method, GPU class and evidence."""
COLUMNS_OF_GROUP = ("method", "gpu_class", "evidence")

Residuals = pl.DataFrame
"""Runs: their source and family, the columns of their groups, and ``value``, ln(measured / predicted)."""


def by_family(residuals: Residuals) -> Iterator[tuple[str, Residuals, Residuals]]:
    """Yield each family, its runs, and the runs of the other families."""
    for family in residuals["family"].unique().sort():
        is_of_family = pl.col("family") == family
        yield family, residuals.filter(is_of_family), residuals.filter(~is_of_family)


def weighted_quantile(values: Array, weights: Array, share: float) -> float:
    """Return a quantile of weighted values, interpolated between midpoints of the cumulative weights."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(share * weights.sum(), cumulated, values[order]))


def family_weights(families: Names) -> Array:
    """Return one weight per run; each family's weights add up to the same sum."""
    return group_weights(families, 1)


@dataclass(frozen=True, slots=True)
class Answered:
    """The residuals of a quantity's runs, in the order of the run_ids, from the constants that answers use: a
    fit of one quantity knows the other quantity's constants only by their priors."""

    in_sample: Residuals
    """From the constants fitted to all runs."""
    held_out: Residuals
    """From the constants fitted without the run's family, with the groups of an unseen run."""


def answer_runs(connection: duckdb.DuckDBPyConnection, quantity: Quantity) -> Answered:
    """Estimate the runs that measured a quantity, as answers do."""
    rows = connection.execute(
        "WITH _runs AS (SELECT r.*, unnest(['all', 'without ' || s.family]) AS calibration "  # noqa: S608
        "FROM main.measured_runs r JOIN main.measured_sources s USING (source) "
        f"WHERE {quantity.measured} IS NOT NULL), "
        f"_terms AS (SELECT * FROM {quantity.macro}('_runs')) "
        "SELECT e.calibration = 'all', source, s.family, e.method, e.class, e.evidence, "
        f"ln(r.{quantity.measured}) - ln(e.{quantity.predicted}) "
        f"FROM {quantity.name}_evidence('_terms') e JOIN main.measured_runs r USING (run_id) "
        "JOIN main.measured_sources s USING (source) ORDER BY run_id"
    ).fetchall()
    columns = ("is_in_sample", "source", "family", *COLUMNS_OF_GROUP, "value")
    runs = pl.DataFrame(rows, schema=columns, orient="row")
    return Answered(runs.filter("is_in_sample"), runs.filter(~pl.col("is_in_sample")))


@dataclass(frozen=True, slots=True)
class Band:
    """The p10 and p90 of a group's ln(measured / predicted), and the number of its runs."""

    low: float
    high: float
    runs: int

    def widened(self, factor: float) -> "Band":
        """Return the band stretched about its middle."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2 * factor
        return Band(middle - half, middle + half, self.runs)


def _quantiles(residuals: Residuals, parent: tuple[float, float]) -> tuple[float, float]:
    if residuals.is_empty():
        return parent
    values, weights = residuals["value"].to_numpy(), family_weights(residuals["family"].to_numpy())
    families = residuals["family"].n_unique()
    share = families / (families + PARENT_FAMILIES)
    own = (weighted_quantile(values, weights, level) for level in (LOW, HIGH))
    low, high = (share * at + (1 - share) * above for at, above in zip(own, parent, strict=True))
    return low, high


def band(residuals: Residuals, group: Group) -> Band:
    """Return the band of a group; the fewer its families, the more of its parents' bands is mixed in."""
    method, gpu_class, evidence = group
    low, high = _quantiles(residuals, PRIOR_BAND)
    for column, value in (("evidence", evidence), ("gpu_class", gpu_class), ("method", method)):
        residuals = residuals.filter(pl.col(column) == value)
        low, high = _quantiles(residuals, (low, high))
    return Band(low, high, len(residuals))


def coverage(inside: Mask, families: Names) -> float:
    """Return the share of runs inside their bands, averaged over families."""
    return float(np.average(inside, weights=family_weights(families))) if len(inside) else float("nan")


def _with_bands(runs: Residuals, seen: Residuals) -> Residuals:
    """Return the runs with ``low`` and ``high``, the ends of their groups' bands, computed from ``seen``."""
    groups = runs.select(COLUMNS_OF_GROUP).rows()
    found = {group: band(seen, group) for group in set(groups)}
    return runs.with_columns(
        low=pl.Series([found[group].low for group in groups]),
        high=pl.Series([found[group].high for group in groups]),
    )


def _inside(runs: Residuals, widening: float | pl.Series) -> Mask:
    """Return a mask of the runs inside their bands, each band stretched about its middle."""
    middle, half = (runs["low"] + runs["high"]) / 2, (runs["high"] - runs["low"]) / 2
    return ((runs["value"] - middle).abs() <= half * widening).to_numpy()


def _least_widening(runs: Residuals) -> float:
    """Return the least widening at which the bands contain 80% of the runs, or the largest if none does."""
    families = runs["family"].to_numpy()
    enough = (float(w) for w in WIDENINGS if coverage(_inside(runs, float(w)), families) >= HIGH - LOW)
    return next(enough, float(WIDENINGS[-1]))


def widenings(residuals: Residuals, evidences: Sequence[str]) -> dict[str, float]:
    """Return, for each evidence level, the widening at which bands contain 80% of unseen families' runs."""
    unseen = pl.concat(_with_bands(runs, others) for _, runs, others in by_family(residuals))
    everywhere = _least_widening(unseen)
    found = {}
    for evidence in evidences:
        runs = unseen.filter(pl.col("evidence") == evidence)
        enough = runs["family"].n_unique() >= LEAST_FAMILIES
        found[evidence] = _least_widening(runs) if enough else everywhere
    return found


def _band_rows(
    residuals: Residuals, calibration: str, quantity: str, stretched: Mapping[str, float]
) -> Iterator[list[Any]]:
    for group in itertools.product(METHODS, *CLASSES_AND_EVIDENCES[quantity]):
        at = band(residuals, group).widened(stretched[group[2]])
        # An estimate always lies within its own band.
        ratios = f"{min(1.0, np.exp(at.low)):.4f}", f"{max(1.0, np.exp(at.high)):.4f}"
        yield [calibration, quantity, *group, *ratios, at.runs]


def _record(runs: Residuals) -> dict[str, Any]:
    """Return the shares of runs inside their bands, each band stretched by the run's ``widening``."""
    inside, families = _inside(runs, runs["widening"]), runs["family"].to_numpy()
    by_evidence = {
        evidence: round(coverage(inside[mask], families[mask]), 4)
        for evidence in sorted(set(runs["evidence"]))
        for mask in ((runs["evidence"] == evidence).to_numpy(),)
    }
    return {
        "held_out_coverage": round(float(inside.mean()), 4),
        "held_out_coverage_by_family": round(coverage(inside, families), 4),
        "held_out_coverage_by_family_and_evidence": by_evidence,
        "runs": len(runs),
    }


def calibrate_bands(
    fits: Mapping[str, Fit], answered: Mapping[str, Answered], others: Sequence[str]
) -> tuple[list[list[Any]], dict[str, Any]]:
    """Return the rows of model_bands.csv for every group, and the record of the bands' coverage.

    A calibration that leaves a family out gets bands made of the other families' residuals, each from
    constants that have seen neither of the two families, and the share of the family's runs inside these
    bands is recorded. ``others`` are the calibrations other than ``all``; if such a calibration holds out no
    runs of a quantity, it uses the bands of ``all``.
    """
    rows: list[list[Any]] = []
    record: dict[str, Any] = {}
    for quantity, fit in fits.items():
        residuals = answered[quantity].held_out.with_row_index("run")
        stretched = widenings(residuals, evidences := CLASSES_AND_EVIDENCES[quantity][1])
        for calibration in ("all", *(name for name in others if name not in fit.constants)):
            rows += _band_rows(residuals, calibration, quantity, stretched)
        held_out = []
        for family, runs, others_of_family in by_family(residuals):
            nested = pl.Series(fit.nested[family][others_of_family["run"]])
            others_seen = others_of_family.with_columns(value=nested)
            stretched_here = widenings(others_seen, evidences)
            rows += _band_rows(others_seen, f"without {family}", quantity, stretched_here)
            widening = pl.col("evidence").replace_strict(stretched_here, return_dtype=pl.Float64)
            held_out.append(_with_bands(runs, others_seen).with_columns(widening=widening))
        record[quantity] = {"widening": stretched, **_record(pl.concat(held_out))}
    return rows, record
