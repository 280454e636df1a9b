"""Questions that the published file answers about a job: the cheapest way to run it, why, and past costs."""

import math
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.job_options import JOB, RECIPE, job_of, job_of_work, with_options
from pipeline.cli.parameters import DAY, FORMAT, today
from pipeline.cli.terminal import progress_shown, say, tell
from pipeline.contracts.progress import no_progress
from pipeline.home import paths

if TYPE_CHECKING:
    from pipeline.catalog.own import OwnModel
    from pipeline.questions.fit import Fit
    from pipeline.questions.job import Job
    from pipeline.questions.session import Session
    from pipeline.warehouse.query import Result

NOT_BELOW, NO_ANSWER = 3, 4
"""Exit codes of `gpufare watch` for a job that costs at least the limit, and for a job that no offer can run;
1 and 2 are errors."""


@contextmanager
def prices(
    given: "OwnModel | None" = None,
    day: date | None = None,
    notes: Sequence[str] = (),
    *,
    with_age: bool = True,
) -> "Iterator[Session]":
    """Open the published prices, or those of ``day``. After the answer, print ``notes`` on stderr and,
    if ``with_age`` is true, the age of the published prices."""
    from pipeline.questions.prices import prices_of
    from pipeline.questions.session import Session
    from pipeline.warehouse.query import age_note

    follow = progress_shown(f"building the prices of {day}") if day else nullcontext(no_progress)
    with ExitStack() as stack:
        with follow as progress:
            connection = stack.enter_context(prices_of(paths.home(), day, today(), given, progress))
        yield Session(connection)
        note = age_note(connection, today()) if with_age and not day else None
    for line in (*notes, note):
        say(line)


@contextmanager
def question(settings: dict[str, Any], day: date | None = None) -> "Iterator[tuple[Job, Session]]":
    """Open ``prices`` for a job, with notes on the parts of its config.json that are not read."""
    job, given, left_out = job_of_work(settings)
    with prices(given, day, left_out) as session:
        yield job, session


@click.command()
@with_options(*JOB)
@click.option("--day", type=DAY, help="Use the prices from this day (UTC) instead of the newest.")
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="Rows to show.")
@FORMAT
def cheapest(day: datetime | None, limit: int, form: str, **settings: Any) -> None:
    """Rank the offers for one training job by dollars per finished job.

    All constraints are applied before anything is ranked. Options that take a NAME can be repeated.
    """
    from pipeline.cli.printing import columns_of_cheapest, for_people, gpus_paid, show
    from pipeline.questions.alternatives import advice, foreseen
    from pipeline.questions.own_runs import own_runs_note
    from pipeline.questions.sources_behind import not_asked_note, replayed_sources
    from pipeline.questions.words import explained, machine_lines, nothing_fits, told_first

    with question(settings, day.date() if day else None) as (job, session):
        found = session.with_picks(job, limit, foreseen(job) if form == "table" else ())
        result = found.first(limit)
        machines = machine_lines(job, session, limit)
        if not result.rows:
            of_day = ("--day", f"{day:%Y-%m-%d}") if day else ()
            raise click.ClickException("\n".join([nothing_fits(job, session, of_day), *machines]))
        if form == "table":
            show(for_people(result, columns_of_cheapest(result), gpu_count=gpus_paid), form)
            tell()
            rows = list(found.dicts())
            replayed = replayed_sources(session.connection)
            first = explained(told_first(rows), replayed, after_picks=True)
            for line in (*advice(session, job, rows), *first, *machines):
                tell(line)
            say(None if day else not_asked_note(session.connection, paths.home(), os.environ))
            say(own_runs_note(paths.home(), result.dicts()))
        else:
            show(result, form)
            for line in machines:
                say(line)


