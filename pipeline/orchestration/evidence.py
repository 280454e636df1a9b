"""What a check shows of a source: its reason, and the page and the folder of what was answered."""

from collections.abc import Sequence

import dagster as dg

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.capture import Capture
from pipeline.health.digest import harmless
from pipeline.home.paths import Home

MAX_DESCRIPTION_CHARACTERS = 1_000


def markdown_of(reason: str) -> str:
    """A reason, which may quote a page, without links or markup: Dagster shows descriptions as Markdown."""
    return harmless(reason, MAX_DESCRIPTION_CHARACTERS)


def page_and_capture(
    config: SourceConfig, captures: Sequence[Capture], home: Home
) -> dict[str, str | dg.UrlMetadataValue | dg.PathMetadataValue]:
    """Of the newest capture: the first address without a usable answer, else the first one."""
    entries = captures[-1].entries if captures else ()
    failed = [entry.url for entry in entries if not entry.usable]
    page = [*failed, *(entry.url for entry in entries), config.homepage][0]
    if not captures or captures[-1].capture_id is None:
        return {"page": dg.MetadataValue.url(page), "capture": "nothing was archived"}
    folder = str(Archive(home.archive).folder(captures[-1]))
    return {"page": dg.MetadataValue.url(page), "capture": dg.MetadataValue.path(folder)}
