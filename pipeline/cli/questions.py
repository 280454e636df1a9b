"""Questions that the published file answers about a job: the cheapest way to run it, why, and past costs."""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from pipeline.catalog.job_settings import RUNS_PER_YEAR
from pipeline.cli.completion import names_of
from pipeline.cli.job_options import JOB, RECIPE, job_of, job_of_work, with_options
from pipeline.cli.parameters import DAY, FORMAT, today
from pipeline.cli.terminal import height, progress_shown, say, tell, width, wrapped
from pipeline.contracts.progress import no_progress
from pipeline.home import paths

if TYPE_CHECKING:
    from pipeline.catalog.own import OwnModel
    from pipeline.questions.fit import Fit
    from pipeline.questions.job import Job
    from pipeline.questions.session import Session
    from pipeline.questions.summary import Told
    from pipeline.questions.why import Explanation
    from pipeline.warehouse.query import Result

ROWS, LEAST_ROWS = 10, 3
"""The rows of a ranking: the most, and the fewest if a screen has no room for more."""

AROUND_ROWS = 3
"""Lines of a screen besides rows and sentences: the command, the headings, and the next prompt."""

AROUND_LIST = 6
"""Lines of a screen besides a list and sentences: the command, two of headings, a blank, a note, and the next
prompt."""

AROUND_TEXT = 2
"""Lines of a screen besides an answer: the command and the next prompt."""

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
        note = age_note(connection, paths.home(), today()) if with_age and not day else None
    for line in (*notes, note):
        say(line)


@contextmanager
def question(
    settings: dict[str, Any], day: date | None = None, *, with_age: bool = True
) -> "Iterator[tuple[Job, Session]]":
    """Open ``prices`` for a job, with notes on the parts of its config.json that are not read."""
    job, given, left_out = job_of_work(settings)
    with prices(given, day, left_out, with_age=with_age) as session:
        yield job, session


class _WithColumns(click.Command):
    """A command whose help ends with the meaning of the columns of its table."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each column."""
        from pipeline.questions.tables import CHEAPEST, HEADINGS
        from pipeline.questions.terms import columns_meanings

        with formatter.section("Columns (gpufare explain NAME tells more)"):
            found = columns_meanings(CHEAPEST)
            formatter.write_dl([(HEADINGS.get(name, name), text) for name, text in found.items()])


@click.command(cls=_WithColumns)
@with_options(*JOB)
@click.option("--day", type=DAY, help="Use the prices from this day (UTC) instead of the newest.")
@click.option("--limit", type=click.IntRange(min=1), help=f"Rows to show; by default, {ROWS}.")
@click.option(
    "--every",
    type=click.Choice(list(RUNS_PER_YEAR), case_sensitive=False),
    help="Run the job again every day, week or month: add the cost of a year, rented anew or kept.",
)
@FORMAT
def cheapest(day: datetime | None, limit: int | None, every: str | None, form: str, **settings: Any) -> None:
    """Rank the offers for one training job by dollars per finished job.

    The picks come first: the cheapest answer, the best value (a little more money for much less time) and the
    safest (a company's own machine). A terminal shows as many further ranks as fit its screen.

    All constraints are applied before anything is ranked. Options that take a NAME can be repeated.
    """
    from pipeline.cli.printing import show
    from pipeline.questions.alternatives import foreseen
    from pipeline.questions.recurring import kept_machines, recurring_lines, with_year
    from pipeline.questions.words import machine_lines, nothing_fits

    with question(settings, day.date() if day else None, with_age=form != "table") as (job, session):
        found = session.with_picks(job, limit or ROWS, foreseen(job) if form == "table" else ())
        if not found.rows:
            of_day = ("--day", f"{day:%Y-%m-%d}") if day else ()
            reasons = [nothing_fits(job, session, of_day), *machine_lines(job, session, limit or ROWS)]
            raise click.ClickException("\n".join([*reasons, *([] if day else not_asked(session))]))
        runs = RUNS_PER_YEAR[every] if every else None
        if form == "table":
            _show_ranking(session, job, found, limit, runs, is_newest=day is None)
        else:
            some = found.first(limit or ROWS)
            show(with_year(some, runs) if runs else some, form)
            for line in machine_lines(job, session, limit or ROWS):
                say(line)
            if runs:
                for line in recurring_lines(list(found.dicts()), kept_machines(session, job, runs), runs):
                    say(line)


