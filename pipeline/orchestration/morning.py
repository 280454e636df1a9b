"""The morning's digest as an asset: what broke, what was published and what changed, on one screen.

The digest's text is harmless in Markdown; this module only lays it out.
"""

import html
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import dagster as dg

from pipeline.health.digest import NOTHING_BROKE, Problem, digest_of
from pipeline.health.webhook import send_digest
from pipeline.orchestration.keys import MORNING, enabled_sources, offers_key, table_key
from pipeline.orchestration.resources import GpufareHome

CHECK = "nothing_broke"

_HEADING = re.compile(r"^([A-Z][A-Za-z ]*:)")

_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")


@dg.asset(
    key=MORNING,
    deps=[table_key(table) for table in ("publication", "price_changes", "source_health", "rejects")],
    group_name="morning",
    description="What broke, what was published and what changed. Posted once a day to the webhook in "
    "GPUFARE_WEBHOOK_URL.",
    check_specs=[
        dg.AssetCheckSpec(
            CHECK,
            asset=MORNING,
            description="Nothing in the digest broke: sources, publication, clock, permissions, incidents.",
        )
    ],
)
def morning_digest(
    context: dg.AssetExecutionContext, home: GpufareHome
) -> Iterator[dg.MaterializeResult[None]]:
    """Post the digest after publishing, even if publishing failed: the digest reports the failure."""
    digest = digest_of(home.folders(), datetime.now(UTC))
    posted = send_digest(home.folders(), digest, os.environ)
    context.log.info(f"{digest.text()}\n{posted}")
    yield dg.MaterializeResult(
        metadata={
            **problems_by_subject(digest.problems),
            "Published": _listed(digest.published),
            "What changed": _listed(digest.changed),
            "Digest": posted,
        },
        check_results=[
            dg.AssetCheckResult(
                check_name=CHECK,
                passed=not digest.problems,
                severity=dg.AssetCheckSeverity.ERROR,
                description=problems_list(digest.problems),
                metadata={
                    "Published": _as_text(digest.published),
                    "What changed": _as_text(digest.changed),
                },
            )
        ],
    )


def problems_list(problems: Sequence[Problem]) -> str:
    """Return problems as a Markdown list, in which the name of a source is a link to its asset."""
    return "\n".join(f"- {_text_of(each)}" for each in problems) or NOTHING_BROKE


def problems_by_subject(problems: Sequence[Problem]) -> Mapping[str, dg.MetadataValue[str]]:
    """Return what the list says, by what broke, in pieces that Dagster shows without a click."""
    told = defaultdict[str, list[str]](list)
    for each in problems:
        told[each.subject].append(_text_of(each))
    broke = {f"Broke: {subject}": dg.MetadataValue.md("\n\n".join(texts)) for subject, texts in told.items()}
    return broke or {"Broke": dg.MetadataValue.md(NOTHING_BROKE)}


def _text_of(problem: Problem) -> str:
    """Return a problem in one line, and in another what to do."""
    subject = f"**{problem.subject}**"
    if problem.subject in {config.name for config in enabled_sources()}:
        subject = f"[{subject}](/assets/{'/'.join(offers_key(problem.subject).path)})"
    happened = ": ".join(filter(None, [subject, problem.what, problem.why]))
    told = _unbroken("; ".join(filter(None, [happened, problem.meanwhile])))
    return f"{told}  \n  → {problem.step}" if problem.step else told


def _unbroken(text: str) -> str:
    """Return a text whose dates are not broken over two lines."""
    return _DATE.sub(lambda day: str(day[0]).replace("-", "\N{NON-BREAKING HYPHEN}"), text)


def _listed(lines: Iterable[str]) -> dg.MetadataValue[str]:
    """Return lines as Markdown, with their headings in bold."""
    return dg.MetadataValue.md("  \n".join(_HEADING.sub(r"**\1**", line) for line in lines))


def _as_text(lines: Iterable[str]) -> str:
    """Return lines for a place where Dagster shows text as it is, but without line breaks."""
    return html.unescape(". ".join(lines))
