"""The page's engine answers as the macros do: jobs at random, on the sample day and on a harsh market."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.home.paths import Home
from pipeline.page.write import write_report
from pipeline.questions.job import Job, JobError
from pipeline.questions.session import Session
from pipeline.warehouse.query import ask, reader
from tests.page.equality import HAND, Compared, harsh_market, page_answers, random_jobs, sql_reasons

NOW = datetime.now(UTC)
"""The clock by which both count the ages of prices."""


def test_random_jobs_have_the_rows_cents_and_picks_of_the_macros(sample_home: Home, page_file: Path) -> None:
    with reader(sample_home.published) as connection:
        compared = Compared(connection, random_jobs(connection, 250, seed=1))
    assert compared.differences(page_file, NOW) == []


def test_every_rule_of_the_money_is_that_of_the_macros(sample_home: Home, tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.published.parent.mkdir(parents=True)
    harsh_market(sample_home.published, home.published)
    page = write_report(home, tmp_path / "page", NOW)
    with reader(home.published) as connection:
        compared = Compared(connection, [*HAND, *random_jobs(connection, 250, seed=2)])
    assert compared.differences(page, NOW) == []


def test_gpus_without_a_row_have_the_reasons_of_the_macros(sample_home: Home, page_file: Path) -> None:
    with reader(sample_home.published) as connection:
        recipes = set(ask(connection, "SELECT DISTINCT model, method, seq_len, lora_rank FROM plans").rows)
        jobs = [
            job
            for job in random_jobs(connection, 60, seed=5)
            if (job["model"], job["method"], job["seq_len"], job["lora_rank"]) in recipes
        ][:30]
        theirs = sql_reasons(connection, jobs)
    assert len(jobs) == 30
    # The page has no rentals whose network is too slow for any plan.
    alike = {"network_too_slow": "not_rented_in_that_number"}
    differing = [
        (job, gpu, answer["reasons"].get(gpu), reason)
        for job, answer, reasons in zip(jobs, page_answers(page_file, jobs, NOW, "why"), theirs, strict=True)
        for gpu, reason in reasons.items()
        if answer["reasons"].get(gpu) != alike.get(reason, reason)
    ]
    assert differing == []


READINGS: tuple[dict[str, Any], ...] = (
    {"model": "meta-llama/Llama-3.1-8B-Instruct", "tokens": "100 million"},
    {"model": "Llama 3.1 8B", "method": "full fine-tuning", "examples": "30k", "tokens_per_example": 800},
    {"model": "llama-3.1-8b", "method": "QLoRA", "tokens": "1.5bn", "max_hours": "1h30m", "max_usd": "$20"},
    {"model": "llama-3.1-8b", "tokens": "1e8", "max_hours": "2 days", "gpus": "8x", "bid": "200%"},
    {"model": "llama-3.1-8b", "tokens": "1,000,000", "seq_len": "8k", "max_term_days": "4 weeks"},
    {"model": "llama-3.1-8b", "tokens": "1M", "gpu": "H100s, NVIDIA A100-SXM4-80GB", "exclude_gpu": "4090"},
    {
        "model": "llama-3.1-8b",
        "tokens": "1M",
        "gpu": "a100-80gb",
        "country": "eu, Norway",
        "tier": "dedicated",
    },
    {"model": "llama-3.1-8b", "tokens": "1M", "country": "europe", "kind": "any", "exclude_country": "de"},
    {"model": "llama-3.1-8b", "tokens": "1M", "provider": "lambda, voltage park", "hour_worth": "2 USD/h"},
    {"model": "llama-3.1-8b", "tokens": "1M", "continent": "North America", "objective": "time"},
    {"model": "llama-3.1-8b", "tokens": "11B", "min_gpus": 16, "evidence": "interpolated"},
    {"model": "llama-9-8b", "tokens": "1M"},
    {"model": "llama-3.1-8b"},
    {"model": "llama-3.1-8b", "tokens": "0"},
    {"model": "llama-3.1-8b", "tokens": "many"},
    {"model": "llama-3.1-8b", "tokens": "1M", "gpus": "2.5"},
    {"model": "llama-3.1-8b", "tokens": "1M", "max_usd": ".10"},
    {"model": "llama-3.1-8b", "tokens": "1M", "min_gpus": 8, "gpus": 4},
    {"model": "llama-3.1-8b", "tokens": "1M", "country": "atlantis"},
    {"model": "llama-3.1-8b", "tokens": "1M", "kind": "barter"},
    {"model": "llama-3.1-8b", "tokens": "1M", "bid": "+50%"},
    {"model": "llama-3.1-8b", "tokens": "1M", "epochs": "-1"},
    {"model": "llama-3.1-8b", "tokens": "1M", "speed": "9"},
)
"""Jobs as people write them, right and wrong."""

SAME = (
    "model",
    "method",
    "tokens",
    "epochs",
    "seq_len",
    "lora_rank",
    "max_gpus",
    "min_gpus",
    "max_hours",
    "max_usd",
    "bid",
)


def test_what_people_write_is_read_as_the_command_reads_it(sample_home: Home, page_file: Path) -> None:
    answers = page_answers(page_file, READINGS, NOW)
    with reader(sample_home.published) as connection:
        for asked, ours in zip(READINGS, answers, strict=True):
            try:
                theirs = Session(connection).complete(Job(**asked))
            except JobError:
                assert "refused" in ours, asked
                continue
            job = ours["job"]
            assert {name: job[name] for name in SAME} == {name: theirs[name] for name in SAME}, asked
            assert sorted(job["price_kinds"]) == sorted(theirs["price_kinds"]), asked
            for column, names in job["constraints"].items():
                for which in ("wanted", "unwanted"):
                    assert sorted(names[which] or ()) == sorted(theirs["constraints"][column][which] or ()), (
                        asked
                    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seq_len": 3000}, "this page plans this recipe with sequences of 2,048"),
        ({"lora_rank": 5}, "with a rank of"),
        ({"micro_batch": 2}, "this page does not plan --micro-batch"),
        ({"quote": "8xH100 at 2.10"}, "this page does not plan --quote"),
    ],
)
def test_what_the_page_has_no_plans_for_is_named(changes: Any, said: str, page_file: Path) -> None:
    (answer,) = page_answers(page_file, [{"model": "llama-3.1-8b", "tokens": "1M"} | changes], NOW)
    assert said in answer["beyond"]
