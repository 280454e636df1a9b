"""Does it fit, what fits, how do two cards compare."""

import json
import shlex
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import gpufare as python
from pipeline.home.paths import Home
from pipeline.questions.fit import COMPARED_OF_A_JOB
from pipeline.questions.reasons import MEMORY_PARTS
from tests.conftest import gpufare
from tests.questions.conftest import OPTIONS, QLORA

ON_4090: dict[str, Any] = {"model": "llama-3.1-8b", "method": "qlora", "gpu": "rtx-4090"}

SMALL_LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048,
    "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 32000, "max_position_embeddings": 4096,
}  # fmt: skip


def test_a_fit_is_the_plan_its_memory_in_parts_and_the_largest_micro_batches(
    sample_home: Home, prices: python.Prices
) -> None:
    found = prices.fit(**ON_4090)
    assert found.fits
    (row,) = prices._session().ask("FROM fits('llama-3.1-8b', 'qlora', 'rtx-4090')").dicts()
    assert {name for name in row if row[name] != found.plan[name]} <= {"assumptions"}
    plan, parts = found.plan, {row["part"]: row["gib"] for row in found.memory.dicts()}
    expected = [each for part, each in MEMORY_PARTS.items() if part != "own"]
    assert [*parts] == [name for name, _ in expected]
    assert {row["meaning"] for row in found.memory.dicts()} == {
        meaning.format_map(plan) for _, meaning in expected
    }
    needed, margin, peak = parts.pop("minimum needed"), parts.pop("margin"), parts.pop("peak memory")
    assert sum(parts.values()) == peak == round(Decimal(plan["memory_gib"]), 2)
    assert needed == peak + margin - parts["kept by the allocator"]
    assert round(Decimal(plan["usable_memory_gib"] - plan["memory_margin_gib"]), 2) == needed
    shown = gpufare("fit", *OPTIONS[:4], "--gpu", "RTX 4090", home=sample_home)
    assert shown.stderr == ""  # it has no price and so no age
    one_line = " ".join(shown.stdout.split())
    assert " ".join(found.sentences(briefly=True)) in one_line
    assert all(f" {gib} " in one_line for gib in (*parts.values(), peak, margin, needed))


def test_a_job_that_does_not_fit_has_the_command_that_says_what_would(
    sample_home: Home, prices: python.Prices
) -> None:
    found = prices.fit(model="llama-3.1-70b", method="lora", gpu="rtx-4090")
    assert not found.fits
    says, _, command = found.notes[-1].partition(": ")
    assert says == "For what would fit"
    ranked = gpufare(*shlex.split(command)[1:], home=sample_home)
    assert (ranked.returncode, ranked.stdout) == (1, "")
    assert "there is an answer with" in ranked.stderr
    assert not prices.fit(**ON_4090).notes


def test_one_more_than_the_largest_micro_batch_does_not_fit(prices: python.Prices) -> None:
    session = prices._session()
    best = next(prices.fit(**ON_4090).micro_batches.dicts())
    assert best["fit_probability"] >= 0.9
    jobs = ", ".join(
        f"('{more}', 'llama-3.1-8b', 'qlora', 1, '{best['checkpointing']}', {best['micro_batch']} + {more})"
        for more in (0, 1)
    )
    at_it, more = session.ask(
        f"""WITH asked (job, model, method, tokens, checkpointing, micro_batch) AS (VALUES {jobs}),
        done AS (SELECT *, ['rtx-4090'] AS planned_gpus FROM completed_jobs('asked'))
        SELECT fit_probability, tokens_per_second FROM job_plans('done')
        WHERE gpu_id = 'rtx-4090' AND gpu_count = 1 ORDER BY job"""
    ).rows
    assert at_it == pytest.approx((best["fit_probability"], best["tokens_per_second"]), rel=1e-6)
    assert more[0] < 0.9


def test_no_part_of_any_published_plan_is_below_zero(prices: python.Prices) -> None:
    session = prices._session()
    session.ask(
        "CREATE OR REPLACE TEMP TABLE every AS SELECT rowid::VARCHAR AS job, * FROM main.plans"
        " WHERE gpu_count IN (1, 8)"
    )
    least = session.ask("SELECT part, min(gib), count(*) FROM memory_parts('every') GROUP BY part").rows
    assert len(least) == 10
    assert min(gib for _, gib, _ in least) == 0
    assert min(count for *_, count in least) > 1000


