"""Keeps incidents: one JSON file each under the home's ``incidents``."""

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.home.disk import replacing
from pipeline.home.paths import Home
from pipeline.parsing.printable import printable

MAX_TEXT_CHARACTERS = 1_000

_log = logging.getLogger("gpufare")


def report_incident(home: Home, incident: Incident) -> bool:
    """Keep an incident. Never raises: what cannot be kept is logged, on stderr by default.

    A lasting cause (see IncidentKind.lasting) is kept once per path and reason; returns whether it is new.
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
            return False
        with replacing(home.incidents / name) as temporary:
            temporary.write_text(json.dumps(row, default=str, indent=1) + "\n", encoding="utf-8")
    except Exception as problem:
        _log.error("%s (not kept: %s)", printable(incident.line()), printable(str(problem)))
    return True


def kept_files(home: Home) -> set[Path]:
    """The files with the incidents kept so far."""
    return set(home.incidents.glob("[!.]*.json"))


def kept_incidents(files: Iterable[Path]) -> list[Incident]:
    """The incidents in these files, oldest first; a file that cannot be read is left out."""
    found = []
    for file in sorted(files):
        with suppress(OSError, ValueError, KeyError, TypeError):
            found.append(_incident(json.loads(file.read_text(encoding="utf-8"))))
    return found


def _incident(row: Mapping[str, Any]) -> Incident:
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


def _digest(incident: Incident) -> str:
    about = "\0".join(str(part) for part in (incident.path, incident.source, incident.day, incident.reason))
    return hashlib.sha256(about.encode(errors="replace")).hexdigest()[:12]
