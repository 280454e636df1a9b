"""Calibration of the model on measured runs: constants, the fit threshold and error bands."""

import hashlib
import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import yaml

from pipeline.home import paths
from pipeline.model import bands
from pipeline.model.fit_threshold import calibrate_threshold
from pipeline.model.fitting import (
    QUANTITIES,
    Array,
    Calibrations,
    ConstantSets,
    Fitter,
    Quantity,
    fit_quantity,
    gemm_ratio,
    insert_constants,
    read_parameters,
)
from pipeline.warehouse.database import in_memory

CONSTANTS_FILE = "model_constants.csv"
BANDS_FILE = "model_bands.csv"
RECORD_FILE = "calibration.yaml"


def _errors(predicted: Array, measured: Array) -> dict[str, float | int]:
    error = np.abs(np.exp(predicted - measured) - 1)
    return {
        "runs": len(error),
        "median": round(float(np.median(error)), 4),
        "mean": round(float(error.mean()), 4),
        "p90": round(float(np.quantile(error, 0.9)), 4),
    }


def _by_source(predicted: Array, fitter: Fitter) -> dict[str, dict[str, float | int]]:
    return {
        str(source): _errors(predicted[fitter.sources == source], fitter.measured[fitter.sources == source])
        for source in sorted(set(fitter.sources))
    }


def summarize(calibrations: Calibrations) -> dict[str, Any]:
    """Return a quantity's errors: for unseen sources, with families held out, in sample, and by source."""
    fitter, held_out = calibrations.fitter, calibrations.held_out
    by_source = _by_source(held_out, fitter)
    return {
        "of_a_stranger": {
            "sources": len(by_source),
            **{
                average: round(float(np.mean([errors[average] for errors in by_source.values()])), 4)
                for average in ("median", "mean")
            },
        },
        "leave_one_family_out": _errors(held_out, fitter.measured),
        "in_sample": _errors(calibrations.in_sample, fitter.measured),
        "leave_one_family_out_by_source": by_source,
        "posterior_widths": {name: round(w, 2) for name, w in calibrations.posterior_widths.items()},
    }


# The inputs of the calibration; facts about other GPUs and models may change without a new calibration.
_DATA_QUERIES = (
    "SELECT * FROM main.measured_runs ORDER BY run_id",
    "SELECT source, family FROM main.measured_sources ORDER BY source",
    "SELECT * EXCLUDE (title, max_context, licence, hf_id, source) FROM main.models "
    "WHERE model IN (SELECT model FROM main.measured_runs) ORDER BY model",
    "SELECT gpu_id, architecture, bandwidth_gb_s, cache_mib, memory_type, bf16_dense_tflops, "
    "fp16_dense_tflops, fp8_dense_tflops, fp4_dense_tflops, gemm_bf16_measured_tflops, "
    "gemm_fp16_measured_tflops, tdp_w, year, nvlink_gb_s, pcie_gen, peer_to_peer, max_gpus_per_node, "
    "segment, form_factor, usable_memory_gib FROM main.gpus "
    "WHERE gpu_id IN (SELECT gpu FROM main.measured_runs) OR gemm_bf16_measured_tflops IS NOT NULL "
    "ORDER BY gpu_id",
)


def data_hash(connection: duckdb.DuckDBPyConnection) -> str:
    """Return the SHA-256 of the runs, models, GPUs and parameters that the calibration reads."""
    digest = hashlib.sha256(repr(read_parameters()).encode())
    for query in _DATA_QUERIES:
        digest.update(repr(connection.execute(query).fetchall()).encode())
    return digest.hexdigest()


