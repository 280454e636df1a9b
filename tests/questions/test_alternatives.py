"""Alternatives to what a job asks for: another price kind, number of GPUs, method or precision."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from pipeline.home.paths import Home
from pipeline.questions.alternatives import alternatives, foreseen
from pipeline.questions.job import Job
from pipeline.questions.session import Session
from pipeline.questions.words import careful_text, cost_text, picked, safety_text
from pipeline.warehouse.query import reader


@pytest.fixture(scope="module")
def session(sample_home: Home) -> Iterator[Session]:
    with reader(sample_home.published) as connection:
        yield Session(connection)


def first_rows(session: Session, job: Job) -> list[dict[str, Any]]:
    return list(session.with_picks(job).dicts())


def pick(session: Session, name: str, job: Job) -> Mapping[str, Any]:
    row = picked(first_rows(session, job), name)
    assert row
    return row


def safest_on_demand(session: Session, job: Job) -> str:
    row = pick(session, "safest", job)
    return f"Safest on demand: {cost_text(row)}; {safety_text(row)}.{careful_text(row)}"


def told(session: Session, **job: Any) -> list[str]:
    asked = Job(**job)
    return alternatives(session, asked, first_rows(session, asked))


def test_a_reservation_dearer_than_on_demand_is_not_worth_it(session: Session) -> None:
    job = {"model": "llama-2-13b", "method": "lora", "tokens": 10e9}
    instead = pick(session, "cheapest", Job(**job, max_hours=700))
    said = [
        f"Cheaper on demand: {cost_text(instead)}.{careful_text(instead)}",
        safest_on_demand(session, Job(**job, max_hours=700)),
    ]
    assert told(session, **job, kind="reserved", max_hours=700, max_term_days=31) == said
    assert told(session, **job) == []


def test_spot_machines_that_are_taken_too_often_are_not_the_safest(session: Session) -> None:
    job = {"model": "qwen2.5-32b", "method": "lora", "tokens": 10e9}
    assert told(session, **job, kind="spot") == [safest_on_demand(session, Job(**job))]
    near = {"source": "nebius", "gpu": "h200"}
    assert told(session, **job | {"tokens": 10e6}, **near, kind="spot") == []
    instead = pick(session, "cheapest", Job(**job | {"tokens": 10e6}))
    assert told(session, **job | {"tokens": 10e6}, kind="flex_start") == [
        f"Cheaper on demand: {cost_text(instead)}.{careful_text(instead)}",
        safest_on_demand(session, Job(**job | {"tokens": 10e6})),
    ]


def test_more_gpus_where_nothing_is_in_time(session: Session) -> None:
    job = {"model": "llama-3.1-70b", "method": "lora", "tokens": 10e9}
    (line,) = told(session, **job, gpus=4)
    (row,) = session.cheapest(Job(**job, gpus=session.most_gpus), 1).dicts()
    assert row["keeps_deadline"]
    assert line == f"In time with --gpus {row['gpu_count']}: {cost_text(row)}.{careful_text(row)}"


def test_lora_that_costs_no_more_than_qlora(session: Session) -> None:
    job = {"model": "qwen3-1.7b", "tokens": 10e6, "source": "vast"}
    lora = pick(session, "cheapest", Job(**job, method="lora"))
    line = f"Take LoRA, without quantization: {cost_text(lora)}.{careful_text(lora)}"
    assert told(session, **job, method="qlora") == [line]
    other = job | {"model": "llama-3.1-8b", "source": "nosana"}
    (small,) = session.cheapest(Job(**other, method="qlora"), 1).dicts()
    (large,) = session.cheapest(Job(**other, method="lora"), 1).dicts()
    assert small["total_usd"] < large["total_usd"]
    assert told(session, **other, method="qlora") == []


def test_the_safest_with_lora(session: Session) -> None:
    job = {"model": "llama-3.2-1b", "tokens": 10e6}
    cheapest, safest = (pick(session, name, Job(**job, method="lora")) for name in ("cheapest", "safest"))
    assert cheapest["rank"] != safest["rank"]
    assert told(session, **job, method="qlora") == [
        f"Take LoRA, without quantization: {cost_text(cheapest)}.{careful_text(cheapest)} "
        f"The safest with LoRA: {cost_text(safest)}.{careful_text(safest)}"
    ]


def test_full_training_in_another_precision(session: Session) -> None:
    job = {"model": "llama-3.1-8b", "method": "full", "tokens": 100e6}
    (pure,) = session.cheapest(Job(**job, training_precision="bf16"), 1).dicts()
    said = f"With pure bf16, without fp32 masters (--training-precision bf16): {cost_text(pure)}."
    assert told(session, **job) == [said]
    assert told(session, **job, training_precision="amp") == []
    assert told(session, **job, optimizer="adamw_8bit") == []


def test_a_quantized_checkpoint_has_no_alternative_without_quantization(session: Session) -> None:
    job = Job(model="unsloth/Meta-Llama-3.1-8B-bnb-4bit", method="qlora", tokens=1e7, source="lambda")
    rows = list(session.with_picks(job, others=foreseen(job)).dicts())
    assert rows[0]["method"] == "qlora"
    assert not any("LoRA, without" in line for line in alternatives(session, job, rows))
    whole = job.but(model="llama-3.1-8b")
    assert any("LoRA, without" in line for line in alternatives(session, whole, first_rows(session, whole)))
