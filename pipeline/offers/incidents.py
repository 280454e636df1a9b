"""Keeps incidents: one JSON file each under the home's ``incidents``."""

import hashlib
import json
import logging
from dataclasses import asdict
from datetime import UTC

from pipeline.contracts.incidents import Incident
from pipeline.contracts.paths import Home
from pipeline.offers.printable import printable
from pipeline.offers.records import replacing

MAX_TEXT_CHARACTERS = 1_000

_log = logging.getLogger("gpufare")


def report_incident(home: Home, incident: Incident) -> None:
    """Keep an incident. Never raises: what cannot be kept is logged, on stderr by default.

    A lasting cause (see IncidentKind.lasting) is kept once per path and reason.
    """
    row = {
        "noticed_at": incident.at,  # AT is a keyword of SQL
        **asdict(incident),
        "sentence": incident.kind.sentence,
        "reason": printable(incident.reason)[:MAX_TEXT_CHARACTERS],
        "remedy": printable(incident.remedy)[:MAX_TEXT_CHARACTERS],
        "path": None if incident.path is None else printable(incident.path),
    }
    about = f"{incident.kind}-{_digest(incident)}.json"
    name = f"{incident.at.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}-{about}"
    try:
        if incident.kind.lasting and any(home.incidents.glob(f"*-{about}")):
            return
        with replacing(home.incidents / name) as temporary:
            temporary.write_text(json.dumps(row, default=str, indent=1) + "\n", encoding="utf-8")
    except Exception as problem:
        _log.error("%s (not kept: %s)", printable(incident.line()), printable(str(problem)))


def _digest(incident: Incident) -> str:
    about = "\0".join(str(part) for part in (incident.path, incident.source, incident.day, incident.reason))
    return hashlib.sha256(about.encode(errors="replace")).hexdigest()[:12]
