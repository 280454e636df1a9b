"""The threshold at which a predicted peak counts as fitting, chosen on runs whose family was held out.

Few published runs exhausted their memory, so a measured peak also counts as a verdict on other cards: the run
is assumed to die on the next smaller card and to fit on the next larger one.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np

from pipeline.model.bands import Names, family_weights
from pipeline.model.fitting import Array, ConstantSets, Mask, insert_constants, source_weights

THRESHOLD_GRID: dict[str, tuple[float, ...]] = {
    "fit_reserved_ratio": tuple(float(ratio) for ratio in np.round(np.arange(0.94, 1.201, 0.02), 2)),
    "fit_transient": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8),
    "fit_margin_gib": (0.0, 0.5),
}
"""The values tried for each constant of memory_terms that helps to decide whether a run fits."""

PLATEAU = 0.002
"""Thresholds whose balanced accuracy is within this distance of the best are considered equally good."""

MOST_DEATHS = 0.05
"""The acceptable share of deaths among runs predicted to fit on their own card, averaged over families."""

GIVEN_BACK = 0.93
"""When memory runs short, the caching allocator returns memory that it reserved but does not use: a run is
certain to die only if less than this share of its reserved peak is usable. Assumed."""

_RUNS = """
WITH _given AS (
    SELECT r.*, s.family FROM main.measured_runs r JOIN main.measured_sources s USING (source)
    WHERE r.out_of_memory = 1 OR r.measured_memory_gib IS NOT NULL
),
_held_out AS (SELECT *, 'without ' || family AS calibration FROM _given),
-- Memory of the whole process: the reading and, if it excludes some, the model's estimate of the rest.
_peaks AS (
    SELECT
        t.run_id, t.usable_memory_gib,
        r.measured_memory_gib
            + CASE r.memory_metric WHEN 'smi' THEN 0e0 WHEN 'reserved' THEN t.process_gib
                ELSE t.process_gib + t.reserved_gib - t.allocated_gib END AS peak_gib,
        r.measured_memory_gib * CASE r.memory_metric WHEN 'alloc' THEN 1e0 ELSE $given_back END
            + CASE r.memory_metric WHEN 'smi' THEN 0e0 ELSE t.process_gib END AS least_gib
    FROM memory_terms_of('_held_out') t JOIN main.measured_runs r USING (run_id)
),
-- The cards of published runs; those of 15, 16 or 22, 24 GiB count as one size.
_cards AS (
    SELECT max(usable_memory_gib) AS card_gib FROM main.gpus
    WHERE gpu_id IN (SELECT gpu FROM main.measured_runs) GROUP BY round(log2(memory_gb) * 4)
),
_verdicts AS (
    SELECT run_id, r.out_of_memory = 1 AS died, p.usable_memory_gib AS card_gib, TRUE AS is_real
    FROM _given r JOIN _peaks p USING (run_id)
    UNION ALL
    SELECT run_id, TRUE, max(card_gib), FALSE
    FROM _peaks JOIN _cards ON card_gib < least_gib GROUP BY run_id
    UNION ALL
    SELECT run_id, FALSE, min(card_gib), FALSE
    FROM _peaks JOIN _cards ON card_gib >= peak_gib GROUP BY run_id
)
SELECT run_id, family, died, card_gib, is_real FROM _verdicts JOIN _given USING (run_id)
ORDER BY run_id, died, is_real, card_gib
"""

_NEEDS = """
WITH _trials AS (
    SELECT r.*, format('without {} #{:04d}', s.family, t.number) AS calibration
    FROM main.measured_runs r JOIN main.measured_sources s USING (source), range($trials) t(number)
    WHERE r.out_of_memory = 1 OR r.measured_memory_gib IS NOT NULL
)
SELECT needed_gib FROM memory_terms_of('_trials') ORDER BY right(calibration, 4), run_id
"""


@dataclass(frozen=True, slots=True)
class _Verdicts:
    """Verdicts on runs, on their own (real) or other cards; the shape of ``fits`` is trials x verdicts."""

    fits: Mask
    died: Mask
    is_real: Mask
    family: Names

    def where(self, mask: Mask) -> "_Verdicts":
        return _Verdicts(self.fits[:, mask], self.died[mask], self.is_real[mask], self.family[mask])

    def balanced_accuracy(self, weights_of: Callable[[Names], Array]) -> Array:
        """Return, for each trial, the mean of the shares of deaths and survivals that it predicted."""
        died, ran = self.died, ~self.died
        foreseen = np.average(~self.fits[:, died], axis=1, weights=weights_of(self.family[died]))
        allowed = np.average(self.fits[:, ran], axis=1, weights=weights_of(self.family[ran]))
        return np.asarray((foreseen + allowed) / 2)

    def deaths(self) -> Array:
        """Return, for each trial, the share of its verdicts "fits" that are wrong, averaged over families."""
        weights = family_weights(self.family)
        said = (self.fits * weights).sum(axis=1)
        return np.asarray((self.fits[:, self.died] * weights[self.died]).sum(axis=1) / np.maximum(said, 1e-9))


def calibrate_threshold(
    connection: duckdb.DuckDBPyConnection, sets: ConstantSets
) -> tuple[ConstantSets, dict[str, Any]]:
    """Choose, for each calibration, the threshold at which a predicted peak counts as fitting. Return the
    chosen constants, and a record of how well they decide.

    Each trial threshold is a set of constants, so the macro itself computes the memory needed. A calibration
    that leaves a family out gets the threshold that is best for the other families, and the record is built
    from such thresholds: no run in the record helped to choose the threshold that judged it.
    """
    trials = list(itertools.product(*THRESHOLD_GRID.values()))
    held_out = {name: constants for name, constants in sets.items() if name.startswith("without ")}
    verdicts = _verdicts(connection, held_out, trials)
    chosen = {"all": _best(verdicts, trials)}
    unseen = np.empty(len(verdicts.died), dtype=bool)
    for name in held_out:
        mask = verdicts.family == name.removeprefix("without ")
        chosen[name] = _best(verdicts.where(~mask), trials)
        unseen[mask] = verdicts.fits[chosen[name], mask]
    constants = {
        name: dict(zip(THRESHOLD_GRID, trials[chosen.get(name, chosen["all"])], strict=True)) for name in sets
    }
    return constants, _record(replace(verdicts, fits=unseen[None, :]))


def _verdicts(
    connection: duckdb.DuckDBPyConnection, held_out: ConstantSets, trials: list[tuple[float, ...]]
) -> _Verdicts:
    insert_constants(connection, held_out)
    rows = connection.execute(_RUNS, {"given_back": GIVEN_BACK}).fetchnumpy()
    run_ids, index = np.unique(np.asarray(rows["run_id"], dtype=str), return_inverse=True)
    insert_constants(
        connection,
        {
            f"{name} #{number:04d}": constants | dict(zip(THRESHOLD_GRID, trial, strict=True))
            for number, trial in enumerate(trials)
            for name, constants in held_out.items()
        },
    )
    needed = connection.execute(_NEEDS, {"trials": len(trials)}).fetchnumpy()["needed_gib"]
    needed = np.asarray(needed, dtype=np.float64).reshape(len(trials), len(run_ids))
    fits = needed[:, index] <= np.asarray(rows["card_gib"], dtype=np.float64)
    return _Verdicts(
        fits,
        np.asarray(rows["died"], dtype=bool),
        np.asarray(rows["is_real"], dtype=bool),
        np.asarray(rows["family"], dtype=str),
    )


def _best(verdicts: _Verdicts, trials: list[tuple[float, ...]]) -> int:
    """Return the trial that is most accurate, on own and other cards, among those with few deaths."""
    real, others = verdicts.where(verdicts.is_real), verdicts.where(~verdicts.is_real)
    # As when fitting constants, a family of n runs gets weight sqrt(n), so two runs alone decide nothing.
    scores = (real.balanced_accuracy(source_weights) + others.balanced_accuracy(source_weights)) / 2
    deaths = real.deaths()
    allowed = deaths <= max(MOST_DEATHS, float(deaths.min()))
    scores = np.where(allowed, scores, -1)
    # The middle of the plateau of best thresholds depends least on any single run.
    plateau = np.flatnonzero(scores >= scores.max() - PLATEAU)
    middle = np.median(np.array([trials[i] for i in plateau]), axis=0)
    spread = np.array([max(values) - min(values) for values in THRESHOLD_GRID.values()])
    return int(
        min(plateau, key=lambda i: (float(np.abs((np.array(trials[i]) - middle) / spread).sum()), int(i)))
    )


def _record(verdicts: _Verdicts) -> dict[str, Any]:
    def of(mask: Mask) -> dict[str, Any]:
        chosen = verdicts.where(mask)
        fits, died = chosen.fits[0], chosen.died
        return {
            "balanced_accuracy": round(float(((~fits[died]).mean() + fits[~died].mean()) / 2), 4),
            "balanced_accuracy_by_family": round(float(chosen.balanced_accuracy(family_weights)[0]), 4),
            "fits_that_die_by_family": round(float(chosen.deaths()[0]), 4),
            "died": int(died.sum()),
            "died_as_predicted": int((~fits[died]).sum()),
            "ran": int((~died).sum()),
            "ran_as_predicted": int(fits[~died].sum()),
        }

    return {"on_their_own_card": of(verdicts.is_real), "on_other_cards": of(~verdicts.is_real)}
