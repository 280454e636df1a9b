"""The expected cost of interruptions against runs simulated interruption by interruption."""

from pathlib import Path

import numpy as np
import pytest

from tests.marts.database import with_macros


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


@pytest.mark.parametrize(
    ("work", "checkpoint", "restart", "between"),
    [(360_000, 20, 700, 43_200), (100_000, 300, 1_200, 14_400), (50_000, 60, 600, 6_000)],
)
def test_expected_seconds_match_simulated_runs(
    work: float, checkpoint: float, restart: float, between: float, tmp_path: Path
) -> None:
    connection = with_macros(tmp_path)
    interval, expected = connection.execute(
        """SELECT i, daly_expected_seconds($work, i, $checkpoint, $restart, $between)
             FROM (SELECT daly_interval($checkpoint, $between) AS i)""",
        {
            "work": float(work),
            "checkpoint": float(checkpoint),
            "restart": float(restart),
            "between": float(between),
        },
    ).fetchall()[0]
    rng = np.random.default_rng(1)
    simulated = np.mean([simulate(rng, work, interval, checkpoint, restart, between) for _ in range(1500)])
    assert expected == pytest.approx(simulated, rel=0.02)


@pytest.mark.parametrize("between", [3_000.0, 20_000.0, 200_000.0])
def test_no_other_interval_costs_less(between: float, tmp_path: Path) -> None:
    connection = with_macros(tmp_path)
    costs = connection.execute(
        """SELECT factor, daly_expected_seconds(1e6, factor * daly_interval(60e0, $m), 60e0, 600e0, $m)
             FROM (SELECT unnest([0.5e0, 0.8e0, 1e0, 1.25e0, 2e0]) AS factor)""",
        {"m": between},
    ).fetchall()
    best = min(costs, key=lambda row: row[1])
    assert best[0] == 1.0


def test_more_interruptions_never_cost_less(tmp_path: Path) -> None:
    connection = with_macros(tmp_path)
    insert = "INSERT INTO main.cost_parameters VALUES (?, ?, '-', 'default', 'a test', NULL)"
    for name in ("setup_seconds", "minimum_seconds", "image_gb", "evaluation_share", "download_usd_per_gb"):
        connection.execute(insert, [name, 0])
    for name in ("billing_increment_seconds", "checkpoint_pause_seconds", "dataset_bytes_per_token"):
        connection.execute(insert, [name, 1])
    for name in ("download_gbps", "checkpoint_gbps", "checkpoints_kept", "interruption_wait_seconds"):
        connection.execute(insert, [name, 8])
    for name in ("gpu_hours_between_failures", "host_hours_between_failures"):
        connection.execute(insert, [name, "inf"])
    connection.execute(insert, ["notice_seconds", 0])
    for name in ("hours_per_month", "storage_usd_per_gb_month", "egress_usd_per_gb"):
        connection.execute(insert, [name, 2])
    totals = connection.execute(
        """WITH cases AS (
               SELECT 36e6 AS tokens, 1000 AS tokens_per_second, 1.0 AS usd_per_hour, 'spot' AS price_kind,
                   20e0 AS training_state_gib,
                   unnest([0.5e0, 1e0, 2e0, 6e0, 12e0, 100e0, 10000e0]) AS hours_between_interruptions
           )
           SELECT total_usd FROM cost_of('cases') ORDER BY hours_between_interruptions"""
    ).fetchall()
    assert totals == sorted(totals, reverse=True)
    assert totals[0] > totals[-1]
