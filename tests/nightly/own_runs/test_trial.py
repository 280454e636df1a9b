"""Two own runs improve the answers of the sources, harm those of none, and keep the bands right."""

from collections.abc import Mapping

import numpy as np
import pytest

from pipeline.model.corrections import MEASURED
from tests.nightly.own_runs.trial import PAGE, Outcome, Source, mean, outcome, page, remaining, tried, worst

MOST_REMAINING = {"memory": 0.88, "speed": 0.88}
MOST_AFTER = {"memory": 0.065, "speed": 0.1}
MOST_WORSE = 1.45
BAND = (0.75, 0.85)


@pytest.fixture(scope="module")
def found() -> Mapping[str, list[Outcome]]:
    parameters, trials = tried()
    return {quantity: trial.outcomes(parameters) for quantity, trial in trials.items()}


@pytest.mark.parametrize("quantity", MEASURED)
def test_own_runs_help_and_harm_no_source(found: Mapping[str, list[Outcome]], quantity: str) -> None:
    assert len(found[quantity]) > 10
    assert remaining(found[quantity]) < MOST_REMAINING[quantity]
    assert mean(found[quantity], "after") < MOST_AFTER[quantity]
    assert worst(found[quantity]) < MOST_WORSE
    assert BAND[0] < mean(found[quantity], "inside_after") < BAND[1]


def test_the_page_is_what_the_trial_says() -> None:
    """python -m tests.nightly.own_runs.trial"""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_a_source_that_is_off_by_one_factor_is_right_after_two_runs() -> None:
    errors = np.log(np.full(6, 1.5))
    pairs = np.array([[0, 1], [2, 5]])
    seen = outcome(Source("even", errors, errors - 1, errors + 1, pairs), np.ones((6, 6)), 0.1, 0.05)
    # Two runs alike count as one of half the noise: 1 / (1 + 0.1 / 2) of the error is corrected.
    assert seen.before == pytest.approx(1 - 1 / 1.5)
    assert seen.after == pytest.approx(1 - 1.5 ** (1 / 1.05 - 1))
    apart = outcome(Source("odd", errors, errors - 1, errors + 1, pairs), np.eye(6), 0.1, 0.05)
    assert (apart.after, apart.width) == (apart.before, 1)
