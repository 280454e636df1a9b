"""The seven-o'clock screen: the state of each source as a check, and the morning as one asset."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import configs
from pipeline.health.digest import FINE, digest_of
from pipeline.health.source_states import source_states
from pipeline.health.webhook import send_digest
from pipeline.home.paths import Home
from pipeline.orchestration.evidence import markdown_of, page_and_capture
from pipeline.orchestration.keys import MORNING, PRICES_TEAM, enabled_sources, offers_key, table_key
from pipeline.orchestration.resources import GpufareHome

HEALTHY = "healthy"

_WARN_ONLY = frozenset({"current", "aging", "failing", "not_asked"})
"""States that are a warning at most: the rankings have the source's last good prices, or never had any. A
current source is one while its newest capture is incomplete."""


@dg.asset(
    key=MORNING,
    deps=[table_key(table) for table in ("publication", "price_changes", "source_health", "rejects")],
    group_name="morning",
    kinds={"markdown"},
    owners=[PRICES_TEAM],
    description="What moved, what broke, what is held and why: in the metadata `morning`. Posted once a day "
    "to the webhook in GPUFARE_WEBHOOK_URL.",
)
def morning_digest(context: dg.AssetExecutionContext, home: GpufareHome) -> dg.MaterializeResult[None]:
    """Runs after the publishing, also when that failed: then it says so."""
    this_morning = digest_of(home.folders(), datetime.now(UTC))
    digest = send_digest(home.folders(), this_morning, os.environ)
    context.log.info(f"{this_morning.text()}\n{digest}")
    return dg.MaterializeResult(
        metadata={
            "morning": dg.MetadataValue.md(this_morning.markdown()),
            **dict(line.split(": ", 1) for line in this_morning.lines),  # seen without opening the Markdown
            "Digest": digest,
        }
    )


@dg.multi_asset_check(
    specs=[
        dg.AssetCheckSpec(
            HEALTHY,
            asset=offers_key(config.name),
            description=f"The newest attempt at {config.title} was accepted, and its prices are current.",
        )
        for config in enabled_sources()
    ],
    can_subset=True,
)
def sources_are_healthy(
    context: dg.AssetCheckExecutionContext, home: GpufareHome
) -> Iterator[dg.AssetCheckResult]:
    """From the record, so that it also tells of a source whose run was killed or never began."""
    chosen = {key.asset_key for key in context.op_execution_context.selected_asset_check_keys}
    for row in source_states(home.folders(), datetime.now(UTC).date()).dicts():
        if offers_key(row["source"]) in chosen:
            yield _health(row, home.folders())


def _health(row: dict[str, Any], home: Home) -> dg.AssetCheckResult:
    config, day, archive = configs()[row["source"]], row["last_attempt_day"], Archive(home.archive)
    severity = dg.AssetCheckSeverity.WARN if row["state"] in _WARN_ONLY else dg.AssetCheckSeverity.ERROR
    return dg.AssetCheckResult(
        check_name=HEALTHY,
        asset_key=offers_key(row["source"]),
        passed=row["state"] in FINE and not (row["state"] == "current" and row["why"]),
        severity=severity,
        description=markdown_of(": ".join(filter(None, (row["state"].replace("_", " "), row["why"])))),
        metadata={
            "last good day": str(row["last_accepted_day"] or "never"),
            "reason": row["why"] or "",
            **page_and_capture(config, archive.captures(config.name, day) if day else [], home),
        },
    )