@click.command()
@with_options(*JOB)
@click.option(
    "--rank", type=click.IntRange(min=1), default=1, show_default=True, help="Rank of the answer to explain."
)
@click.option("--not-gpu", metavar="NAME", help="Explain why this GPU or family of GPUs is not the answer.")
@FORMAT
def explain(rank: int, not_gpu: str | None, form: str, **settings: Any) -> None:
    """Explain what a job costs, part by part, and why another GPU is not the answer."""
    from pipeline.cli.printing import for_people, show, show_object
    from pipeline.questions.sources_behind import replayed_sources
    from pipeline.questions.why import explain as explanation_of
    from pipeline.questions.why import why_not_sentences
    from pipeline.questions.words import explained

    with question(settings) as (job, session):
        found = explanation_of(session, job, rank, not_gpu)
        if form == "json":
            show_object({**found.row, "parts": list(found.parts.dicts()), "why_not": found.why_not})
        elif form == "table":
            for line in explained(found.row, replayed_sources(session.connection)):
                tell(line)
            tell()
            # If rounded to cents, the parts would not add up.
            parts = for_people(found.parts, PARTS, usd=lambda row: f"{row['usd']:,.4f}")
            show(parts, form, in_lines=("how",))
            tell()
            for line in (*why_not_sentences(found), *found.machines):
                tell(line)
        else:
            show(found.parts, form)


PARTS = ("part", "usd", "how")
HISTORY = (
    "day", "total_usd", "hours", "gpu", "gpu_count", "provider", "price_kind", "usd_per_gpu_hour", "sources",
)  # fmt: skip
MICRO_BATCHES = ("checkpointing", "micro_batch", "memory_gib", "fit_probability", "tokens_per_second")
FITS_ON = ("model", "params_billion", "method", "memory_gib", "fit_probability", "tokens_per_second")
"""Columns of the tables for people."""


@click.command()
@with_options(*JOB)
@FORMAT
def history(form: str, **settings: Any) -> None:
    """Show the lowest cost of a job on each day on record."""
    from pipeline.cli.printing import for_people, show
    from pipeline.questions.why import HISTORY_LEAVES_OUT, age_of_newest
    from pipeline.questions.why import history as history_of
    from pipeline.questions.words import nothing_fits

    with question(settings) as (job, session):
        found = history_of(session, job)
        if not found.rows:
            raise click.ClickException(nothing_fits(job, session))
        shown = for_people(
            found,
            HISTORY,
            total_usd=lambda row: _all_digits(row["total_usd"]),
            usd_per_gpu_hour=lambda row: _all_digits(row["usd_per_gpu_hour"]),
        )
        show(shown if form == "table" else found, form)
        for line in (HISTORY_LEAVES_OUT, age_of_newest(found, today())):
            say(line)


def _all_digits(usd: float) -> Decimal:
    """Return an amount of money as a decimal, which keeps all of its digits."""
    return Decimal(f"{usd:.6f}")


@click.command()
@with_options(*JOB)
@click.option(
    "--below",
    "limit_usd",
    required=True,
    type=click.FloatRange(min=0, min_open=True),
    help="The limit, in US dollars for the finished job.",
)
def watch(limit_usd: float, **settings: Any) -> None:
    """Check whether a job's cheapest answer costs less than a limit, for use in cron and scripts.

    Prints one JSON object, in which "stale" is true if the price is older than two days; --max-age-days
    excludes such prices. The exit code is 0 if the job costs less than the limit, 3 if it does not, and 4 if
    nothing can run it with these constraints; "reason" then says why. Codes 1 and 2 indicate errors.
    """
    from pipeline.cli.printing import show_object
    from pipeline.questions.why import watched

    if not math.isfinite(limit_usd):
        raise click.UsageError("--below must be a number of US dollars")
    with question(settings) as (job, session):
        found = watched(session, job, limit_usd)
        show_object(found)
        say(found["reason"])
    if found["reason"]:
        raise click.exceptions.Exit(NO_ANSWER)
    if not found["below"]:
        raise click.exceptions.Exit(NOT_BELOW)


