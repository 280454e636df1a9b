"""Names shared by assets, jobs and sensors, and the versions of their code."""

import hashlib
from collections.abc import Iterable

import dagster as dg

from pipeline.catalog.source_config import SourceConfig, configs

MORNING = dg.AssetKey("morning")

CAPTURE_STEP = "capture_and_read"
"""The step that captures and reads all chosen sources."""

SOURCES_GROUP = "sources"
"""The group of all assets of sources: in the lineage, its box counts the sources by state."""


def enabled_sources() -> list[SourceConfig]:
    """Return the sources that are not retired, sorted by name."""
    return [config for config in configs().values() if config.disabled is None]


def offers_key(source: str) -> dg.AssetKey:
    """Return the key of a source's offers or exchange rates."""
    return dg.AssetKey(["exchange_rates" if configs()[source].kind == "exchange_rates" else "offers", source])


def table_key(table: str) -> dg.AssetKey:
    """Return the key of a table of the published file."""
    return dg.AssetKey(["published", table])


def code_version(definition: Iterable[str]) -> str:
    """Return a version for source code: Dagster marks assets made with an earlier version as outdated."""
    digest = hashlib.sha256()
    for text in definition:
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()[:12]
