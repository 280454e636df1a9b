"""The seven-o'clock screen: the morning as one asset."""

import os
from datetime import UTC, datetime

import dagster as dg

from pipeline.health.digest import digest_of
from pipeline.health.webhook import send_digest
from pipeline.orchestration.keys import MORNING, PRICES_TEAM, table_key
from pipeline.orchestration.resources import GpufareHome


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
