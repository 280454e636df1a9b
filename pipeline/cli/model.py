"""Calibrating the model."""

from datetime import UTC, datetime
from pathlib import Path

import click

from pipeline.cli.terminal import progress_shown


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to instead of the catalogue.",
)
def calibrate(output: Path | None) -> None:
    """Fit the model's constants and bands on the measured runs."""
    import yaml

    from pipeline.model.calibrate import calibrate as fit

    with progress_shown("fitting constants, thresholds and bands, with each family held out: minutes"):
        record = fit(datetime.now(UTC).date(), output)
    click.echo(yaml.safe_dump(record, sort_keys=False))
