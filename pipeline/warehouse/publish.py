"""Replaces the published file with a complete new one, in one step.

Readers keep the file that they opened. A crash leaves the old file and at most a temporary one, which the
next publication deletes.
"""

import os
import shutil
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path

from filelock import FileLock

from pipeline.contracts.disk import UnwritableError, disk_error, flush
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.paths import Home
from pipeline.contracts.progress import Progress, no_progress
from pipeline.offers.incidents import report_incident
from pipeline.offers.record_files import set_aside
from pipeline.warehouse.build import Mend, Report, build
from pipeline.warehouse.scripts import BuildError


def publish(
    home: Home, day: date, now: datetime, progress: Progress = no_progress, mend: Mend | None = None
) -> Report:
    """Build the database of ``day`` and publish it. Raises what ``build`` raises, leaving the old file, and
    BuildError when the disk does not allow it."""
    try:
        return _publish(home, day, now, progress, mend)
    except Exception as error:
        if (cause := disk_error(error)) is None:
            raise
        raise BuildError(str(UnwritableError(Path(cause.filename or home.published), cause))) from error


def _publish(home: Home, day: date, now: datetime, progress: Progress, mend: Mend | None) -> Report:
    home.published.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(home.lock):
        _sweep(home.published.parent)
        if home.published.is_dir():  # no file can take its place
            _move_folder_aside(home, now)
        file = home.published.parent / f".building-{os.getpid()}.duckdb"
        try:
            report = build(file, home, day, now, progress, mend)
            flush(file)
            file.replace(home.published)
            flush(home.published.parent)
        finally:
            _sweep(home.published.parent)
    return report


def _move_folder_aside(home: Home, now: datetime) -> None:
    """Raises OSError."""
    place = set_aside(home, home.published)
    report_incident(
        home,
        Incident(
            at=now,
            kind=IncidentKind.DAMAGED_FILE,
            path=str(home.published.relative_to(home.root)),
            reason="a folder is where a file belongs",
            remedy=f"moved to {place.relative_to(home.root)}; published again",
        ),
    )


def _sweep(folder: Path) -> None:
    """Remove what a build wrote besides the published file: the database, its log, and what did not fit into
    memory. Only one process builds at a time."""
    for leftover in folder.glob(".building-*"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            with suppress(OSError):
                leftover.unlink()
