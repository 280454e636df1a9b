"""A session keeps plans, and plans only the GPUs that an answer can have: its answers are those of
``cheapest_for`` on all plans."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.home.paths import Home
from pipeline.questions.job import Job
from pipeline.questions.session import JOBS, Session
from pipeline.warehouse.query import Result, reader

SEED = 1503
RECIPES = [
    {"model": "llama-3.1-8b", "method": "qlora", "seq_len": 1536},
    {"model": "qwen2.5-7b", "method": "lora", "lora_rank": 24},
]
CONSTRAINTS: dict[str, list[Any]] = {
    "gpus": [1, 2, 16],
    "kind": ["any", "spot", "reserved"],
    "max_hours": [10, 500],
    "max_usd": [50],
    "objective": ["time", "pareto"],
    "exclude_gpu": ["h100"],
    "own": ["2 x rtx-4090 at 0.1"],
}


@pytest.fixture
def session(sample_home: Home) -> Iterator[Session]:
    with reader(sample_home.published) as connection:
        yield Session(connection)


def _plain(result: Result) -> list[list[Any]]:
    return [
        [
            f"{value:.9g}" if isinstance(value, float) else value
            for name, value in row.items()
            if name != "observed_at"  # of a quote: now
        ]
        for row in result.dicts()
    ]


@pytest.mark.slow
def test_random_jobs_have_the_answers_that_all_plans_give(session: Session) -> None:
    ((unrented,),) = session.ask(
        """SELECT min(gpu_id) FROM main.gpus
           WHERE has_full_specs AND architecture = 'Ampere' AND memory_gb >= 40
               AND gpu_id NOT IN (SELECT r.gpu_id FROM main.rentals AS r)"""
    ).rows
    draw = random.Random(SEED)
    constraints = CONSTRAINTS | {"quote": [f"1 x {unrented} at 0.01"]}
    seen: list[tuple[Job, list[list[Any]]]] = []
    for number in range(6):
        asked = {name: draw.choice(values) for name, values in constraints.items() if draw.random() < 0.3}
        job = Job(**RECIPES[number % 2], tokens=10 ** draw.uniform(6, 9), **asked)
        seen.append((job, _plain(session.cheapest(job))))
    assert any(job["quote"] and rows for job, rows in seen)
    for job, rows in seen:
        assert _plain(session.cheapest(job, 3)) == rows[:3]
        session.complete(job)
        plans = session.plans(every_gpu=True)
        assert len(session.ask(f"SELECT DISTINCT gpu_id FROM {plans}").rows) > 100
        all_planned = session.ask(f"FROM ranked_jobs('{JOBS}', '{plans}') ORDER BY rank")
        assert _plain(all_planned) == rows
    kept = sorted(session._plans.values())
    session.cheapest(seen[0][0].but(tokens=1e7, max_hours=100, exclude_gpu="l4"))
    assert sorted(session._plans.values()) == kept


def test_sessions_on_one_connection_do_not_disturb_each_other(session: Session) -> None:
    job = Job(model="llama-3.1-8b", method="qlora", tokens=1e8)
    first = _plain(session.cheapest(job))
    assert _plain(Session(session.connection).cheapest(job)) == first
    assert _plain(session.cheapest(job)) == first
