"""One module per provider: bytes in, listings out. Modules are found by name, not registered."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

from pipeline.catalog.source_config import source_config


def source_module(name: str) -> ModuleType:
    """Return a source's module.

    Raises UnknownSourceError for a name that is not in the catalogue.
    """
    source_config(name)
    return import_module(f"pipeline.sources.{source_file(name).stem}")


def source_file(name: str) -> Path:
    """Return the file of a source's module, without importing it.

    ``lambda`` is a Python keyword, so that module's name ends in an underscore.
    """
    return Path(__file__).with_name(f"{name}_.py" if name == "lambda" else f"{name}.py")
