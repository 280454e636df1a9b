"""The threshold at which a predicted peak counts as fitting, chosen on runs held out by source."""

import itertools
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from pipeline.model.fitting import ConstantSets, insert_constants

THRESHOLD_GRID: dict[str, tuple[float, ...]] = {
    "fit_reserved_ratio": tuple(float(ratio) for ratio in np.round(np.arange(0.94, 1.121, 0.02), 2)),
    "fit_transient": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8),
    "fit_margin_gib": (0.0, 0.5),
}
"""The values tried for each constant of memory_terms that decides whether a run fits."""

PLATEAU = 0.002
"""Thresholds whose balanced accuracy is this close to the best count as equally good."""


@dataclass(frozen=True, slots=True)
class FitThreshold:
    """The constants that decide "fits", and the record of how well they decide."""

    constants: dict[str, float]
    record: dict[str, Any]


def calibrate_threshold(connection: duckdb.DuckDBPyConnection, sets: ConstantSets) -> FitThreshold:
    """Choose the threshold at which a predicted peak counts as fitting, on all runs held out by source.

    Every trial threshold is a set of constants, so the verdict is the macro's own.
    """
    trials = list(itertools.product(*THRESHOLD_GRID.values()))
    held_out = {name: constants for name, constants in sets.items() if name.startswith("without ")}
    insert_constants(
        connection,
        {
            f"{name} #{number:04d}": constants | dict(zip(THRESHOLD_GRID, trial, strict=True))
            for number, trial in enumerate(trials)
            for name, constants in held_out.items()
        },
    )
    answer = connection.execute(
        "WITH _trials AS (SELECT r.*, format('without {} #{:04d}', r.source, t.number) AS calibration "
        "FROM main.measured_runs r, range($1) t(number) "
        "WHERE r.out_of_memory = 1 OR r.measured_memory_gib IS NOT NULL) "
        "SELECT right(t.calibration, 4)::INTEGER AS trial, t.needed_gib <= t.usable_memory_gib AS fits, "
        "r.out_of_memory = 1 AS died "
        "FROM memory_terms_of('_trials') t JOIN main.measured_runs r USING (run_id) ORDER BY trial, run_id",
        [len(trials)],
    ).fetchnumpy()
    fits = np.asarray(answer["fits"], dtype=bool).reshape(len(trials), -1)
    died = np.asarray(answer["died"], dtype=bool).reshape(len(trials), -1)[0]
    right_fits, right_deaths = fits[:, ~died].mean(axis=1), (~fits[:, died]).mean(axis=1)
    scores = (right_fits + right_deaths) / 2
    # The middle of the plateau of best thresholds is the one least tied to single runs.
    plateau = np.flatnonzero(scores >= scores.max() - PLATEAU)
    middle = np.median(np.array([trials[i] for i in plateau]), axis=0)
    spread = np.array([max(values) - min(values) for values in THRESHOLD_GRID.values()])
    chosen = min(
        plateau, key=lambda i: (float(np.abs((np.array(trials[i]) - middle) / spread).sum()), int(i))
    )
    return FitThreshold(
        dict(zip(THRESHOLD_GRID, (float(value) for value in trials[chosen]), strict=True)),
        {
            "balanced_accuracy": round(float(scores[chosen]), 4),
            "died": int(died.sum()),
            "died_as_predicted": int((~fits[chosen, died]).sum()),
            "ran": int((~died).sum()),
            "ran_as_predicted": int(fits[chosen, ~died].sum()),
        },
    )
