"""Sends what a refresh published to the bucket in GPUFARE_STORE; no refresh fails because of it."""

from collections.abc import Mapping
from datetime import UTC, datetime

from pipeline.contracts.errors import sentence_of
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.progress import Progress, no_progress
from pipeline.home.paths import Home
from pipeline.parsing.printable import printable
from pipeline.record.incidents import report_incident
from pipeline.store.address import store_address
from pipeline.store.publication import bucket_at, publish

REMEDY = "the next refresh sends it, or `gpufare store publish`"


def store_published(
    home: Home, environment: Mapping[str, str], progress: Progress = no_progress
) -> str | None:
    """Send the published file and return a line for people; None where no bucket is set, or nothing was ever
    published.

    Never raises: what could not be sent is an incident, and the next refresh sends it.
    """
    try:
        address = store_address(environment)
        if address is None or not home.published.exists():
            return None
        return publish(home, bucket_at(address), {}, progress)
    except Exception as problem:
        reason = printable(sentence_of(problem))
        kind = IncidentKind.NOT_STORED
        report_incident(home, Incident(at=datetime.now(UTC), kind=kind, reason=reason, remedy=REMEDY))
        return f"warning: not stored: {reason}; {REMEDY}"
