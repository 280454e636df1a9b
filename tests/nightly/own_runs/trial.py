"""Tries how much a user's own runs help, and writes docs/explanation/own-runs-trial.md.

    python -m tests.nightly.own_runs.trial

Each published source plays the user: two of its runs are given as own, and its other runs are predicted by
constants and bands that were calibrated without its family.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from pipeline.model.corrections import ESTIMATED, MEASURED
from pipeline.warehouse.database import in_memory

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "own-runs-trial.md"

LEAST_RUNS = 6
"""The fewest runs of a source that takes part."""
MOST_PAIRS = 400
"""All pairs of a source's runs are tried, or this many, drawn with SEED."""
SEED = 7

Array = npt.NDArray[np.float64]
Parameters = dict[str, Any]
"""The struct of the macro own_run_parameters."""

_HELD_OUT = """
CREATE OR REPLACE TEMP TABLE held_out AS
SELECT r.*, 'without ' || s.family AS calibration
FROM main.measured_runs AS r
JOIN main.measured_sources AS s USING (source)
WHERE {measured} IS NOT NULL
QUALIFY count(*) OVER (PARTITION BY r.source) >= {least}
"""
_TERMS = "CREATE OR REPLACE TEMP TABLE terms AS SELECT * FROM {quantity}_terms_of('held_out')"
_RUNS = """
WITH _judged AS (SELECT * FROM {quantity}_evidence('terms'))

SELECT h.source, ln(h.{measured} / b.{estimated}), ln(b.low_ratio), ln(b.high_ratio)
FROM with_band('_judged', '{quantity}') AS b
JOIN held_out AS h USING (run_id)
ORDER BY h.source, run_id
"""
_LIKENESSES = """
WITH _likes AS (
    SELECT h.source, t.run_id, like_settings(t) AS settings
    FROM terms AS t
    JOIN held_out AS h USING (run_id)
)

SELECT likeness(a.settings, b.settings, $apart)
FROM _likes AS a
JOIN _likes AS b USING (source)
WHERE a.source = $source
ORDER BY a.run_id, b.run_id
"""


@dataclass(frozen=True, slots=True)
class Source:
    """A source's errors, ln(measured / estimated), the ends of their bands, and the pairs of its runs."""

    name: str
    errors: Array
    low: Array
    high: Array
    pairs: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A source's median error and the share of its runs inside their bands, before and after corrections."""

    source: str
    runs: int
    before: float
    after: float
    inside_before: float
    inside_after: float
    width: float
    """The width of the corrected bands, as a share of the width before."""


class Trial:
    """The sources of one quantity, read once, and tried with any parameters."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, quantity: str) -> None:
        self.connection = connection
        self.quantity = quantity
        names = {"quantity": quantity, "measured": MEASURED[quantity], "estimated": ESTIMATED[quantity]}
        connection.execute(_HELD_OUT.format(**names, least=LEAST_RUNS))
        connection.execute(_TERMS.format(**names))
        rows = connection.execute(_RUNS.format(**names)).fetchall()
        self.sources = [
            Source(name, *np.array([row[1:] for row in found]).T, _pairs(len(found)))
            for name, found in (
                (key, list(group)) for key, group in itertools.groupby(rows, lambda row: row[0])
            )
        ]

    def outcomes(self, parameters: Parameters) -> list[Outcome]:
        """Return what two own runs do for each source."""
        return [
            outcome(
                each, self._likenesses(each, parameters), parameters["noise"], parameters["least_likeness"]
            )
            for each in self.sources
        ]

    def _likenesses(self, source: Source, parameters: Parameters) -> Array:
        found = self.connection.execute(
            _LIKENESSES, {"source": source.name, "apart": parameters[self.quantity]}
        ).fetchnumpy()
        return np.asarray(next(iter(found.values())), dtype=np.float64).reshape(len(source.errors), -1)


def _pairs(runs: int) -> npt.NDArray[np.int64]:
    every = np.array(list(itertools.combinations(range(runs), 2)))
    if len(every) <= MOST_PAIRS:
        return every
    return every[np.sort(np.random.default_rng(SEED).choice(len(every), MOST_PAIRS, replace=False))]


def outcome(source: Source, likenesses: Array, noise: float, least: float) -> Outcome:
    """Return what each pair of own runs does for the other runs of a source, all pairs together. The steps
    are those of own_correction in SQL, for two runs."""
    one, two = source.pairs.T
    to_one, to_two, between = likenesses[one], likenesses[two], likenesses[one, two][:, None]
    own, determinant = 1 + noise, (1 + noise) ** 2 - between**2
    error_one, error_two = source.errors[one][:, None], source.errors[two][:, None]
    shift = (
        to_one * (own * error_one - between * error_two) + to_two * (own * error_two - between * error_one)
    ) / determinant
    known = (own * (to_one**2 + to_two**2) - 2 * between * to_one * to_two) / determinant
    is_like = np.maximum(to_one, to_two) >= least
    shift = np.where(is_like, shift, 0)
    spread = np.where(is_like, np.sqrt((1 - known + noise) / own), 1)
    other = np.ones_like(shift, dtype=bool)
    rows = np.arange(len(source.pairs))
    other[rows, one] = other[rows, two] = False
    errors = np.broadcast_to(source.errors, shift.shape)[other]
    low, high = (np.broadcast_to(end, shift.shape)[other] for end in (source.low, source.high))
    left, spread = errors - shift[other], spread[other]
    return Outcome(
        source.name,
        len(source.errors),
        _median_error(errors),
        _median_error(left),
        float(np.mean((low <= errors) & (errors <= high))),
        float(np.mean((low * spread <= left) & (left <= high * spread))),
        float(np.sum((high - low) * spread) / np.sum(high - low)),
    )


def _median_error(errors: Array) -> float:
    """Return the median of |estimated / measured - 1|."""
    return float(np.median(np.abs(np.expm1(-errors))))


def mean(found: Sequence[Outcome], name: str) -> float:
    """Return the mean of a field over the sources."""
    return float(np.mean([getattr(each, name) for each in found]))


def remaining(found: Sequence[Outcome]) -> float:
    """Return the mean of the sources' median errors after corrections, as a share of that before."""
    return mean(found, "after") / mean(found, "before")


