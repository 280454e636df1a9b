"""Commands that add a user's own models from a config.json, and that calibrate gpufare's model."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.terminal import progress_shown, tell
from pipeline.home import paths

if TYPE_CHECKING:
    from pipeline.catalog.own import OwnModel


@click.group("model")
def model_group() -> None:
    """Add your own models, which are kept in the home and used alongside the catalogue's models."""


@model_group.command()
@click.argument("config")
@click.option("--name", help="Name of the model; by default, that of the file, its folder or the hub id.")
@click.option("--pages", metavar="URL", hidden=True, help="Ask this server instead of the hub.")
def add(config: str, name: str | None, pages: str | None) -> None:
    """Add the model that CONFIG describes: the path of a config.json, or a hub id such as organisation/name.

    For a hub id, one request is sent to huggingface.co; for a path, none is sent.
    """
    from pipeline.catalog.own import add_model
    from pipeline.model.given_models import model_of_file

    path = Path(config)
    if path.is_dir():
        path = path / "config.json"
    if path.exists():
        model, left_out = model_of_file(path, name)
    else:
        model, left_out = _from_hub(config, name, pages)
    home = paths.home()
    add_model(home.models, model)
    row = model.row()
    tell(
        f"added {model.model}: {row['params_total'] / 1e9:.2f}B parameters, "
        f"{row['params_active'] / 1e9:.2f}B active, {model.layers} layers ({home.models})"
    )
    for line in left_out:
        tell(line)
    tell(f"every question knows it now: gpufare cheapest --model {model.model} --method qlora --tokens 100M")


def _from_hub(hub_id: str, name: str | None, pages: str | None) -> "tuple[OwnModel, list[str]]":
    from pipeline.capture.http.client import Client, ReplayServer
    from pipeline.model.architectures import ConfigError
    from pipeline.model.given_models import model_of_config
    from pipeline.model.hub import fetch_config, is_hub_id
    from pipeline.model.model_names import canonical

    if not is_hub_id(hub_id):
        raise click.BadParameter(f"{hub_id!r} is neither a file nor a hub id like organisation/name")
    with Client(replay=ReplayServer(pages) if pages else None, environment=os.environ) as client:
        config = fetch_config(hub_id, client)
    own_name = name or canonical(hub_id.rpartition("/")[2])
    if not own_name:
        raise ConfigError(f"{hub_id} gives no name: give one with --name")
    return model_of_config(config, own_name, f"config.json of {hub_id} on huggingface.co", hub_id)


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write to this folder instead of the catalogue.",
)
def calibrate(output: Path | None) -> None:
    """Fit the constants and bands of gpufare's model to the measured runs."""
    import yaml

    from pipeline.model.calibrate import calibrate as fit

    with progress_shown("fitting constants, thresholds and bands, with each family held out (takes minutes)"):
        record = fit(datetime.now(UTC).date(), output)
    click.echo(yaml.safe_dump(record, sort_keys=False))
