"""Fits everything that the model takes from measurements: constants, the fit threshold and error bands."""

import csv
import hashlib
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import yaml

from pipeline.contracts import paths
from pipeline.model import bands
from pipeline.model.fit_threshold import calibrate_threshold
from pipeline.model.fitting import (
    PARAMETERS_FILE,
    QUANTITIES,
    Array,
    Calibrations,
    ConstantSets,
    Fitter,
    fit_quantity,
    gemm_ratio,
    in_first_half,
    insert_constants,
    read_parameters,
)
from pipeline.warehouse.database import in_memory

CONSTANTS_FILE = "model_constants.csv"
BANDS_FILE = "model_bands.csv"
RECORD_FILE = "calibration.yaml"

REPRODUCTION_TOLERANCE = 1e-4
"""Relative. On one machine a calibration repeats to the digit; other processors add up in another order."""


def _errors(predicted: Array, measured: Array) -> dict[str, float | int]:
    error = np.abs(np.exp(predicted - measured) - 1)
    return {
        "runs": len(error),
        "median": round(float(np.median(error)), 4),
        "mean": round(float(error.mean()), 4),
        "p90": round(float(np.quantile(error, 0.9)), 4),
    }


def summarize(calibrations: Calibrations, held_out: Array) -> dict[str, Any]:
    """Errors of one quantity: in sample, held out by source, held out by the fixed split, and per source."""
    fitter = calibrations.fitter
    in_sample = fitter.predict(calibrations.points["all"][None, :])[0]
    second_half = np.array([not in_first_half(run_id) for run_id in fitter.run_ids])
    split = fitter.predict(calibrations.points["split"][None, :])[0]
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

    Returns the record. Two calibrations of the same files write the same digits.
    """
    output = output or paths.CATALOG_DIR
    output.mkdir(parents=True, exist_ok=True)  # before minutes of work, not after
    with in_memory("memory_of", "speed_of") as connection:
        parameters = read_parameters()
        fixed = gemm_ratio(connection)
        calibrations = {q.name: fit_quantity(Fitter(connection, q, parameters, fixed)) for q in QUANTITIES}
        held_out = {name: fitted.held_out() for name, fitted in calibrations.items()}
        record: dict[str, Any] = {"calibrated_on": today.isoformat(), "data_sha256": data_hash(connection)}
        for name, fitted in calibrations.items():
            record[name] = summarize(fitted, held_out[name])
        sets = _constant_sets(calibrations)
        threshold = calibrate_threshold(connection, sets)
        sets = _rounded({name: constants | threshold.constants for name, constants in sets.items()})
        record["fit_verdicts"] = threshold.record
        insert_constants(connection, sets)
        rows, record["bands"] = bands.calibrate_bands(connection, held_out, calibrations)
    constants = [
        (name, constant, f"{value:.6g}") for name in sets for constant, value in sorted(sets[name].items())
    ]
    _write(output / CONSTANTS_FILE, ("calibration", "name", "value"), constants)
    _write(output / BANDS_FILE, bands.COLUMNS, rows)
    with (output / RECORD_FILE).open("w", encoding="utf-8") as file:
        yaml.safe_dump(record, file, sort_keys=False)
    return record


def _constant_sets(calibrations: dict[str, Calibrations]) -> ConstantSets:
    names = sorted({name for fitted in calibrations.values() for name in fitted.points})
    sets: ConstantSets = {}
    for name in names:
        sets[name] = {}
        for quantity, fitted in calibrations.items():
            fitter = fitted.fitter
            at = fitter.constants_at(fitted.points.get(name, fitted.points["all"]))
            sets[name] |= {p.name: at[p.name] for p in fitter.parameters if p.quantity == quantity}
    return sets


def _rounded(sets: ConstantSets) -> ConstantSets:
    return {
        calibration: {name: float(f"{value:.6g}") for name, value in constants.items()}
        for calibration, constants in sets.items()
    }


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def changed_constants() -> list[str]:
    """Constants that answers use and that a fit on all runs would change; none when they are reproduced.

    The sets with runs held out, and the bands, are not fitted again: `gpufare calibrate` does that too and
    takes some twenty times as long.
    """
    reviewed = _reviewed_constants()
    with in_memory("memory_of", "speed_of") as connection:
        parameters, fixed = read_parameters(), gemm_ratio(connection)
        changed = []
        for quantity in QUANTITIES:
            fitter = Fitter(connection, quantity, parameters, fixed)
            fitted = fitter.constants_at(fitter.fit(np.ones(len(fitter.run_ids), dtype=bool)))
            names = [parameter.name for parameter in fitter.free]
            changed += [
                name for name in names if abs(fitted[name] / reviewed[name] - 1) > REPRODUCTION_TOLERANCE
            ]
    return changed


def _reviewed_constants() -> dict[str, float]:
    with (paths.CATALOG_DIR / CONSTANTS_FILE).open(newline="", encoding="utf-8") as file:
        return {
            row["name"]: float(row["value"]) for row in csv.DictReader(file) if row["calibration"] == "all"
        }
