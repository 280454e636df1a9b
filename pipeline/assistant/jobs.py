"""The tools that answer about a job: cheapest, why_not, fit and compare."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.assistant.answers import Answer, Comparison, Fits, Ways, WhyNot, shown, way
from pipeline.assistant.arguments import job_in
from pipeline.assistant.published import Published
from pipeline.questions import fit as fitting
from pipeline.questions import why
from pipeline.questions.alternatives import alternatives
from pipeline.questions.fit import family_notes, one_gpu
from pipeline.questions.in_short import short_text
from pipeline.questions.job import Job, JobError
from pipeline.questions.reasons import percent_text
from pipeline.questions.sources_behind import replayed_sources
from pipeline.questions.words import (
    PICKS,
    assumed,
    assumptions,
    command_line,
    explained,
    machine_lines,
    nothing_fits,
    own_runs_text,
    picked,
    picks,
    told_first,
)

Arguments = Mapping[str, Any]
Row = Mapping[str, Any]

LEADING_ROWS = 10
"""Ranks of a ranking that are looked at, besides the picks, for those whose bands overlap."""


def cheapest(published: Published, arguments: Arguments) -> Answer:
    """Return the picks for a job. Raises JobError."""
    return _picks(published, job_in(arguments))


def _picks(published: Published, job: Job) -> Answer:
    session = published.session()
    rows = list(session.with_picks(job, LEADING_ROWS).dicts())
    if not rows:
        raise JobError(nothing_fits(job, session))
    named = _named(rows)
    replayed = replayed_sources(session.connection)
    told = told_first(rows)
    taken = assumptions(told)
    command = shlex.join(command_line(job))
    return Answer(
        Ways,
        {"picks": [way(row, names, replayed) for row, names in named], "assumed": taken, "command": command},
        lines=[short_text(_title(names), row, replayed) for row, names in named],
        shorter=[
            *(short_text(_title(names), row, replayed, careful=False) for row, names in named),
            "CAREFUL: read the cautions among the values of this answer.",
        ],
        extra=[*alternatives(session, job, rows), *explained(told, replayed)[1 : -1 - len(taken)]],
        end=[
            *picks(rows)[len({row["rank"] for row, _ in named if row["pick"]}) :],
            *machine_lines(job, session, 0),
            *taken,
            f"Command: {command}",
            *published.age_notes(),
        ],
    )


def _named(rows: Sequence[Row]) -> list[tuple[Row, list[str]]]:
    """Return the picked rows with the names under which they are picked; the first row is always one."""
    named: dict[int, tuple[Row, list[str]]] = {}
    for name, text in PICKS.items():
        row = picked(rows, name)
        if row is not None:
            named.setdefault(row["rank"], (row, []))[1].append(text)
    if rows[0]["rank"] not in named and (rows[0]["objective"] == "time" or not named):
        return [(rows[0], ["fastest" if rows[0]["objective"] == "time" else "rank 1"]), *named.values()]
    return list(named.values())


def _title(names: Sequence[str]) -> str:
    """Return the names of a pick in words."""
    text = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"{text[0].upper()}{text[1:]}"


def why_not(published: Published, arguments: Arguments) -> Answer:
    """Return why a GPU is not the answer for a job, and the picks. Raises JobError."""
    job = job_in(arguments)
    found = why.explain(published.session(), job, not_gpu=arguments["not_gpu"])
    answer = _picks(published, job)
    words = command_line(job, "explain")
    command = shlex.join([*words, "--not-gpu", arguments["not_gpu"]])
    reasons = [
        {
            **row,
            "total_usd": row["total_usd"] and round(row["total_usd"], 2),
            "hours": row["hours"] and shown(row["hours"]),
        }
        for row in found.why_not[:1]
    ]
    because = why.why_not_sentences(found)
    answer.model = WhyNot
    answer.data |= {"why_not": reasons, "command": command}
    # Of a large family, the names of the other cards would take most of the answer.
    answer.lines, answer.shorter = [*because[:1], *answer.lines], [*because[:1], *answer.shorter]
    answer.extra += because[1:]
    answer.end = [f"Command: {command}" if line.startswith("Command: ") else line for line in answer.end]
    return answer


_SPEED = ("tokens_per_second", "tokens_per_second_low", "tokens_per_second_high")


def fit(published: Published, arguments: Arguments) -> Answer:
    """Return how a job fits on a GPU, and how fast it trains there. Raises JobError."""
    job = job_in(arguments)
    found = fitting.fit(published.session(), job)
    plan = found.plan
    parts = list(found.memory.dicts())
    command = shlex.join(command_line(job, "fit"))
    given = json.loads(plan["assumptions"])
    taken = [*filter(None, (own_runs_text(given), assumed(given, plan["method"])))]
    rounded: dict[str, float | None] = {
        name: round(value, 2) for name, value in plan.items() if isinstance(value, float)
    }
    if plan["verdict"] == "does_not_fit":
        rounded |= dict.fromkeys(_SPEED)
    return Answer(
        Fits,
        {
            **plan,
            **rounded,
            "fit_probability": percent_text(plan["fit_probability"]),
            "memory": [{"part": row["part"], "gib": round(row["gib"], 2)} for row in parts],
            "assumed": taken,
            "command": command,
        },
        lines=found.sentences(),
        extra=[f"{row['part']}: {row['gib']:.2f} GiB ({row['meaning']})" for row in parts],
        end=[f"Command: {command}", *published.age_notes()],
    )


def compare(published: Published, arguments: Arguments) -> Answer:
    """Return two GPUs side by side, and if a job is given, its cheapest way on each. Raises JobError."""
    session, job = published.session(), job_in(arguments)
    cards = [one_gpu(session, arguments[name]) for name in ("one", "other")]
    facts = fitting.compare(session, cards[0], cards[1])
    best = [session.cheapest_on(job, card) if job.settings else None for card in cards]
    replayed = replayed_sources(session.connection)
    taken = [
        *family_notes(session, arguments["one"], arguments["other"]),
        *next((assumptions(row) for row in best if row), []),
    ]
    command = shlex.join(["gpufare", "compare", *cards, *command_line(job)[2:]])
    return Answer(
        Comparison,
        {
            **{
                name: way(row, (), replayed) if row else None
                for name, row in zip(("one", "other"), best, strict=True)
            },
            "assumed": taken,
            "command": command,
        },
        lines=[
            short_text(f"Cheapest on {card}", row, replayed) if row else f"Nothing on {card} runs the job."
            for card, row in zip(cards, best, strict=True)
            if job.settings
        ],
        listed="facts",
        items=[
            (f"{fact}: {one} against {other}", {"fact": fact, "one": one, "other": other})
            for fact, one, other, _ in facts.rows
            if (one, other) != (None, None)
        ],
        narrow=f"`{command}` shows all",
        end=[*taken, f"Command: {command}", *published.age_notes()],
    )
