"""The published file itself: SQL on it, and exporting it."""

from pathlib import Path
from typing import Any

import click

from pipeline.cli.parameters import FORMATS, say, today
from pipeline.contracts import paths


@click.command()
@click.argument("query")
@click.option("--format", "form", type=FORMATS, default="table", show_default=True)
def sql(query: str, form: Any) -> None:
    """Run an SQL QUERY on the published file, read-only."""
    from pipeline.cli.printing import show
    from pipeline.warehouse.query import age_note, ask, reader

    with reader(paths.home().published) as connection:
        show(ask(connection, query), form)
        note = age_note(connection, today())
    say(note)


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--format", "form", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True)
def export(folder: Path, form: Any) -> None:
    """Write every published table and a data package descriptor into FOLDER."""
    from pipeline.warehouse.export import export as write
    from pipeline.warehouse.query import age_note, reader

    with reader(paths.home().published, writes_files=True) as connection:
        files = write(connection, folder, form)
        note = age_note(connection, today())
    click.echo(f"{len(files)} files in {folder}")
    say(note)
