"""Answers of the command on a screen of 80 x 24: what decides stays on it, and what is left out is told."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import gpufare as python
from pipeline.home.paths import Home
from pipeline.questions.fit import largest_that_fit
from pipeline.questions.recurring import recurring_lines
from pipeline.warehouse.connection import connect
from pipeline.warehouse.query import Result
from tests.cli.terminals import on_terminal
from tests.conftest import gpufare
from tests.questions.conftest import OPTIONS

COLUMNS, LINES = 80, 24

H100S = ("--model", "llama-3.3-70b", "--method", "lora", "--tokens", "100M")


def screen(*arguments: str, home: Home) -> list[str]:
    """The lines of an answer on the screen, none of them wider."""
    lines = on_terminal(*arguments, home=home.root, columns=COLUMNS, lines=LINES).output.splitlines()
    assert max(map(len, lines)) <= COLUMNS
    return lines


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        (("explain", *H100S, "--not-gpu", "mi300x"), "mi300x", "Rank 1: 8 x H100"),
        (("explain", *OPTIONS, "--quote", "8xH100 at 2.10"), "1 x", "Your quote"),
        (("compare", "mi300x", "h100", *H100S), "fact", "h100 is taken as"),
        (("compare", "l40s", "rtx-4090"), "fact", "providers"),
        (("prices", "h100"), "USD/GPU", "The cheapest: H100"),
        (("prices",), "USD/GPU", "The cheapest: "),
    ],
)
def test_an_answer_fits_the_screen(asked: tuple[str, ...], first: str, last: str, sample_home: Home) -> None:
    lines = screen(*asked, home=sample_home)
    assert len(lines) < LINES - 1
    assert lines[0].lstrip().startswith(first)
    assert [line for line in lines[1:] if line.startswith(last)]


def test_facts_and_prices_without_room_are_counted(sample_home: Home) -> None:
    compared = screen("compare", "mi300x", "h100", *H100S, home=sample_home)
    assert [line for line in compared if line.endswith("facts more with --format record")]
    (more,) = [line for line in screen("prices", "h100", home=sample_home) if "more: --limit " in line]
    count, _, _, every, *_ = more.split()
    assert len(screen("prices", "h100", "--limit", every, home=sample_home)) > int(count)
    assert "more: --limit" not in gpufare("prices", "h100", home=sample_home).stderr
    for asked in (("gpus",), ("models",), ("prices", "--history", "--kind", "any"), ("fit", "--gpu", "l4")):
        assert len(screen(*asked, home=sample_home)) < LINES


def test_a_word_of_an_answer_is_explained(sample_home: Home) -> None:
    said = gpufare("explain", "P(fits)", home=sample_home)
    assert said.stdout.startswith("P(fits) (column fit_probability): Probability that the job")
    both = gpufare("explain", "evidence", *OPTIONS, home=sample_home)
    assert (both.returncode, "leave out evidence or --model" in both.stderr) == (2, True)
    unknown = gpufare("explain", "hourz", home=sample_home)
    assert (unknown.returncode, "did you mean hours" in unknown.stderr) == (2, True)


def test_a_price_is_compared_with_a_limit_for_cron(sample_home: Home, prices: python.Prices) -> None:
    cheapest = prices.prices("h100")[0]["usd_per_gpu_hour"]
    for limit, code, says in (
        (cheapest + 0.01, 0, "per GPU-hour, below"),
        (cheapest, 3, "per GPU-hour, not below"),
    ):
        answer = gpufare("prices", "h100", "--below", f"${limit}", home=sample_home)
        assert (answer.returncode, says in answer.stderr) == (code, True)
    nothing = gpufare("prices", "t4", "--country", "cn", "--below", "1", home=sample_home)
    assert (nothing.returncode, nothing.stderr.startswith("no on-demand price meets")) == (4, True)
    for wrong in (("--below", "cheap"), ("--below", "1", "--history")):
        assert gpufare("prices", "h100", *wrong, home=sample_home).returncode == 2


def test_prices_and_refusals_name_sources_that_are_not_asked(sample_home: Home, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.published.parent.mkdir(parents=True)
    shutil.copy(sample_home.published, home.published)
    with connect(home.published) as connection:
        connection.execute("UPDATE main.capture_outcomes SET replayed = FALSE WHERE source = 'lium'")
    gpufare("sources", "disable", "lium", home=home)
    says = "not asked: lium (you disabled them); see gpufare sources"
    assert says in gpufare("prices", "h100", home=home).stderr
    assert says in gpufare("cheapest", *OPTIONS, "--max-usd", "0.01", home=home).stderr


def test_the_largest_models_that_fit_are_told_by_method() -> None:
    columns = ("model", "params_billion", "method", "verdict")
    rows: list[tuple[Any, ...]] = [
        ("small", 1.0, "qlora", "fits"), ("large", 8.0, "qlora", "fits"), ("huge", 70.0, "qlora", "may_fit"),
        ("small", 1.0, "full", "fits"), ("large", 8.0, "full", "does_not_fit"),
    ]  # fmt: skip
    found = Result(columns, ("VARCHAR", "DOUBLE", "VARCHAR", "VARCHAR"), rows)
    assert largest_that_fit(found) == [
        "The largest that fit: full fine-tuning small (1.0B), QLoRA large (8.0B)."
    ]
    assert largest_that_fit(Result(columns, found.types, rows[2:3])) == []


def test_a_card_without_bf16_trains_in_fp16_and_says_so(prices: python.Prices) -> None:
    job = {"model": "llama-3.1-8b", "method": "lora"}
    said = {gpu: " ".join(prices.fit(gpu=gpu, **job).sentences()) for gpu in ("v100-32gb", "l40s")}
    assert {gpu for gpu, text in said.items() if "in fp16: the card has no bf16" in text} == {"v100-32gb"}


def test_fused_experts_are_told_beside_a_fit(sample_home: Home) -> None:
    asked = ("fit", "--model", "mixtral-8x7b", "--method", "qlora", "--gpu", "rtx-a6000", "--gpus", "2")
    assert "fused experts in 16 bits" in " ".join(screen(*asked, home=sample_home))


RENTED: dict[str, Any] = {"rank": 1, "total_usd": 10.0, "hours": 5.0, "price_kind": "on_demand"}
KEPT: dict[str, Any] = {
    "gpu_count": 8, "gpu": "H100", "price_kind": "quote", "provider": "quote", "terms": None,
    "term_days": None, "year_usd": 8_760.0, "share_used": 52 * 5 / 8_760, "least_run_usd": 5.0,
}  # fmt: skip


def test_a_kept_machine_pays_from_the_runs_that_cost_as_much_rented() -> None:
    """8,760 USD a year are 876 runs at 10 USD, which take 4,380 of 8,760 hours."""
    *_, told = recurring_lines([RENTED], [KEPT], 52)
    assert told.endswith(" It pays from 876 runs a year, when they use 50% of it.")
    *_, never = recurring_lines([RENTED], [KEPT | {"least_run_usd": 10.0}], 52)
    assert never.endswith("against $10.00.")
