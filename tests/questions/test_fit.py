"""Does it fit, what fits, how do two cards compare: command, macro and Python call say the same."""

import json
import shlex
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import gpufare
from pipeline.cli.main import main
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.model.corrections import Kind, learn
from pipeline.model.estimate import Estimator
from pipeline.model.own_runs import read_own_runs
from pipeline.questions.own_runs import own_runs_note
from pipeline.questions.reasons import percent_text
from pipeline.questions.session import Session

ON_4090 = {"model": "llama-3.1-8b", "method": "qlora", "gpu": "rtx-4090"}

SMALL_LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
}


@pytest.fixture(scope="module")
def prices(sample_home: Home) -> Iterator[gpufare.Prices]:
    with gpufare.open(sample_home.root) as opened:
        yield opened


def run(home: Home, *arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={HOME_VARIABLE: str(home.root)})


def test_memory_is_shown_in_parts_that_add_up(sample_home: Home, prices: gpufare.Prices) -> None:
    found = prices.fit(**ON_4090)
    parts = {row["part"]: row["gib"] for row in found.memory.dicts()}
    needed, margin, peak = parts.pop("minimum needed"), parts.pop("margin"), parts.pop("peak memory")
    assert sum(parts.values()) == peak
    assert needed == peak + margin - parts["kept by the allocator"]
    plan = found.plan
    assert round(Decimal(plan["usable_memory_gib"] - plan["memory_margin_gib"]), 2) == needed
    assert round(Decimal(found.plan["memory_gib"]), 2) == peak
    shown = run(
        sample_home, "fit", "--model", "llama-3.1-8b", "--method", "qlora", "--gpu", "RTX 4090"
    ).output
    table = shown.split("\n\n")[1].splitlines()[1:]
    numbers = [Decimal(next(word for word in line.split() if word[0].isdigit())) for line in table]
    *in_parts, shown_peak, shown_margin, shown_needed = numbers
    assert sum(in_parts) == shown_peak == peak
    assert (shown_margin, shown_needed) == (margin, needed)
    one_line = " ".join(shown.split())
    assert f"at least {needed} of " in one_line
    assert f"memory peaks at {peak}" in one_line
    # P(fits) of the micro-batches is worded as in every other table.
    micro_batches = shown.split("\n\n")[2]
    for row in found.micro_batches.dicts():
        assert f"  {percent_text(row['fit_probability'])}  " in micro_batches


def test_no_part_of_any_published_plan_is_below_zero(prices: gpufare.Prices) -> None:
    session = prices._session()
    session.ask(
        "CREATE OR REPLACE TEMP TABLE every AS SELECT rowid::VARCHAR AS job, * FROM main.plans"
        " WHERE gpu_count IN (1, 8)"
    )
    least = session.ask("SELECT part, min(gib), count(*) FROM memory_parts('every') GROUP BY part").rows
    assert len(least) == 10
    assert min(gib for _, gib, _ in least) == 0
    assert min(count for *_, count in least) > 1000


def test_the_largest_micro_batch_fits_and_one_more_does_not(prices: gpufare.Prices) -> None:
    found = prices.fit(**ON_4090)
    best = next(found.micro_batches.dicts())
    assert best["fit_probability"] >= 0.9
    at_it = prices.fit(**ON_4090, micro_batch=best["micro_batch"], checkpointing=best["checkpointing"])
    more = prices.fit(**ON_4090, micro_batch=best["micro_batch"] + 1, checkpointing=best["checkpointing"])
    assert at_it.plan["fit_probability"] == pytest.approx(best["fit_probability"])
    assert at_it.plan["tokens_per_second"] == pytest.approx(best["tokens_per_second"], rel=1e-6)
    assert more.plan["fit_probability"] < 0.9
    assert at_it.fits
    assert not more.fits


def test_macro_command_and_call_agree(sample_home: Home, prices: gpufare.Prices) -> None:
    plan = prices.fit(**ON_4090).plan
    (row,) = prices._session().ask("FROM fits('llama-3.1-8b', 'qlora', 'rtx-4090')").dicts()
    asked = ("fit", "--model", "llama-3.1-8b", "--method", "qlora", "--gpu", "rtx-4090", "--format", "json")
    said = json.loads(run(sample_home, *asked).stdout)
    for name in ("memory_gib", "tokens_per_second", "fit_probability", "micro_batch"):
        assert plan[name] == row[name] == said[name], name


