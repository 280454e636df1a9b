"""One digest per morning: the morning's text, returned for a log and posted once a day to a webhook."""

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime

from filelock import FileLock

from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.health.morning import Morning
from pipeline.health.webhook import WEBHOOK_VARIABLE, WebhookError, post
from pipeline.home.disk import UnwritableError, replacing
from pipeline.home.paths import Home
from pipeline.record.incidents import report_incident

LOCK_SECONDS = 120
"""Longer than a digest takes to be posted or given up."""


def send_digest(home: Home, morning: Morning, environment: Mapping[str, str]) -> str:
    """Post a morning's digest, unless that day's was posted. Returns what was done, in one line.

    Never raises for the webhook or the disk: a failure is an incident. When the home cannot be written a
    digest is needed most, so it is posted then, too, if need be twice.
    """
    posted = home.digests / f"{morning.day}.txt"
    with ExitStack() as stack:
        with suppress(OSError):
            home.digests.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(home.digests / ".lock", timeout=LOCK_SECONDS))
        if posted.exists():
            return f"the digest of {morning.day} was posted already"
        problem = _post(home, morning, environment)
        if problem is None:
            with suppress(OSError, UnwritableError), replacing(posted) as temporary:
                temporary.write_text(morning.text() + "\n", encoding="utf-8")
    return problem or f"the digest of {morning.day} was posted"


def _post(home: Home, morning: Morning, environment: Mapping[str, str]) -> str | None:
    """None when it was posted, else why not."""
    try:
        posted = post(morning.text(), environment)
    except WebhookError as error:
        incident = Incident(
            at=datetime.now(UTC),
            kind=IncidentKind.DIGEST_NOT_SENT,
            day=morning.day,
            reason=str(error),
            remedy=f"check {WEBHOOK_VARIABLE}, then run `gpufare digest`",
        )
        report_incident(home, incident)
        return f"the digest was not posted: {error}"
    return None if posted else f"no webhook is set in {WEBHOOK_VARIABLE}"
