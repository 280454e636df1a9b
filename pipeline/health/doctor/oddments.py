"""Litter, stray files, keys and incidents."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from pipeline.capture.archive import Archive
from pipeline.capture.http.secrets import Secrets
from pipeline.catalog.source_config import configs
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.health.doctor.finding import Examination, Row, began_at, captures_of, places
from pipeline.health.doctor.machine import used_bytes
from pipeline.home.disk import size_text
from pipeline.home.litter import half_written, sweep
from pipeline.home.paths import Home
from pipeline.record.incidents import kept_files, kept_incidents
from pipeline.record.record_files import SOURCE_FOLDERS, stray_files

INCIDENT_DAYS = 7


def litter(x: Examination) -> Iterator[Row]:
    """Files that killed processes left half written: swept."""
    left = half_written(x.home, days=None)
    if not left:
        yield "ok", "no half-written files of killed processes", "", ""
    elif x.fix:
        swept = sweep(x.home, days=None)
        yield "fixed", f"{len(swept)} half-written files deleted", "", ""
        for path in set(left) - set(swept):
            yield "warn", "half-written, and cannot be deleted", x.short(path), "delete it by hand"
    else:
        what = f"{len(left)} half-written files of killed processes, such as {x.short(left[0])}"
        yield "warn", what, "", "the next `gpufare refresh` or `gpufare doctor --fix` deletes them"


def stray(x: Examination) -> Iterator[Row]:
    """What does not belong in a home."""
    known = {place.relative_to(x.home.root).parts[0] for place in places(x.home)} | {"lost+found"}
    top = [path for path in x.home.root.iterdir() if path.name not in known]
    sources = [
        path for folder in ("archive", *SOURCE_FOLDERS) for path in _unknown_sources(x.home.root / folder)
    ]
    found = sorted({*top, *sources, *stray_files(x.home), *_stray_in_archive(x)})
    for path in found:
        yield "warn", "does not belong here and is not read", x.short(path), "move it away"
    if not found:
        yield "ok", "nothing that does not belong here", "", ""


def _unknown_sources(folder: Path) -> list[Path]:
    """Folders that are no source's: of one that was renamed or removed, or a copy."""
    entries = folder.iterdir() if folder.is_dir() else ()
    return [path for path in entries if path.name not in configs() and not path.name.startswith(".")]


def _stray_in_archive(x: Examination) -> Iterator[Path]:
    archive = Archive(x.home.archive)
    for source in archive.sources():
        days = archive.days(source)
        names = {f"{day}" for day in days}
        yield from (path for path in (x.home.archive / source).iterdir() if path.name not in names)
        entries = (path for day in days for path in captures_of(x, source, day))
        yield from (path for path in entries if began_at(path) is None)


def keys(x: Examination) -> Iterator[Row]:
    """Which keys are set; never their values."""
    given: list[str] = []
    missing: list[str] = []
    for config in configs().values():
        if config.disabled is not None:
            continue
        requests = json.dumps([facts.model_dump(mode="json") for facts in config.requests])
        for name in sorted({*config.key_variables, *Secrets.names_in(requests)}):
            needed = f"{name} ({config.name}{'' if config.needs_key else ', optional'})"
            (given if x.environment.get(name, "").strip() else missing).append(needed)
    what = f"set: {', '.join(given) or 'none'}; not set: {', '.join(missing) or 'none'}"
    yield "ok", what, "", ""


def incidents(x: Examination) -> Iterator[Row]:
    """Incidents of the last days, and those whose cause is still there."""
    recent = [incident for incident in kept_incidents(kept_files(x.home)) if _is_open(x, incident)]
    for incident in reversed(recent):
        what = f"{incident.at:%Y-%m-%d %H:%M} {incident.kind}: {incident.reason}"
        yield "warn", what, incident.path or incident.source or "", incident.remedy
    moved = [path for path in x.home.damaged.rglob("*") if path.is_file()]
    if moved:
        what = f"{len(moved)} damaged files were moved aside ({size_text(used_bytes(x.home.damaged))})"
        yield "warn", what, str(x.home.damaged), "delete them when nobody needs them any more"
    if not recent and not moved:
        yield "ok", f"none in the last {INCIDENT_DAYS} days", "", ""


def incident_files(home: Home) -> list[Path]:
    """The kept incidents, oldest first."""
    return sorted(kept_files(home))


def _is_open(x: Examination, incident: Incident) -> bool:
    """True if an incident is of the last days; one with a lasting cause, if the cause is still there."""
    path = incident.path
    if incident.kind is IncidentKind.UNKNOWN_SOURCE and Path(path or "").name in configs():
        return False
    if incident.kind.lasting and path is not None:
        return (x.home.root / path).exists()
    return incident.at.date() > x.today - timedelta(days=INCIDENT_DAYS)
