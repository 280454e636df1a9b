"""Calibration of the model on measured runs: constants, the fit threshold and error bands."""

import hashlib
import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
    ConstantSets,
    Fit,
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


def _errors(residuals: bands.Residuals) -> dict[str, float | int]:
    error = np.abs(np.exp(-residuals["value"].to_numpy()) - 1)
    return {
        "runs": len(error),
        "median": round(float(np.median(error)), 4),
        "mean": round(float(error.mean()), 4),
        "p90": round(float(np.quantile(error, 0.9)), 4),
    }


def summarize(fit: Fit, answered: bands.Answered) -> dict[str, Any]:
    """Return a quantity's errors: for unseen sources, with families held out, in sample, and by source."""
    by_source = {
        str(source): _errors(runs)
        for (source,), runs in answered.held_out.sort("source").group_by("source", maintain_order=True)
    }
    return {
        "of_a_stranger": {
            "sources": len(by_source),
            **{
                average: round(float(np.mean([errors[average] for errors in by_source.values()])), 4)
                for average in ("median", "mean")
            },
        },
        "leave_one_family_out": _errors(answered.held_out),
        "in_sample": _errors(answered.in_sample),
        "leave_one_family_out_by_source": by_source,
        "posterior_widths": {name: round(w, 2) for name, w in fit.posterior_widths.items()},
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
        names = [quantity.name for quantity in QUANTITIES]
        found = threads.map(_fit, QUANTITIES, itertools.repeat(gemm_ratio(connection)))
        fits = dict(zip(names, found, strict=True))
        sets = _constant_sets(connection, fits.values())
        thresholds, verdicts = calibrate_threshold(connection, sets)
        # Six digits, as in the file: the bands must describe the constants that answers use.
        sets = {
            name: {key: float(f"{value:.6g}") for key, value in (sets[name] | thresholds[name]).items()}
            for name in sets
        }
        insert_constants(connection, sets)
        answered = {quantity.name: bands.answer_runs(connection, quantity) for quantity in QUANTITIES}
        rows, held = bands.calibrate_bands(fits, answered, [name for name in sets if name != "all"])
        record = {
            "calibrated_on": today.isoformat(),
            "data_sha256": data_hash(connection),
            **{name: summarize(fit, answered[name]) for name, fit in fits.items()},
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


@contextmanager
def _database() -> Iterator[duckdb.DuckDBPyConnection]:
    with in_memory("memory_of", "speed_of", "measured_sources") as connection:
        # The macros join few rows in a good order: to search for a better one takes longer than the joins.
        connection.execute("SET disabled_optimizers = 'join_order'")
        yield connection


def _fit(quantity: Quantity, fixed: dict[str, float]) -> Fit:
    """Fit a quantity in a database of its own, since each trial replaces the constants."""
    with _database() as connection:
        return fit_quantity(Fitter(connection, quantity, read_parameters(), fixed))


def _constant_sets(connection: duckdb.DuckDBPyConnection, fits: Iterable[Fit]) -> ConstantSets:
    """Return the constants of each calibration; for a family without runs, those fitted to all runs."""
    families = connection.execute(
        "SELECT DISTINCT family FROM main.measured_sources s JOIN main.measured_runs r USING (source)"
    ).fetchall()
    sets: ConstantSets = {name: {} for name in sorted({"all", *(f"without {each}" for (each,) in families)})}
    for name, fit in itertools.product(sets, fits):
        sets[name] |= fit.constants.get(name, fit.constants["all"])
    return sets