def worst(found: Sequence[Outcome]) -> float:
    """Return the largest ratio of a source's median error after corrections to that before."""
    return max(each.after / each.before for each in found)


def changed(parameters: Parameters, quantity: str) -> Iterator[tuple[str, Parameters]]:
    """Yield the parameters of a quantity with one of them halved or doubled, each with a name."""
    for times, said in ((0.5, "halved"), (2.0, "doubled")):
        yield f"noise {said}", parameters | {"noise": parameters["noise"] * times}
        for name, value in parameters[quantity].items():
            yield f"{name} {said}", parameters | {quantity: parameters[quantity] | {name: value * times}}


def tried() -> tuple[Parameters, Mapping[str, Trial]]:
    """Return the parameters that answers use, and the trial of each quantity."""
    macros = [f"{quantity}_{part}" for quantity in MEASURED for part in ("terms_of", "evidence")]
    connection = in_memory(*macros, "with_band", "own_correction", "like_settings", "measured_sources")
    ((parameters,),) = connection.execute("SELECT own_run_parameters()").fetchall()
    # Each trial has a connection of its own, since both use the same temporary tables.
    return parameters, {quantity: Trial(connection.cursor(), quantity) for quantity in MEASURED}


def _row(name: str, each: Outcome | Sequence[Outcome], runs: object) -> str:
    def value(field: str) -> float:
        return getattr(each, field) if isinstance(each, Outcome) else mean(each, field)

    return (
        f"| {name} | {runs} | {value('before'):.1%} | {value('after'):.1%} | "
        f"{value('after') / value('before'):.2f} | {value('inside_before'):.0%} | "
        f"{value('inside_after'):.0%} | {value('width'):.2f} |"
    )


def table(found: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of the table of a quantity's sources."""
    yield "| source | runs | median error | corrected | ratio | in band | corrected | band's width |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    yield from (_row(each.source, each, each.runs) for each in found)
    yield _row("**mean**", found, "")


def sensitivity(trial: Trial, parameters: Parameters) -> Iterator[str]:
    """Yield the lines on what halving and doubling each parameter does."""
    found = [(name, trial.outcomes(other)) for name, other in changed(parameters, trial.quantity)]
    shares = [remaining(each) for _, each in found]
    least, most = (found[int(at)][0] for at in (np.argmin(shares), np.argmax(shares)))
    inside = [mean(each, "inside_after") for _, each in found]
    yield (
        f"With one parameter halved or doubled ({len(found)} trials), the share is {min(shares):.2f} "
        f"({least}) to {max(shares):.2f} ({most}), and the bands contain {min(inside):.0%} to "
        f"{max(inside):.0%}."
    )


INTRODUCTION = """# What two own runs do

This file is written by `python -m tests.nightly.own_runs.trial`, and a nightly test compares it.

Each published source with at least {least} runs of a quantity plays the user: two of its runs are given as
own runs, and its other runs are predicted. The estimates come from constants and bands that were calibrated
without the source's family. All pairs are tried, or {most} drawn with a seed. The error of a run is
|estimated / measured - 1|; a source's median is over all pairs and all its other runs. Bands are meant to
contain 80%.

The parameters (`own_run_parameters`) are rounded, and few: how far apart two runs are that differ in a
setting. They were set while looking at these sources, so the table flatters them a little: parameters fitted
to the other families, with 11 degrees of freedom, left 0.72 of the errors of speed and 0.85 to 0.90 of those
of memory in the family held out, against 0.63 and 0.79 in the families they were fitted to.

What was tried and did no better: a common offset of all of a source's runs (memory 1.09, speed 0.86), the
correlation falling as exp(-distance) or 1 / (1 + distance) instead of exp(-distance^2), offsets of the
process's memory, of the logits and of the shares of time in kernels, host and communication, distances of
the composition of memory and time instead of the settings, and mixtures of strong and weak corrections. Even
if all other runs of a source are given, 0.59 of the errors of memory remain, and 0.36 of those of speed.

Corrections that shrink where the two runs disagree, or where they are small, leave 0.86 to 0.91 of the errors
of memory and 0.78 to 0.88 of those of speed, and the worst source still has 1.13 and 1.15 of its median or
more. The model's constants fitted anew to the two runs leave 0.84 and 0.78 at best, with 1.7 and 1.9 in the
worst source. The sum of both covariances leaves 0.82 and 0.73, with 1.29 and 1.17: too little for the slopes
by all constants that each estimate would then need.
"""


def page() -> str:
    """Return docs/explanation/own-runs-trial.md."""
    parameters, trials = tried()
    lines = [INTRODUCTION.format(least=LEAST_RUNS, most=MOST_PAIRS)]
    for quantity, trial in trials.items():
        found = trial.outcomes(parameters)
        lines += [f"## {quantity.capitalize()}", "", *table(found), ""]
        lines += [
            f"Of the mean of the medians, a share of {remaining(found):.2f} remains; the worst source has "
            f"{worst(found):.2f} of its median.",
            *sensitivity(trial, parameters),
            "",
        ]
    return "\n".join(lines)


def main() -> None:
    """Write the page, and print it."""
    PAGE.write_text(text := page(), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