def test_plan_that_does_not_fit_has_its_reason(sample_home: Home) -> None:
    said = run(sample_home, "fit", "--model", "llama-3.1-70b", "--gpu", "rtx-4090").output
    assert "llama-3.1-70b lora does not fit on 1 x rtx-4090: needs " in said


@pytest.mark.parametrize(
    ("gpu", "says"),
    [
        ("h100", "h100 is several GPUs: name one of h100-"),
        ("rtx-4091", "no gpu rtx-4091; the nearest are rtx-4090"),
    ],
)
def test_unknown_or_ambiguous_card_is_refused(sample_home: Home, gpu: str, says: str) -> None:
    for asked in (("fit", "--model", "llama-3.1-8b", "--gpu", gpu), ("compare", gpu, "l40s")):
        answer = run(sample_home, *asked)
        assert answer.exit_code == 1
        assert says in answer.output


def test_models_that_fit_on_a_card(sample_home: Home, prices: gpufare.Prices) -> None:
    """In sequences so long that few models take them: all of them take seconds without published plans."""
    seq_len = 262_144
    rows = {(row["model"], row["method"]): row for row in prices.fits_on("b200-sxm-180gb", seq_len=seq_len)}
    assert {method for _, method in rows} == {"qlora", "lora", "full"}
    assert "llama-3.1-8b" not in {model for model, _ in rows}  # its context is shorter
    fitting = [key for key, row in rows.items() if row["verdict"] == "fits"]
    assert 0 < len(fitting) < len(rows)
    model, method = fitting[0]
    plan = prices.fit(model=model, method=method, gpu="b200-sxm-180gb", seq_len=seq_len).plan
    assert rows[model, method]["memory_gib"] == pytest.approx(plan["memory_gib"])
    shown = run(sample_home, "fit", "--gpu", "b200-sxm-180gb", "--seq-len", str(seq_len)).output
    assert f"{len(fitting)} of {len(rows)} pairs of model and method fit on 1 x b200-sxm-180gb" in shown
    assert percent_text(rows[model, method]["fit_probability"]) in shown
    assert "  0.9" not in shown
    refused = run(sample_home, "fit", "--gpu", "rtx-4090", "--stack", "hf")
    assert refused.exit_code == 2
    assert "--stack needs --model or --config" in refused.output


