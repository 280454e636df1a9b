"""Questions about a job, to the published file: the cheapest way to run it, why, and what it was before."""

import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import date, datetime
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
    from pipeline.questions.job import Job
    from pipeline.questions.session import Session

NOT_BELOW, NO_ANSWER = 3, 4
"""Exit codes of `gpufare watch` where the job costs as much as the limit, or more, and where nothing runs it;
1 and 2 are errors."""


@contextmanager
def question(
    model: str | None, config: Path | None, settings: dict[str, Any], day: date | None = None
) -> "Iterator[tuple[Job, Session]]":
    """Ask a job of the published prices, or of those of ``day``. After the answer stderr gets what is not
    read of the config.json, and the age of the published prices."""
    from pipeline.questions.prices import prices_of
    from pipeline.questions.session import Session
    from pipeline.warehouse.query import age_note

    job, given, left_out = whole_job_of(model, config, settings)
    follow = progress_shown(f"building the prices of {day}") if day else nullcontext(no_progress)
    with ExitStack() as stack:
        with follow as progress:
            connection = stack.enter_context(prices_of(paths.home(), day, today(), given, progress))
        yield job, Session(connection)
        note = None if day else age_note(connection, today())
    for line in left_out:
        say(line)
    say(note)


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
    from pipeline.questions.sources_behind import not_asked_note, replayed_sources

    with question(model, config, settings, day.date() if day else None) as (job, session):
        result = session.cheapest(job, limit)
        machines = machine_lines(job, session, limit)
        if not result.rows:
            of_day = ("--day", f"{day:%Y-%m-%d}") if day else ()
            raise click.ClickException("\n".join([nothing_fits(job, session, config, of_day), *machines]))
        if form == "table":
            show(ranking_for_people(result), form, first=first_of_cheapest(result))
            tell()
            for line in (*explained(next(result.dicts()), replayed_sources(session.connection)), *machines):
                tell(line)
            say(None if day else not_asked_note(session.connection, paths.home(), os.environ))
            say(own_runs_note(paths.home(), result.dicts()))
        else:
            show(result, form)
            for line in machines:
                say(line)


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
    from pipeline.cli.printing import show, show_object, with_text
    from pipeline.questions.explain import explain as explanation_of
    from pipeline.questions.explain import why_not_sentences
    from pipeline.questions.explanation import explained, nothing_fits
    from pipeline.questions.sources_behind import replayed_sources

    with question(model, config, settings) as (job, session):
        found = explanation_of(session, job, rank, not_gpu)
        if found is None:
            raise click.ClickException(nothing_fits(job, session, config))
        if form == "json":
            show_object({**found.row, "parts": list(found.parts.dicts()), "why_not": found.why_not})
        elif form == "table":
            for line in explained(found.row, replayed_sources(session.connection)):
                tell(line)
            tell()
            # As they are added: rounded to cents they would not add up.
            parts = with_text(found.parts.only(COLUMNS_OF_PARTS), "USD", "{:,.4f}".format)
            show(parts, form, in_lines=("how",))
            tell()
            for line in (*why_not_sentences(found), *found.machines):
                tell(line)
        else:
            show(found.parts, form)


COLUMNS_OF_PARTS = (("part", "part"), ("usd", "USD"), ("how", "how"))
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
    from pipeline.cli.printing import show, with_text
    from pipeline.questions.explain import HISTORY_LEAVES_OUT, age_of_newest
    from pipeline.questions.explain import history as history_of
    from pipeline.questions.explanation import nothing_fits

    with question(model, config, settings) as (job, session):
        found = history_of(session, job)
        if not found.rows:
            raise click.ClickException(nothing_fits(job, session, config))
        shown = found
        if form == "table":
            shown = found.only(COLUMNS_OF_HISTORY)
            for heading in ("total USD", "USD/GPU hour"):
                shown = with_text(shown, heading, _all_digits)
        show(shown, form)
        for line in (HISTORY_LEAVES_OUT, age_of_newest(found, today())):
            say(line)


def _all_digits(usd: float) -> Decimal:
    """Money as a decimal, of which no digit is cut."""
    return Decimal(f"{usd:.6f}")


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

    if not math.isfinite(limit_usd):
        raise click.UsageError("--below must be a number of US dollars")
    with question(model, config, settings) as (job, session):
        found = watched(session, job, limit_usd, config)
        show_object(found)
        say(found["reason"])
    if found["reason"]:
        raise click.exceptions.Exit(NO_ANSWER)
    if not found["below"]:
        raise click.exceptions.Exit(NOT_BELOW)
