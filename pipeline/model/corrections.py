"""Learns from a user's measured runs how far the model's estimates are off on the user's machine.

The model's errors, ln(measured / estimated), are taken as a Gaussian process whose covariance is the macro
``likeness``. Learning gives the rows of the table own_corrections, from which the macros in
sql/model/47_own_runs.sql correct every estimate and plan.
"""

import hashlib
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from pipeline.catalog.own_corrections import OwnCorrections, keep, read_kept
from pipeline.contracts.own_runs import QUANTITIES
from pipeline.home.csv_rows import CsvRow
from pipeline.home.disk import UnwritableError
from pipeline.home.paths import Home
from pipeline.model.estimate import Estimator
from pipeline.model.model_names import RunError, canonical, find_model
from pipeline.model.own_runs import OwnRuns, read_own_runs
from pipeline.model.run_settings import SETTINGS, number
from pipeline.parsing.printable import printable
from pipeline.warehouse.plan_cache import state_of_model

MEASURED = {"memory": "measured_memory_gib", "speed": "measured_tokens_per_second_per_gpu"}
"""The columns of a run that give the measured values of a quantity."""
ESTIMATED = {"memory": "memory_gib", "speed": "tokens_per_second_per_gpu"}

NEAR_GPUS = 1.25
"""A speed is taken as miscounted if its ratio to the estimate is within this factor of the number of GPUs, or
of its inverse: the total of all GPUs given as that of one, or the reverse."""

BEYOND = 1e-3
"""A run that died is taken to have needed more than the usable memory of its card by this share."""
LEAST_NOISE = 1e-6
"""The noise of what a run needed at least, as a share of the variance of the model's errors: so little that a
run like it is raised beyond the usable memory, yet enough that the matrix of likenesses can be inverted."""

Row = dict[str, Any]
Groups = dict[tuple[Any, ...], list[tuple[str, float, Row]]]
"""Runs (id, error, what ``likeness`` compares), by quantity, whether they died, and the settings given."""
Matrix = Sequence[Sequence[float]]

_SETTINGS = """
SELECT
    job::INTEGER, needed_gib, usable_memory_gib, like_settings(t)
FROM memory_terms_of('estimate_rows') AS t
WHERE job IS NOT NULL
"""
_LIKENESSES = """
WITH _learned AS (SELECT unnest($rows, recursive := TRUE))

SELECT
    list(likeness(a, b, settings_apart(a.quantity)) ORDER BY b.position)
FROM _learned AS a
JOIN _learned AS b USING (quantity)
GROUP BY a.quantity, a.position
ORDER BY a.quantity, a.position
"""


def own_corrections(home: Home) -> OwnCorrections:
    """Return what the home's own runs say now, and keep it for the builds of this home. A home without a file
    of runs has no corrections."""
    kept = read_kept(home)
    if not home.own_runs.exists():
        if kept.learned_from:
            home.own_corrections.unlink(missing_ok=True)
        return OwnCorrections()
    state = _state(home)
    if kept.learned_from == state:
        return kept
    found = _learned(home, state)
    with suppress(UnwritableError):  # every question then learns again
        keep(home, found)
    return found