def calibrate(today: date, output: Path | None = None) -> dict[str, Any]:
    """Fit everything; write constants, bands and the record of errors to ``output`` (default: catalog/).

    Returns the record of errors. Two calibrations of the same files write the same digits.
    """
    output = output or paths.CATALOG_DIR
    output.mkdir(parents=True, exist_ok=True)  # to fail before minutes of work, not after
    with _database() as connection, ThreadPoolExecutor(len(QUANTITIES)) as threads:
        fits = list(threads.map(_fit, QUANTITIES, itertools.repeat(gemm_ratio(connection))))
        fitted = {quantity.name: fit for quantity, fit in zip(QUANTITIES, fits, strict=True)}
        sets = _constant_sets(connection, fitted)
        thresholds, verdicts = calibrate_threshold(connection, sets)
        # Six digits, as in the file: the bands must describe the constants that answers use.
        sets = {
            name: {key: float(f"{value:.6g}") for key, value in (sets[name] | thresholds[name]).items()}
            for name in sets
        }
        insert_constants(connection, sets)
        calibrations = {name: _as_answered(connection, fit) for name, fit in fitted.items()}
        rows, held = bands.calibrate_bands(connection, calibrations, [name for name in sets if name != "all"])
        record = {
            "calibrated_on": today.isoformat(),
            "data_sha256": data_hash(connection),
            **{name: summarize(found) for name, found in calibrations.items()},
            "fit_verdicts": verdicts,
            "bands": held,
        }
    constants = [
        (name, constant, f"{value:.6g}") for name in sets for constant, value in sorted(sets[name].items())
    ]
    columns = ("calibration", "name", "value")
    pl.DataFrame(constants, schema=columns, orient="row").write_csv(output / CONSTANTS_FILE)
    pl.DataFrame(rows, schema=bands.COLUMNS, orient="row").write_csv(output / BANDS_FILE)
    with (output / RECORD_FILE).open("w", encoding="utf-8") as file:
        yaml.safe_dump(record, file, sort_keys=False)
    return record


def _database() -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    return in_memory("memory_of", "speed_of", "measured_sources")


def _fit(quantity: Quantity, fixed: dict[str, float]) -> Calibrations:
    """Fit a quantity in a database of its own, since each trial replaces the constants."""
    with _database() as connection:
        return fit_quantity(Fitter(connection, quantity, read_parameters(), fixed))


def _as_answered(connection: duckdb.DuckDBPyConnection, fitted: Calibrations) -> Calibrations:
    """Return the calibrations with the predictions of the constants that answers use: the fit of a quantity
    knows the other quantity's constants only by their priors."""
    quantity = fitted.fitter.quantity
    predicted = connection.execute(
        "WITH _answered AS (SELECT r.*, unnest(['all', 'without ' || s.family]) AS calibration "  # noqa: S608
        "FROM main.measured_runs r JOIN main.measured_sources s USING (source) "
        f"WHERE {quantity.measured} IS NOT NULL) "
        f"SELECT {quantity.predicted} AS predicted FROM {quantity.macro}('_answered') "
        "ORDER BY calibration <> 'all', run_id"
    ).fetchnumpy()["predicted"]
    in_sample, held_out = np.log(np.asarray(predicted, dtype=np.float64)).reshape(2, -1)
    return replace(fitted, in_sample=in_sample, held_out=held_out)


def _constant_sets(
    connection: duckdb.DuckDBPyConnection, calibrations: dict[str, Calibrations]
) -> ConstantSets:
    """Return the constants of each calibration; for a family without runs, those fitted to all runs."""
    families = connection.execute(
        "SELECT DISTINCT family FROM main.measured_sources s JOIN main.measured_runs r USING (source)"
    ).fetchall()
    names = sorted({"all", *(f"without {family}" for (family,) in families)})
    sets: ConstantSets = {}
    for name in names:
        sets[name] = {}
        for quantity, fitted in calibrations.items():
            fitter = fitted.fitter
            at = fitter.constants_at(fitted.points.get(name, fitted.points["all"]))
            sets[name] |= {p.name: at[p.name] for p in fitter.parameters if p.quantity == quantity}
    return sets
