"""Questions about a job, to the published file: the cheapest way to run it, why, and what it was before."""

import math
import os
from contextlib import nullcontext
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.job_options import JOB, whole_job_of, with_options
from pipeline.cli.parameters import DAY, FORMATS, today
from pipeline.cli.terminal import progress_shown, say, tell
from pipeline.contracts.progress import no_progress
from pipeline.home import paths

if TYPE_CHECKING:
    from pipeline.warehouse.query import Result

NOT_BELOW, NO_ANSWER = 3, 4
"""Exit codes of `gpufare watch` where the job costs as much as the limit, or more, and where nothing runs it;
1 and 2 are errors."""


@click.command()
@with_options(JOB)
@click.option("--day", type=DAY, help="Prices of that day instead of the newest.")
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="Rows to show.")
@click.option("--format", "form", type=FORMATS, default="table", show_default=True)
def cheapest(
    day: datetime | None,
    limit: int,
    form: Any,
    model: str | None,
    config: Path | None,
    **settings: Any,
) -> None:
    """Rank the offers for one training job by dollars per finished job.

    All that is asked for applies before anything is ranked. Options that take a NAME can be repeated.
    """
    from pipeline.cli.printing import first_of_cheapest, ranking_for_people, show
    from pipeline.questions.explanation import explained, machine_lines, nothing_fits
    from pipeline.questions.own_runs import own_runs_note
    from pipeline.questions.prices import prices_of
    from pipeline.questions.session import Session
    from pipeline.questions.sources_behind import not_asked_note, replayed_sources
    from pipeline.warehouse.query import age_note

    job, given, left_out = whole_job_of(model, config, settings)
    asked_day = day.date() if day else None
    follow = progress_shown(f"building the prices of {asked_day}") if day else nullcontext(no_progress)
    with (
        follow as progress,
        prices_of(paths.home(), asked_day, today(), given, progress) as connection,
    ):
        session = Session(connection)
        result = session.cheapest(job, limit)
        machines = machine_lines(job, session, limit)
        if not result.rows:
            of_day = ("--day", f"{day:%Y-%m-%d}") if day else ()
            raise click.ClickException("\n".join([nothing_fits(job, session, config, of_day), *machines]))
        note = None if day else age_note(connection, today())
        replayed = replayed_sources(connection)
        not_asked = None if day else not_asked_note(connection, paths.home(), os.environ)
    if form == "table":
        show(ranking_for_people(result), form, first=first_of_cheapest(result))
        tell()
        for line in (*explained(next(result.dicts()), replayed), *machines):
            tell(line)
        say(not_asked)
        say(own_runs_note(paths.home(), result.dicts()))
    else:
        show(result, form)
        for line in machines:
            say(line)
    for line in left_out:
        say(line)
    say(note)


@click.command()
@with_options(JOB)
@click.option(
    "--rank", type=click.IntRange(min=1), default=1, show_default=True, help="The answer to explain."
)
@click.option("--not-gpu", metavar="NAME", help="Say why this GPU, or family of GPUs, is not the answer.")
@click.option("--format", "form", type=FORMATS, default="table", show_default=True)
def explain(
    rank: int, not_gpu: str | None, form: Any, model: str | None, config: Path | None, **settings: Any
) -> None:
    """Say why a job costs what it does, part by part, and why a GPU is not the answer."""
    from pipeline.cli.printing import show, show_object
    from pipeline.questions.explain import explain as explanation_of
    from pipeline.questions.explain import why_not_sentences
    from pipeline.questions.explanation import explained, nothing_fits
    from pipeline.questions.prices import prices_of
    from pipeline.questions.session import Session
    from pipeline.questions.sources_behind import replayed_sources
    from pipeline.warehouse.query import age_note

    job, given, left_out = whole_job_of(model, config, settings)
    with prices_of(paths.home(), None, today(), given) as connection:
        session = Session(connection)
        found = explanation_of(session, job, rank, not_gpu)
        if found is None:
            raise click.ClickException(nothing_fits(job, session, config))
        note, replayed = age_note(connection, today()), replayed_sources(connection)
    if form == "json":
        parts = {"parts": list(found.parts.dicts()), "why_not": found.why_not}
        show_object({**found.row, **parts})
    elif form == "table":
        for line in explained(found.row, replayed):
            tell(line)
        tell()
        show(_to_the_hundredth_of_a_cent(found.parts), form, in_lines=("how",))
        tell()
        for line in (*why_not_sentences(found), *found.machines):
            tell(line)
    else:
        show(found.parts, form)
    for line in left_out:
        say(line)
    say(note)


