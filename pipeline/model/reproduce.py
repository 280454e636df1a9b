"""Whether fitting again gives the reviewed constants."""

import csv

import numpy as np

from pipeline.contracts import paths
from pipeline.model.calibrate import CONSTANTS_FILE, QUANTITIES, Fitter, gemm_ratio, read_parameters
from pipeline.model.engine import connect_model

TOLERANCE = 1e-4
"""Relative. On one machine a fit repeats to the digit; other processors add up in another order."""


def changed_constants() -> list[str]:
    """Constants that answers use and that a fit on all runs would change; none when they are reproduced.

    The sets with runs held out, and the bands, are not fitted again: `gpufare calibrate` does that too and
    takes some twenty times as long.
    """
    reviewed = _reviewed_constants()
    with connect_model() as connection:
        parameters, fixed = read_parameters(), gemm_ratio(connection)
        changed = []
        for quantity in QUANTITIES:
            fitter = Fitter(connection, quantity, parameters, fixed)
            fitted = fitter.constants_at(fitter.fit(np.ones(len(fitter.run_ids), dtype=bool)))
            names = [parameter.name for parameter in fitter.free]
            changed += [name for name in names if abs(fitted[name] / reviewed[name] - 1) > TOLERANCE]
    return changed


def _reviewed_constants() -> dict[str, float]:
    with (paths.CATALOG_DIR / CONSTANTS_FILE).open(newline="", encoding="utf-8") as file:
        return {
            row["name"]: float(row["value"]) for row in csv.DictReader(file) if row["calibration"] == "all"
        }
