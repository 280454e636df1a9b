"""Short questions: does it fit, what fits, and how do two GPUs compare."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.job_options import JOB, MODEL, RECIPE, job_of, whole_job_of, with_options
from pipeline.cli.parameters import FORMATS, today
from pipeline.cli.terminal import say, tell
from pipeline.home import paths

if TYPE_CHECKING:
    from pipeline.questions.fit import Fit
    from pipeline.warehouse.query import Result

COLUMNS_OF_MICRO_BATCHES = (
    ("checkpointing", "checkpointing"),
    ("micro_batch", "largest micro-batch"),
    ("memory_gib", "GiB/GPU"),
    ("fit_probability", "P(fits)"),
    ("tokens_per_second", "tokens/s"),
)
COLUMNS_OF_MEMORY = (("part", "memory"), ("gib", "GiB/GPU"), ("meaning", "meaning"))
COLUMNS_OF_FITS_ON = (
    ("model", "model"),
    ("params_billion", "B params"),
    ("method", "method"),
    ("memory_gib", "GiB/GPU"),
    ("fit_probability", "P(fits)"),
    ("tokens_per_second", "tokens/s"),
)


@click.command()
@with_options(MODEL, RECIPE)
@click.option("--gpu", required=True, help="One card, such as rtx-4090.")
@click.option("--gpus", type=click.IntRange(min=1), default=1, show_default=True, help="Exactly so many.")
@click.option("--format", "form", type=FORMATS, default="table", show_default=True)
def fit(model: str | None, config: Path | None, gpu: str, gpus: int, form: Any, **recipe: Any) -> None:
    """Say whether a model fits on a GPU: memory part by part, P(fits), speed, and the largest micro-batch.

    Without --model and --config: which models fit there, by method.
    """
    from pipeline.questions.fit import fit as fit_of
    from pipeline.questions.fit import fits_on
    from pipeline.questions.prices import prices_of
    from pipeline.questions.session import Session

    if model is None and config is None:
        _refuse_more_than({"seq_len"}, recipe)
        with prices_of(paths.home(), None, today()) as connection:
            found = fits_on(Session(connection), gpu, gpus, recipe["seq_len"] or 2048)
        _show_fits_on(found, gpu, gpus, form)
        return
    job, given, left_out = job_of(model, config, {**recipe, "gpu": gpu, "gpus": gpus})
    with prices_of(paths.home(), None, today(), given) as connection:
        found_fit = fit_of(Session(connection), job)
    _show_fit(found_fit, form)
    for line in left_out:
        say(line)


def _refuse_more_than(allowed: set[str], recipe: dict[str, Any]) -> None:
    more = [name for name, value in recipe.items() if name not in allowed and value not in (None, ())]
    if more:
        raise click.UsageError(f"--{more[0].replace('_', '-')} needs --model or --config")


def _show_fits_on(found: Any, gpu: str, gpus: int, form: Any) -> None:
    from pipeline.cli.printing import show, with_percent
    from pipeline.questions.fit import only_what_fits

    if form != "table":
        show(found, form)
        return
    some = only_what_fits(found)
    if some.rows:
        show(with_percent(some.only(COLUMNS_OF_FITS_ON)), form)
    tell()
    tell(
        f"{len(some.rows)} of {len(found.rows)} models and methods fit on {gpus} x {gpu} with a "
        "probability of 90% or more; --format csv has the others, and why they do not."
    )


def _show_fit(found: "Fit", form: Any) -> None:
    from pipeline.cli.printing import show, show_object, with_percent

    if form == "json":
        lists = {"memory": found.memory, "micro_batches": found.micro_batches}
        parts = {name: list(rows.dicts()) for name, rows in lists.items()}
        show_object({**found.plan, **parts})
        return
    if form != "table":
        show(found.plan_as_result, form)
        return
    for line in found.sentences():
        tell(line)
    tell()
    show(found.memory.only(COLUMNS_OF_MEMORY), form, in_lines=("meaning",))
    tell()
    if found.micro_batches.rows:
        show(with_percent(found.micro_batches.only(COLUMNS_OF_MICRO_BATCHES)), form)


@click.command()
@click.argument("one")
@click.argument("other")
@with_options(JOB)
@click.option("--format", "form", type=FORMATS, default="table", show_default=True)
def compare(one: str, other: str, form: Any, model: str | None, config: Path | None, **settings: Any) -> None:
    """Put two GPUs side by side: facts and prices; with a job, first what it costs on each."""
    from pipeline.cli.printing import show
    from pipeline.questions.fit import compare as compared
    from pipeline.questions.prices import prices_of
    from pipeline.questions.session import Session
    from pipeline.warehouse.query import age_note

    job, given, left_out = None, None, list[str]()
    if model is None and config is None:
        _refuse_more_than(set(), settings)
    else:
        job, given, left_out = whole_job_of(model, config, settings)
    with prices_of(paths.home(), None, today(), given) as connection:
        found = compared(Session(connection), one, other, job)
        note = age_note(connection, today())
    for line in left_out:
        say(line)
    if form == "table":
        found = _compared_for_people(found, one, other)
    show(found, form, in_lines=found.columns[:3], always=3)
    say(note)


def _compared_for_people(found: "Result", one: str, other: str) -> "Result":
    """The facts under the names of the cards, numbers in four digits, P(fits) in words."""
    from pipeline.questions.explanation import percent_text

    def shown(fact: str, value: str | None) -> str | None:
        if fact == "job_fit_probability" and value is not None:
            return percent_text(float(value))
        return _four_digits(value)

    rows = [
        (fact, shown(fact, left), shown(fact, right), meaning) for fact, left, right, meaning in found.rows
    ]
    return type(found)(("fact", one, other, "meaning"), found.types, rows)


def _four_digits(value: str | None) -> str | None:
    """A number with a fraction; other text as it is."""
    if value is None or not re.fullmatch(r"-?\d+\.\d+", value):
        return value
    number = float(value)
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
