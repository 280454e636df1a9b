"""One module per provider: bytes in, listings out. Modules are found by name, not registered."""

from importlib import import_module
from types import ModuleType

from pipeline.catalog.source_config import source_config


def source_module(name: str) -> ModuleType:
    """Return a source's module. ``lambda`` is a Python keyword, so that module's name ends in an underscore.

    Raises UnknownSourceError for a name that is not in the catalogue.
    """
    source_config(name)
    return import_module(f"pipeline.sources.{name}_" if name == "lambda" else f"pipeline.sources.{name}")