def test_two_cards_are_compared_for_a_job(sample_home: Home, prices: gpufare.Prices) -> None:
    job = {"model": "llama-3.1-8b", "method": "qlora", "tokens": 100e6, "kind": "spot,on_demand"}
    facts = {row["fact"]: row for row in prices.compare("l40s", "p40", **job)}
    best = prices.cheapest(**job, gpu="l40s", limit=1)[0]
    assert facts["job_total_usd"]["one_value"] == str(best["total_usd"])
    assert facts["job_total_usd"]["other_value"] is None  # nothing runs it there
    assert facts["memory_gb"]["one_value"] == "48.0"
    assert "job_total_usd" not in {row["fact"] for row in prices.compare("l40s", "p40")}
    options = ("--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "100M", "--kind", "spot,on_demand")
    said = run(sample_home, "compare", "l40s", "p40", *options, "--format", "jsonl").stdout.splitlines()
    assert json.loads(said[0])["one_value"] == str(best["total_usd"])
    table = run(sample_home, "compare", "l40s", "p40", *options).stdout
    (chance,) = (line.split() for line in table.splitlines() if line.startswith("job_fit_probability"))
    assert chance[1] == percent_text(best["fit_probability"]).split()[0]
    refused = run(sample_home, "compare", "l40s", "p40", "--kind", "spot")
    assert "--kind needs --model or --config" in refused.output


def test_a_model_of_a_config_fits_too(
    sample_home: Home, prices: gpufare.Prices, tmp_path_factory: pytest.TempPathFactory
) -> None:
    config = tmp_path_factory.mktemp("own") / "my-llama.json"
    config.write_text(json.dumps(SMALL_LLAMA))
    plan = prices.fit(config=config, gpu="rtx-4090").plan
    assert plan["model"] == "my-llama"
    said = run(sample_home, "fit", "--config", str(config), "--gpu", "rtx-4090").output
    assert f"memory peaks at {plan['memory_gib']:.2f}" in said


def test_an_unknown_setting_of_a_job_is_refused(prices: gpufare.Prices) -> None:
    with pytest.raises(gpufare.JobError, match="no setting 'seq_length'; did you mean seq_len"):
        prices.cheapest(model="llama-3.1-8b", tokens=1e6, seq_length=1024)
    with pytest.raises(gpufare.JobError, match="either model or config"):
        prices.cheapest(tokens=1e6)


def test_missing_published_file_names_the_command_to_run(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with pytest.raises(gpufare.NotPublishedError, match="gpufare refresh"):
        gpufare.open(tmp_path_factory.mktemp("empty"))


def test_a_config_takes_the_place_of_a_catalogued_model_with_its_published_plans(
    sample_home: Home, prices: gpufare.Prices, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The file has plans of the catalogue's model of that name: they are not those of this one."""
    config = tmp_path_factory.mktemp("own") / "llama-3.1-8b.json"
    config.write_text(json.dumps(SMALL_LLAMA))
    job = {"method": "qlora", "tokens": 100e6, "limit": 1}
    (catalogued,) = prices.cheapest(model="llama-3.1-8b", **job)
    (own,) = prices.cheapest(config=config, **job)
    assert own["model"] == "llama-3.1-8b"
    assert own["total_usd"] < catalogued["total_usd"] / 2
    asked = (
        "cheapest",
        "--config",
        str(config),
        "--method",
        "qlora",
        "--tokens",
        "100M",
        "--format",
        "jsonl",
    )
    first = json.loads(run(sample_home, *asked, "--limit", "1").stdout)
    assert first["total_usd"] == float(own["total_usd"])
    # The hint of an empty answer asks the same file.
    empty = run(sample_home, *asked, "--max-usd", "0.001")
    (hint,) = (line.removeprefix("try: ") for line in empty.stderr.splitlines() if line.startswith("try: "))
    assert run(sample_home, *shlex.split(hint)[1:]).exit_code == 0


def test_estimate_names_its_own_defaults(sample_home: Home, tmp_path: Path) -> None:
    rows = tmp_path / "runs.csv"
    plan = "micro_batch,stack,optimizer,checkpointing,quantization,grad_accum,lora_targets,training_precision"
    rows.write_text(f"model,gpu,method,{plan}\nllama-3.1-8b,rtx-4090,qlora,,,,,,,,\n")
    said = run(sample_home, "estimate", str(rows), "--format", "csv").stderr
    assert "gpufare cheapest and gpufare fit plan the fastest settings that fit instead" in said


def test_other_tokens_deadlines_and_filters_ask_the_planner_no_second_time(
    sample_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[int] = []
    plan = Session._planned

    def counted(session: Session, most_gpus: int, every_gpu: bool) -> tuple[int, str]:
        planned.append(most_gpus)
        return plan(session, most_gpus, every_gpu)

    monkeypatch.setattr(Session, "_planned", counted)
    job = {"model": "llama-3.2-1b", "method": "lora", "tokens": 1e8, "seq_len": 640}
    with gpufare.open(sample_home.root) as prices:
        changes = ({}, {"tokens": 2e8}, {"max_hours": 9}, {"country": "eu"}, {"kind": "any"}, {"gpus": 4})
        answers = [prices.cheapest(**job | change) for change in changes]
        assert planned == [8]
        assert len({len(answer) for answer in answers}) > 3
        # What the planner reads is planned anew: other sequences, and more GPUs.
        prices.cheapest(**job | {"seq_len": 641})
        prices.cheapest(**job | {"gpus": 16})
        assert planned == [8, 8, 16]
        # Published plans need no planner.
        prices.cheapest(model="llama-3.1-8b", method="qlora", tokens=1e8)
        assert planned == [8, 8, 16]


def test_own_runs_give_the_speed_on_the_users_machine(tmp_path: Path) -> None:
    home = Home(tmp_path)
    row = {"rank": 1, "gpu_id": "rtx-4090", "method": "qlora", "stack": "hf", "tokens_per_second": 2000.0}
    other = {**row, "rank": 2, "gpu_id": "l40s"}
    assert own_runs_note(home, [row, other]) is None
    columns = (
        "run_id,model,gpu,method,stack,quantization,micro_batch,seq_len,measured_tokens_per_second_per_gpu"
    )
    run_of = "llama-3.1-8b,{},hf,nf4,1,2048,900"
    lines = (
        f"r{number}," + run_of.format(kind) for number, kind in enumerate(("rtx-4090,qlora", "a10,qlora"))
    )
    home.own_runs.write_text("\n".join((columns, *lines)) + "\n")
    estimator = Estimator()
    kinds = learn(estimator, read_own_runs(home)).of_kind
    estimator.close()
    factor = kinds[Kind("speed", "rtx-4090", "qlora", "hf")].factor
    said = str(own_runs_note(home, [row, other, {**row, "rank": 3}]))
    assert f"by 1 run of qlora on rtx-4090, rank 1 trains {2000 * factor:,.0f} tokens/s, not 2,000. " in said
    assert "Rankings keep to the model's own estimates" in said
    assert "l40s" not in said
    assert "not with liger, so they correct nothing here" in str(
        own_runs_note(home, [{**row, "stack": "liger"}])
    )
    assert own_runs_note(home, [other]) is None
    home.own_runs.write_bytes(b"\xff\xfe")
    assert "its runs are skipped" in str(own_runs_note(home, [row]))


QLORA = {"model": "llama-3.1-8b", "method": "qlora", "tokens": 100e6}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"country": ""}, "country: names nothing"),
        ({"country": []}, "country: names nothing"),
        ({"gpu": " , "}, "gpu: names nothing"),
        ({"country": ["de", None]}, "country must be text, not None"),
        ({"gpus": 1.6}, "gpus must be a whole number, not 1.6"),
        ({"tokens": "100X"}, "tokens: '100X' is not a number such as 100M"),
        ({"tokens": "1KM"}, "tokens: '1KM' is not a number"),
        ({"max_usd": True}, "max_usd must be a number; true is not"),
        ({"assumed_sizes": "maybe"}, "assumed_sizes must be true or false"),
        ({"method": ["lora", "qlora"]}, "method: name one, not lora, qlora"),
        ({"max_gpus": 4}, "no setting 'max_gpus'; did you mean gpus"),
        ({"limit": -1}, "limit must be at least 1"),
    ],
)
def test_empty_values_and_wrong_types_are_refused(
    prices: gpufare.Prices, given: dict[str, Any], says: str
) -> None:
    with pytest.raises(gpufare.JobError, match=says):
        prices.cheapest(**QLORA | given)