def _show_ranking(
    session: "Session",
    job: "Job",
    found: "Result",
    limit: int | None,
    runs_per_year: int | None,
    *,
    is_newest: bool,
) -> None:
    """Print a ranking that fits the screen: what was asked, the picks, as many further ranks as fit, and what
    to know before renting."""
    from pipeline.cli.printing import table_lines
    from pipeline.questions.summary import picks_first, title, told_beside
    from pipeline.questions.tables import ranking_for_people

    rows = list(found.dicts())
    asked = title(job, rows[0])
    told = told_beside(session, job, rows, limit or ROWS, runs_per_year)
    notes = _notes(session) if is_newest else []
    # What matters least gives way if the screen is too small for the picks.
    room = _rows_that_fit([asked, "", *(line.text for line in (*told, *notes))])
    while room < LEAST_ROWS and (weight := max((line.weight for line in (*told, *notes)), default=0)):
        told, notes = ([line for line in lines if line.weight < weight] for lines in (told, notes))
        room = _rows_that_fit([asked, "", *(line.text for line in (*told, *notes))])
    room = max(LEAST_ROWS, room)
    tell(asked)
    for text in table_lines(ranking_for_people(found, picks_first(rows)[: limit or room])):
        click.echo(text)
    tell()
    for line in told:
        tell(line.text)
    for line in notes:
        say(line.text)


def _notes(session: "Session") -> "list[Told]":
    """Return notes on sources that are not asked, and on the prices' age."""
    from pipeline.questions.summary import Told
    from pipeline.warehouse.query import age_note

    age = age_note(session.connection, paths.home(), today())
    return [*(Told(note, 3) for note in not_asked(session)), *([Told(age, 0)] if age else [])]


def not_asked(session: "Session") -> list[str]:
    """Return the note on the sources that are not asked, if there are any."""
    from pipeline.questions.sources_behind import not_asked_note

    note = not_asked_note(session.connection, paths.home(), os.environ)
    return [note] if note else []


def _rows_that_fit(others: Sequence[str]) -> int:
    """Return the number of rows that a ranking may have so that it fits the screen below ``others``."""
    rows = rows_on_screen(others, AROUND_ROWS)
    return ROWS if rows is None else min(ROWS, rows)


def rows_on_screen(others: Sequence[str], around: int) -> int | None:
    """Return the number of rows, at least one, that fit the screen beside ``others`` and ``around`` more
    lines, or None for a pipe or a file."""
    lines = height()
    return None if lines is None else max(1, lines - _lines_taken(others) - around)


def _lines_taken(texts: Sequence[str]) -> int:
    """Return the number of lines that texts take on the terminal."""
    return sum(wrapped(text, width()).count("\n") + 1 for text in texts)


def _fits_screen(texts: Sequence[str]) -> bool:
    """True if texts fit the screen below the command and above the next prompt."""
    lines = height()
    return lines is None or _lines_taken(texts) + AROUND_TEXT <= lines


@click.command()
@with_options(*JOB)
@click.option(
    "--rank", type=click.IntRange(min=1), default=1, show_default=True, help="Rank of the answer to explain."
)
@click.option(
    "--not-gpu",
    metavar="NAME",
    shell_complete=names_of("gpu"),
    help="Explain why this GPU or family of GPUs is not the answer.",
)
@click.argument("term", required=False)
@FORMAT
def explain(term: str | None, rank: int, not_gpu: str | None, form: str, **settings: Any) -> None:
    """Explain what a job costs, part by part, and why another GPU is not the answer; or what a TERM means.

    TERM is a word of an answer: a heading such as "P(fits)" or hours, a value such as spot, an option, or a
    cost parameter.
    """
    from pipeline.cli.printing import show, show_object
    from pipeline.questions.why import explain as explanation_of

    if term is not None:
        _explain_term(term, {**settings, "not_gpu": not_gpu, "rank": None if rank == 1 else rank})
        return
    with question(settings) as (job, session):
        found = explanation_of(session, job, rank, not_gpu)
        if form == "json":
            show_object({**found.row, "parts": list(found.parts.dicts()), "why_not": found.why_not})
        elif form == "table":
            _show_explanation(session, found)
        else:
            show(found.parts, form)


def _explain_term(term: str, settings: dict[str, Any]) -> None:
    from pipeline.questions.tables import HEADINGS
    from pipeline.questions.terms import meanings

    if given := [name for name, value in settings.items() if value not in (None, ())]:
        raise click.UsageError(f"explain takes a TERM or a job: leave out {term} or --{given[0]}")
    for line in meanings(term, HEADINGS):
        tell(line)


