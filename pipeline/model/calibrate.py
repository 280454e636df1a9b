"""Calibration: fits the constants that the macros of sql/model use, on the published measurements.

The residuals are computed by the very macros that answer users: a set of trial constants is a row group of
main.model_constants, and one query evaluates every run under every trial set, so a Jacobian is one query.
The constants keep close to a physical expectation unless the runs say otherwise: each has a prior and a
relative width in catalog/model_parameters.csv (a Gaussian in its logarithm), and no constant belongs to a
source or a run.
"""

import csv
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import yaml
from scipy.optimize import least_squares

from pipeline.contracts import paths
from pipeline.model import bands
from pipeline.model.engine import connect_model

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

PARAMETERS_FILE = "model_parameters.csv"
CONSTANTS_FILE = "model_constants.csv"
BANDS_FILE = "model_bands.csv"
RECORD_FILE = "calibration.yaml"

# A residual of this size (in the logarithm) still counts as a square; larger ones count linearly.
RESIDUAL_SCALE = 0.1
# How much all the runs together weigh against the priors.
RUN_WEIGHT = 0.3
LOG_STEP = 1e-3
MAX_EVALUATIONS = 20


@dataclass(frozen=True, slots=True)
class Parameter:
    """A constant of the model: its expected value and how far the runs may move it (0: fixed)."""

    name: str
    quantity: str
    prior: float
    relative_width: float


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is fitted: a macro's column against a measured column."""

    name: str
    macro: str
    predicted: str
    measured: str


QUANTITIES = (
    Quantity("memory", "memory_terms_of", "memory_gib", "measured_memory_gib"),
    Quantity("speed", "speed_terms_of", "tokens_per_second_per_gpu", "measured_tokens_per_second_per_gpu"),
)


def read_parameters(path: Path | None = None) -> list[Parameter]:
    """The reviewed expectations of all constants."""
    path = path or paths.CATALOG_DIR / PARAMETERS_FILE
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Parameter(row["name"], row["quantity"], float(row["prior"]), float(row["relative_width"]))
            for row in csv.DictReader(file)
        ]


def _insert_constants(connection: duckdb.DuckDBPyConnection, sets: dict[str, dict[str, float]]) -> None:
    connection.execute("DELETE FROM main.model_constants")
    rows = [
        (calibration, name, value)
        for calibration, constants in sets.items()
        for name, value in constants.items()
    ]
    fits, names, values = (list(column) for column in zip(*rows, strict=True))
    connection.execute(
        "INSERT INTO main.model_constants "
        "SELECT unnest($1::varchar[]), unnest($2::varchar[]), unnest($3::double[])",
        [fits, names, values],
    )


@dataclass
class Fitter:
    """Fits one quantity's constants to its measured runs."""

    connection: duckdb.DuckDBPyConnection
    quantity: Quantity
    parameters: Sequence[Parameter]
    fixed: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.free = [p for p in self.parameters if p.quantity == self.quantity.name and p.relative_width > 0]
        names = {p.name for p in self.free}
        self.constants = {p.name: p.prior for p in self.parameters if p.name not in names} | self.fixed
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE runs_{self.quantity.name} AS "  # noqa: S608 (names from this module)
            f"SELECT * FROM main.measured_runs WHERE {self.quantity.measured} IS NOT NULL ORDER BY run_id"
        )
        rows = self.connection.execute(
            f"SELECT run_id, source, {self.quantity.measured} FROM runs_{self.quantity.name} ORDER BY run_id"  # noqa: S608
        ).fetchall()
        self.run_ids = [row[0] for row in rows]
        self.sources = np.array([row[1] for row in rows])
        self.measured = np.log(np.array([row[2] for row in rows], dtype=np.float64))

    def constants_at(self, point: Array) -> dict[str, float]:
        """The constants that a point of the search space stands for (all of them, fixed ones included)."""
        free = {
            p.name: float(p.prior * np.exp(z * p.relative_width))
            for p, z in zip(self.free, point, strict=True)
        }
        return self.constants | free

    def predict(self, points: Array) -> Array:
        """Logarithm of the prediction of every run under every point: points x runs, in one query."""
        # Zero-padded names: their order is that of the points.
        sets = {f"{index:04d}": self.constants_at(point) for index, point in enumerate(points)}
        _insert_constants(self.connection, sets)
        answer = self.connection.execute(
            f"WITH _trials AS (SELECT r.*, t.calibration FROM runs_{self.quantity.name} r, "  # noqa: S608
            "(SELECT DISTINCT calibration FROM main.model_constants) t) "
            f"SELECT {self.quantity.predicted} AS predicted FROM {self.quantity.macro}('_trials') "
            "ORDER BY calibration, run_id"
        ).fetchnumpy()["predicted"]
        return np.log(np.asarray(answer, dtype=np.float64).reshape(len(points), -1))

    def _weights(self, mask: Mask) -> Array:
        # A source with hundreds of runs speaks louder than one with ten, but by the root of its number.
        sources = self.sources[mask]
        counts = {source: int((sources == source).sum()) for source in set(sources)}
        weights = np.array([counts[source] ** -0.5 for source in sources])
        return np.asarray(RUN_WEIGHT * len(weights) * weights / weights.sum())

    def fit(self, mask: Mask, start: Array | None = None) -> Array:
        """The point that best explains the runs of the mask; deterministic to the last digit."""
        weights = np.sqrt(self._weights(mask))
        size = len(self.free)

        def residuals(points: Array) -> Array:
            scaled = (self.predict(points) - self.measured)[:, mask] / RESIDUAL_SCALE
            soft = np.sign(scaled) * np.sqrt(2 * (np.sqrt(1 + scaled**2) - 1)) * weights
            return np.hstack([soft, points])

        def jacobian(point: Array) -> Array:
            steps = LOG_STEP * np.eye(size)
            sides = residuals(np.vstack([point + steps, point - steps]))
            return (sides[:size] - sides[size:]).T / (2 * LOG_STEP)

        solution = least_squares(
            lambda point: residuals(point[None, :])[0],
            np.zeros(size) if start is None else start,
            jac=jacobian,
            bounds=(-4, 4),
            max_nfev=MAX_EVALUATIONS,
        )
        return np.asarray(solution.x)


