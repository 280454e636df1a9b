"""One answer whoever asks: the command, the SQL macros, Python, and the page."""

import json
import shlex
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

import gpufare as python
from pipeline.catalog.job_settings import job_settings
from pipeline.cli.job_options import job_of_work
from pipeline.cli.questions import cheapest
from pipeline.home.paths import Home
from pipeline.questions.job import Job
from pipeline.questions.words import assumptions
from pipeline.warehouse.query import ask, reader
from tests.conftest import gpufare
from tests.page.equality import page_answers

QUESTIONS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "questions.yaml").read_text(encoding="utf-8")
)
COMPARED = ("gpu_id", "gpu_count", "source", "tier", "price_kind", "total_usd", "hours", "assumptions")


def _text(value: Any) -> Any:
    return ",".join(value) if isinstance(value, list) else value


def by_macro(home: Home) -> dict[str, dict[str, Any]]:
    """The first answer of each question that has one, all asked of the macro at once."""
    names = sorted({name for asked in QUESTIONS for name in asked["job"]})
    jobs = [(asked["question"], *(_text(asked["job"].get(name)) for name in names)) for asked in QUESTIONS]
    rows = ", ".join(f"({', '.join('?' * len(row))})" for row in jobs)
    query = (
        f"WITH asked (job, {', '.join(names)}) AS (VALUES {rows}) FROM cheapest_for('asked') WHERE rank = 1"
    )
    with reader(home.published) as connection:
        found = ask(connection, query, [value for row in jobs for value in row])
    return {row["job"]: row for row in found.dicts()}


def options_of(job: dict[str, Any]) -> list[str]:
    words = []
    for name, value in job.items():
        for each in value if isinstance(value, list) else [value]:
            words += [job_settings()[name].option, str(each)]
    return words


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: float(row[name]) if isinstance(row[name], Decimal) else row[name] for name in COMPARED}


def test_questions_have_their_answers_and_options_are_the_same_jobs(sample_home: Home) -> None:
    in_sql, wrong = by_macro(sample_home), []
    for question in QUESTIONS:
        name, job, first = question["question"], question["job"], question.get("first")
        if _job(["gpufare", "cheapest", *options_of(job)]).settings != Job(**job).settings:
            wrong.append(("options", name))
        row = in_sql.get(name)
        if first is None or row is None:
            wrong += [] if first is row else [("answer", name)]
        elif {column: row[column] for column in first} != first or (
            question.get("says", "") not in "\n".join(assumptions(row))
        ):
            wrong.append((name, row))
    assert wrong == []


def test_the_command_and_python_give_the_answer_of_the_macro(
    sample_home: Home, prices: python.Prices
) -> None:
    job = QUESTIONS[0]["job"] | {"own": "2 x rtx-4090 at 0.12", "country": ["de", "no"], "max_hours": 100}
    rows = ", ".join("?" * len(job))
    query = f"WITH asked ({', '.join(job)}) AS (VALUES ({rows})) FROM cheapest_for('asked') WHERE rank = 1"
    with reader(sample_home.published) as connection:
        (in_sql,) = ask(connection, query, [*map(_text, job.values())]).dicts()
    words = ("cheapest", *options_of(job), "--limit", "1", "--format", "jsonl")
    by_command = json.loads(gpufare(*words, home=sample_home).stdout)
    assert _plain(in_sql) == _plain(by_command) == _plain(prices.cheapest(**job, limit=1)[0])


def test_an_empty_answer_names_what_binds_and_a_command_that_has_one(
    sample_home: Home, prices: python.Prices
) -> None:
    together, alone = (question for question in QUESTIONS if "none" in question)
    note, *_ = prices.cheapest(**together["job"]).notes
    assert note == together["none"]
    answer = gpufare("cheapest", *options_of(alone["job"]), "--format", "jsonl", home=sample_home)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert alone["none"] in answer.stderr
    (hint,) = (line.removeprefix("try: ") for line in answer.stderr.splitlines() if line.startswith("try: "))
    program, *words = shlex.split(hint)
    assert program == "gpufare"
    assert {word for word in options_of(alone["job"]) if word.startswith("--")} <= {*words}
    assert " 1 " in gpufare(*words, home=sample_home).stdout.splitlines()[2][:3]


COLUMNS = (
    "gpu_id", "gpu_count", "node_count", "provider", "source", "total_usd", "hours", "max_hours",
    "meets_deadline",
)  # fmt: skip


WORKLOADS = """
SELECT
    workload, model, method, examples, tokens_per_example, epochs, seq_len, lora_rank, max_gpus AS gpus,
    max_hours,
    CASE WHEN examples IS NULL THEN tokens / coalesce(epochs, 1) END AS tokens
FROM workloads
ORDER BY workload
"""
"""The workloads as jobs, in which what the catalogue leaves open stays open."""


def test_each_workload_has_one_answer_in_the_table_the_macro_and_the_page(
    sample_home: Home, page_file: Path
) -> None:
    with reader(sample_home.published) as connection:
        asked = {row.pop("workload"): _given(row) for row in ask(connection, WORKLOADS).dicts()}
        names = sorted({name for job in asked.values() for name in job})
        rows = [(workload, *(job.get(name) for name in names)) for workload, job in asked.items()]
        places = ", ".join(f"({', '.join('?' * len(row))})" for row in rows)
        published = ask(
            connection,
            f"""SELECT workload, {", ".join(COLUMNS)} FROM cheapest_gpu_per_workload
            WHERE price_kind = 'on_demand' AND rank = 1 AND objective = 'cost' ORDER BY workload""",
        ).rows
        answered = ask(
            connection,
            f"""WITH asked (job, {", ".join(names)}) AS (VALUES {places})
            SELECT job, {", ".join(COLUMNS)} FROM cheapest_published('asked') WHERE rank = 1 ORDER BY job""",
            [value for row in rows for value in row],
        ).rows
        rentals = ask(
            connection, "SELECT rowid, gpu_id, gpu_count, node_count, provider, source FROM rentals"
        ).rows
    assert len(published) > 240
    assert answered == published
    offers = {row[0]: row[1:] for row in rentals}
    on_page = zip(asked, page_answers(page_file, list(asked.values()), datetime.now(UTC)), strict=True)
    shown = {
        workload: (
            *offers[answer["rows"][0][0]],
            answer["rows"][0][1],
            answer["job"]["max_hours"],
            answer["meets"],
        )
        for workload, answer in on_page
        if answer["rows"]
    }
    assert shown == {
        workload: (*machine, round(usd * 10_000), max_hours, meets_deadline)
        for workload, *machine, usd, _, max_hours, meets_deadline in published
    }


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that are not open."""
    return {name: value for name, value in settings.items() if value is not None}


def _job(words: list[str]) -> Job:
    options = cheapest.make_context("cheapest", words[2:]).params
    asked = {name: value for name, value in options.items() if name in job_settings()}
    return job_of_work(asked | {"config": None})[0]
