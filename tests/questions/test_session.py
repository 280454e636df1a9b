"""A session keeps plans, and plans only the GPUs that an answer can have: its answers are those of
``cheapest_for`` on all plans."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpufare
from pipeline.home.paths import Home
from pipeline.questions.job import Job
from pipeline.questions.session import JOBS, Session
from pipeline.warehouse.query import Result, reader
from tests.questions.conftest import QLORA


@pytest.fixture
def session(sample_home: Home) -> Iterator[Session]:
    with reader(sample_home.published) as connection:
        yield Session(connection)


def _plain(result: Result) -> list[list[Any]]:
    """The values of rows, but for the moment of a quote: now."""
    rows = ([row[name] for name in result.columns if name != "observed_at"] for row in result.dicts())
    return [[f"{value:.9g}" if isinstance(value, float) else value for value in row] for row in rows]


def test_jobs_have_the_answers_that_all_plans_give(session: Session) -> None:
    """One of the cards is quoted and not on the market; the jobs share their plans."""
    ((unrented,),) = session.ask(
        """SELECT min(gpu_id) FROM main.gpus
           WHERE has_full_specs AND architecture = 'Ampere' AND memory_gb >= 40
               AND gpu_id NOT IN (SELECT r.gpu_id FROM main.rentals AS r)"""
    ).rows
    recipe = {"model": "llama-3.2-1b", "method": "qlora", "seq_len": 1536, "quote": f"1 x {unrented} at 0.01"}
    jobs = [
        Job(**recipe, tokens=1e8),
        Job(**recipe, tokens=1e9, kind="any", max_hours=10, objective="time", exclude_gpu="h100"),
        Job(**recipe, tokens=1e7, kind="spot", max_usd=50, gpus=2, own="2 x rtx-4090 at 0.1"),
    ]
    answers = [_plain(session.cheapest(job)) for job in jobs]
    assert all(answers)
    for job, rows in zip(jobs, answers, strict=True):
        first = [row for row in session.cheapest(job).dicts() if row["rank"] == 1 or row["pick"]]
        assert {row["rank"] for row in first} <= {row["rank"] for row in session.cheapest(job, 4).dicts()}
        session.complete(job)
        plans = session.plans(every_gpu=True)
        assert len(session.ask(f"SELECT DISTINCT gpu_id FROM {plans}").rows) > 100
        all_planned = session.ask(f"FROM ranked_jobs('{JOBS}', '{plans}') ORDER BY rank")
        assert _plain(all_planned) == rows
    assert len(session._plans) == 2


def test_a_session_plans_what_the_planner_reads_and_nothing_twice(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sessions on one connection do not disturb each other."""
    planned: list[int] = []
    plan = Session._planned

    def counted(session: Session, most_gpus: int, every_gpu: bool) -> tuple[int, str]:
        planned.append(most_gpus)
        return plan(session, most_gpus, every_gpu)

    def tables() -> list[str]:
        query = "FROM duckdb_tables() WHERE table_name LIKE 'gpufare_plans_%' ORDER BY table_oid"
        return [name for (name,) in session.ask(f"SELECT table_name {query}").rows]

    monkeypatch.setattr(Session, "_planned", counted)
    monkeypatch.setattr("pipeline.questions.session.KEPT_PLANS", 2)
    job = Job(model="llama-3.2-1b", method="lora", tokens=1e8, seq_len=640, gpus=1)
    changes = ({}, {"tokens": 2e8}, {"max_hours": 9}, {"country": "eu"}, {"kind": "any"}, {"lora_rank": 16})
    answers = [_plain(session.cheapest(job.but(**change))) for change in changes]
    assert planned == [1]
    assert len({len(answer) for answer in answers}) > 2
    session.cheapest(job.but(gpus=2))
    assert planned == [1, 2]
    published = Job(model="llama-3.1-8b", method="qlora", tokens=1e8)
    first = _plain(session.cheapest(published))
    (of_job, of_published) = tables()
    session.cheapest(job)
    assert planned == [1, 2]
    assert _plain(Session(session.connection).cheapest(published)) == first
    # The plans that were used longest ago are dropped.
    session.cheapest(published.but(method="lora"))
    assert of_job in tables()
    assert of_published not in tables()
    assert len(tables()) == 3


def test_a_job_or_file_that_macros_refuse_is_an_error_in_one_line(prices: gpufare.Prices) -> None:
    session = prices._session()
    wrong: dict[str, dict[str, Any]] = {
        "no model no-such; gpufare models lists them; or give its config.json, or add it with "
        "gpufare model add CONFIG": {"model": "no-such"},
        "gpus must be a whole number, not 1.6": {"gpus": 1.6},
        "max_usd must be a number; true is not a number": {"max_usd": True},
    }
    for says, change in wrong.items():
        with pytest.raises(gpufare.JobError) as raised:
            prices.cheapest(**QLORA | change)
        assert str(raised.value) == says
    for later in ("FROM a_later_macro('gpufare_jobs')", "SELECT a_later_column FROM main.gpus"):
        with pytest.raises(gpufare.JobError) as raised:
            session.ask(later)
        old = "the published file was made by an earlier version of gpufare: run `gpufare refresh` ("
        assert str(raised.value).startswith(old)
        assert len(str(raised.value).splitlines()) == 1


def test_prices_that_are_closed_missing_or_asked_for_nothing_are_refused(
    sample_home: Home, prices: gpufare.Prices, tmp_path: Path
) -> None:
    with gpufare.open(sample_home.root) as opened:
        pass
    for question in (lambda: opened.cheapest(**QLORA), lambda: opened.fits_on("rtx-4090")):
        with pytest.raises(gpufare.GpufareError, match="these prices are closed"):
            question()
    with pytest.raises(gpufare.NotPublishedError, match="run `gpufare refresh` first, or `gpufare demo` for"):
        gpufare.open(tmp_path)
    for limit in (0, -1):
        with pytest.raises(gpufare.JobError, match=f"limit must be at least 1, not {limit}"):
            prices.cheapest(**QLORA, limit=limit)
    for asked in ({}, {"model": "llama-3.1-8b", "config": "config.json"}):
        with pytest.raises(gpufare.JobError, match="give either model or config"):
            prices.cheapest(**asked, tokens=1e6)


def test_numbers_of_numpy_and_decimals_are_numbers(prices: gpufare.Prices) -> None:
    same = prices.cheapest(**QLORA, gpus=np.int64(4), max_usd=Decimal(50), limit=1)
    assert list(same) == list(prices.cheapest(**QLORA, gpus=4, max_usd=50, limit=1))
    assert repr(same) == "<Answer of 1 rows: job, rank, model, method, tokens, tokens_per_second, ...>"