def test_an_empty_name_is_refused_by_the_command(sample_home: Home) -> None:
    options = ("--model", "llama-3.1-8b", "--tokens", "100M")
    for option in ("--country", "--gpu"):
        refused = run(sample_home, "cheapest", *options, option, " , ")
        assert f"{option[2:]}: names nothing" in refused.output
        assert refused.exit_code == 1


def test_numbers_of_numpy_and_decimals_are_numbers(prices: gpufare.Prices) -> None:
    same = prices.cheapest(**QLORA, gpus=np.int64(4), max_usd=Decimal(50), limit=1)
    assert list(same) == list(prices.cheapest(**QLORA, gpus=4, max_usd=50, limit=1))


@pytest.mark.parametrize("gpus", [0, 3, 128])
def test_a_number_of_gpus_without_plans_is_refused(
    sample_home: Home, prices: gpufare.Prices, gpus: int
) -> None:
    says = f"plans are for 1, 2, 4, 8, 16, 32 and 64 GPUs, not for {gpus}"
    with pytest.raises(gpufare.JobError, match=says):
        prices.fit(**ON_4090, gpus=gpus)
    with pytest.raises(gpufare.JobError, match=says):
        prices.fits_on("rtx-4090", gpus=gpus)
    if gpus:
        assert says in run(sample_home, "fit", "--gpu", "rtx-4090", "--gpus", str(gpus)).output