def _show_explanation(session: "Session", found: "Explanation") -> None:
    """Print why a GPU is not the answer, if that was asked; otherwise an explanation that fits the screen: if
    it must, the assumptions give way, then the plan, then how far off the model was."""
    from pipeline.cli.printing import table_lines
    from pipeline.questions.sources_behind import replayed_sources
    from pipeline.questions.tables import for_people
    from pipeline.questions.why import why_not_sentences
    from pipeline.questions.words import assumptions, cost_text, explained, plan_text
    from pipeline.warehouse.query import age_note

    if found.why_not:
        for line in (*why_not_sentences(found), f"Rank {found.row['rank']}: {cost_text(found.row)}."):
            tell(line)
        return
    # If rounded to cents, the parts would not add up.
    parts = for_people(found.parts, PARTS, usd=lambda row: f"{row['usd']:,.4f}")
    below = ["", *table_lines(parts, in_lines=("how",)), *found.machines]
    age = age_note(session.connection, paths.home(), today())
    told = [*explained(found.row, replayed_sources(session.connection)), *found.checked]
    for line in (*assumptions(found.row)[::-1], plan_text(found.row), *found.checked):
        if not _fits_screen([*told, *below, age or ""]):
            told.remove(line)
    for line in (*told, *below):
        tell(line)


PARTS = ("part", "usd", "how")
HISTORY = (
    "day", "total_usd", "hours", "gpu", "gpu_count", "provider", "price_kind", "usd_per_gpu_hour", "sources",
)  # fmt: skip
FACTS = (
    "job_total_usd", "job_hours", "job_gpu_count", "job_provider", "job_tokens_per_second",
    "job_fit_probability", "on_demand_usd_per_gpu_hour", "on_demand_provider", "spot_usd_per_gpu_hour",
    "spot_provider", "reserved_usd_per_gpu_hour", "providers", "memory_gb", "bandwidth_gb_s",
    "bf16_dense_tflops", "gemm_bf16_measured_tflops", "fp8_dense_tflops", "nvlink_gb_s", "year",
    "reference_tokens_per_second", "reference_tokens_per_usd",
)  # fmt: skip
"""The facts of two cards that a table for people compares, most important first."""

MICRO_BATCHES = ("checkpointing", "micro_batch", "memory_gib", "fit_probability", "tokens_per_second")
FITS_ON = ("model", "params_billion", "method", "memory_gib", "fit_probability", "tokens_per_second")
"""Columns of the tables for people."""


@click.command()
@with_options(*JOB)
@FORMAT
def history(form: str, **settings: Any) -> None:
    """Show the lowest cost of a job on each day on record."""
    from pipeline.cli.printing import show
    from pipeline.questions.tables import OF_OFFERS, for_people, prices_line
    from pipeline.questions.why import HISTORY_LEAVES_OUT, age_of_newest
    from pipeline.questions.why import history as history_of
    from pipeline.questions.words import nothing_fits

    with question(settings, with_age=False) as (job, session):
        found = history_of(session, job)
        if not found.rows:
            raise click.ClickException(nothing_fits(job, session))
        shown = for_people(
            found,
            HISTORY,
            total_usd=lambda row: _all_digits(row["total_usd"]),
            usd_per_gpu_hour=lambda row: _all_digits(row["usd_per_gpu_hour"]),
            price_kind=OF_OFFERS["price_kind"],
        )
        if form == "table":
            usd = [row["total_usd"] for row in found.dicts()]
            spread = f"${min(usd):,.2f} to ${max(usd):,.2f} on {len(usd)} days"
            tell(f"{prices_line(usd)}  {spread}, now ${usd[-1]:,.2f}")
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
    help="The limit, in US dollars for the finished job.",
)
def watch(limit_usd: str, **settings: Any) -> None:
    """Check whether a job's cheapest answer costs less than a limit, for use in cron and scripts.

    Prints one JSON object, in which "stale" is true if the price is older than two days; --max-age-days
    excludes such prices. The exit code is 0 if the job costs less than the limit, 3 if it does not, and 4 if
    nothing can run it with these constraints; "reason" then says why. Codes 1 and 2 indicate errors.
    """
    from pipeline.cli.printing import show_object
    from pipeline.questions.job import number
    from pipeline.questions.why import watched

    limit = number("below", limit_usd, "USD")
    with question(settings) as (job, session):
        found = watched(session, job, limit)
        show_object(found)
        say(found["reason"])
    if found["reason"]:
        raise click.exceptions.Exit(NO_ANSWER)
    if not found["below"]:
        raise click.exceptions.Exit(NOT_BELOW)


