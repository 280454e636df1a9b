"""One module per provider: bytes in, listings out. Sources are found, not registered."""

from importlib import import_module
from types import ModuleType

from pipeline.catalog.source_config import source_config


def source_module(name: str) -> ModuleType:
    """Return the reader of a source. ``lambda`` is a Python keyword, so its module ends in an underscore.

    Raises UnknownSourceError.
    """
    source_config(name)
    return import_module(f"pipeline.sources.{name}_" if name == "lambda" else f"pipeline.sources.{name}")
