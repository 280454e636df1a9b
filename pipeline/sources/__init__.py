"""One module per provider: bytes in, listings out. Sources are found, not registered."""

from importlib import import_module
from types import ModuleType

from pipeline.errors import GpufareError
from pipeline.sources.config import SourceConfig, configs


class UnknownSourceError(GpufareError):
    """No source of that name: the message lists the names there are."""


def source_config(name: str) -> SourceConfig:
    """The facts of one source. Raises UnknownSourceError."""
    try:
        return configs()[name]
    except KeyError:
        known = ", ".join(configs())
        raise UnknownSourceError(f"there is no source {name!r}; known sources: {known}") from None


def source_module(name: str) -> ModuleType:
    """The reader of one source. ``lambda`` is a word of Python's, so its module ends in an underscore."""
    source_config(name)
    return import_module(f"pipeline.sources.{name}_" if name == "lambda" else f"pipeline.sources.{name}")
