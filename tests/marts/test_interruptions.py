"""The expected cost of interruptions against runs simulated interruption by interruption."""

from collections.abc import Iterator

import duckdb
import numpy as np
import pytest

from tests.marts.database import macros


def simulate(
    rng: np.random.Generator, work: float, interval: float, checkpoint: float, restart: float, between: float
) -> float:
    """Paid seconds of one run: work in intervals, each safe only once its checkpoint is written."""
    clock, done = 0.0, 0.0
    next_interruption = rng.exponential(between)
    while done < work:
        needed = min(interval, work - done) + checkpoint
        if clock + needed <= next_interruption:
            clock += needed
            done += interval
            continue
        clock = next_interruption
        while True:  # a restart can be interrupted, too
            lifetime = rng.exponential(between)
            if lifetime >= restart:
                next_interruption = clock + lifetime
                clock += restart
                break
            clock += lifetime
    return clock


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with macros() as connection:
        yield connection


@pytest.mark.parametrize(
    ("work", "checkpoint", "restart", "between"),
    [(360_000.0, 20.0, 700.0, 43_200.0), (50_000.0, 60.0, 600.0, 6_000.0)],
)
def test_expected_seconds_match_simulated_runs(
    work: float, checkpoint: float, restart: float, between: float, connection: duckdb.DuckDBPyConnection
) -> None:
    ((interval, expected),) = connection.execute(
        """SELECT daly_interval($checkpoint, $between) AS i,
            daly_expected_seconds($work, i, $checkpoint, $restart, $between)""",
        {"work": work, "checkpoint": checkpoint, "restart": restart, "between": between},
    ).fetchall()
    rng = np.random.default_rng(1)
    simulated = np.mean([simulate(rng, work, interval, checkpoint, restart, between) for _ in range(1500)])
    assert expected == pytest.approx(simulated, rel=0.02)


def test_the_best_interval_is_that_of_the_paper_and_no_other_costs_less(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """Between failures at most twice a checkpoint apart, one checkpoint; never longer than the work."""
    intervals = connection.execute(
        """SELECT daly_interval(60e0, 20000e0), daly_interval(60e0, 30e0), daly_interval(60e0, 31e0),
            best_interval(9e9, 60e0, 1 / 20000e0), best_interval(1000e0, 60e0, 1 / 20000e0),
            run_seconds_at(1000e0, 9e0, 60e0, 5e0, 0e0)"""
    ).fetchall()
    assert [*intervals[0]] == pytest.approx([1509.45, 30, 27.55, 1509.45, 1000, 1000], abs=0.01)
    costs = connection.execute(
        """SELECT m, factor, daly_expected_seconds(1e6, factor * daly_interval(60e0, m), 60e0, 600e0, m) AS s
             FROM (SELECT unnest([0.5e0, 0.8e0, 1e0, 1.25e0, 2e0]) AS factor),
                (SELECT unnest([3000e0, 20000e0, 200000e0]) AS m)
          QUALIFY s = min(s) OVER (PARTITION BY m)"""
    ).fetchall()
    assert [factor for _, factor, _ in costs] == [1, 1, 1]
