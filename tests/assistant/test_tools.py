"""Each tool answers in values and words, as the command does, and an error helps to correct the call."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from pipeline.assistant.answers import size_bytes
from pipeline.assistant.published import Published
from pipeline.assistant.server import server
from pipeline.catalog.job_settings import PRICE_SETTINGS, job_settings
from pipeline.catalog.own import OwnModel, add_model
from pipeline.home.paths import Home
from pipeline.questions.numbers import number_text
from pipeline.warehouse.connection import connect
from tests.assistant.conftest import Called, called, text_of
from tests.conftest import gpufare
from tests.questions.conftest import OPTIONS, QLORA

MOST_BYTES = 4_000
MINE = OwnModel(
    model="mine-1b", layers=24, hidden=2048, intermediate=8192, gated_mlp=True, heads=16, kv_heads=4,
    head_dim=128, vocab=32000, tied_embeddings=False, experts=1, experts_active=1,
)  # fmt: skip


def asked(*words: str, home: Home) -> list[dict[str, Any]]:
    """The rows that the command prints."""
    rows: list[dict[str, Any]] = json.loads(gpufare(*words, "--format", "json", home=home).stdout)
    return rows


def test_the_arguments_are_the_settings_of_a_job(published: Published) -> None:
    async def listed() -> dict[str, Any]:
        async with Client(server(published)) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    tools = anyio.run(listed)
    assert all(tool.annotations.read_only_hint and tool.output_schema for tool in tools.values())
    settings = tools["cheapest"].input_schema["properties"]
    assert list(settings) == list(job_settings())
    for name, setting in job_settings().items():
        schema = settings[name]
        assert schema["description"] == setting.meaning
        choices = schema.get("items", schema).get("enum", [])
        assert tuple(choices) == setting.choices, name
    assert settings["gpus"] | {"description": ""} == {
        "type": "integer", "minimum": 1, "maximum": 1e6, "default": 8, "description": "",
    }  # fmt: skip
    assert set(tools["fit"].input_schema["properties"]) == {
        *(name for name, setting in job_settings().items() if setting.recipe), "gpu", "gpus",
    }  # fmt: skip
    assert list(tools["prices"].input_schema["properties"]) == list(PRICE_SETTINGS)
    # What an assistant reads before its first question.
    assert sum(len(tool.model_dump_json(exclude_none=True)) for tool in tools.values()) < 40_000


def test_cheapest_has_the_picks_of_the_command(call: Called, sample_home: Home) -> None:
    result = call("cheapest", **QLORA)
    values, text = result.structured_content, text_of(result)
    rows = {row["rank"]: row for row in asked("cheapest", *OPTIONS, "--limit", "500", home=sample_home)}
    assert [name for pick in values["picks"] for name in pick["picked_as"]] == [
        "cheapest", "best value", "safest",
    ]  # fmt: skip
    for pick in values["picks"]:
        row = rows[pick["rank"]]
        for name in ("gpu_id", "gpu_count", "provider", "country", "price_kind", "price_day", "evidence"):
            assert pick[name] == row[name], name
        for name in ("total_usd", "total_usd_low", "total_usd_high"):
            assert pick[name] == round(row[name], 2)
            assert f"${pick[name]:,.2f}" in text
        for name in ("hours", "hours_low", "hours_high"):
            assert number_text(pick[name]) == number_text(row[name])
        assert len(pick["cautions"]) == len(row["cautions"] or ())
        assert all(caution in text for caution in pick["cautions"])
        assert f"({row['price_age_days']} days old" in text
        assert f"speed {row['evidence']}" in text
        assert f"P(fits) {pick['fit_probability']}" in text
    assert text.count(values["assumed"][0]) == 1
    assert "Liger kernels" in values["assumed"][0]
    again = asked(*shlex.split(values["command"])[1:], "--limit", "500", home=sample_home)
    assert again[0] == rows[1]
    assert f"Command: {values['command']}" in text


def test_the_fastest_is_told_first_if_asked_for(call: Called) -> None:
    picks = call("cheapest", **QLORA, objective="time").structured_content["picks"]
    assert (picks[0]["picked_as"], picks[0]["rank"]) == (["fastest"], 1)
    assert picks[0]["hours"] < picks[1]["hours"]


def test_machines_of_the_user_have_a_rank_and_no_age(call: Called) -> None:
    result = call("cheapest", **QLORA, own=["2 x rtx-4090 at 0.01"])
    assert result.structured_content["picks"][0]["price_kind"] == "own"
    assert "price as you gave it" in text_of(result)


def test_why_not_has_the_reason_and_the_picks(call: Called) -> None:
    result = call("why_not", **QLORA, not_gpu="h100")
    values = result.structured_content
    (reason,) = values["why_not"]
    assert reason["rank"] > 1
    first, *_ = text_of(result).splitlines()
    assert first.startswith(reason["gpu_id"])
    assert f"Rank {reason['rank']} of" in first
    assert values["picks"] == call("cheapest", **QLORA).structured_content["picks"]
    assert values["command"].startswith("gpufare explain --model llama-3.1-8b")
    assert values["command"].endswith("--not-gpu h100")


def test_fit_has_memory_and_speed_with_their_bands(call: Called, sample_home: Home) -> None:
    result = call("fit", model="llama-3.1-8b", method="qlora", gpu="rtx-4090")
    values = result.structured_content
    told = gpufare(*shlex.split(values["command"])[1:], "--format", "json", home=sample_home).stdout
    plan = json.loads(told)
    for name in ("memory_gib", "memory_gib_high", "tokens_per_second", "tokens_per_second_low"):
        assert values[name] == round(plan[name], 2)
    assert (values["verdict"], values["evidence"]) == ("fits", plan["evidence"])
    peak = {part["part"]: part["gib"] for part in values["memory"]}["peak memory"]
    assert peak == values["memory_gib"]
    assert "fits on 1 x rtx-4090 with a probability of" in text_of(result)


def test_what_does_not_fit_has_no_speed(call: Called) -> None:
    result = call("fit", model="llama-3.1-70b", method="full", gpu="rtx-4090")
    assert result.structured_content["verdict"] == "does_not_fit"
    assert result.structured_content["tokens_per_second"] is None
    assert "does not fit" in text_of(result)


def test_compare_puts_two_cards_and_their_cheapest_ways_side_by_side(call: Called) -> None:
    cards = {"one": "l40s", "other": "rtx-4090"}
    values = call("compare", **cards).structured_content
    facts = {fact["fact"]: (fact["one"], fact["other"]) for fact in values["facts"]}
    assert facts["memory_gb"] == ("48.0", "24.0")
    assert values["one"] is None
    result = call("compare", **cards, **QLORA)
    values = result.structured_content
    assert [values[name]["gpu_id"] for name in cards] == ["l40s", "rtx-4090"]
    assert "Cheapest on l40s: " in text_of(result)
    assert values["assumed"]


def test_compare_says_which_card_a_family_is_taken_for(call: Called) -> None:
    result = call("compare", one="a100", other="rtx-4090")
    (note,) = result.structured_content["assumed"]
    assert note.startswith("a100 is taken as a100-")
    assert note in text_of(result).splitlines()
    assert call("compare", one="l40s", other="rtx-4090").structured_content["assumed"] == []


def test_compare_is_of_the_card_that_is_named(call: Called) -> None:
    """Not of others of the same model and memory, as where a job names it."""
    values = call("compare", one="a100-80gb", other="a100-pcie-80gb", **QLORA).structured_content
    assert [values[name]["gpu_id"] for name in ("one", "other")] == ["a100-80gb", "a100-pcie-80gb"]
    assert values["assumed"][0].startswith("Assumed: ")


def test_prices_are_those_of_each_provider_cheapest_first(call: Called) -> None:
    result = call("prices", gpu=["h100"], country=["eu"])
    prices = result.structured_content["prices"]
    assert prices == sorted(prices, key=lambda price: price["usd_per_gpu_hour"])
    assert {price["gpu_id"].split("-")[0] for price in prices} == {"h100"}
    assert f"${prices[0]['usd_per_gpu_hour']:.2f} per GPU-hour: " in text_of(result)
    assert "price of 2026-08-22" in text_of(result)
    assert result.structured_content["command"] == "gpufare prices --country eu h100"


def test_jobs_have_their_published_answer(call: Called, sample_home: Home) -> None:
    result = call("jobs", search="llama-3.1-8b qlora 100m")
    (job,) = [job for job in result.structured_content["jobs"] if job["job"] == "llama-3.1-8b-qlora-100m"]
    best = call("cheapest", **QLORA).structured_content["picks"][0]
    assert {**best, "picked_as": job["picked_as"]} == {name: job[name] for name in best}
    every = call("jobs").structured_content
    assert every["left_out"] > 200
    assert f"{every['left_out']} more are left out: search" in text_of(call("jobs"))


@pytest.mark.parametrize(
    ("tool", "search", "name", "found"),
    [
        ("models", "llama 70b", "model", "llama-3.3-70b"),
        ("models", "Qwen/Qwen2.5-7B", "model", "qwen2.5-7b"),
        ("gpus", "5090", "gpu_id", "rtx-5090"),
        ("gpus", "hopper nvl", "gpu_id", "h100-nvl-94gb"),
    ],
)
def test_names_are_found_by_their_parts(call: Called, tool: str, search: str, name: str, found: str) -> None:
    values = call(tool, search=search).structured_content
    assert found in [each[name] for each in values[tool]]
    assert values["left_out"] == 0


def test_sql_answers_in_rows_and_csv(call: Called) -> None:
    query = "SELECT gpu_id, memory_gb, NULL AS nothing FROM gpus WHERE gpu_id LIKE 'h100-nvl%'"
    result = call("sql", query=query)
    assert result.structured_content == {
        "columns": ["gpu_id", "memory_gb", "nothing"],
        "rows": [["h100-nvl-94gb", 94.0, None]],
        "left_out": 0,
    }
    assert text_of(result).splitlines()[1:3] == ['"gpu_id","memory_gb","nothing"', '"h100-nvl-94gb",94.0,""']


WRONG = [
    ("cheapest", {"model": "llama-3.1-8b", "tokens": 1e6, "max_gpus": 2}, "did you mean gpus?"),
    ("cheapest", {"model": "llama-3.1-8", "tokens": 1e6}, "nearest are llama-3.1-8b"),
    ("cheapest", {"tokens": 1e6}, "cheapest needs model"),
    ("cheapest", {"model": "llama-3.1-8b"}, "tokens"),
    ("cheapest", {"model": "llama-3.1-8b", "tokens": -1}, "tokens"),
    ("cheapest", {"model": "llama-3.1-8b", "tokens": {"$ref": "x"}}, "must not be an object"),
    ("cheapest", {**QLORA, "gpus": 0}, "gpus"),
    ("cheapest", {**QLORA, "kind": [1]}, "kind must be a list of names"),
    ("cheapest", {**QLORA, "assumed_sizes": "yes"}, "assumed_sizes must be true or false"),
    ("cheapest", {**QLORA, "country": ["atlantis"]}, "atlantis"),
    ("cheapest", {**QLORA, "gpu": ["x" * 20_000]}, "longer than 10,000 characters"),
    ("cheapest", {**QLORA, "max_usd": 0.01}, "instead of 0.01: "),
    ("cheapest", {**QLORA, "config": "/etc/passwd"}, "no argument 'config'"),
    ("why_not", {**QLORA, "not_gpu": "h1000"}, "no gpu h1000; the nearest are h100"),
    ("fit", {"model": "llama-3.1-8b", "gpu": "h100-smx"}, "h100-sxm"),
    ("compare", {"one": "l40s", "other": "rtx-4091"}, "rtx-4090"),
    ("compare", {"one": "l40s", "to": "rtx-4090"}, "no argument 'to'; it takes one, other, model"),
    ("prices", {"gpu": ["h10"]}, "the nearest are h100"),
    ("prices", {"gpu": ["t4"], "country": ["cn"], "kind": ["flex_start"]}, "no flex-start price meets"),
    ("prices", {"gpu": ["h100"], "model": "llama-3.1-8b"}, "prices has no argument 'model'"),
    ("jobs", {"search": "llama-8b-qlroa"}, "the nearest: "),
    ("models", {"search": "lamma-3.1-8b"}, "llama-3.1-8b"),
    ("gpus", {"serach": "h100"}, "did you mean search?"),
    ("gpus", {"search": ["h100"]}, "search must be"),
    ("sql", {"query": "SELECT * FROM ofers"}, 'Did you mean "offers"'),
    ("sql", {"query": "SELEC 1"}, "syntax error"),
    ("sql", {"query": "FROM cheapest_gpu_per_workload LIMIT 9"}, "select fewer columns"),
    ("sql", {}, "sql needs query"),
    ("refresh", {}, "the tools are cheapest"),
]


@pytest.mark.parametrize(("tool", "arguments", "said"), WRONG)
def test_a_wrong_call_says_how_to_correct_it(
    call: Called, tool: str, arguments: dict[str, Any], said: str
) -> None:
    result = call(tool, **arguments)
    assert result.is_error
    assert said in text_of(result), text_of(result)
    assert "Traceback" not in text_of(result)
    assert size_bytes(result) <= MOST_BYTES


LONGEST: list[tuple[str, dict[str, Any]]] = [
    ("cheapest", {**QLORA, "objective": "time"}),
    ("cheapest", {**QLORA, "kind": ["any"], "country": ["cn", "ru", "us"], "assumed_sizes": True}),
    ("cheapest", {**QLORA, "quote": ["8 x h100-sxm-80gb at 9", "8 x b200 at 9"], "own": ["1 x t4 at 0.1"]}),
    ("cheapest", {"model": "llama-3.1-70b", "method": "full", "tokens": "9B", "kind": ["any"], "gpus": 64}),
    ("why_not", {**QLORA, "not_gpu": "nvidia"}),
    ("fit", {"model": "llama-3.1-70b", "gpu": "h100-sxm-80gb", "gpus": 64, "method": "full"}),
    ("compare", {**QLORA, "one": "mi300x", "other": "b200-sxm-180gb", "kind": ["any"]}),
    ("prices", {"kind": ["any"]}),
    ("jobs", {}),
    ("models", {}),
    ("gpus", {}),
    ("sql", {"query": "SELECT repeat('x', 9000) FROM range(2000)"}),
    ("sql", {"query": "SELECT workload, title FROM workloads"}),
]


@pytest.mark.parametrize(("tool", "arguments"), LONGEST)
def test_no_answer_is_longer_than_4_kb(call: Called, tool: str, arguments: dict[str, Any]) -> None:
    result = call(tool, **arguments)
    assert not result.is_error, text_of(result)
    assert size_bytes(result) <= MOST_BYTES
    if result.structured_content.get("left_out"):
        assert re.search(r"more are left out: [\w`]", text_of(result))


def test_a_question_that_takes_too_long_is_stopped_and_the_next_one_answered(sample_home: Home) -> None:
    slow = Published(sample_home, most_seconds=0.2)
    job = {"model": "llama-3.1-70b", "method": "full", "tokens": "5B", "seq_len": 4097}
    assert "took more than 0.2 s and was stopped" in text_of(called(slow, "cheapest", **job))
    slow.most_seconds = 60
    assert not called(slow, "models", search="llama").is_error
    slow.close()


def test_answers_after_a_refresh_are_new(sample_home: Home, tmp_path: Any) -> None:
    home = Home(tmp_path)
    opened = Published(home)
    nothing = called(opened, "cheapest", **QLORA)
    assert nothing.is_error
    assert "run `gpufare refresh`, or `gpufare demo`" in text_of(nothing)
    assert str(tmp_path) not in text_of(nothing)
    home.published.parent.mkdir()
    home.published.write_bytes(sample_home.published.read_bytes())
    assert not called(opened, "models", search="falcon").is_error
    newer = home.published.with_name("new.duckdb")
    newer.write_bytes(sample_home.published.read_bytes())
    with connect(newer) as connection:
        connection.execute("DELETE FROM main.models WHERE model LIKE 'falcon%'")
    newer.replace(home.published)
    assert called(opened, "models", search="falcon").is_error
    assert (
        called(opened, "sql", query="FROM models WHERE model LIKE 'falcon%'").structured_content["rows"] == []
    )
    opened.close()


def test_a_model_that_is_added_is_known_at_once(sample_home: Home, tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.published.parent.mkdir()
    home.published.symlink_to(sample_home.published)
    opened = Published(home)
    assert called(opened, "models", search="mine-1b").is_error
    add_model(home.models, MINE)
    assert not called(opened, "models", search="mine-1b").is_error
    assert called(opened, "fit", model="mine-1b", gpu="rtx-4090").structured_content["verdict"] == "fits"
    home.models.unlink()
    assert called(opened, "models", search="mine-1b").is_error
    opened.close()
