"""Checks for litter and stray files, and of the user's own catalogue and incidents."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from rich.filesize import decimal as size_text

from pipeline.capture.archive import Archive
from pipeline.catalog.own import read_own_catalogue
from pipeline.catalog.source_config import configs
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.health.doctor.finding import Examination, Finding
from pipeline.health.doctor.machine import MINUTE, used_bytes
from pipeline.home.litter import half_written
from pipeline.home.paths import Home
from pipeline.record.damage import RecordError
from pipeline.record.incidents import kept_incidents
from pipeline.record.months import strays

INCIDENT_DAYS = 7


def litter(x: Examination) -> list[Finding]:
    """Look for half-written files left behind by killed processes."""
    left = half_written(x.home)
    if not left:
        return [Finding("ok", "no half-written files of killed processes")]
    what = f"{len(left)} half-written files of killed processes, such as {x.short(left[0])}"
    return [Finding("warn", what, remedy="the next `gpufare refresh` deletes them")]


def stray(x: Examination) -> list[Finding]:
    """Look for files that do not belong in a home."""
    known = {place.relative_to(x.home.root).parts[0] for place in x.home.places()} | {"lost+found"}
    top = [path for path in x.home.root.iterdir() if path.name not in known]
    found = sorted({*top, *strays(x.home), *_strays_in_archive(x.home)})
    what, remedy = "does not belong here and is not read", "move it away"
    return [Finding("warn", what, x.short(path), remedy) for path in found] or [
        Finding("ok", "nothing that does not belong here")
    ]


def _strays_in_archive(home: Home) -> Iterator[Path]:
    """Yield archive paths that match no known source, day or capture, such as renamed or copied folders."""
    folder, archive = home.archive, Archive(home.archive)
    if folder.is_dir():
        yield from (each for each in folder.iterdir() if each.name not in configs() and each.name[0] != ".")
    for source in archive.sources():
        days = {folder / source / f"{day}": day for day in archive.days(source)}
        yield from (path for path in (folder / source).iterdir() if path not in days)
        for path, day in days.items():
            yield from set(path.iterdir()) - set(archive.capture_folders(source, day))


def own_catalogue(x: Examination) -> list[Finding]:
    """Look for unusable rows among the user's own GPUs, models and workloads."""
    remedy = "fix it: gpufare publishes without it"
    problems = [
        Finding("warn", problem.removeprefix(str(path)).lstrip(",: "), x.short(path), remedy)
        for path, problem in read_own_catalogue(x.home).problems
    ]
    return problems or [Finding("ok", "every row of your own GPUs, models and workloads can be used")]


def incidents(x: Examination) -> list[Finding]:
    """Show the incidents of the last INCIDENT_DAYS days, and older incidents whose cause persists."""
    try:
        kept = kept_incidents(x.home)
    except RecordError as error:
        return [Finding("fail", str(error))]
    found = [
        Finding(
            "warn",
            f"{each.at:{MINUTE}} {each.kind}: {each.reason}",
            each.path or each.source or "",
            each.remedy,
        )
        for each in reversed(kept)
        if _is_open(x, each)
    ]
    if moved := [path for path in x.home.damaged.rglob("*") if path.is_file()]:
        what = f"{len(moved)} damaged files were set aside ({size_text(used_bytes(x.home.damaged))})"
        remedy = "delete them when you no longer need them"
        found.append(Finding("warn", what, str(x.home.damaged), remedy))
    return found or [Finding("ok", f"none in the last {INCIDENT_DAYS} days")]


def _is_open(x: Examination, incident: Incident) -> bool:
    """True if an incident is recent, or has a lasting cause that persists."""
    if incident.kind is IncidentKind.OWN_CATALOGUE:  # own_catalogue reads that file again
        return False
    if incident.kind is IncidentKind.UNKNOWN_SOURCE and Path(incident.path or "").name in configs():
        return False
    if incident.kind.lasting and incident.path is not None:
        return (x.home.root / incident.path).exists()
    return incident.at.date() > x.today - timedelta(days=INCIDENT_DAYS)