def in_first_half(run_id: str) -> bool:
    """Whether a run is in the calibration half of the fixed split."""
    return hashlib.sha256(run_id.encode()).digest()[0] % 2 == 0


def gemm_ratio(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """Share of the dense 16-bit datasheet peak that measured products reach, by watts per datasheet TFLOP."""
    rows = connection.execute(
        "SELECT ln(gemm_bf16_measured_tflops / bf16_dense_tflops), ln(tdp_w / bf16_dense_tflops) "
        "FROM main.gpus WHERE gemm_bf16_measured_tflops IS NOT NULL AND bf16_dense_tflops IS NOT NULL "
        "AND tdp_w IS NOT NULL "
        "AND derived_from IS NULL AND has_full_specs ORDER BY gpu_id"
    ).fetchall()
    ratio, watts = np.array(rows).T
    exponent, intercept = np.polyfit(watts, ratio, 1)
    return {"gemm_ratio_at_one_watt": float(np.exp(intercept)), "gemm_ratio_watt_exponent": float(exponent)}


@dataclass
class Fits:
    """All fits of one quantity: constants by name of the fit, and the held-out predictions."""

    fitter: Fitter
    points: dict[str, Array]

    def held_out(self) -> Array:
        """Each run's prediction (logarithm) by the constants fitted without its source."""
        predictions = np.empty(len(self.fitter.run_ids))
        for source in sorted(set(self.fitter.sources)):
            mask = self.fitter.sources == source
            predictions[mask] = self.fitter.predict(self.points[f"without {source}"][None, :])[0][mask]
        return predictions


def fit_quantity(fitter: Fitter) -> Fits:
    """Fit on all runs, without each source in turn, and on the first half of the fixed split."""
    everything = np.ones(len(fitter.run_ids), dtype=bool)
    points = {"all": fitter.fit(everything)}
    for source in sorted(set(fitter.sources)):
        points[f"without {source}"] = fitter.fit(fitter.sources != source, points["all"])
    first_half = np.array([in_first_half(run_id) for run_id in fitter.run_ids])
    points["split"] = fitter.fit(first_half, points["all"])
    return Fits(fitter, points)


def _errors(predicted: Array, measured: Array) -> dict[str, float | int]:
    error = np.abs(np.exp(predicted - measured) - 1)
    return {
        "runs": len(error),
        "median": round(float(np.median(error)), 4),
        "mean": round(float(error.mean()), 4),
        "p90": round(float(np.quantile(error, 0.9)), 4),
    }


def summarize(fits: Fits) -> dict[str, Any]:
    """Errors of one quantity: in sample, held out by source, held out by the fixed split, and per source."""
    fitter, held_out = fits.fitter, fits.held_out()
    in_sample = fitter.predict(fits.points["all"][None, :])[0]
    second_half = np.array([not in_first_half(run_id) for run_id in fitter.run_ids])
    split = fitter.predict(fits.points["split"][None, :])[0]
    return {
        "in_sample": _errors(in_sample, fitter.measured),
        "leave_one_source_out": _errors(held_out, fitter.measured),
        "fixed_split": _errors(split[second_half], fitter.measured[second_half]),
        "leave_one_source_out_by_source": {
            str(source): _errors(
                held_out[fitter.sources == source], fitter.measured[fitter.sources == source]
            )
            for source in sorted(set(fitter.sources))
        },
    }


# What the calibration depends on; facts of other GPUs and models may change without a new calibration.
_DATA_QUERIES = (
    "SELECT * FROM main.measured_runs ORDER BY run_id",
    "SELECT * EXCLUDE (title, max_context, licence, hf_id, source) FROM main.models "
    "WHERE model IN (SELECT model FROM main.measured_runs) ORDER BY model",
    "SELECT gpu_id, architecture, bandwidth_gb_s, bf16_dense_tflops, fp16_dense_tflops, fp8_dense_tflops, "
    "fp4_dense_tflops, gemm_bf16_measured_tflops, gemm_fp16_measured_tflops, tdp_w, year, nvlink_gb_s, "
    "pcie_gen, peer_to_peer, max_gpus_per_node, segment, form_factor, usable_memory_gib FROM main.gpus "
    "WHERE gpu_id IN (SELECT gpu FROM main.measured_runs) OR gemm_bf16_measured_tflops IS NOT NULL "
    "ORDER BY gpu_id",
)


def data_hash(connection: duckdb.DuckDBPyConnection) -> str:
    """SHA-256 over the runs, and over the facts of their models and GPUs, that the calibration reads."""
    digest = hashlib.sha256((paths.CATALOG_DIR / PARAMETERS_FILE).read_bytes())
    for query in _DATA_QUERIES:
        digest.update(repr(connection.execute(query).fetchall()).encode())
    return digest.hexdigest()


def calibrate(today: date, output: Path | None = None) -> dict[str, Any]:
    """Fit everything and write constants, bands and the record of errors to ``output`` (the catalogue).

    Returns the record. Two runs on the same files write the same digits.
    """
    output = output or paths.CATALOG_DIR
    connection = connect_model()
    try:
        parameters = read_parameters()
        fixed = gemm_ratio(connection)
        fits = {q.name: fit_quantity(Fitter(connection, q, parameters, fixed)) for q in QUANTITIES}
        record: dict[str, Any] = {"calibrated_on": today.isoformat(), "data_sha256": data_hash(connection)}
        for name, fitted in fits.items():
            record[name] = summarize(fitted)
        sets = _constant_sets(fits)
        verdict = bands.calibrate_verdict(connection, sets, lambda s: _insert_constants(connection, s))
        safety = bands.safety_ratio(fits["memory"].held_out(), fits["memory"].fitter)
        for constants in sets.values():
            constants |= verdict.constants | {"fit_safety_ratio": safety}
        record["fit_verdicts"] = verdict.record
        _insert_constants(connection, _rounded(sets))
        rows, coverage = bands.calibrate_bands(connection, {n: f.held_out() for n, f in fits.items()}, fits)
        record["bands"] = coverage
        _insert_constants(connection, _rounded(sets))
    finally:
        connection.close()
    _write_constants(output / CONSTANTS_FILE, sets)
    bands.write(output / BANDS_FILE, rows)
    with (output / RECORD_FILE).open("w", encoding="utf-8") as file:
        yaml.safe_dump(record, file, sort_keys=False)
    return record


def _constant_sets(fits: dict[str, Fits]) -> dict[str, dict[str, float]]:
    names = sorted({name for fitted in fits.values() for name in fitted.points})
    sets: dict[str, dict[str, float]] = {}
    for name in names:
        sets[name] = {}
        for quantity, fitted in fits.items():
            fitter = fitted.fitter
            at = fitter.constants_at(fitted.points.get(name, fitted.points["all"]))
            sets[name] |= {p.name: at[p.name] for p in fitter.parameters if p.quantity == quantity}
    return sets


def _rounded(sets: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {
        calibration: {name: float(f"{value:.6g}") for name, value in constants.items()}
        for calibration, constants in sets.items()
    }


def _write_constants(path: Path, sets: dict[str, dict[str, float]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["calibration", "name", "value"])
        for calibration, constants in _rounded(sets).items():
            for name in sorted(constants):
                writer.writerow([calibration, name, f"{constants[name]:.6g}"])
