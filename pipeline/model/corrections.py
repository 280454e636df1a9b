"""Corrects the model's estimates using a user's measured runs, with one factor per card, method and software.

A correction is applied only on request and always shown beside the estimate, never in a published table.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pipeline.home.csv_rows import CsvRow
from pipeline.home.paths import Home
from pipeline.model.estimate import Answers, Estimator
from pipeline.model.model_names import RunError
from pipeline.model.own_runs import OwnRuns, read_own_runs
from pipeline.model.run_settings import SETTINGS, number
from pipeline.parsing.printable import printable

PRIOR_RUNS = 2
"""Weight of the model's own estimate, expressed as a number of the user's runs.

In held-out runs, the sources' mean errors differ by 12% in memory and 14% in speed, and the runs of one
source scatter by 12% and 17% around its mean: the best weight for the estimate is the ratio of the variances,
1 to 1.5 runs. The weight is rounded up, since a user's runs come from one machine and often from one day.
"""

MEASURED = {"memory": "measured_memory_gib", "speed": "measured_tokens_per_second_per_gpu"}
ESTIMATED = {"memory": "memory_gib", "speed": "tokens_per_second_per_gpu"}
SAID = {"memory": "memory", "speed": "tokens per second"}


class Kind(NamedTuple):
    """A kind of run from which one factor is learned."""

    quantity: str
    gpu: str
    method: str
    stack: str


@dataclass(frozen=True, slots=True)
class Correction:
    """The factor by which an estimate is corrected, and the number of runs behind the factor."""

    factor: float
    runs: int

    def sentence(self, quantity: str) -> str:
        """Return a sentence that describes the correction."""
        some = "1 run" if self.runs == 1 else f"{self.runs} runs"
        return f"{SAID[quantity]} corrected by x {self.factor:.3f} from {some} of yours"


@dataclass(slots=True)
class Corrections:
    """The factors that were learned, and a sentence for each run that could not be used."""

    of_kind: dict[Kind, Correction] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def shrunken(ratios: Sequence[float]) -> Correction:
    """Return the geometric mean of the ratios, shrunk towards 1 by ``PRIOR_RUNS`` runs whose ratio is 1."""
    return Correction(math.exp(math.fsum(map(math.log, ratios)) / (len(ratios) + PRIOR_RUNS)), len(ratios))


def kinds_of(estimator: Estimator) -> dict[int, tuple[str, str, str]]:
    """Return the GPU, method and stack of each row of the last estimate, keyed by row number."""
    found = estimator.connection.execute(
        "SELECT job::INTEGER, gpu, method, stack FROM assumed_settings('estimate_rows') WHERE job IS NOT NULL"
    ).fetchall()
    return {job: (gpu, method, stack) for job, gpu, method, stack in found}


def learn(estimator: Estimator, own: OwnRuns) -> Corrections:
    """Learn the factors from the user's runs, except runs with a reason in ``not_ready``.

    Runs with the same settings count as one run with their geometric mean, since repetitions add no evidence.
    Runs that ran out of memory give no ratio.
    """
    found = Corrections(problems=list(own.problems))
    ready = [run for run in own.runs if not run.values.get("not_ready")]
    answers = estimator.estimate([run.values for run in ready], list(SETTINGS))
    kinds = kinds_of(estimator)
    logs: dict[Kind, dict[tuple[Any, ...], list[float]]] = defaultdict(lambda: defaultdict(list))
    for place, (run, answer) in enumerate(zip(ready, answers, strict=True)):
        if answer["error"]:
            found.problems.append(_skipped(run, answer["error"]))
            continue
        for quantity, column in MEASURED.items():
            try:
                measured = number(run.values, column)
            except RunError as error:
                found.problems.append(_skipped(run, str(error)))
                continue
            if measured is not None:
                ratio = math.log(measured / float(answer[ESTIMATED[quantity]]))
                logs[Kind(quantity, *kinds[place])][_settings(run.values)].append(ratio)
    found.of_kind = {
        kind: shrunken([math.exp(math.fsum(each) / len(each)) for each in by_settings.values()])
        for kind, by_settings in logs.items()
    }
    return found


def _skipped(run: CsvRow, reason: str) -> str:
    return printable(f"line {run.line} of your measured_runs.csv: skipped: {reason}")


def _settings(row: Mapping[str, str]) -> tuple[Any, ...]:
    return tuple(row.get(name, "") for name in SETTINGS if name != "run_id")


OWN_COLUMNS = ("memory_gib_corrected", "tokens_per_second_per_gpu_corrected", "corrections")


def corrected(
    answers: Iterable[Mapping[str, Any]], kinds: Mapping[int, tuple[str, str, str]], found: Corrections
) -> list[dict[str, Any]]:
    """Return an ``Estimator``'s answers with ``OWN_COLUMNS``, which are empty if a row's kind has no runs.

    ``kinds`` are the kinds of the answers' rows. Estimates, bands and verdicts remain the model's.
    """
    more = []
    for place, answer in enumerate(answers):
        cells, words = dict.fromkeys(OWN_COLUMNS, ""), []
        for quantity, column in ESTIMATED.items():
            if place not in kinds or answer["error"]:
                continue
            correction = found.of_kind.get(Kind(quantity, *kinds[place]))
            if correction is not None:
                cells[f"{column}_corrected"] = f"{float(answer[column]) * correction.factor:.4f}"
                words.append(correction.sentence(quantity))
        cells["corrections"] = "; ".join(words)
        more.append({**answer, **cells})
    return more


def with_own_runs(home: Home, estimator: Estimator, answers: Answers) -> tuple[Answers, list[str]]:
    """Return the estimator's last answers, corrected using the user's own runs, and any problems."""
    kinds = kinds_of(estimator)
    found = learn(estimator, read_own_runs(home))
    return corrected(answers, kinds, found), found.problems
