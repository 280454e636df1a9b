"""Incidents in the journal: problems outside a source's answer."""

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Any

from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.home.paths import Home
from pipeline.parsing.printable import printable
from pipeline.record.damage import readable
from pipeline.record.journal import Entry, Journal

MAX_TEXT_CHARACTERS = 1_000

_KIND = "incident"

_log = logging.getLogger("gpufare")


def report_incident(home: Home, incident: Incident) -> bool:
    """Record an incident; return True if it is new. Never raises: if recording fails, the incident is logged.

    A lasting cause (IncidentKind.lasting) is recorded once per path and reason. The log is stderr by default.
    """
    row = {
        "noticed_at": incident.at,  # AT is an SQL keyword
        **asdict(incident),
        "sentence": incident.kind.sentence,
        "reason": printable(incident.reason)[:MAX_TEXT_CHARACTERS],
        "remedy": printable(incident.remedy)[:MAX_TEXT_CHARACTERS],
        "path": None if incident.path is None else printable(incident.path),
    }
    journal = Journal(home)
    digest = hashlib.sha256("\0".join(map(str, cause_of(incident))).encode(errors="replace")).hexdigest()[:12]
    name = digest if incident.kind.lasting else f"{digest} {incident.at.astimezone(UTC).isoformat()}"
    try:
        if incident.kind.lasting and any(entry.name == name for entry in journal.entries(_KIND)):
            return False
        content = json.dumps(row, default=str)
        journal.write(_KIND, incident.source or "", incident.at.astimezone(UTC).date(), name, content)
    except Exception as problem:
        _log.error("%s (not kept: %s)", printable(incident.line()), printable(str(problem)))
    return True


def kept_incidents(home: Home) -> list[Incident]:
    """Return the recorded incidents, oldest first. Raises RecordError."""
    journal = Journal(home)
    entries = journal.entries(_KIND)
    with readable(journal.path, "journal", ""):
        return sorted((incident_of(entry) for entry in entries), key=lambda incident: incident.at)


def incident_of(entry: Entry) -> Incident:
    """Return the incident in an entry. Raises ValueError, KeyError or TypeError if it is invalid."""
    row: Mapping[str, Any] = json.loads(entry.content)
    kinds = {kind.value: kind for kind in IncidentKind}
    return Incident(
        at=datetime.fromisoformat(row["noticed_at"]),
        kind=kinds[row["kind"]],
        day=date.fromisoformat(row["day"]) if row["day"] else None,
        source=row["source"],
        path=row["path"],
        reason=row["reason"],
        remedy=row["remedy"],
    )


def cause_of(incident: Incident) -> tuple[Any, ...]:
    """Return the values that distinguish the causes of incidents, in the form in which they are stored."""
    path = None if incident.path is None else printable(incident.path)
    reason = printable(incident.reason)[:MAX_TEXT_CHARACTERS]
    return incident.kind, path, incident.source, incident.day, reason
