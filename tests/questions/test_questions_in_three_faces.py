"""25 questions through the command, the SQL macro and Python: one answer each."""

import json
import shlex
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import gpufare
from pipeline.catalog.job_settings import job_settings
from pipeline.cli.main import main
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.warehouse.query import ask, reader

QUESTIONS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "questions.yaml").read_text(encoding="utf-8")
)
COMPARED = ("gpu_id", "gpu_count", "source", "tier", "price_kind", "total_usd", "hours", "assumptions")


@pytest.fixture(scope="module")
def prices(sample_home: Home) -> Iterator[gpufare.Prices]:
    with gpufare.open(sample_home.root) as opened:
        yield opened


@pytest.fixture(scope="module")
def by_macro(sample_home: Home) -> dict[str, dict[str, Any]]:
    """The first answer of each question that has one, all asked of the macro at once."""
    names = sorted({name for asked in QUESTIONS for name in asked["job"]})
    assert set(names) <= job_settings().keys()
    jobs = [(asked["question"], *(_text(asked["job"].get(name)) for name in names)) for asked in QUESTIONS]
    rows = ", ".join(f"({', '.join('?' * len(row))})" for row in jobs)
    query = (
        f"WITH asked (job, {', '.join(names)}) AS (VALUES {rows}) FROM cheapest_for('asked') WHERE rank = 1"
    )
    with reader(sample_home.published) as connection:
        found = ask(connection, query, [value for row in jobs for value in row])
    return {row["job"]: row for row in found.dicts()}


def _text(value: Any) -> Any:
    return ",".join(value) if isinstance(value, list) else value


def by_command(home: Home, job: dict[str, Any]) -> tuple[int, list[dict[str, Any]], str]:
    options = [word for name, value in job.items() for word in _option(name, value)]
    answer = CliRunner().invoke(
        main,
        ["cheapest", *options, "--format", "jsonl", "--limit", "1"],
        env={HOME_VARIABLE: str(home.root)},
    )
    rows = [json.loads(line) for line in answer.stdout.splitlines()] if answer.exit_code == 0 else []
    return answer.exit_code, rows, answer.stderr


def _option(name: str, value: Any) -> list[str]:
    option = f"--{name.replace('_', '-')}"
    values = value if isinstance(value, list) else [value]
    return [word for each in values for word in (option, str(each))]


def _the_hint_answers(home: Home, job: dict[str, Any], said: str) -> None:
    """The command that an empty answer ends with runs as it is printed, and keeps what can be kept."""
    (hint,) = (line.removeprefix("try: ") for line in said.splitlines() if line.startswith("try: "))
    words = shlex.split(hint)
    kept = sum(option in words for option in (_option(name, value)[0] for name, value in job.items()))
    assert words[0] == "gpufare"
    assert kept == len(job)
    answer = CliRunner().invoke(main, words[1:], env={HOME_VARIABLE: str(home.root)})
    assert answer.exit_code == 0, answer.stderr
    assert "for the finished job" in answer.stdout


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: float(row[name]) if isinstance(row[name], Decimal) else row[name] for name in COMPARED}


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked["question"])
def test_a_question_has_one_answer(
    asked: dict[str, Any],
    sample_home: Home,
    prices: gpufare.Prices,
    by_macro: dict[str, dict[str, Any]],
) -> None:
    called = prices.cheapest(**asked["job"], limit=1)
    code, commanded, said = by_command(sample_home, asked["job"])
    if "none" in asked:
        assert asked["question"] not in by_macro
        assert not called
        assert code == 1
        assert called.notes[0] in said
        assert f"\n  {asked['none']} " in said
        _the_hint_answers(sample_home, asked["job"], said)
        return
    in_sql = by_macro[asked["question"]]
    expected = asked["first"]
    assert {name: called[0][name] for name in expected} == expected
    assert _plain(called[0]) == _plain(in_sql) == _plain(commanded[0])
    assert asked.get("says", "") in "\n".join(called.notes)


def test_there_are_25_questions_each_with_a_reason() -> None:
    assert len(QUESTIONS) == 25
    assert len({asked["question"] for asked in QUESTIONS}) == 25
    assert all(asked["why"] and ("first" in asked) != ("none" in asked) for asked in QUESTIONS)
