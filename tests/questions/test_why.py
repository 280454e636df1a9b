"""Why an answer costs what it does, why a GPU is not the answer, what a job cost before, and watching it."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import gpufare as python
from pipeline.home.paths import Home
from pipeline.questions.job import Job
from pipeline.questions.numbers import number_text
from pipeline.questions.reasons import worse_text
from pipeline.questions.why import HISTORY_LEAVES_OUT, WATCHED
from pipeline.questions.words import cost_text, total_parts
from tests.conftest import gpufare
from tests.homes import with_double_prices_before
from tests.questions.conftest import OPTIONS, QLORA


def test_an_answer_is_explained_part_by_part(sample_home: Home, prices: python.Prices) -> None:
    found = prices.explain(**QLORA, rank=2, kind="spot")
    assert (found.row["rank"], found.row["price_kind"]) == (2, "spot")
    assert found.of == len(prices.cheapest(**QLORA, kind="spot"))
    parts = {row["part"]: row["usd"] for row in found.parts.dicts()}
    assert {row["part"]: row["how"] for row in found.parts.dicts()} == total_parts(found.row)
    assert float(parts.pop("total")) == float(sum(parts.values())) == found.row["total_usd"]
    assert (found.why_not, found.machines) == ([], ())
    said = gpufare("explain", *OPTIONS, "--rank", "2", "--kind", "spot", home=sample_home).stdout
    table = said.split("\n\n")[1].splitlines()[1:]
    *shown, total = (Decimal(next(word for word in line.split() if "." in word)) for line in table)
    assert (len(shown), sum(shown)) == (5, total)


def test_a_rank_or_gpu_that_there_is_not_is_refused(prices: python.Prices) -> None:
    asked = QLORA | {"gpus": 8}
    answers = len(prices.cheapest(**asked))
    wrong: dict[str, dict[str, Any]] = {
        f"the ranking has {answers} rows: there is no rank {answers + 1}": {"rank": answers + 1},
        "rank must be at least 1, not 0": {"rank": 0},
        "no gpu h10; the nearest are h100": {"not_gpu": "h10"},
    }
    assert prices.explain(**asked, rank=answers).row["rank"] == answers
    for says, question in wrong.items():
        with pytest.raises(python.JobError) as raised:
            prices.explain(**asked, **question)
        assert str(raised.value).startswith(says)


def test_why_not_another_gpu(prices: python.Prices) -> None:
    """A family is judged by its best card; a card without a rank says what it would cost."""
    asked = QLORA | {"gpus": 8}
    ranking = prices.cheapest(**asked)
    best = next(row for row in ranking if row["gpu_id"].startswith("h100-"))
    first, *others = prices.explain(**asked, not_gpu="H100").why_not
    rows = list(prices._session().cheapest(Job(**asked)).dicts())
    assert first["detail"] == worse_text(rows[best["rank"] - 1], rows[0])
    assert first["reason"] == "ranked"
    facts = ("gpu_id", "rank", "total_usd", "hours", "gpu_count", "provider")
    assert [first[name] for name in facts] == [best[name] for name in facts]
    assert all(other["gpu_id"].startswith("h100") for other in others)
    # An S ends a plural, but also a name.
    plural = prices.explain(**asked, not_gpu="NVIDIA H100s").why_not
    assert [row["gpu_id"] for row in plural] == [row["gpu_id"] for row in (first, *others)]
    assert [row["gpu_id"] for row in prices.explain(**asked, not_gpu="L40S").why_not] == ["l40s"]
    assert prices.explain(**asked, not_gpu="vr200").why_not[0]["reason"] == "not_planned"
    (out,) = prices.explain(**asked, exclude_gpu="rtx-4090", not_gpu="rtx-4090").why_not
    cost = next(row for row in ranking if row["gpu_id"] == "rtx-4090")
    assert out["detail"] == (
        f"the job leaves it out; otherwise {cost['gpu_count']} of it at {cost['provider']} would cost "
        f"${cost['total_usd']:,.2f} and take {number_text(cost['hours'])} hours"
    )


def test_why_not_comes_first(sample_home: Home, prices: python.Prices) -> None:
    """In Finland, nobody is known to sell it; the constraint is named by its code, too."""
    options = ("--country", "fi", "--not-gpu", "rtx-4090")
    said = gpufare("explain", *OPTIONS, *options, home=sample_home).stdout
    found = prices.explain(**QLORA, country="fi", not_gpu="rtx-4090")
    (why,) = found.why_not
    answer = f"Rank 1: {cost_text(found.row)}."
    assert said.splitlines() == [f"rtx-4090 is not ranked: {why['detail']}.", answer]
    assert (why["reason"], why["constraints"], why["asked"]) == ("not_offered_so", [["country"]], [["fi"]])


def test_machines_that_are_asked_for_are_never_lost(sample_home: Home, prices: python.Prices) -> None:
    machines = ("8 x h100-sxm-80gb at 1.50", "3 x p40 at 0.1", "16 x l40s at 1")
    asked = QLORA | {"quote": list(machines), "gpus": 8}
    every = prices.cheapest(**asked)
    (h100,) = (row for row in every if row["source"] == "quote")
    cost = f"${h100['total_usd']:,.2f} in {number_text(h100['hours'])} hours on 8 GPUs."
    read = [
        f"Your quote {machine} is read as {read_as} per hour for all."
        for machine, read_as in zip(
            machines,
            (
                "8 x h100-sxm-80gb at $1.50 per GPU-hour, $12.00",
                "3 x p40 at $0.10 per GPU-hour, $0.30",
                "16 x l40s at $1.00 per GPU-hour, $16.00",
            ),
            strict=True,
        )
    ]
    expected = [
        f"Your quote {machines[0]} has rank {h100['rank']} of {len(every)}: {cost}",
        f"Your quote {machines[2]} is not ranked: it has 16 GPUs, but the job allows at most 8.",
        f"Your quote {machines[1]} is not ranked: the job does not fit: current frameworks no longer support "
        "this architecture.",
    ]
    found = prices.cheapest(**asked, limit=2)
    assert [note for note in found.notes if note.startswith("Your")] == read + expected
    # Rows of the list are not repeated below it.
    assert [note for note in every.notes if note.startswith("Your")] == read + expected[1:]
    assert prices.explain(**asked).machines == (*read, *expected)
    options = ("--gpus", "8", "--quote", machines[2], "--limit", "2", "--format", "csv")
    shown = gpufare("cheapest", *OPTIONS, *options, home=sample_home)
    line = f"Your quote {machines[2]} is not ranked: it uses 16 GPUs, but the job allows at most 8."
    assert line in shown.stderr.splitlines()


def test_history_is_todays_model_at_each_days_prices(sample_home: Home, tmp_path: Path) -> None:
    """Yesterday every price per GPU-hour was double."""
    home = with_double_prices_before(tmp_path, sample_home)
    with python.open(home.root) as opened:
        today, found = opened.cheapest(**QLORA)[0], opened.history(**QLORA)
        for name, machine in (("own", "2 x rtx-4090"), ("quote", "2 x rtx-4090 at 1")):
            with pytest.raises(python.JobError) as raised:
                opened.history(**QLORA, **{name: machine})
            says = f"{name}: own machines and quotes have no price history; leave out {name}"
            assert str(raised.value) == says
    yesterday, newest = found
    assert newest["day"] == today["price_day"]
    assert newest["total_usd"] == pytest.approx(float(today["total_usd"]))
    assert newest["total_usd"] < yesterday["total_usd"] <= 2 * newest["total_usd"]
    assert found.notes[0] == HISTORY_LEAVES_OUT
    assert found.notes[1].startswith(f"the newest price here is from {newest['price_day']}, ")
    said = gpufare("history", *OPTIONS, home=home)
    assert [line.split()[0] for line in said.stdout.splitlines()[2:]] == [str(row["day"]) for row in found]
    assert all(note in " ".join(said.stderr.split()) for note in found.notes)


def test_a_watch_says_in_its_exit_code_whether_the_job_is_below(
    sample_home: Home, prices: python.Prices
) -> None:
    (best,) = prices.cheapest(**QLORA, limit=1)
    cost = float(best["total_usd"])
    for limit, is_below in ((cost, False), (cost + 0.01, True)):
        assert prices.watch(**QLORA, below=limit) == {
            "below": is_below, "limit_usd": limit, "stale": True, "reason": None,
        } | {name: best[name] for name in WATCHED}  # fmt: skip
        said = gpufare("watch", *OPTIONS, "--below", str(limit), home=sample_home)
        assert said.returncode == (0 if is_below else 3)
        assert json.loads(said.stdout)["below"] is is_below
    nothing = gpufare("watch", *OPTIONS, "--max-usd", "0.01", "--below", "5", home=sample_home)
    report = json.loads(nothing.stdout)
    assert nothing.returncode == 4
    assert (report["below"], report["stale"], report["total_usd"]) == (False, None, None)
    reason = report["reason"].splitlines()
    assert reason[0] == "nothing runs llama-3.1-8b qlora with these constraints; there is an answer with"
    assert any(line.startswith("  --max-usd ") and " instead of 0.01: " in line for line in reason)
    assert reason[-1].startswith(
        "try: gpufare cheapest --model llama-3.1-8b --method qlora --tokens 100000000"
    )
    assert report["reason"] in nothing.stderr
    for limit in (0, float("inf"), float("nan")):
        with pytest.raises(python.JobError) as raised:
            prices.watch(**QLORA, below=limit)
        assert str(raised.value) == f"the limit must be above 0 US dollars and finite, not {float(limit)}"
    assert gpufare("watch", *OPTIONS, home=sample_home).returncode == 2


def test_a_job_that_fits_nowhere_is_told_how_it_would(prices: python.Prices) -> None:
    """Offloading comes first, other machines next, and another method last, each with its answer's cost."""
    asked = {"model": "llama-3.1-70b", "method": "full", "tokens": 10e6, "gpu": "h100", "gpus": 8}
    (said, *_) = prices.cheapest(**asked).notes
    _, *changes, proposal = said.splitlines()
    offloaded, *_ = prices.cheapest(**asked, offload="cpu")
    lora, *_ = prices.cheapest(**asked | {"method": "lora"})
    assert changes[0].startswith(
        "  offloading optimizer state and weights to host memory (--offload cpu): 8 x H100 "
    )
    hours = number_text(offloaded["hours"])
    assert changes[0].endswith(f" for ${offloaded['total_usd']:,.2f} in {hours} hours")
    assert [line.split()[0] for line in changes[1:]] == ["--gpu", "--gpus", "LoRA"]
    assert changes[-1].startswith("  LoRA instead of full fine-tuning (--method lora): ")
    assert changes[-1].endswith(f" for ${lora['total_usd']:,.2f} in {number_text(lora['hours'])} hours")
    assert proposal.endswith("--gpu h100 --gpus 8 --offload cpu")


def test_the_proposed_command_is_not_a_run_that_may_die(prices: python.Prices) -> None:
    """With a longer run there is one that fits with 78%, and another card is surer."""
    asked = {"model": "qwen2.5-7b", "method": "qlora", "seq_len": 28672, "gpu": "rtx-4090", "gpus": 1}
    (said, *_) = prices.cheapest(**asked, tokens=100e6).notes
    *changes, proposal = said.splitlines()
    assert any(line.startswith("  --min-fit-probability ") for line in changes)
    assert any(
        line.startswith("  sequences of 14,336 tokens instead of 28,672 (--seq-len 14336): ")
        for line in changes
    )
    assert "--seq-len 28672" in proposal
    assert "--min-fit-probability" not in proposal
    assert "--gpu rtx-4090" not in proposal
