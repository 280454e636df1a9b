"""The report: one page of the published file."""

from datetime import UTC, datetime
from pathlib import Path

import click
from rich.filesize import decimal as size_text

from pipeline.cli.parameters import today
from pipeline.cli.terminal import progress_shown, say, tell
from pipeline.home import paths


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def report(folder: Path) -> None:
    """Write the published answers as one page, FOLDER/index.html, that opens from disk and needs no network.

    An earlier page is replaced once the new one is complete.
    """
    from pipeline.page.write import write_report
    from pipeline.warehouse.query import age_note, reader

    home = paths.home()
    with progress_shown(f"writing {folder}"):
        page = write_report(home, folder, datetime.now(UTC))
    tell(f"{page}: {size_text(page.stat().st_size)}")
    with reader(home.published) as connection:
        say(age_note(connection, today()))
