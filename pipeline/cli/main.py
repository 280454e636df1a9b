"""The command ``gpufare``: each command a few lines over the rooms below.

Heavy rooms are imported inside the commands that use them, so that ``gpufare --help`` answers at once.
"""

import json
import os
import sys
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.contracts import paths
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import PRICE_KINDS
from pipeline.contracts.training import ADAPTER_METHODS, CHECKPOINTINGS, METHODS, STACKS

if TYPE_CHECKING:
    from pipeline.contracts.rates import Rate

FORMATS = click.Choice(["table", "csv", "json"])
EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class _Moment(click.ParamType[datetime]):
    """A day or moment in ISO 8601; one that names no offset is in UTC."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The moment in UTC."""
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no moment like 2026-08-22 or 2026-08-22T06:00:00Z", param, ctx)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


UTC_MOMENT = _Moment()


class _WrongUse(click.ClickException):
    """An option or argument that cannot be: one line, without click's own usage text around it."""

    exit_code = 2


class _Commands(click.Group):
    """Shows errors that are meant for people as one line, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except GpufareError as error:
            raise click.ClickException(str(error)) from error
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            path = error.ctx.command_path if error.ctx else ctx.command_path
            told = " ".join(error.format_message().split())
            raise _WrongUse(f"{told} (see: {path} --help)") from error
        except BrokenPipeError:
            # The reader of our output went away (`gpufare ... | head`): that is no error of ours.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return None
        except OSError as error:
            # A folder that cannot be written, a full disk: the machine's state, told as such.
            raise click.ClickException(_told(error)) from error


def _told(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gpufare")
def main() -> None:
    """Dollars per finished training job: which GPU is cheapest today, where, and why."""


@main.command()
@click.option("--day", type=click.DateTime(["%Y-%m-%d"]), help="The day to read; today by default.")
@click.option("--source", "sources", multiple=True, help="Only this source (repeatable).")
@click.option(
    "--pages",
    help="Read saved answers instead of the providers: a folder, the URL of a replay server, or 'archive'.",
)
def refresh(day: datetime | None, sources: tuple[str, ...], pages: str | None) -> None:
    """Capture the price pages, read them, build the tables and publish."""
    from pipeline.daily.refresh import refresh as run

    report = run(
        paths.home(),
        day=day.date() if day else None,
        sources=sources,
        pages=pages,
        environment=os.environ,
        progress=lambda text: click.echo(text, err=True),
    )
    for line in report.lines():
        click.echo(line)
    if not report.published:
        raise click.ClickException(report.why_not_published())


@main.command()
@click.argument("pages", type=click.Path(exists=True, file_okay=False, path_type=Path))
def demo(pages: Path) -> None:
    """Run the whole line on the sample PAGES, served over HTTP on loopback, as of their own day."""
    from pipeline.daily.demo import run

    run(pages, paths.home(), click.echo)
    click.echo()
    click.echo("$ gpufare cheapest --model llama-3.1-8b --method qlora --tokens 100M")
    main(
        ["cheapest", "--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "100M"],
        standalone_mode=False,
    )


@main.command("read")
@click.argument("source")
@click.argument("files", nargs=-1, required=True, type=EXISTING_FILE)
@click.option("--observed-at", type=UTC_MOMENT, help="When the answer was given (UTC); now by default.")
@click.option("--source-url", help="The address that gave the answer; the file's own by default.")
@click.option("--region", help="The region, where neither the answer nor its address says it.")
@click.option("--fx", multiple=True, metavar="EUR=1.17", help="US dollars for one unit of a currency.")
def read_command(
    source: str,
    files: tuple[Path, ...],
    observed_at: datetime | None,
    source_url: str | None,
    region: str | None,
    fx: tuple[str, ...],
) -> None:
    """Read saved answers of one SOURCE: offers as JSON lines on stdout, warnings and rejects on stderr."""
    from pipeline.capture.index import sha256_of
    from pipeline.catalog.source_config import source_config
    from pipeline.contracts.listing import Answer
    from pipeline.daily.ingest import read_answers

    config = source_config(source)
    if region:
        config = config.model_copy(
            update={"attributes": config.attributes.model_copy(update={"region": region})}
        )
    moment = observed_at or datetime.now(UTC)
    answers = []
    for file in files:
        body = file.read_bytes()
        url = source_url or file.absolute().as_uri()
        answers.append(Answer(url=url, body=body, observed_at=moment, sha256=sha256_of(body)))
    built = read_answers(answers, config, _rates(fx))
    for warning in built.warnings:
        click.echo(json.dumps({"warning": warning}), err=True)
    for reject in built.rejects:
        click.echo(reject.model_dump_json(), err=True)
    for offer in built.offers:
        click.echo(offer.model_dump_json())
    if not built.offers:
        raise click.ClickException(f"{source}: no offer was read; {len(built.rejects)} rows were rejected")


def _rates(pairs: tuple[str, ...]) -> "dict[str, Rate]":
    from pipeline.contracts.rates import Rate

    rates = {}
    for pair in pairs:
        currency, _, amount = pair.partition("=")
        try:
            usd = Decimal(amount)
        except InvalidOperation as error:
            raise click.BadParameter(f"{pair!r} is not like EUR=1.17") from error
        if not (usd.is_finite() and usd > 0 and currency.strip()):
            raise click.BadParameter(f"{pair!r} is not like EUR=1.17")
        rates[currency.strip().upper()] = Rate(usd)
    return rates


@main.command()
@click.argument("file", type=EXISTING_FILE)
def normalize(file: Path) -> None:
    """Say for each GPU label of a CSV file which GPU it is, or why that is open."""
    from pipeline.offers.normalize_csv import normalize_csv

    normalize_csv(file, sys.stdout)


@main.command()
@click.argument("file", type=EXISTING_FILE)
def estimate(file: Path) -> None:
    """Estimate memory and speed of the training runs in a CSV file."""
    import csv

    from pipeline.model.estimate import OUTPUT_COLUMNS, EstimateError, estimate_file

    writer = csv.DictWriter(sys.stdout, OUTPUT_COLUMNS, lineterminator="\n")
    try:
        rows = estimate_file(file)
    except EstimateError as error:
        raise click.ClickException(str(error)) from error
    writer.writeheader()
    writer.writerows(rows)


@main.command()
@click.option("--check", is_flag=True, help="Only see whether a fit gives the reviewed constants again.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to instead of the catalogue.",
)
def calibrate(check: bool, output: Path | None) -> None:
    """Fit the model's constants and bands on the measured runs."""
    import yaml

    from pipeline.model.calibrate import calibrate as fit
    from pipeline.model.calibrate import changed_constants

    if check:
        changed = changed_constants()
        if changed:
            raise click.ClickException(f"a calibration would change {', '.join(changed)}")
        click.echo("fitting again gives the reviewed constants")
        return
    click.echo(yaml.safe_dump(fit(datetime.now(UTC).date(), output), sort_keys=False))