def test_models_that_fit_on_a_card(sample_home: Home, prices: python.Prices) -> None:
    """In sequences so long that few models take them: all of them take seconds without published plans."""
    rows = {(row["model"], row["method"]): row for row in prices.fits_on("b200-sxm-180gb", seq_len=262_144)}
    assert {method for _, method in rows} == {"qlora", "lora", "full"}
    assert "llama-3.1-8b" not in {model for model, _ in rows}  # its context is shorter
    assert {row["verdict"] for row in rows.values()} == {"fits", "tight", "does_not_fit"}
    assert [*rows] == [
        key for key, _ in sorted(rows.items(), key=lambda row: (row[1]["params_billion"], row[0]))
    ]
    refused = gpufare("fit", "--gpu", "rtx-4090", "--stack", "hf", home=sample_home)
    assert refused.returncode == 2
    assert "--stack needs --model or --config" in refused.stderr


def test_two_cards_are_compared_for_a_job(sample_home: Home, prices: python.Prices) -> None:
    facts = {row["fact"]: row for row in prices.compare("l40s", "p40", **QLORA, kind="spot,on_demand")}
    best = prices.cheapest(**QLORA, kind="spot,on_demand", gpu="l40s", limit=1)[0]
    assert {name: facts[f"job_{name}"]["one_value"] for name in COMPARED_OF_A_JOB} == {
        name: str(best[name]) for name in COMPARED_OF_A_JOB
    } | {"total_usd": f"{best['total_usd']:.4f}"}
    # Nothing runs it there.
    assert {facts[f"job_{name}"]["other_value"] for name in COMPARED_OF_A_JOB} == {None}
    assert [facts[f"job_{name}"]["meaning"] for name in COMPARED_OF_A_JOB] == [*COMPARED_OF_A_JOB.values()]
    usual = {row["fact"]: row for row in prices.compare("l40s", "p40")}
    assert [*facts] == [*(f"job_{name}" for name in COMPARED_OF_A_JOB), *usual]
    assert (usual["memory_gb"]["one_value"], usual["memory_gb"]["other_value"]) == ("48.0", "24.0")
    table = gpufare("compare", "l40s", "p40", *OPTIONS, "--kind", "spot,on_demand", home=sample_home).stdout
    assert table.splitlines()[1].split()[:2] == ["job_total_usd", f"{best['total_usd']:.4g}"]
    refused = gpufare("compare", "l40s", "p40", "--kind", "spot", home=sample_home)
    assert "--kind needs --model or --config" in refused.stderr


def test_a_config_takes_the_place_of_a_catalogued_model_with_its_published_plans(
    sample_home: Home, prices: python.Prices, tmp_path: Path
) -> None:
    """The file has plans of the catalogue's model of that name: they are not those of this one."""
    config = tmp_path / "llama-3.1-8b.json"
    config.write_text(json.dumps(SMALL_LLAMA))
    asked = ("--config", str(config), *OPTIONS[2:], "--gpus", "1", "--format", "jsonl", "--limit", "1")
    own = json.loads(gpufare("cheapest", *asked, home=sample_home).stdout)
    (catalogued,) = prices.cheapest(**QLORA, gpus=1, limit=1)
    assert own["model"] == "llama-3.1-8b"
    assert own["total_usd"] < catalogued["total_usd"] / 2


def test_cards_and_numbers_without_a_plan_are_refused(prices: python.Prices) -> None:
    several = "plans are for 1, 2, 4, 8, 16, 32 and 64 GPUs, not for "
    wrong: dict[str, dict[str, Any]] = {
        f"{several}3": {"gpus": 3},
        f"{several}0": {"gpus": 0},
        "gpus must be a whole number, not 1.5": {"gpus": 1.5},
        "gpus must be a number, not True": {"gpus": True},
        "name the GPU on which the job should fit": {"gpu": None},
        "no gpu rtx-4091; the nearest are rtx-4090, ": {"gpu": "rtx-4091"},
        "64 x rtx-4090 is not planned: plans need a card with full specifications and, for several machines, "
        "a server card": {"gpus": 64},
    }
    for says, change in wrong.items():
        with pytest.raises(python.JobError) as raised:
            prices.fit(**ON_4090 | change)
        assert str(raised.value).startswith(says)
    for on_a_card, says in (({"gpus": 3}, several), ({"seq_len": 0}, "seq_len must be at least 1, not 0")):
        with pytest.raises(python.JobError, match=says):
            prices.fits_on("rtx-4090", **on_a_card)
