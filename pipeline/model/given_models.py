"""Turns a config.json supplied by a user into a model with the columns of the home's models.csv."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.catalog.own import OwnModel
from pipeline.catalog.tables import first_problem
from pipeline.model.architectures import ConfigError, notes_on, shape_of
from pipeline.model.model_names import canonical
from pipeline.parsing.printable import printable

MAX_BYTES = 1 << 20
"""The size limit of a config.json; the largest published ones are about 100 kB."""


def model_of_config(
    config: dict[str, Any], name: str, source: str, hf_id: str | None = None
) -> tuple[OwnModel, list[str]]:
    """Return the model that a config.json describes, and a sentence for each part not used as published.

    Raises ConfigError naming the field at fault, even for an impossible name or shape.
    """
    shape = shape_of(name, config)
    try:
        model = OwnModel(
            model=name, title=printable(hf_id or name)[:300], hf_id=hf_id, source=printable(source)[:300],
            **shape.model_dump(),
        )  # fmt: skip
    except ValidationError as error:
        problem = first_problem(error)
    else:
        return model, notes_on(config)
    # Raised outside except: a chained ValidationError keeps DuckDB's types alive, and exit prints an error.
    raise ConfigError(f"{printable(name)}: {problem}")


def parse_config(body: bytes, name: str) -> dict[str, Any]:
    """Return a config.json's fields. Raises ConfigError unless the body is a JSON object within MAX_BYTES."""
    if len(body) > MAX_BYTES:
        raise ConfigError(f"{name} is larger than {MAX_BYTES} bytes, so it is not a config.json")
    try:
        config = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is not JSON: {error}") from error
    if not isinstance(config, dict):
        raise ConfigError(f"{name} is not a JSON object")
    return config


def model_of_file(path: Path, name: str | None = None) -> tuple[OwnModel, list[str]]:
    """Return the model of a local config.json, named after its file or folder. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            config = parse_config(file.read(MAX_BYTES + 1), str(path))
    except OSError as error:
        raise ConfigError(str(error)) from error
    return model_of_config(config, name or name_of_file(path), f"{path.name} given by path")


def name_of_file(path: Path) -> str:
    """Return a model's name from its config's path: the folder's name if the file is called config.json."""
    absolute = path.absolute()
    stem = absolute.stem if absolute.stem.lower() != "config" else absolute.parent.name
    return canonical(stem) or "config"
