"""What a check shows of a source: its reason, the page, what was answered, and the last good day."""

from collections.abc import Sequence

import dagster as dg

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.capture import Capture
from pipeline.health.digest import harmless
from pipeline.home.paths import Home
from pipeline.record.records import Records

MAX_DESCRIPTION_CHARACTERS = 1_000


def markdown_of(reason: str) -> str:
    """A reason, which may quote a page, without links or markup: Dagster shows descriptions as Markdown."""
    return harmless(reason, MAX_DESCRIPTION_CHARACTERS)


def evidence(
    config: SourceConfig, captures: Sequence[Capture], home: Home
) -> dict[str, str | dg.UrlMetadataValue | dg.PathMetadataValue]:
    """The last day that was accepted, and of the newest capture the folder and the first address without a
    usable answer, else the first one."""
    records = Records(home)
    accepted = records.rate_days() if config.kind == "exchange_rates" else records.accepted_days(config.name)
    last_good_day = str(max(accepted, default="never"))
    entries = captures[-1].entries if captures else ()
    failed = [entry.url for entry in entries if not entry.usable]
    page = [*failed, *(entry.url for entry in entries), config.homepage][0]
    if not captures or captures[-1].capture_id is None:
        folder: str | dg.PathMetadataValue = "nothing was archived"
    else:
        folder = dg.MetadataValue.path(str(Archive(home.archive).folder(captures[-1])))
    return {"last good day": last_good_day, "page": dg.MetadataValue.url(page), "capture": folder}