@main.command()
@click.argument("query")
@click.option("--format", "form", type=FORMATS, default="table", show_default=True)
def sql(query: str, form: Any) -> None:
    """Run an SQL QUERY on the published file, read-only."""
    from pipeline.cli.printing import show
    from pipeline.warehouse.query import ask, reader

    with reader(paths.home().published) as connection:
        show(ask(connection, query), form)


@main.command()
@click.option("--format", "form", type=FORMATS, default="table", show_default=True)
def sources(form: Any) -> None:
    """Show each source: state, last capture, last accepted offers, their age, and the evidence."""
    from pipeline.cli.printing import show
    from pipeline.daily.source_states import source_states

    show(source_states(paths.home(), datetime.now(UTC).date()), form)


@main.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--format", "form", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True)
def export(folder: Path, form: Any) -> None:
    """Write every published table and a data package descriptor into FOLDER."""
    from pipeline.warehouse.export import export as write
    from pipeline.warehouse.query import reader

    with reader(paths.home().published, writes_files=True) as connection:
        files = write(connection, folder, form)
    click.echo(f"{len(files)} files in {folder}")


MOST_TOKENS = 1e16
"""Some hundred times what the largest runs see; beyond, dollars would leave their columns."""


class _Tokens(click.ParamType[float]):
    """A number of tokens, plain or with K, M, B or T behind it."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """100M is 100,000,000."""
        text = str(value).strip().upper().replace(",", "").replace("_", "")
        scale = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}.get(text[-1:], 1.0)
        try:
            amount = float(text.rstrip("KMBT")) * scale
        except ValueError:
            self.fail(f"{value!r} is not a number such as 100M", param, ctx)
        if not 0 < amount <= MOST_TOKENS:
            self.fail(f"{value!r} must be above 0 and at most {MOST_TOKENS:g}", param, ctx)
        return amount


@main.command()
@click.option("--model", required=True, help="For example llama-3.1-8b.")
@click.option("--method", required=True, type=click.Choice(METHODS))
@click.option("--tokens", type=_Tokens(), help="All tokens that pass through the model, e.g. 100M.")
@click.option("--examples", type=_Tokens(), help="Instead of --tokens: training examples ...")
@click.option("--tokens-per-example", type=_Tokens(), help="... of this many tokens ...")
@click.option("--epochs", type=click.FloatRange(min=0, min_open=True), help="... seen this many times.")
@click.option("--seq-len", type=click.IntRange(min=1), help="Tokens of one packed sequence.")
@click.option("--lora-rank", type=click.IntRange(min=1))
@click.option("--micro-batch", type=click.IntRange(min=1), help="Sequences per GPU and step.")
@click.option("--checkpointing", type=click.Choice(CHECKPOINTINGS))
@click.option(
    "--stack",
    type=click.Choice(STACKS),
    help="Training software.",
)
@click.option(
    "--kind",
    "price_kind",
    type=click.Choice([*PRICE_KINDS, "any"]),
    default="on_demand",
    show_default=True,
)
@click.option("--gpus", "max_gpus", type=click.IntRange(min=1), help="At most this many GPUs.")
@click.option("--max-hours", type=click.FloatRange(min=0, min_open=True), help="Finished within.")
@click.option("--objective", type=click.Choice(["cost", "time"]), default="cost", show_default=True)
@click.option("--day", type=click.DateTime(["%Y-%m-%d"]), help="Prices of that day instead of the newest.")
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="Rows to show.")
@click.option("--format", "form", type=FORMATS, default="table", show_default=True)
def cheapest(day: datetime | None, limit: int, form: Any, **settings_of_job: Any) -> None:
    """Rank the offers for one training job by dollars per finished job."""
    from pipeline.cli.printing import COLUMNS_OF_CHEAPEST, show
    from pipeline.questions.cheapest import Job, explained, nothing_fits, prices_of
    from pipeline.questions.cheapest import cheapest as rank

    job = Job(**settings_of_job)
    by_examples = (job.examples, job.tokens_per_example)
    if (None in by_examples) if job.tokens is None else any(by_examples):
        raise click.UsageError("give either --tokens, or --examples and --tokens-per-example")
    if job.lora_rank and job.method not in ADAPTER_METHODS:
        raise click.UsageError(f"--lora-rank goes with lora and qlora, not with {job.method}")
    with prices_of(paths.home(), day.date() if day else None) as connection:
        result = rank(connection, job)
        if not result.rows:
            raise click.ClickException(nothing_fits(job))
    result = result.first(limit)
    if form != "table":
        show(result, form)
        return
    show(result.only(COLUMNS_OF_CHEAPEST), form)
    click.echo()
    for line in explained(next(result.dicts()), datetime.now(UTC).date()):
        click.echo(line)


if __name__ == "__main__":
    main()