def test_closed_prices_are_refused(sample_home: Home) -> None:
    with gpufare.open(sample_home.root) as opened:
        pass
    with pytest.raises(gpufare.GpufareError, match="closed"):
        opened.cheapest(**QLORA)
    with pytest.raises(gpufare.GpufareError, match="closed"):
        opened.fits_on("rtx-4090")


def test_file_of_an_earlier_version_names_the_command_to_run(prices: gpufare.Prices) -> None:
    for later in ("FROM a_later_macro('gpufare_jobs')", "SELECT a_later_column FROM main.gpus"):
        with pytest.raises(gpufare.JobError, match="earlier version of gpufare: run `gpufare refresh`"):
            prices._session().ask(later)


def test_notes_of_an_answer_are_those_of_the_command(sample_home: Home, prices: gpufare.Prices) -> None:
    found = prices.cheapest(**QLORA, country="eu", seq_len=200_000, gpus=8, limit=1)
    notes = "\n".join(found.notes)
    assert "sequences longer than the 131072 tokens that the model supports" in notes
    assert "offers whose place is not known" in notes
    options = ("--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "100M", "--limit", "1")
    said = run(sample_home, "cheapest", *options, "--country", "eu", "--seq-len", "200000").stdout
    for note in found.notes[:3]:
        assert note in said


@pytest.mark.slow
def test_a_machine_that_is_asked_for_is_never_lost(sample_home: Home, prices: gpufare.Prices) -> None:
    machines = ("8 x h100-sxm-80gb at 1.50", "3 x p40 at 0.1", "16 x l40s at 1")
    asked = QLORA | {"quote": list(machines), "gpus": 8, "limit": 2}
    notes = prices.cheapest(**asked).notes
    every = prices.cheapest(**asked | {"limit": None})
    (h100,) = (row for row in every if row["source"] == "quote")
    rank = f"Your quote {machines[0]} has rank {h100['rank']} of {len(every)}: ${h100['total_usd']:,.2f} in "
    expected = (
        rank,
        f"Your quote {machines[1]} is not ranked: the job does not fit: current frameworks no longer",
        f"Your quote {machines[2]} is not ranked: it has 16 GPUs, but the job allows at most 8.",
    )
    said = [line for line in notes if line.startswith("Your quote")]
    assert sorted(map(str, said)) == sorted(
        next(line for line in notes if line.startswith(each)) for each in expected
    )
    options = ("--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "100M", "--gpus", "8")
    quotes = [word for machine in machines for word in ("--quote", machine)]
    shown = run(sample_home, "cheapest", *options, *quotes, "--limit", "2")
    as_csv = run(sample_home, "cheapest", *options, *quotes, "--limit", "2", "--format", "csv")
    for line in said:
        assert line in shown.stdout
        assert line in as_csv.stderr
    # In the macro, the same.
    query = """WITH asked AS (SELECT 'llama-3.1-8b' AS model, 'qlora' AS method, 1e8 AS tokens, 8 AS gpus,
        '{}' AS quote) FROM machine_ranks_for('asked')"""
    rows = list(prices._session().ask(query.format("; ".join(machines))).dicts())
    assert {row["machine"]: row["rank"] for row in rows} == dict.fromkeys(machines) | {
        machines[0]: h100["rank"]
    }
    # Rows of the list are not repeated below it.
    assert not [line for line in prices.cheapest(**asked | {"limit": None}).notes if rank in line]


def test_id_names_one_card_as_the_help_states(sample_home: Home, prices: gpufare.Prices) -> None:
    query = "SELECT key, meanings FROM job_names WHERE setting = 'gpu' AND key IN ('rtx', 'rtx4090', '4090')"
    cards = dict(prices._session().ask(query).rows)
    assert cards["rtx4090"] == cards["4090"] == ["rtx-4090"]
    assert {"rtx-4090", "rtx-4090-48gb", "rtx-4090-laptop"} <= set(cards["rtx"])
    said = " ".join(run(sample_home, "cheapest", "--help").output.split())
    assert "An id selects exactly one card (rtx-4090 excludes its 48 GB and laptop variants)" in said
