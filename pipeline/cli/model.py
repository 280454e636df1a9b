"""Calibrating the model."""

from datetime import UTC, datetime
from pathlib import Path

import click

from pipeline.cli.terminal import progress_shown, tell


@click.command()
@click.option("--check", is_flag=True, help="Only check that fitting again gives the reviewed constants.")
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
        with progress_shown("fitting the constants again"):
            changed = changed_constants()
        if changed:
            raise click.ClickException(f"a calibration would change {', '.join(changed)}")
        tell("fitting again gives the reviewed constants")
        return
    with progress_shown("fitting constants, thresholds and bands, with each family held out: minutes"):
        record = fit(datetime.now(UTC).date(), output)
    click.echo(yaml.safe_dump(record, sort_keys=False))