def _state(home: Home) -> str:
    """Return a hash of the runs and of everything else from which corrections are learned."""
    digest = hashlib.sha256(state_of_model().encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    for path in (home.own_runs, home.models, home.gpus):
        with suppress(OSError):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


@lru_cache(maxsize=4)
def _learned(home: Home, state: str) -> OwnCorrections:
    with closing(Estimator(home=home)) as estimator:
        return replace(learn(estimator, read_own_runs(home)), learned_from=state)


@dataclass(frozen=True, slots=True)
class Compared:
    """A run beside its estimate: by quantity, the measured value, if it was measured, and the estimate (GiB,
    and tokens per second per GPU). ``far`` names the quantities that are too far off to correct anything,
    and ``miscounted`` those of them that are off by about the number of GPUs;
    ``problem`` says why the run corrects nothing at all, if so.

    A run that ran out of memory has needed at least the usable memory of its card, which is given as
    measured, and the estimate is that of the memory without which it dies."""

    run: CsvRow
    measured: dict[str, float] = field(default_factory=dict)
    estimated: dict[str, float] = field(default_factory=dict)
    settings: Row = field(default_factory=dict)
    far: tuple[str, ...] = ()
    miscounted: tuple[str, ...] = ()
    problem: str = ""

    @property
    def died(self) -> bool:
        """True if the run ran out of memory."""
        return _died(self.run)

    def ratio(self, quantity: str) -> float:
        """Return measured / estimated for a measured quantity."""
        return self.measured[quantity] / self.estimated[quantity]

    @property
    def expected(self) -> bool:
        """True if the run ran out of memory and the estimate, too, is above the usable memory of its card."""
        return self.died and self.ratio("memory") < 1

    @property
    def reason(self) -> str:
        """Why the run, or a quantity of it, corrects nothing; '' if all of it corrects answers."""
        too_far = (
            f"its {QUANTITIES[quantity]} is {self.ratio(quantity):.3g} times the estimate: check it"
            for quantity in self.far
        )
        return self.problem or "; ".join(too_far)


def _died(run: CsvRow) -> bool:
    return run.values.get("out_of_memory") == "1"


def compare(estimator: Estimator, runs: Sequence[CsvRow]) -> list[Compared]:
    """Return the runs beside their estimates, in order; ``estimator`` must not be corrected."""
    answers = estimator.estimate([run.values for run in runs], list(SETTINGS))
    found = estimator.connection.execute(_SETTINGS).fetchall()
    facts = {job: (needed, usable, settings) for job, needed, usable, settings in found}
    most = math.log(_parameter(estimator, "most_factor"))
    problems = (
        str(answer["error"]) or unknown_model(estimator, run.values["model"])
        for run, answer in zip(runs, answers, strict=True)
    )
    return [
        Compared(run, problem=problem) if problem else _compared(run, answer, facts[job], most)
        for job, (run, answer, problem) in enumerate(zip(runs, answers, problems, strict=True))
    ]


def unknown_model(estimator: Estimator, name: str) -> str:
    """Return that a model is in neither the catalogue nor the user's models, and what to do; '' if it is."""
    with suppress(RunError):
        if find_model(name, None, estimator.models)[1] is None:
            return ""
    near = get_close_matches(canonical(name), estimator.models, n=3)
    nearest = f"; the nearest names are {', '.join(near)}" if near else ""
    return f"model '{name}' is not known: add it with gpufare model add{nearest}"


def _compared(
    run: CsvRow, answer: Mapping[str, str], facts: tuple[float, float, Row], most: float
) -> Compared:
    """Return a run beside its estimate; errors beyond ``most``, in logarithms, are too far. ``facts``: the
    memory that is needed, the usable memory, and what ``likeness`` compares."""
    needed, usable, settings = facts
    measured, problem = _measured(run)
    estimated = {quantity: float(answer[column]) for quantity, column in ESTIMATED.items()}
    if died := _died(run):
        measured["memory"], estimated["memory"] = usable, needed
    if not measured:
        problem = problem or "it measured nothing"
    errors = {each: math.log(value / estimated[each]) for each, value in measured.items()}
    far = tuple(each for each, error in errors.items() if (error if died else abs(error)) > most)
    gpus = math.log(number(run.values, "gpu_count") or 1)
    speed_error = errors.get("speed", 0.0)
    miscounted = ("speed",) if gpus and abs(abs(speed_error) - gpus) <= math.log(NEAR_GPUS) else ()
    far = tuple(dict.fromkeys((*far, *miscounted)))
    return Compared(run, measured, estimated, settings, far, miscounted, problem)


def _measured(run: CsvRow) -> tuple[dict[str, float], str]:
    """Return the measured values of a run by quantity, and why they correct nothing, or ''."""
    measured, problems = dict[str, float](), list[str]()
    for quantity, column in MEASURED.items():
        try:
            if (value := number(run.values, column)) is not None:
                measured[quantity] = value
        except RunError as error:
            problems.append(str(error))
    if _died(run) and "speed" in measured:
        problems.append("it ran out of memory, but states a speed")
    return measured, run.values.get("not_ready") or "; ".join(problems)


def learn(estimator: Estimator, own: OwnRuns) -> OwnCorrections:
    """Learn from the user's runs, except runs with a reason in ``not_ready``, and values that cannot be read
    or are too far from their estimates.

    Runs with the same settings count as one run with the mean of their errors, since repetitions tell little
    about other settings. Runs that ran out of memory count apart, and only where the others give too little.
    """
    groups: Groups = {}
    problems = list(own.problems)
    for each in compare(estimator, own.runs):
        if each.reason:
            problems.append(_skipped(each.run, each.reason))
        for quantity in each.measured if not each.problem else ():
            if quantity not in each.far:
                log_ratio = math.log(each.ratio(quantity))
                settings = (each.run.values.get(name, "") for name in SETTINGS if name != "run_id")
                group = groups.setdefault((quantity, each.died, *settings), [])
                group.append((each.run.values["run_id"], log_ratio, each.settings))
    return OwnCorrections(rows=_weighed(estimator, _rows(estimator, groups)), problems=problems)


def _rows(estimator: Estimator, groups: Groups) -> list[Row]:
    """Return a row for each of the newest groups of runs with the same quantity and settings."""
    most = int(_parameter(estimator, "most_runs"))
    rows = []
    for quantity in MEASURED:
        found = [(died, runs) for (of, died, *_), runs in groups.items() if of == quantity]
        of_quantity = list[Row]()
        for position, (died, runs) in enumerate(found, 1):
            run_ids, log_ratios, settings = zip(*runs, strict=True)
            mean = math.fsum(log_ratios) / len(log_ratios)
            place = {"quantity": quantity, "position": position, "run_ids": list(run_ids)}
            of_quantity.append({**place, **settings[0], "log_ratio": mean, "is_least": died})
        rows += _newest(of_quantity, most)
    return rows


def _newest(rows: Sequence[Row], most: int) -> list[Row]:
    """Return the newest of the rows that were measured and of those of runs that died, by position, without
    deaths that say nothing: those expected even if memory is as low as in the lowest measurement."""
    measured = [row for row in rows if not row["is_least"]][-most:]
    lowest = min((0.0, *(row["log_ratio"] for row in measured)))
    died = [row for row in rows if row["is_least"] and row["log_ratio"] >= lowest][-most:]
    return sorted([*measured, *died], key=operator.itemgetter("position"))


def _weighed(estimator: Estimator, rows: Sequence[Row]) -> list[Row]:
    """Return the rows that count, with their weights and precisions."""
    if not rows:
        return []
    noise, most = _parameter(estimator, "noise"), int(_parameter(estimator, "most_runs"))
    likenesses = [
        row for (row,) in estimator.connection.execute(_LIKENESSES, {"rows": list(rows)}).fetchall()
    ]
    weighed: list[Row] = []
    for quantity in sorted(MEASURED):
        of_quantity = [row for row in rows if row["quantity"] == quantity]
        covariance, likenesses = likenesses[: len(of_quantity)], likenesses[len(of_quantity) :]
        weighed += weighed_together(of_quantity, covariance, noise, most)
    return weighed


def weighed_together(rows: Sequence[Row], likenesses: Matrix, noise: float, most: int) -> Iterator[Row]:
    """Yield the newest rows of a quantity that count, with their weights and precisions: the inverse of the
    covariance of their errors. The precisions of runs that died are 0: how much more they needed is not
    known, so they narrow no band."""
    covariance = [list(line) for line in likenesses]
    for at, row in enumerate(rows):
        covariance[at][at] += LEAST_NOISE if row["is_least"] else noise
    counted = _counted(rows, covariance)
    newest = sorted(counted)[-most:]
    counted = [at for at in counted if at in newest]
    weights = _weights(rows, covariance, counted)
    measured = [at for at in counted if not rows[at]["is_least"]]
    zeros = [0.0] * (len(counted) - len(measured))
    lines = [[*line, *zeros] for line in _precisions(covariance, measured)]
    lines += [[0.0] * len(counted)] * len(zeros)
    for position, (at, weight, line) in enumerate(zip(counted, weights, lines, strict=True), 1):
        row = {name: value for name, value in rows[at].items() if name != "is_least"}
        yield {**row, "position": position, "weight": weight, "precisions": line}


def _counted(rows: Sequence[Row], covariance: Matrix) -> list[int]:
    """Return the places of the rows that count: those that were measured, then those of runs that died and
    would fit by the others, starting with the largest error."""
    counted = [at for at, row in enumerate(rows) if not row["is_least"]]
    died = (at for at, row in enumerate(rows) if row["is_least"])
    for at in sorted(died, key=lambda at: -float(rows[at]["log_ratio"])):
        weights = _weights(rows, covariance, counted)
        known = (covariance[at][other] * weight for other, weight in zip(counted, weights, strict=True))
        if math.fsum(known) <= rows[at]["log_ratio"]:
            counted = _raising(rows, covariance, [*counted, at])
    return counted


def _raising(rows: Sequence[Row], covariance: Matrix, places: Sequence[int]) -> list[int]:
    """Return the places without runs that died but, beside the others, would lower answers."""
    weights = _weights(rows, covariance, places)
    return [at for at, weight in zip(places, weights, strict=True) if weight >= 0 or not rows[at]["is_least"]]


def _weights(rows: Sequence[Row], covariance: Matrix, places: Sequence[int]) -> list[float]:
    """Return the weights of the rows at some places, if only they count."""
    errors = [rows[at]["log_ratio"] + (BEYOND if rows[at]["is_least"] else 0.0) for at in places]
    return [math.fsum(map(operator.mul, line, errors)) for line in _precisions(covariance, places)]


def _precisions(covariance: Matrix, places: Sequence[int]) -> list[list[float]]:
    return inverse([[covariance[one][two] for two in places] for one in places])


def inverse(matrix: Matrix) -> list[list[float]]:
    """Return the inverse of a symmetric, positive definite matrix, by elimination: a default install has no
    library for it."""
    size = len(matrix)
    lines = [[*values, *(float(at == line) for at in range(size))] for line, values in enumerate(matrix)]
    for pivot in range(size):
        scale = lines[pivot][pivot]
        lines[pivot] = [value / scale for value in lines[pivot]]
        for line in range(size):
            if line != pivot:
                times = lines[line][pivot]
                lines[line] = [a - times * b for a, b in zip(lines[line], lines[pivot], strict=True)]
    return [values[size:] for values in lines]


def _parameter(estimator: Estimator, name: str) -> float:
    ((value,),) = estimator.connection.execute(f"SELECT own_run_parameters().{name}").fetchall()
    return float(value)


def _skipped(run: CsvRow, reason: str) -> str:
    return printable(f"line {run.line} of your measured_runs.csv: skipped: {reason}")
