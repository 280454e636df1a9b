"""Each published workload: one answer in the table, the macros, the command, Python and the page.

Each is asked as the command that the page shows for it: what is a default stays open.
"""

import json
import shlex
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

import gpufare as python
from pipeline.catalog.job_settings import job_settings
from pipeline.cli.job_options import job_of_work
from pipeline.cli.questions import cheapest
from pipeline.home.paths import Home
from pipeline.page.queries import cents, digits
from pipeline.questions.job import Job
from pipeline.warehouse.query import ask, reader
from tests.conftest import facts_of, gpufare

COLUMNS = (
    "gpu_id", "gpu_count", "node_count", "provider", "source", "total_usd", "hours", "max_hours",
    "meets_deadline",
)  # fmt: skip
AMOUNTS = ("tokens", "examples", "tokens_per_example", "epochs")
"""Settings that change no plan: only the cost, the hours and, past some tokens, the deadline."""

Answers = dict[tuple[str, str], tuple[Any, ...]]
"""The first answer by workload and objective."""


@pytest.fixture(scope="module")
def page(page_file: Path) -> dict[str, Any]:
    return facts_of(page_file)


@pytest.fixture(scope="module")
def commands(page: dict[str, Any]) -> dict[str, list[str]]:
    """The words that the page shows for each workload."""
    shown = zip(page["workloads"]["workload"], page["workloads"]["command"], strict=True)
    return {workload: shlex.split(command)[1:] for workload, command in shown}


@pytest.fixture(scope="module")
def jobs(commands: dict[str, list[str]]) -> dict[str, Job]:
    found = {}
    for workload, words in commands.items():
        options = cheapest.make_context("cheapest", words[1:]).params
        asked = {name: value for name, value in options.items() if name in job_settings()}
        found[workload] = job_of_work(asked | {"config": None})[0]
    return found


@pytest.fixture(scope="module")
def published(sample_home: Home, jobs: dict[str, Job]) -> Answers:
    with reader(sample_home.published) as connection:
        answers = first(
            ask(
                connection,
                f"""SELECT workload, objective, {", ".join(COLUMNS)} FROM cheapest_gpu_per_workload
                WHERE price_kind = 'on_demand' AND rank = 1""",
            ).rows
        )
        workloads = {workload for (workload,) in ask(connection, "SELECT workload FROM workloads").rows}
    assert len(workloads) > 200
    assert workloads == jobs.keys()
    assert answers.keys() == {(workload, objective) for workload in jobs for objective in ("cost", "time")}
    return answers


def first(rows: Iterable[tuple[Any, ...]]) -> Answers:
    return {(row[0], row[1]): row[2:] for row in rows}


def one_of_each(jobs: dict[str, Job], depends_on: str, answers: Answers) -> list[str]:
    """One workload for each deadline and each set of settings, told apart by ``values``, amounts aside, or by
    ``names`` alone."""
    found = {}
    for workload, job in jobs.items():
        given = {
            name: name in AMOUNTS or depends_on == "names" or value for name, value in job.settings.items()
        }
        found[answers[workload, "cost"][-2], *given.items()] = workload
    return list(found.values())


# A quarter of a minute is what cheapest_for, which plans each job anew, takes for one objective.
@pytest.mark.parametrize(
    ("macro", "objectives"), [("cheapest_for", ["cost"]), ("cheapest_published", ["cost", "time"])]
)
def test_the_macros_have_the_answers_of_the_table(
    macro: str, objectives: list[str], sample_home: Home, jobs: dict[str, Job], published: Answers
) -> None:
    names = sorted({name for job in jobs.values() for name in job.settings})
    rows = [
        (f"{workload} {objective}", objective, *(job[name] for name in names))
        for workload, job in jobs.items()
        for objective in objectives
    ]
    places = ", ".join(f"({', '.join('?' * len(row))})" for row in rows)
    query = f"""
        WITH asked (job, objective, {", ".join(names)}) AS (VALUES {places})
        SELECT split_part(job, ' ', 1), objective, {", ".join(COLUMNS)}
        FROM {macro}('asked') WHERE rank = 1"""
    with reader(sample_home.published) as connection:
        answers = first(ask(connection, query, [value for row in rows for value in row]).rows)
    assert answers == {key: answer for key, answer in published.items() if key[1] in objectives}


def test_python_has_the_answers_of_the_table(
    sample_home: Home, jobs: dict[str, Job], published: Answers
) -> None:
    """For each recipe, deadline and constraint: more tokens of the same are planned and ranked alike."""
    asked = one_of_each(jobs, "values", published)
    assert len(asked) > 100
    with python.open(sample_home.root) as prices:
        for workload in asked:
            (row,) = prices.cheapest(**jobs[workload].settings, limit=1)
            assert tuple(row[name] for name in COLUMNS) == published[workload, "cost"], workload


def test_the_command_has_the_answers_of_the_table(
    sample_home: Home, commands: dict[str, list[str]], jobs: dict[str, Job], published: Answers
) -> None:
    """For each set of options and each deadline: it asks the engine that Python asks."""
    asked = one_of_each(jobs, "names", published)
    assert len(asked) > 9
    for workload in asked:
        answer = gpufare(*commands[workload], "--limit", "1", "--format", "jsonl", home=sample_home)
        row = json.loads(answer.stdout)
        wanted = tuple(
            float(value) if name == "total_usd" else value
            for name, value in zip(COLUMNS, published[workload, "cost"], strict=True)
        )
        assert tuple(row[name] for name in COLUMNS) == wanted, workload


def test_the_page_has_the_answers_of_the_table(page: dict[str, Any], published: Answers) -> None:
    """In its digits."""
    ways, lists = page["answers"]["ways"], page["answers"]["lists"]
    (kind,) = (place for place, kind in enumerate(page["answers"]["kinds"]) if kind["name"] == "on_demand")
    begins = [0, *accumulate(ways["count"])]
    late = {tuple(note[:3]) for note in page["answers"]["notes"] if not note[3]}
    shown = {}
    for job, workload in enumerate(page["workloads"]["workload"]):
        way = begins[job] + lists[0][kind][job][0]
        offer = ways["offer"][way]
        shown[workload] = (
            *page["machines"][ways["machine"][way]],
            page["offers"]["provider"][offer],
            sum(ways["total"][begins[job] : way + 1]),
            ways["hours"][way],
            page["workloads"]["max_hours"][job],
            (0, kind, job) not in late,
        )
    assert shown == {
        workload: (*machine, provider, cents(usd), digits(hours), max_hours, meets_deadline)
        for (workload, objective), (
            *machine,
            provider,
            _,
            usd,
            hours,
            max_hours,
            meets_deadline,
        ) in published.items()
        if objective == "cost"
    }
