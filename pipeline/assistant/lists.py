"""The tools that list: published jobs, prices per GPU-hour, and the names of models and GPUs."""

import re
import shlex
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pipeline.assistant.answers import Answer, GpuPrices, Gpus, Models, PricedJobs, way
from pipeline.assistant.published import Published
from pipeline.questions import gpu_prices
from pipeline.questions.in_short import short_price, short_text
from pipeline.questions.job import Job, JobError
from pipeline.questions.sources_behind import replayed_sources
from pipeline.questions.words import command_line

Arguments = Mapping[str, Any]
Row = dict[str, Any]

_JOBS = """
SELECT c.*, w.workload AS job, w.title
FROM main.cheapest_gpu_per_workload AS c
JOIN main.workloads AS w USING (workload)
WHERE c.price_kind = 'on_demand' AND c.objective = 'cost' AND list_contains(c.pick, 'cheapest')
ORDER BY w.scenario DESC, w.workload
"""


def jobs(published: Published, arguments: Arguments) -> Answer:
    """Return the published jobs whose name or title contains the words of ``search``. Raises JobError."""
    session = published.session()
    replayed = replayed_sources(session.connection)
    rows = list(session.ask(_JOBS).dicts())
    found = _matching(rows, ("job", "title"), arguments.get("search"))
    return Answer(
        PricedJobs,
        {},
        lines=[f"{len(found)} published jobs, each with its cheapest way on demand:"],
        listed="jobs",
        items=[(short_text(row["job"], row, replayed), way(row, row["pick"], replayed)) for row in found],
        narrow="search for the name of a model, a method or a number of tokens",
        end=[
            "Ask cheapest with a job's model, method and tokens for its other picks and what was assumed.",
            *published.age_notes(),
        ],
    )


def prices(published: Published, arguments: Arguments) -> Answer:
    """Return the lowest price of each card, kind and term at each provider, cheapest first.

    Raises JobError."""
    session = published.session()
    found, asked = gpu_prices.prices(session, arguments)
    if not found.rows:
        raise JobError(gpu_prices.no_price_text(asked))
    replayed = replayed_sources(session.connection)
    job = Job(**arguments)
    named = [] if job["gpu"] is None else job["gpu"].split(",")
    command = shlex.join([*command_line(job.but(gpu=None), "prices"), *named])
    return Answer(
        GpuPrices,
        {"command": command},
        lines=[f"{len(found.rows):,} prices, the lowest of each card, kind and term at each provider:"],
        listed="prices",
        items=[(short_price(row, replayed), row) for row in found.dicts()],
        narrow="name a gpu, a provider or a country",
        end=[*gpu_prices.price_notes(found, asked), f"Command: {command}", *published.age_notes()],
    )


def models(published: Published, arguments: Arguments) -> Answer:
    """Return the models whose name or hub id contains the words of ``search``. Raises JobError."""
    rows = list(gpu_prices.models(published.session()).dicts())
    found = _matching(rows, ("model", "hf_id"), arguments.get("search"))
    return Answer(
        Models,
        {},
        listed="models",
        items=[
            (
                f"{row['model']} ({row['hf_id'] or 'no hub id'}): {row['params_billion']:.2f}B parameters",
                row | {"params_billion": round(row["params_billion"], 2)},
            )
            for row in found
        ],
        narrow="search for a part of the name",
    )


def gpus(published: Published, arguments: Arguments) -> Answer:
    """Return the GPUs whose id, vendor or architecture contains the words of ``search``. Raises JobError."""
    rows = list(gpu_prices.gpus(published.session()).dicts())
    rows.sort(key=lambda row: not row["providers"])  # those that can be rented come first
    found = _matching(rows, ("gpu_id", "vendor", "architecture"), arguments.get("search"))
    return Answer(
        Gpus,
        {},
        lines=[
            "A job's gpu can also name a family of these: the start of an id, an architecture or a vendor; "
            "an id without a form factor (a100-80gb) means every card of that model and memory."
        ],
        listed="gpus",
        items=[(_gpu_line(row), row) for row in found],
        narrow="search for a part of the name",
    )


def _gpu_line(row: Row) -> str:
    memory = f"{row['memory_gb']:g} GB" if row["memory_gb"] else "memory not stated"
    made = ", ".join(filter(None, (row["vendor"], row["architecture"], memory)))
    return f"{row['gpu_id']}: {made}{'' if row['providers'] else '; no source rents it out'}"


def _matching(rows: Sequence[Row], names: Sequence[str], search: str | None) -> Sequence[Row]:
    """Return the rows in whose columns ``names`` every word of ``search`` stands. Raises JobError with the
    nearest names if there are none."""
    words = re.findall(r"[\w.]+", (search or "").lower())
    found = [row for row in rows if all(word in _text(row, names) for word in words)]
    if found:
        return found
    known = [row[names[0]] for row in rows]
    nearest = get_close_matches((search or "").lower(), known, n=5, cutoff=0.4)
    hint = f"; the nearest: {', '.join(nearest)}" if nearest else ""
    raise JobError(f"nothing has a name with {search!r}{hint}; without search, the answer lists all")


def _text(row: Row, names: Sequence[str]) -> str:
    return " ".join(str(row[name]) for name in names if row[name]).lower()
