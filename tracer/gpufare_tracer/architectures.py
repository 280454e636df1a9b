"""The architecture to trace: the sizes that frameworks need, from a catalogue model or a config.json."""

import json
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.kept import read_table
from gpufare_tracer.result import TraceShape
from pipeline.home import paths
from pipeline.model import architectures


class Architecture(BaseModel):
    """The sizes of a language model; widths are numbers of features."""

    model_config = ConfigDict(frozen=True)

    model: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied_embeddings: bool
    experts: int = 1
    experts_active: int = 1


@cache
def _catalogue() -> dict[str, dict[str, str]]:
    return {row["model"]: row for row in read_table(paths.CATALOG_DIR / "models.csv")}


def architecture_of(shape: TraceShape) -> Architecture:
    """Return the sizes of a shape's model; ``shape.layers``, if given, replaces the number of layers.

    Raises ``CannotTraceError`` for an unknown model id, and for a config.json that lacks sizes.
    """
    found = _from_config(shape.model, shape.config) if shape.config else _from_catalogue(shape.model)
    return found.model_copy(update={"layers": shape.layers}) if shape.layers else found


def _from_catalogue(model: str) -> Architecture:
    row = _catalogue().get(model)
    if row is None:
        raise CannotTraceError(
            f"model {model!r} is not in catalog/models.csv; give its config.json with --config"
        )
    return Architecture.model_validate({name: row[name] for name in Architecture.model_fields if name in row})


@cache
def catalogue_configs() -> dict[str, dict[str, Any]]:
    """Return the rows of catalog/model_configs.jsonl, keyed by model.

    ``config`` contains the config.json fields that determine the model's shape; ``note``, if any, says how
    transformers' code for the model differs from the model's own code.
    """
    text = (paths.CATALOG_DIR / "model_configs.jsonl").read_text(encoding="utf-8")
    return {row["model"]: row for row in map(json.loads, text.splitlines())}


def _from_config(model: str, config: dict[str, Any]) -> Architecture:
    check_config(model, config)
    try:
        with architectures.named(model):
            text = architectures.language_model_of(config)
            return Architecture(
                model=model,
                **architectures.sizes_of(text),
                experts=architectures.first(text, *architectures.EXPERTS, default=1, least=0),
                experts_active=architectures.first(text, *architectures.EXPERTS_ACTIVE, default=1, least=0),
            )
    except architectures.ConfigError as error:
        raise CannotTraceError(str(error)) from error


def check_config(model: str, config: dict[str, Any]) -> None:
    """Check the types of the fields in a config.json, a file that anyone may have written.

    Raises ``CannotTraceError`` naming the invalid field.
    """
    try:
        with architectures.named(model):
            architectures.check_config(config)
    except architectures.ConfigError as error:
        raise CannotTraceError(str(error)) from error
