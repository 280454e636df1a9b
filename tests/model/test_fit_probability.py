"""P(fits): its formula, that published runs bear it out, and that the planner keeps to it."""

import math
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "accuracy.md"

HELD_OUT = """
    WITH _held_out AS (
        SELECT r.*, 'without ' || s.family AS calibration
        FROM main.measured_runs r JOIN main.measured_sources s USING (source)
        WHERE r.out_of_memory = 1 OR r.measured_memory_gib IS NOT NULL
    ),
    _terms AS (SELECT * FROM memory_terms_of('_held_out')),
    _evidence AS (SELECT * FROM evidence_of('_terms', 'memory'))
    SELECT
        h.out_of_memory = 1 AS died, t.needed_gib <= t.usable_memory_gib AS fits,
        ln(h.measured_memory_gib / t.memory_gib) AS residual,
        ln(b.low_ratio) AS low, ln(b.high_ratio) AS high,
        fit_probability(t.usable_memory_gib, t.needed_gib, b.low_ratio, b.high_ratio) AS probability
    FROM _held_out h
    JOIN _terms t USING (run_id)
    JOIN _evidence e ON e.calibration = t.calibration AND e.gpu = t.gpu AND e.method = t.method
        AND e.params = t.params_total AND e.gpu_count = t.gpu_count AND e.stack = t.stack
        AND e.seq_len = t.seq_len AND e.is_mixture = (t.experts > 1)
        AND e.weight_form = weight_form(t.method, t.quantization)
    JOIN main.model_bands b ON b.calibration = h.calibration AND b.quantity = 'memory'
        AND b.method = h.method AND b.gpu_class = e.class
        AND b.evidence = memory_evidence(e.evidence, t.is_proven)
"""


def _probability(connection: duckdb.DuckDBPyConnection, *arguments: float) -> float:
    found = connection.execute("SELECT fit_probability(?, ?, ?, ?)", list(arguments)).fetchall()
    return float(found[0][0])


@pytest.mark.parametrize(
    ("usable", "needed", "low", "high", "expected"),
    [
        (80, 80, 0.8, 1.25, 0.5),  # the estimate is the median
        (80, 64, 0.8, 1.25, 0.9),  # p90 just fits: 64 x 1.25 = 80
        (80, 51.2, 0.8, 1.25, 81 / 82),  # twice as far: odds of 81 to 1
        (64, 80, 0.8, 1.25, 0.1),  # p10 just fits: 80 x 0.8 = 64
        (80, 80 / 1.25**0.5, 0.5, 1.25, 0.75),  # half as far: odds of 3 to 1, whatever the low end is
        (80, 79, 0.7, 1.0, 1.0),  # nothing was ever above the estimate
        (80, 160, 1.0, 1.2, 0.0),
    ],
)
def test_the_formula(
    model: duckdb.DuckDBPyConnection, usable: float, needed: float, low: float, high: float, expected: float
) -> None:
    assert _probability(model, usable, needed, low, high) == pytest.approx(expected, abs=1e-5)


@pytest.fixture(scope="module")
def held_out(model: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    return dict(model.execute(HELD_OUT).fetchnumpy())


def test_runs_that_should_fit_ran_and_runs_that_died_should_not(held_out: dict[str, Any]) -> None:
    probability, ran = held_out["probability"], ~held_out["died"].astype(bool)
    safe = probability >= 0.9
    assert safe.sum() > 400
    assert ran[safe].mean() >= 0.9
    # Where the estimate says no, few ran, and fewer than between the two.
    assert ran[probability < 0.5].mean() < 0.5
    assert ran[(probability >= 0.5) & ~safe].mean() >= 0.5
    assert (probability[~ran] < 0.5).mean() >= 0.9


def test_the_documentation_has_these_figures(held_out: dict[str, Any]) -> None:
    probability, ran = held_out["probability"], ~held_out["died"].astype(bool)
    safe, unlikely = probability >= 0.9, probability < 0.5
    assert ran[safe].mean() >= 0.95
    figures = (
        f"of the {safe.sum()} held-out runs with a probability of 90% or more, {ran[safe].sum()} ran; "
        f"of the {unlikely.sum()} with less than 50%, {ran[unlikely].sum()} did."
    )
    assert figures in " ".join(PAGE.read_text(encoding="utf-8").split())


def test_it_is_half_exactly_where_the_estimate_turns(held_out: dict[str, Any]) -> None:
    assert ((held_out["probability"] >= 0.5) == held_out["fits"].astype(bool)).all()


def test_residuals_are_likelier_than_under_a_log_normal(held_out: dict[str, Any]) -> None:
    """Both distributions scaled to the same p10 and p90 on either side of the estimate."""
    residual = np.ma.filled(held_out["residual"], np.nan)
    side = np.maximum(np.where(residual > 0, held_out["high"], -held_out["low"]), 1e-3)
    u = (residual / side)[~np.isnan(residual)]
    z = 1.2815515655 * u
    normal = np.log(1.2815515655) - z**2 / 2 - np.log(2 * np.pi) / 2
    x = math.log(9) * u
    logistic = np.log(math.log(9)) - x - 2 * np.log1p(np.exp(-x))
    assert len(u) > 500
    assert logistic.mean() > normal.mean()


JOB = "WITH mine AS (SELECT 'llama-3.1-8b' AS model, 'lora' AS method, {} AS min_fit_probability) "
PLANS = """
    SELECT gpu_id, gpu_count, verdict, fit_probability, tokens_per_second FROM plans_for('mine')
    ORDER BY gpu_id, gpu_count
"""


def test_a_higher_probability_is_paid_in_speed(model: duckdb.DuckDBPyConnection) -> None:
    asked = {share: model.execute(JOB.format(share) + PLANS).fetchall() for share in (0.5, 0.9, 0.99)}
    slower = 0
    for bold, usual, careful in zip(*asked.values(), strict=True):
        assert bold[:2] == usual[:2] == careful[:2]
        assert bold[3] <= usual[3] + 1e-9 or bold[3] < 0.5
        if careful[3] >= 0.99:
            assert bold[4] >= usual[4] * 0.999 >= careful[4] * 0.998
            slower += careful[4] < bold[4] * 0.99
    assert slower > 10