def _to_the_hundredth_of_a_cent(parts: "Result") -> "Result":
    """The parts of a total as they are added: rounded to cents they would not add up."""
    rows = [(part, f"{usd:,.4f}", how) for part, usd, how in parts.rows]
    return type(parts)(("part", "USD", "how"), parts.types, rows)


COLUMNS_OF_HISTORY = (
    ("day", "day"),
    ("total_usd", "total USD"),
    ("hours", "hours"),
    ("gpu", "GPU"),
    ("gpu_count", "count"),
    ("provider", "provider"),
    ("price_kind", "kind"),
    ("usd_per_gpu_hour", "USD/GPU hour"),
    ("sources", "sources"),
)


@click.command()
@with_options(JOB)
@click.option("--format", "form", type=FORMATS, default="table", show_default=True)
def history(form: Any, model: str | None, config: Path | None, **settings: Any) -> None:
    """Show what a job cost at its cheapest on each day that is on record."""
    from pipeline.cli.printing import show
    from pipeline.questions.explain import HISTORY_LEAVES_OUT, age_of_newest
    from pipeline.questions.explain import history as history_of
    from pipeline.questions.explanation import nothing_fits
    from pipeline.questions.prices import prices_of
    from pipeline.questions.session import Session
    from pipeline.warehouse.query import age_note

    job, given, left_out = whole_job_of(model, config, settings)
    with prices_of(paths.home(), None, today(), given) as connection:
        session = Session(connection)
        found = history_of(session, job)
        if not found.rows:
            raise click.ClickException(nothing_fits(job, session, config))
        note = age_note(connection, today())
    show(_with_all_digits(found.only(COLUMNS_OF_HISTORY)) if form == "table" else found, form)
    for line in (*left_out, HISTORY_LEAVES_OUT, age_of_newest(found, today())):
        say(line)
    say(note)


def _with_all_digits(days: "Result") -> "Result":
    """Money as decimals, of which no digit is cut."""
    money = [place for place, heading in enumerate(days.columns) if "USD" in heading]
    rows = [
        tuple(Decimal(f"{value:.6f}") if place in money else value for place, value in enumerate(row))
        for row in days.rows
    ]
    return type(days)(days.columns, days.types, rows)


@click.command()
@with_options(JOB)
@click.option(
    "--below",
    "limit_usd",
    required=True,
    type=click.FloatRange(min=0, min_open=True),
    help="US dollars for the finished job.",
)
def watch(limit_usd: float, model: str | None, config: Path | None, **settings: Any) -> None:
    """Check whether a job's cheapest answer costs less than a limit: for cron and scripts.

    Prints one JSON object; "stale" says that the price is older than two days, and --max-age-days refuses
    such prices. The exit code is 0 when it does, 3 when it does not, and 4 when nothing runs the job as it is
    asked for: "reason" then says why. 1 and 2 are errors.
    """
    from pipeline.cli.printing import show_object
    from pipeline.questions.explain import watched
    from pipeline.questions.prices import prices_of
    from pipeline.questions.session import Session
    from pipeline.warehouse.query import age_note

    if not math.isfinite(limit_usd):
        raise click.UsageError("--below must be a number of US dollars")
    job, given, left_out = whole_job_of(model, config, settings)
    with prices_of(paths.home(), None, today(), given) as connection:
        found = watched(Session(connection), job, limit_usd, config)
        note = age_note(connection, today())
    show_object(found)
    for line in (*left_out, found["reason"]):
        say(line)
    say(note)
    if found["reason"]:
        raise click.exceptions.Exit(NO_ANSWER)
    if not found["below"]:
        raise click.exceptions.Exit(NOT_BELOW)