@click.command()
@with_options(*RECIPE)
@click.option(
    "--gpu",
    required=True,
    shell_complete=names_of("gpu"),
    help="One card, such as rtx-4090, or a model of GPU, such as h100.",
)
@click.option("--gpus", metavar="NUMBER", default="1", show_default=True, help="Number of GPUs.")
@FORMAT
def fit(gpu: str, gpus: str, form: str, **recipe: Any) -> None:
    """Check whether a model fits on a GPU: memory part by part, P(fits), speed, and the largest micro-batch.

    Without --model or --config, list the models that fit on the GPU, by method.
    """
    from pipeline.questions.fit import family_notes, fits_on
    from pipeline.questions.fit import fit as fit_of
    from pipeline.questions.job import whole

    if not _names_a_model(recipe, {"seq_len"}):
        count = whole("gpus", gpus, least=1)
        with prices(with_age=False) as session:
            _show_fits_on(fits_on(session, gpu, count, recipe["seq_len"]), gpu, count, form)
            for line in family_notes(session, gpu):
                say(line)
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
    from pipeline.cli.printing import show
    from pipeline.questions.fit import largest_that_fit
    from pipeline.questions.tables import for_people

    if form != "table":
        show(found, form)
        return
    place = found.columns.index("verdict")
    fitting = [row for row in found.rows if row[place] == "fits"]
    told = [
        f"{len(fitting)} of {len(found.rows)} pairs of model and method fit on {gpus} x {gpu} with a "
        "probability of 90% or more; --format csv lists the others, too.",
        *largest_that_fit(found),
    ]
    rows = rows_on_screen(told, AROUND_LIST) or len(fitting)
    if fitting:
        show(for_people(replace(found, rows=fitting[-rows:]), FITS_ON), form)
    tell()
    for line in told:
        tell(line)


def _show_fit(found: "Fit", form: str) -> None:
    from pipeline.cli.printing import show, show_object
    from pipeline.questions.tables import for_people

    if form != "table":
        for line in found.notes:
            say(line)
    if form == "json":
        lists = {"memory": found.memory, "micro_batches": found.micro_batches}
        parts = {name: list(rows.dicts()) for name, rows in lists.items()}
        show_object({**found.plan, **parts})
        return
    if form != "table":
        show(found.plans, form)
        return
    for line in found.sentences(briefly=True):
        tell(line)
    tell()
    show(for_people(found.memory, ("part", "gib", "meaning")), form, in_lines=("meaning",))
    tell()
    if found.micro_batches.rows:
        show(for_people(found.micro_batches, MICRO_BATCHES), form)


@click.command()
@click.argument("one", shell_complete=names_of("gpu"))
@click.argument("other", shell_complete=names_of("gpu"))
@with_options(*JOB)
@FORMAT
def compare(one: str, other: str, form: str, **settings: Any) -> None:
    """Compare two GPUs side by side: facts and prices; if a job is given, its cost on each comes first."""
    from pipeline.cli.printing import show
    from pipeline.questions.fit import compare as compared
    from pipeline.questions.fit import family_notes
    from pipeline.warehouse.query import age_note

    job, given, left_out = job_of_work(settings) if _names_a_model(settings) else (None, None, [])
    with prices(given, with_age=False) as session:
        found = compared(session, one, other, job)
        age = age_note(session.connection, paths.home(), today())
        notes = [note for note in (*family_notes(session, one, other), *left_out, age) if note]
        if form == "table":
            _show_compared(_compared_for_people(found, one, other), notes)
        else:
            show(found, form)
        for line in notes:
            say(line)


def _show_compared(found: "Result", notes: Sequence[str]) -> None:
    """Print as many facts as fit the screen above ``notes``, the most important first."""
    from pipeline.cli.printing import table_lines

    def lines_of(facts: int) -> list[str]:
        more = len(found.rows) - facts
        left_out = [f"{more} facts more with --format record"] if more else []
        return [*table_lines(found.first(facts), in_lines=found.columns[:3], always=3), *left_out]

    shown = len(found.rows)
    while shown > LEAST_ROWS and not _fits_screen([*lines_of(shown), *notes]):
        shown -= 1
    for line in lines_of(shown):
        click.echo(line)


def _compared_for_people(found: "Result", one: str, other: str) -> "Result":
    """Return the main facts under the cards' names, with numbers to four digits and P(fits) as a percentage;
    a fact that neither card has is skipped."""
    from pipeline.questions.reasons import percent_text

    def shown(fact: str, value: str | None) -> str | None:
        if fact == "job_fit_probability" and value is not None:
            return percent_text(float(value))
        return _four_digits(value)

    of_fact = {fact: (left, right, meaning) for fact, left, right, meaning in found.rows}
    rows = [
        (fact, shown(fact, left), shown(fact, right), meaning)
        for fact in FACTS
        if fact in of_fact
        for left, right, meaning in [of_fact[fact]]
    ]
    return replace(found, columns=("fact", one, other, "meaning"), rows=rows)


def _four_digits(value: str | None) -> str | None:
    """Round a number that has a fraction to four digits; return other text unchanged."""
    if value is None or not re.fullmatch(r"-?\d+\.\d+", value):
        return value
    number = float(value)
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
