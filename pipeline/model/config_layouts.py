"""Rules for reading the config.json of each transformers model type, from catalog/config_layouts.yaml."""

from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict

from pipeline.catalog.source_config import read_yaml
from pipeline.home import paths


class Layouts(BaseModel):
    """Facts about model types that their config.json files do not state."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    read_types: frozenset[str]
    like: dict[str, str]
    tied_by_default: frozenset[str]
    not_gated: frozenset[str]
    learned_positions: dict[str, int]
    alternating: dict[str, int]
    sliding: frozenset[str]
    defaults: dict[str, dict[str, Any]]
    class_defaults: dict[str, dict[str, int]]
    predicts_tokens: tuple[str, ...]
    not_understood: dict[str, str]


@cache
def layouts() -> Layouts:
    """Return the reviewed layouts. Raises CatalogError."""
    return read_yaml(paths.CATALOG_DIR / "config_layouts.yaml", Layouts)