@click.command()
@with_options(*RECIPE)
@click.option("--gpu", required=True, help="One card, such as rtx-4090.")
@click.option("--gpus", type=click.IntRange(min=1), default=1, show_default=True, help="Number of GPUs.")
@FORMAT
def fit(gpu: str, gpus: int, form: str, **recipe: Any) -> None:
    """Check whether a model fits on a GPU: memory part by part, P(fits), speed, and the largest micro-batch.

    Without --model or --config, list the models that fit on the GPU, by method.
    """
    from pipeline.questions.fit import fit as fit_of
    from pipeline.questions.fit import fits_on

    if not _names_a_model(recipe, {"seq_len"}):
        with prices(with_age=False) as session:
            _show_fits_on(fits_on(session, gpu, gpus, recipe["seq_len"]), gpu, gpus, form)
        return
    job, given, left_out = job_of({**recipe, "gpu": gpu, "gpus": gpus})
    with prices(given, notes=left_out, with_age=False) as session:
        _show_fit(fit_of(session, job), form)


def _names_a_model(settings: dict[str, Any], allowed: Collection[str] = ()) -> bool:
    """Return True if the settings name a model; if not, reject settings that are not ``allowed``."""
    given = [name for name, value in settings.items() if value not in (None, ())]
    if "model" in given or "config" in given:
        return True
    if more := [name for name in given if name not in allowed]:
        raise click.UsageError(f"--{more[0].replace('_', '-')} needs --model or --config")
    return False


def _show_fits_on(found: "Result", gpu: str, gpus: int, form: str) -> None:
    from pipeline.cli.printing import for_people, show

    if form != "table":
        show(found, form)
        return
    place = found.columns.index("verdict")
    fitting = [row for row in found.rows if row[place] == "fits"]
    if fitting:
        show(for_people(replace(found, rows=fitting), FITS_ON), form)
    tell()
    tell(
        f"{len(fitting)} of {len(found.rows)} pairs of model and method fit on {gpus} x {gpu} with a "
        "probability of 90% or more; --format csv lists the others, too."
    )


def _show_fit(found: "Fit", form: str) -> None:
    from pipeline.cli.printing import for_people, show, show_object

    if form == "json":
        lists = {"memory": found.memory, "micro_batches": found.micro_batches}
        parts = {name: list(rows.dicts()) for name, rows in lists.items()}
        show_object({**found.plan, **parts})
        return
    if form != "table":
        show(found.plans, form)
        return
    for line in found.sentences():
        tell(line)
    tell()
    show(for_people(found.memory, ("part", "gib", "meaning")), form, in_lines=("meaning",))
    tell()
    if found.micro_batches.rows:
        show(for_people(found.micro_batches, MICRO_BATCHES), form)


@click.command()
@click.argument("one")
@click.argument("other")
@with_options(*JOB)
@FORMAT
def compare(one: str, other: str, form: str, **settings: Any) -> None:
    """Compare two GPUs side by side: facts and prices; if a job is given, its cost on each comes first."""
    from pipeline.cli.printing import show
    from pipeline.questions.fit import compare as compared

    job, given, left_out = job_of_work(settings) if _names_a_model(settings) else (None, None, [])
    with prices(given, notes=left_out) as session:
        found = compared(session, one, other, job)
        if form == "table":
            found = _compared_for_people(found, one, other)
        show(found, form, in_lines=found.columns[:3], always=3)


def _compared_for_people(found: "Result", one: str, other: str) -> "Result":
    """Return the facts under the cards' names, with numbers to four digits and P(fits) as a percentage."""
    from pipeline.questions.reasons import percent_text

    def shown(fact: str, value: str | None) -> str | None:
        if fact == "job_fit_probability" and value is not None:
            return percent_text(float(value))
        return _four_digits(value)

    rows = [
        (fact, shown(fact, left), shown(fact, right), meaning) for fact, left, right, meaning in found.rows
    ]
    return replace(found, columns=("fact", one, other, "meaning"), rows=rows)


def _four_digits(value: str | None) -> str | None:
    """Round a number that has a fraction to four digits; return other text unchanged."""
    if value is None or not re.fullmatch(r"-?\d+\.\d+", value):
        return value
    number = float(value)
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
