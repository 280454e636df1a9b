"""Litter, stray files, the user's own catalogue, keys and incidents."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from pipeline.capture.archive import Archive
from pipeline.capture.http.secrets import Secrets
from pipeline.catalog.own import read_own_catalogue
from pipeline.catalog.source_config import configs
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.health.doctor.finding import Examination, Row, began_at, captures_of, places
from pipeline.health.doctor.machine import used_bytes
from pipeline.home.disk import size_text
from pipeline.home.litter import half_written, sweep
from pipeline.record.damage import RecordError
from pipeline.record.incidents import kept_incidents
from pipeline.record.months import strays

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
    found = sorted({*top, *_unknown_sources(x.home.archive), *strays(x.home), *_stray_in_archive(x)})
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


def own_catalogue(x: Examination) -> Iterator[Row]:
    """The user's own GPUs, models and workloads, and what cannot be used of them."""
    found = read_own_catalogue(x.home)
    for path, problem in found.problems:
        what = problem.removeprefix(str(path)).lstrip(",: ")
        yield "warn", what, x.short(path), "mend it: gpufare publishes without it"
    names = {
        "GPUs": [gpu.gpu_id for gpu in found.gpus],
        "models": [model.model for model in found.models],
        "workloads": [job.workload for job in found.workloads],
    }
    said = [f"{what}: {', '.join(each)}" for what, each in names.items() if each]
    if said or not found.problems:
        yield "ok", "; ".join(said) or "no GPUs, models or workloads of your own", "", ""


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
    """Show the incidents of the last days, and those whose cause is still there."""
    try:
        kept = kept_incidents(x.home)
    except RecordError as error:
        yield "fail", str(error), "", ""
        return
    recent = [incident for incident in kept if _is_open(x, incident)]
    for each in reversed(recent):
        what = f"{each.at:%Y-%m-%d %H:%M} {each.kind}: {each.reason}"
        yield "warn", what, each.path or each.source or "", each.remedy
    moved = [path for path in x.home.damaged.rglob("*") if path.is_file()]
    if moved:
        what = f"{len(moved)} damaged files were set aside ({size_text(used_bytes(x.home.damaged))})"
        yield "warn", what, str(x.home.damaged), "delete them when nobody needs them any more"
    if not recent and not moved:
        yield "ok", f"none in the last {INCIDENT_DAYS} days", "", ""


def _is_open(x: Examination, incident: Incident) -> bool:
    """True if an incident is one of the last days, or has a lasting cause that is still there."""
    if incident.kind is IncidentKind.UNKNOWN_SOURCE and Path(incident.path or "").name in configs():
        return False
    if incident.kind.lasting and incident.path is not None:
        return (x.home.root / incident.path).exists()
    return incident.at.date() > x.today - timedelta(days=INCIDENT_DAYS)
