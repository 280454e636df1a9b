"""The morning's digest as an asset: what broke, what was published and what changed, on one screen.

The digest's text is harmless in Markdown; this module only lays it out.
"""

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import dagster as dg

from pipeline.health.digest import Problem, digest_of
from pipeline.health.webhook import send_digest
from pipeline.orchestration.keys import MORNING, enabled_sources, offers_key, table_key
from pipeline.orchestration.resources import GpufareHome

NOTHING_BROKE = "nothing_broke"


@dg.asset(
    key=MORNING,
    deps=[table_key(table) for table in ("publication", "price_changes", "source_health", "rejects")],
    group_name="morning",
    kinds={"markdown"},
    description="What broke, what was published and what changed. Posted once a day to the webhook in "
    "GPUFARE_WEBHOOK_URL.",
    check_specs=[
        dg.AssetCheckSpec(
            NOTHING_BROKE,
            asset=MORNING,
            description="Every source that was asked gave prices that were accepted, and they were published.",
        )
    ],
)
def morning_digest(context: dg.AssetExecutionContext, home: GpufareHome) -> dg.MaterializeResult[None]:
    """Post the digest after publishing, even if publishing failed: the digest reports the failure."""
    digest = digest_of(home.folders(), datetime.now(UTC))
    posted = send_digest(home.folders(), digest, os.environ)
    context.log.info(f"{digest.text()}\n{posted}")
    return dg.MaterializeResult(
        metadata={
            "Broke": dg.MetadataValue.md(problems_table(digest.problems)),
            "Published": dg.MetadataValue.md(_list(digest.published)),
            "Changed": dg.MetadataValue.md(_list(digest.changed)),
            "Digest": posted,
        },
        check_results=[
            dg.AssetCheckResult(
                check_name=NOTHING_BROKE,
                passed=not digest.problems,
                severity=dg.AssetCheckSeverity.ERROR,
                description=f"{problems_table(digest.problems)}\n\n{_list([*digest.published, *digest.changed])}",
            )
        ],
    )


def problems_table(problems: Sequence[Problem]) -> str:
    """Return problems as a Markdown table, whose sources are links to their assets."""
    if not problems:
        return "nothing"
    head = ["| what broke | what happened | what stands in | what to do |", "|---|---|---|---|"]
    return "\n".join([*head, *map(_row, problems)])


def _row(problem: Problem) -> str:
    happened = f"**{problem.what}**{f': {problem.why}' if problem.why else ''}"
    cells = (_link(problem.subject), happened, problem.meanwhile, problem.step)
    return f"| {' | '.join(cells)} |"


def _link(subject: str) -> str:
    if subject not in {config.name for config in enabled_sources()}:
        return subject
    return f"[{subject}](/assets/{'/'.join(offers_key(subject).path)})"


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
