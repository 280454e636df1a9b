"""One answer whoever asks: the command, the SQL macros, Python, and the page."""

import json
import shlex
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any

import yaml

import gpufare as python
from pipeline.catalog.job_settings import job_settings
from pipeline.cli.job_options import job_of_work
from pipeline.cli.questions import cheapest
from pipeline.home.paths import Home
from pipeline.page.queries import cents, digits
from pipeline.questions.job import Job
from pipeline.warehouse.query import ask, reader
from tests.conftest import facts_of, gpufare

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


def test_a_question_has_one_answer(sample_home: Home, prices: python.Prices) -> None:
    """The command is asked, not Python, if a question has an option that it was not yet asked with."""
    in_sql, wrong, tried = by_macro(sample_home), [], {"model", "method", "tokens"}
    for question in QUESTIONS:
        name, job = question["question"], question["job"]
        if question.get("none") == "min_gpus":  # asked below
            continue
        if job.keys() - tried and "none" not in question:
            tried |= job.keys()
            words = ("cheapest", *options_of(job), "--limit", "1")
            row = json.loads(gpufare(*words, "--format", "jsonl", home=sample_home).stdout)
            said = gpufare(*words, home=sample_home).stdout if "says" in question else ""
        else:
            called = prices.cheapest(**job, limit=1)
            row, said = next(iter(called), None), "\n".join(called.notes)
        if "none" in question:
            if row or name in in_sql or f"\n  {question['none']} " not in said:
                wrong.append((name, said))
            continue
        expected = question["first"]
        if (
            _plain(row) != _plain(in_sql[name])
            or {column: row[column] for column in expected} != expected
            or question.get("says", "") not in said
        ):
            wrong.append((name, row, in_sql[name], said))
    assert wrong == []
    assert len(tried) > 15


def test_an_empty_answer_ends_with_a_command_that_has_one(sample_home: Home) -> None:
    (asked,) = (question["job"] for question in QUESTIONS if question.get("none") == "min_gpus")
    answer = gpufare("cheapest", *options_of(asked), "--format", "jsonl", home=sample_home)
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert "\n  min_gpus 8 instead of 64: " in answer.stderr
    (hint,) = (line.removeprefix("try: ") for line in answer.stderr.splitlines() if line.startswith("try: "))
    program, *words = shlex.split(hint)
    assert program == "gpufare"
    assert {word for word in options_of(asked) if word.startswith("--")} <= {*words}
    assert "for the finished job" in gpufare(*words, home=sample_home).stdout


COLUMNS = (
    "gpu_id", "gpu_count", "node_count", "provider", "source", "total_usd", "hours", "max_hours",
    "meets_deadline",
)  # fmt: skip


def test_each_workload_has_one_answer_in_the_table_the_macro_and_the_page(
    sample_home: Home, page_file: Path
) -> None:
    """Each is asked as the command that the page shows for it, in which what is a default stays open."""
    page = facts_of(page_file)
    jobs = {
        workload: _job(shlex.split(command))
        for workload, command in zip(page["workloads"]["workload"], page["workloads"]["command"], strict=True)
    }
    names = sorted({name for job in jobs.values() for name in job.settings})
    rows = [(workload, *(job[name] for name in names)) for workload, job in jobs.items()]
    places = ", ".join(f"({', '.join('?' * len(row))})" for row in rows)
    with reader(sample_home.published) as connection:
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
    assert len(published) > 200
    assert {workload for workload, *_ in published} == jobs.keys()
    assert answered == published
    assert _shown_by(page) == {
        workload: (*machine, provider, cents(usd), digits(hours), max_hours, meets_deadline)
        for workload, *machine, provider, _, usd, hours, max_hours, meets_deadline in published
    }


def _job(words: list[str]) -> Job:
    options = cheapest.make_context("cheapest", words[2:]).params
    asked = {name: value for name, value in options.items() if name in job_settings()}
    return job_of_work(asked | {"config": None})[0]


def _shown_by(page: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The first answer on demand that the page has for each workload."""
    ways, lists = page["answers"]["ways"], page["answers"]["lists"]
    (kind,) = (place for place, kind in enumerate(page["answers"]["kinds"]) if kind["name"] == "on_demand")
    begins = [0, *accumulate(ways["count"])]
    late = {tuple(note[:3]) for note in page["answers"]["notes"] if not note[3]}
    shown = {}
    for job, workload in enumerate(page["workloads"]["workload"]):
        way = begins[job] + lists[0][kind][job][0]
        shown[workload] = (
            *page["machines"][ways["machine"][way]],
            page["offers"]["provider"][ways["offer"][way]],
            sum(ways["total"][begins[job] : way + 1]),
            ways["hours"][way],
            page["workloads"]["max_hours"][job],
            (0, kind, job) not in late,
        )
    return shown
