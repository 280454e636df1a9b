"""Sends the home to its object store after a refresh, which never fails because of it."""

from collections.abc import Mapping
from datetime import UTC, datetime

from pipeline.contracts.errors import sentence_of
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.progress import Progress, no_progress
from pipeline.home.paths import Home
from pipeline.parsing.printable import printable
from pipeline.record.incidents import report_incident
from pipeline.store.address import store_address
from pipeline.store.bucket import Bucket
from pipeline.store.push import push

MAX_INCIDENTS = 20
"""Conflicts and problems of one push that are kept each; the others are counted."""

NEXT_PUSH = "the next refresh sends it, or `gpufare store push`"


def store_home(home: Home, environment: Mapping[str, str], progress: Progress = no_progress) -> str | None:
    """Send what is new, and say so in one line; None where GPUFARE_STORE is not set.

    Never raises: what could not be sent is an incident, and the next push sends it.
    """
    now = datetime.now(UTC)
    try:
        address = store_address(environment)
        if address is None:
            return None
        report = push(home, Bucket(address, environment), now, progress=progress)
    except Exception as problem:
        reason = printable(sentence_of(problem))
        _report(home, now, reason, NEXT_PUSH)
        return f"warning: not stored: {reason}; {NEXT_PUSH}"
    left = [*report.conflicts, *report.problems]
    for each in left[:MAX_INCIDENTS]:
        _report(home, now, each.reason, each.remedy, each.path)
    if not left:
        return report.line()
    more = f" and {len(left) - 1} more, which are incidents" if len(left) > 1 else ""
    return f"{report.line()}; warning: not stored: {left[0].line()}{more}"


def _report(home: Home, now: datetime, reason: str, remedy: str, path: str | None = None) -> None:
    kind = IncidentKind.NOT_STORED
    report_incident(home, Incident(at=now, kind=kind, reason=reason, remedy=remedy, path=path))
