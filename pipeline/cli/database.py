"""Commands for the published file itself: sql, export, report and rebuild."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO, cast

import click
from rich.filesize import decimal as size_text

from pipeline.cli.parameters import ALL_ROWS, DAY, FORMAT, today
from pipeline.cli.terminal import progress_shown, say, tell
from pipeline.home import paths


# A query may begin with a comment (--), which looks like an option.
@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("query", required=False)
@click.option("-f", "--file", type=click.File(encoding="utf-8-sig"), help="Read the query from this file.")
@FORMAT
@ALL_ROWS
def sql(query: str | None, file: TextIO | None, form: str, every: bool) -> None:
    """Run an SQL QUERY on the published file, read-only; if QUERY is -, it is read from stdin.

    If there are several statements, they run in turn, and only the last one's result is printed. A pipe
    receives each row as soon as it arrives.
    """
    from pipeline.cli.printing import show
    from pipeline.warehouse.query import age_note, reader, stream

    if query and re.fullmatch(r"--\S.*", query):
        raise click.NoSuchOption(query.partition("=")[0])
    if (query is None) == (file is None):
        raise click.UsageError("give either a QUERY or --file")
    if query == "-":
        file = cast(TextIO, click.open_file("-", encoding="utf-8-sig"))
    try:
        text = file.read() if file else str(query)
    except UnicodeDecodeError as error:
        raise click.UsageError(f"the query is not UTF-8 text: {error}") from error
    home = paths.home()
    with reader(home.published) as connection:
        answer = stream(connection, text)
        show(answer, form, every=every, every_column=True)
        note = age_note(connection, home, today())
    say(note)


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet"]),
    show_default="parquet",
    help="Format of all files except those in latest/, which are CSV.",
)
@click.option("--tables", metavar="A,B", help="Only these tables; latest means a small set for spreadsheets.")
@click.option("--since", type=DAY, help="In tables with a day column, only rows from this day on (UTC).")
@click.option(
    "--for",
    "tool",
    type=click.Choice(["skypilot", "gpuhunt", "api"]),
    help="Instead of the tables, write a catalogue in the layout that this tool reads; api means a JSON API "
    "of static files.",
)
@click.option(
    "--republishable",
    is_flag=True,
    help="Refuse to export prices from sources whose terms are known to forbid republishing them; "
    "leave out the raw column of the rejects table.",
)
def export(
    folder: Path,
    form: str | None,
    tables: str | None,
    since: datetime | None,
    tool: str | None,
    republishable: bool,
) -> None:
    """Write every published table and a data package descriptor into FOLDER.

    FOLDER must be new, empty, or an earlier export, which is replaced once the new one is complete. Tables
    that grow daily have one file per day; the folder latest/ holds a small set for spreadsheets, under 2 MB.

    With --for, write the newest offers as a catalogue for skypilot or gpuhunt instead, or a JSON API of
    static files, whose v1/index.json describes the other files.
    """
    from pipeline.export.layouts import write
    from pipeline.questions.prices import unpublished_runs_note
    from pipeline.warehouse.query import age_note, reader

    wanted = [] if tables is None else [name.strip() for name in tables.removesuffix(",").split(",")]
    home = paths.home()
    with reader(home.published, writes_files=True) as connection:
        with progress_shown(f"writing {folder}"):
            day = since.date() if since else None
            lines = write(connection, folder, tool, form, wanted, day, republishable=republishable)
        notes = (unpublished_runs_note(home, connection), age_note(connection, home, today()))
    for line in lines:
        tell(line)
    files = [path for path in folder.rglob("*") if path.is_file()]
    tell(f"{len(files)} files in {folder}, {size_text(sum(file.stat().st_size for file in files))}")
    for note in notes:
        say(note)


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def report(folder: Path) -> None:
    """Write the published answers as one page, FOLDER/index.html, that opens from disk and needs no network.

    An earlier page is replaced once the new one is complete.
    """
    from pipeline.page.write import write_report
    from pipeline.questions.prices import unpublished_runs_note
    from pipeline.warehouse.query import age_note, reader

    home = paths.home()
    with progress_shown(f"writing {folder}"):
        page = write_report(home, folder, datetime.now(UTC))
    tell(f"{page}: {size_text(page.stat().st_size)}")
    with reader(home.published) as connection:
        for note in (unpublished_runs_note(home, connection), age_note(connection, home, today())):
            say(note)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--day", type=DAY, required=True, help="The day to rebuild (UTC).")
def rebuild(file: Path, day: datetime) -> None:
    """Rebuild a past day's database from the record, and write it to FILE with that day's full rankings.

    The new file contains no later days, and only the offers from the 30 days up to that day. The published
    file is not changed. Today's readers, model and catalogue are used; the ranking_history table contains the
    best answers that were published on that day.
    """
    from pipeline.warehouse.publish import rebuild as build_again

    if day.date() > today():
        raise click.BadParameter(f"{day.date()} is after today ({today()} UTC)", param_hint="--day")
    with progress_shown(f"building {file}") as progress:
        report = build_again(paths.home(), day.date(), datetime.now(UTC), file, progress)
    for incident in report.incidents:
        say(incident.line())
    ranked = report.rows["cheapest_gpu_per_workload"]
    tell(f"{file}: {report.rows['offers_latest']} offers, {ranked} ranked answers, as of {day.date()}")
