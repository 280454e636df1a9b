"""Commands that take a user's files: import prices, read saved answers, match labels, estimate runs."""

import json
import sys
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.completion import names_of
from pipeline.cli.parameters import ALL_ROWS, EXISTING_FILE, FORMATS, moment, today
from pipeline.cli.terminal import progress_shown, say, tell
from pipeline.home import paths

if TYPE_CHECKING:
    from pipeline.contracts.rates import Rate
    from pipeline.model.estimate import Answers


SHOWN_REJECTS = 10


@click.command("import")
@click.argument("file", type=EXISTING_FILE, required=False)
@click.option("--rejects", "every", is_flag=True, help="List every skipped row, not just the first few.")
@click.option("--remove-all", is_flag=True, help="Remove every imported price, then import FILE, if given.")
def import_command(file: Path | None, every: bool, remove_all: bool) -> None:
    """Load dated prices from elsewhere: a CSV FILE with day, gpu, provider, price_kind, price and source.

    The prices are read like those of a source named "imported", and published in price_history, never in a
    ranking. Rows that cannot be read with certainty are skipped and listed. Importing a file again changes
    nothing. docs/how-to/import.md describes the layout.
    """
    from pipeline.parsing.printable import printable
    from pipeline.refresh.import_file import import_file, remove_imports

    if remove_all:
        remove_imports(paths.home())
        tell("all imported prices are removed; the next `gpufare refresh` publishes without them")
    if file is None:
        if not remove_all:
            raise click.UsageError("give a FILE, or --remove-all")
        return
    with progress_shown(f"reading {file.name}") as progress:
        report = import_file(file, paths.home(), today(), progress)
    accepted = [outcome for outcome in report.outcomes if outcome.accepted]
    prices = sum(outcome.rows for outcome in accepted)
    open_labels = sum(outcome.ambiguous + outcome.unknown for outcome in accepted)
    tell(
        f"{printable(file.name)}: {len(report.outcomes)} days, {report.new_days} with new prices; "
        f"{prices} prices of these days are on record"
        + (f", {open_labels} of them with a label that leaves the GPU open" if open_labels else "")
    )
    problems = [f"line {line}: {reason}" for line, reason in report.skipped] + report.rejects
    problems += [f"{outcome.day}: refused: {outcome.reason}" for outcome in report.refused]
    for problem in problems if every else problems[:SHOWN_REJECTS]:
        say(printable(problem))
    if len(problems) > SHOWN_REJECTS and not every:
        say(f"and {len(problems) - SHOWN_REJECTS} more: --rejects names them all")
    if not prices:
        raise click.ClickException(f"nothing in {file} could be imported")
    tell("the next `gpufare refresh` publishes them in the table price_history")


@click.command("read")
@click.argument("source", shell_complete=names_of("source"))
@click.argument("files", nargs=-1, required=True, type=EXISTING_FILE)
@click.option("--observed-at", type=moment, help="When the answer was observed (UTC); by default, now.")
@click.option("--source-url", help="The address that the answer came from; by default, the file's own.")
@click.option("--region", help="The region, if neither the answer nor its address names one.")
@click.option("--fx", multiple=True, metavar="EUR=1.17", help="USD price of one unit of a currency.")
def read_command(
    source: str,
    files: tuple[Path, ...],
    observed_at: datetime | None,
    source_url: str | None,
    region: str | None,
    fx: tuple[str, ...],
) -> None:
    """Read saved answers from one SOURCE: offers as JSON lines to stdout, warnings and rejects to stderr."""
    from pipeline.capture.index import sha256_of
    from pipeline.catalog.source_config import source_config
    from pipeline.contracts.listing import Answer
    from pipeline.refresh.ingest import read_answers

    config = source_config(source)
    if region:
        config = config.model_copy(
            update={"attributes": config.attributes.model_copy(update={"region": region})}
        )
    observed_at = observed_at or datetime.now(UTC)
    if observed_at.date() > today():
        raise click.BadParameter(f"--observed-at {observed_at:%Y-%m-%d} is after today ({today()} UTC)")
    answers = []
    for file in files:
        body = file.read_bytes()
        url = source_url or file.absolute().as_uri()
        answers.append(Answer(url=url, body=body, observed_at=observed_at, sha256=sha256_of(body)))
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


