"""Why an answer costs what it does, why a GPU is not the answer, what a job cost before, and watching it."""

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

import gpufare
from pipeline.cli.main import main
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.offers.money import price_text
from pipeline.questions.job import Job

JOB: dict[str, Any] = {"model": "llama-3.1-8b", "method": "qlora", "tokens": 100e6}
OPTIONS = ("--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "100M")


@pytest.fixture(scope="module")
def prices(sample_home: Home) -> Iterator[gpufare.Prices]:
    with gpufare.open(sample_home.root) as opened:
        yield opened


def run(home: Home | Path, *arguments: str) -> Result:
    root = home.root if isinstance(home, Home) else home
    return CliRunner().invoke(main, arguments, env={HOME_VARIABLE: str(root)})


@pytest.mark.parametrize("more", [{"kind": "spot"}, {"kind": "reserved", "tokens": 1e11, "max_hours": 1e5}])
def test_the_parts_of_a_total_add_up(prices: gpufare.Prices, more: dict[str, Any]) -> None:
    found = prices.explain(rank=2, **JOB | more)
    parts = {row["part"]: row["usd"] for row in found.parts.dicts()}
    assert parts.pop("total") == sum(parts.values()) == found.row["total_usd"]
    assert found.row["rank"] == 2
    assert found.row["price_kind"] == more["kind"]


def test_the_parts_add_up_on_the_screen(sample_home: Home) -> None:
    said = run(sample_home, "explain", *OPTIONS).output
    table = said.split("\n\n")[1].splitlines()[1:]
    numbers = [Decimal(next(word for word in line.split() if "." in word)) for line in table]
    assert len(numbers) == 6
    assert sum(numbers[:-1]) == numbers[-1]


def test_why_not_another_gpu(sample_home: Home, prices: gpufare.Prices) -> None:
    ranking = prices.cheapest(**JOB)
    best = next(row for row in ranking if row["gpu_id"].startswith("h100-"))
    (first, *_) = prices.explain(**JOB, not_gpu="H100").why_not
    assert (first["reason"], first["gpu_id"]) == ("ranked", best["gpu_id"])
    assert (first["rank"], first["total_usd"], first["hours"]) == (
        best["rank"], best["total_usd"], best["hours"]
    )  # fmt: skip
    said = run(sample_home, "explain", *OPTIONS, "--not-gpu", "h100").output
    assert f"{best['gpu_id']} has rank {best['rank']} of {len(ranking)}: " in said
    assert (
        f"costs ${best['total_usd']:,.2f}, ${best['total_usd'] - ranking[0]['total_usd']:,.2f} more" in said
    )


@pytest.mark.parametrize(
    ("job", "gpu", "reason", "detail"),
    [
        ({}, "p40", "does_not_fit", "no longer support"),
        ({"method": "full", "gpus": 1}, "rtx-4090", "might_not_fit|fits_in|does_not_fit", "GiB|fits"),
        ({"exclude_gpu": "rtx-4090"}, "rtx-4090", "not_asked_for", "otherwise 1 of it at .* would cost"),
        (
            {"provider": "lambda"},
            "rtx-4090",
            "not_offered_so",
            "the cheapest of all its offers is 0.13 USD .* Vast.ai",
        ),
        ({"min_gpus": 64, "gpus": 64}, "rtx-4090", "fits_in_another|not_rented", "fits on"),
        ({"max_hours": 1.5}, "rtx-3090", "too_late_or_too_expensive", "deadline"),
        ({}, "vr200", "not_planned", "specifications"),
        ({}, "titan-v", "no_price", "no source"),
    ],
)
def test_each_reason_why_not(
    prices: gpufare.Prices, job: dict[str, Any], gpu: str, reason: str, detail: str
) -> None:
    asked = JOB | {"kind": "any"} | job
    (row,) = prices.explain(**asked, not_gpu=gpu).why_not[:1]
    assert any(row["reason"].startswith(each) for each in reason.split("|"))
    assert duckdb.execute("SELECT regexp_matches(?, ?)", [row["detail"], detail]).fetchall() == [(True,)]
    assert row["rank"] is None


def test_a_rank_or_gpu_that_there_is_not_is_refused(prices: gpufare.Prices) -> None:
    with pytest.raises(gpufare.JobError, match="there is no rank 100000"):
        prices.explain(**JOB, rank=100_000)
    with pytest.raises(gpufare.JobError, match="rank must be at least 1, not 0"):
        prices.explain(**JOB, rank=0)
    with pytest.raises(gpufare.JobError, match="no gpu h10; the nearest are h100"):
        prices.explain(**JOB, not_gpu="h10")


def test_history_is_todays_model_at_each_days_prices(sample_home: Home, tmp_path: Path) -> None:
    """Yesterday every price was double: the job's cost then equals its cost at doubled prices."""
    double, both = tmp_path / "double", tmp_path / "both"
    for home in (double, both):
        (home / "published").mkdir(parents=True)
        shutil.copy(sample_home.published, home / "published")
    with duckdb.connect(double / "published" / "gpufare.duckdb") as connection:
        connection.execute("UPDATE main.rentals SET usd_per_hour = 2 * usd_per_hour")
    with duckdb.connect(both / "published" / "gpufare.duckdb") as connection:
        connection.execute(
            "INSERT INTO main.offers SELECT * REPLACE"
            " (day - 1 AS day, 2 * usd_per_gpu_hour AS usd_per_gpu_hour) FROM main.offers"
        )
    with gpufare.open(double) as doubled:
        at_double = doubled.cheapest(**JOB, limit=1)[0]
    with gpufare.open(both) as opened:
        today, found = opened.cheapest(**JOB)[0], opened.history(**JOB)
    yesterday, newest = found
    assert newest["day"] == today["price_day"]
    assert newest["total_usd"] == pytest.approx(float(today["total_usd"]))
    assert yesterday["total_usd"] == pytest.approx(float(at_double["total_usd"]), abs=2e-3)
    assert (yesterday["gpu_id"], yesterday["source"]) == (at_double["gpu_id"], at_double["source"])
    assert "disappeared since" in found.notes[0]
    said = run(both, "history", *OPTIONS)
    assert [line.split()[0] for line in said.stdout.splitlines()[1:]] == [str(row["day"]) for row in found]
    assert "are skipped" in said.stderr
    ago = (datetime.now(UTC).date() - newest["price_day"]).days
    assert f"the newest price here is from {newest['price_day']}, {ago} days ago" in said.stderr
    assert f"published as of {newest['day']}" in said.stderr
    assert "newest price here" in found.notes[1]
    # No digit of a price is cut.
    assert f" {price_text(Decimal(str(newest['usd_per_gpu_hour'])))} " in said.stdout
    assert "0.1326" in said.stdout


def test_a_watch_says_in_its_exit_code_whether_the_job_is_below(sample_home: Home) -> None:
    cost = json.loads(run(sample_home, "watch", *OPTIONS, "--below", "1e6").stdout)["total_usd"]
    below = run(sample_home, "watch", *OPTIONS, "--below", str(cost + 0.01))
    above = run(sample_home, "watch", *OPTIONS, "--below", str(cost))
    nothing = run(sample_home, "watch", *OPTIONS, "--max-usd", "0.01", "--below", "5")
    assert [answer.exit_code for answer in (below, above, nothing)] == [0, 3, 4]
    said = [json.loads(answer.stdout) for answer in (below, above, nothing)]
    assert [each["below"] for each in said] == [True, False, False]
    assert [each["total_usd"] for each in said] == [cost, cost, None]
    assert [each["stale"] for each in said] == [said[0]["price_age_days"] > 2] * 2 + [None]
    assert [each["reason"] for each in said[:2]] == [None, None]
    assert f"max_usd {cost + 0.005:.2f} instead of 0.01" in said[2]["reason"]
    assert said[2]["reason"] in nothing.stderr
    assert "reason" not in above.stderr
    assert run(sample_home, "watch", *OPTIONS).exit_code == 2
    for limit in ("nan", "inf"):
        assert run(sample_home, "watch", *OPTIONS, "--below", limit).exit_code == 2
    with gpufare.open(sample_home.root) as opened:
        assert opened.watch(**JOB, below=cost + 0.01) | {"reason": None} == opened.watch(
            **JOB | {"tokens": f"{JOB['tokens'] / 1e6:g}M"}, below=cost + 0.01
        )
        assert opened.watch(**JOB, below=cost)["below"] is False
        assert opened.watch(**JOB, below=5, max_usd=0.01)["reason"] == said[2]["reason"]
        assert f"max_usd {cost + 0.005:.2f} instead of 0.01" in repr(opened.cheapest(**JOB, max_usd=0.01))
        with pytest.raises(gpufare.JobError, match="above 0 US dollars and finite"):
            opened.watch(**JOB, below=float("inf"))


@pytest.mark.parametrize(
    ("asked", "constraint", "instead_of"),
    [
        ({"method": "qlora", "seq_len": 131_072, "gpu": "rtx-4090", "gpus": 1}, "seq_len", "131072"),
        ({"method": "qlora", "micro_batch": 64, "gpu": "rtx-4090", "gpus": 1}, "micro_batch", "64"),
        (
            {"method": "full", "min_fit_probability": 0.99, "max_usd": 5, "gpus": 1},
            "min_fit_probability",
            "0.99",
        ),
    ],
)
def test_the_recipe_and_plans_that_are_less_sure_can_give_too(
    prices: gpufare.Prices, asked: dict[str, Any], constraint: str, instead_of: str
) -> None:
    session, job = prices._session(), JOB | asked
    assert not session.cheapest(Job(**job), 1).rows
    (row,) = (row for row in session.nearest().dicts() if row["constraints"] == [constraint])
    assert row["asked"] == [instead_of]
    nearest = float(row["nearest"][0])
    answers = prices.cheapest(**job | {constraint: nearest})
    # What is promised is among the answers; a lower probability plans anew, for no more.
    assert row["total_usd"] in [each["total_usd"] for each in answers] or constraint == "min_fit_probability"
    assert 0 < answers[0]["total_usd"] <= row["total_usd"]
    # The plans as asked have none that is sure enough: it is one that is faster and less sure.
    assert 0.5 <= row["fit_probability"] < 1


def test_sequences_are_not_shortened_where_memory_is_not_short(prices: gpufare.Prices) -> None:
    session = prices._session()
    assert not session.cheapest(Job(**JOB, gpu="h100", max_usd=1), 1).rows
    assert not any("seq_len" in row["constraints"] for row in session.nearest().dicts())


def test_an_explanation_says_where_the_asked_machines_are(sample_home: Home, prices: gpufare.Prices) -> None:
    found = prices.explain(**JOB, own="1x rtx-3090 at 0.12", quote="3xP40 at 1")
    quote, own = sorted(found.machines, reverse=True)
    assert quote.startswith("Your quote 3xP40 at 1 is not ranked: the job does not fit: ")
    assert own.startswith("Your own 1x rtx-3090 at 0.12 has rank ")
    said = run(
        sample_home, "explain", *OPTIONS, "--own", "1x rtx-3090 at 0.12", "--quote", "3xP40 at 1"
    ).stdout
    assert own in said
    assert quote in said


def test_the_proposed_command_is_not_a_run_that_may_die(prices: gpufare.Prices) -> None:
    """With a longer run there is one that fits with 78%, and another card is surer."""
    asked = {"model": "qwen2.5-7b", "method": "qlora", "seq_len": 28672, "gpu": "rtx-4090", "gpus": 1}
    (said, *_) = prices.cheapest(**asked, tokens=100e6).notes
    *changes, proposal = said.splitlines()
    assert any(line.startswith("  min_fit_probability ") for line in changes)
    assert any(line.startswith("  seq_len 14336 instead of 28672: ") for line in changes)
    assert "--seq-len 28672" in proposal
    assert "--min-fit-probability" not in proposal
    assert "--gpu rtx-4090" not in proposal
