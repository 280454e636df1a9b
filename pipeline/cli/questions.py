"""Questions to the published file: the cheapest way to run a job."""

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.parameters import DAY, EXISTING_FILE, FORMATS, Tokens, today
from pipeline.cli.terminal import say, tell
from pipeline.contracts import paths
from pipeline.contracts.listing import PRICE_KINDS
from pipeline.contracts.training import ADAPTER_METHODS, CHECKPOINTINGS, METHODS, STACKS

if TYPE_CHECKING:
    from pipeline.catalog.own_models import OwnModel


@click.command()
@click.option("--model", help="For example llama-3.1-8b.")
@click.option("--config", type=EXISTING_FILE, help="A config.json instead of --model.")
@click.option("--method", required=True, type=click.Choice(METHODS))
@click.option("--tokens", type=Tokens(), help="All tokens that pass through the model, e.g. 100M.")
@click.option("--examples", type=Tokens(), help="Instead of --tokens: training examples ...")
@click.option("--tokens-per-example", type=Tokens(), help="... of this many tokens ...")
@click.option("--epochs", type=click.FloatRange(min=0, min_open=True), help="... seen this many times.")
@click.option("--seq-len", type=click.IntRange(min=1), help="Tokens of one packed sequence.")
@click.option("--lora-rank", type=click.IntRange(min=1))
@click.option("--micro-batch", type=click.IntRange(min=1), help="Sequences per GPU and step.")
@click.option("--checkpointing", type=click.Choice(CHECKPOINTINGS))
@click.option(
    "--offload",
    type=click.Choice(["cpu"]),
    help="Plan with weights and optimizer in host memory, on two GPUs or more; not planned otherwise.",
)
@click.option(
    "--stack",
    type=click.Choice(STACKS),
    help="Training software.",
)
@click.option(
    "--kind",
    "kind",
    type=click.Choice([*PRICE_KINDS, "any"]),
    default="on_demand",
    show_default=True,
)
@click.option("--gpus", "gpus", type=click.IntRange(min=1), help="At most this many GPUs.")
@click.option(
    "--max-hours",
    type=click.FloatRange(min=0, min_open=True),
    help="Finished within this many hours; by default within a week where any answer is, inf for no limit.",
)
@click.option(
    "--min-fit-probability",
    type=click.FloatRange(min=0, max=1),
    help="Rank what does not run out of memory with this probability; by default 0.9.",
)
@click.option("--objective", type=click.Choice(["cost", "time"]), default="cost", show_default=True)
@click.option(
    "--assumed-sizes",
    is_flag=True,
    default=None,
    help="Also rank machines of which nothing says that they are sold: prices per GPU, times any number.",
)
@click.option("--day", type=DAY, help="Prices of that day instead of the newest.")
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="Rows to show.")
@click.option("--format", "form", type=FORMATS, default="table", show_default=True)
def cheapest(
    day: datetime | None,
    limit: int,
    form: Any,
    model: str | None,
    config: Path | None,
    **settings_of_job: Any,
) -> None:
    """Rank the offers for one training job by dollars per finished job."""
    from pipeline.cli.printing import FIRST_OF_CHEAPEST, ranking_for_people, show
    from pipeline.questions.explanation import explained, nothing_fits
    from pipeline.questions.job import Job
    from pipeline.questions.prices import prices_of
    from pipeline.questions.session import Session
    from pipeline.questions.sources_behind import not_asked_note, replayed_sources
    from pipeline.warehouse.query import age_note

    if (model is None) == (config is None):
        raise click.UsageError("give either --model or --config")
    given, left_out = _given(config)
    job = Job(model=given.model if given else str(model), **settings_of_job)
    by_examples = (job["examples"], job["tokens_per_example"])
    if (None in by_examples) if job["tokens"] is None else any(by_examples):
        raise click.UsageError("give either --tokens, or --examples and --tokens-per-example")
    if job["lora_rank"] and job["method"] not in ADAPTER_METHODS:
        raise click.UsageError(f"--lora-rank goes with lora and qlora, not with {job['method']}")
    with prices_of(paths.home(), day.date() if day else None, today(), given) as connection:
        session = Session(connection)
        result = session.cheapest(job)
        if not result.rows:
            raise click.ClickException(nothing_fits(job, session))
        note = None if day else age_note(connection, today())
        replayed = replayed_sources(connection)
        not_asked = None if day else not_asked_note(connection, paths.home(), os.environ)
    result = result.first(limit)
    if form == "table":
        show(ranking_for_people(result), form, first=FIRST_OF_CHEAPEST)
        tell()
        for line in explained(next(result.dicts()), replayed):
            tell(line)
        say(not_asked)
    else:
        show(result, form)
    for line in left_out:
        say(f"{config}: {line}")
    say(note)


def _given(config: Path | None) -> "tuple[OwnModel | None, list[str]]":
    """The model of a config.json, and what is left out of it."""
    if config is None:
        return None, []
    from pipeline.model.given_models import model_of_file

    return model_of_file(config)