FORMAT_OF_FILES = click.option(
    "--format",
    "form",
    type=FORMATS,
    default=lambda: "table" if sys.stdout.isatty() else "csv",
    show_default="table on a terminal, else csv",
)
FIRST_OF_LABELS = ("raw_label", "status", "gpu_id", "gpu_count", "rule", "candidates", "confidence")
"""Columns that come before all others, because a narrow terminal shows only the first columns."""

ERRORS_SHOWN = 20


@click.command()
@click.argument("file", type=EXISTING_FILE)
@FORMAT_OF_FILES
@ALL_ROWS
def normalize(file: Path, form: str, every: bool) -> None:
    """Match each GPU label in a CSV file to a GPU, or say why the GPU cannot be determined.

    The labels are in the raw_label column. Optional columns: provider, kind (gpu_name or instance_type;
    gpu_name by default), context (other facts on the page, such as vram_gb=80) and gpu_count. Other columns
    are kept. Cells are separated by commas, semicolons or tabs; --format csv keeps the separator.

    The added columns are status (matched, ambiguous, unknown, not_a_gpu), gpu_id, vendor, model, form_factor,
    memory_gb, gpu_count, rule, confidence and candidates.
    """
    from pipeline.cli.printing import show, texts
    from pipeline.offers.normalize_csv import normalize_csv, normalized

    if form == "csv":
        normalize_csv(file, sys.stdout)
        return
    columns, rows, _ = normalized(file)
    show(texts(dict.fromkeys((*FIRST_OF_LABELS, *columns)), rows), form, every=every)


@click.command()
@click.argument("file", type=EXISTING_FILE)
@click.option(
    "--config", type=EXISTING_FILE, help="A config.json for the rows whose model is empty or 'config'."
)
@click.option("--without-own-runs", is_flag=True, help="Do not correct the estimates from your own runs.")
@FORMAT_OF_FILES
@ALL_ROWS
def estimate(file: Path, config: Path | None, without_own_runs: bool, form: str, every: bool) -> None:
    """Estimate the memory and speed of the training runs in a CSV file.

    Estimates like runs of your own (gpufare run list) are corrected from them; the assumptions say so.
    """
    from pipeline.catalog.own_corrections import OwnCorrections
    from pipeline.model.corrections import own_corrections
    from pipeline.model.estimate import OUTPUT_COLUMNS, Estimator, estimate_file
    from pipeline.model.given_models import model_of_file

    given, left_out = model_of_file(config, "config") if config else (None, [])
    own = OwnCorrections() if without_own_runs else own_corrections(paths.home())
    with closing(Estimator(given)) as estimator:
        estimator.correct(own)
        rows, assumed = estimate_file(estimator, file), estimator.assumed
    for problem in [*(f"{config}: {line}" for line in left_out), *own.problems]:
        say(problem)
    _show_estimates(rows, OUTPUT_COLUMNS, form, every)
    if assumed & {"stack", "micro_batch"}:
        say(
            "settings that a row does not give have their defaults (see assumptions); gpufare cheapest and "
            "gpufare fit plan the fastest settings that fit instead, so their speeds differ where stack, "
            "optimizer, micro_batch or checkpointing is not given"
        )


def _show_estimates(rows: "Answers", columns: tuple[str, ...], form: str, every: bool) -> None:
    from pipeline.cli.printing import show, texts
    from pipeline.questions.tables import for_people
    from pipeline.warehouse.query import Result

    if form != "table":
        show(texts(columns, rows), form, every=every)
        return
    shown = [name for name in columns if name != "error"]
    kinds = tuple("DOUBLE" if _is_number(name) else "VARCHAR" for name in shown)
    cells = [tuple(_number(row[name]) if _is_number(name) else row[name] for name in shown) for row in rows]
    table = for_people(Result(tuple(shown), kinds, cells), shown)
    show(table, form, every=every)
    wrong = [f"{row['run_id']}: {row['error']}" for row in rows if row["error"]]
    for line in wrong[:ERRORS_SHOWN]:
        tell(line)
    if len(wrong) > ERRORS_SHOWN:
        tell(f"and {len(wrong) - ERRORS_SHOWN} more rows with an error (--format csv has all)")


def _is_number(column: str) -> bool:
    return column.startswith(("memory_gib", "tokens_per_second"))


def _number(text: str | None) -> float | None:
    return float(text) if text else None
