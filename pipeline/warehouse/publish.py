"""Replaces the published file with a complete new one in one step.

Readers keep the file that they opened. A crash leaves the old file and at most a temporary one, which the
next publication deletes.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path

from filelock import FileLock

from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.progress import Progress, no_progress
from pipeline.home.disk import UnwritableError, disk_error, flush, set_aside
from pipeline.home.paths import Home
from pipeline.record.incidents import report_incident
from pipeline.record.records import Records
from pipeline.warehouse.build import Mend, Report, build
from pipeline.warehouse.connection import place_to_build
from pipeline.warehouse.query import DamagedError, NotPublishedError, QueryError, ask, reader
from pipeline.warehouse.sql_files import BuildError


def publish(
    home: Home, day: date, now: datetime, progress: Progress = no_progress, mend: Mend | None = None
) -> Report:
    """Build the database of ``day`` and publish it. Raises the errors of ``build``, and BuildError for
    problems with the disk or if the published file is of a later time than ``now``; after an error, the old
    file remains."""
    with _replacing(home, home.published) as file:
        _require_earlier(home, now)
        home.published.parent.mkdir(parents=True, exist_ok=True)
        _sweep(home.published.parent, ".building-*")
        if home.published.is_dir():  # no file can replace a folder
            _move_folder_aside(home)
        return build(file, home, day, now, progress, mend)


def rebuild(home: Home, day: date, now: datetime, file: Path, progress: Progress = no_progress) -> Report:
    """Build the database of a past day from the record, and replace ``file`` with it once it is complete.

    The published file remains unchanged. Raises the errors of ``build``, and BuildError if the record has no
    offers up to that day or there is a problem with the disk.
    """
    if not any(each <= day for each in Records(home).days_with_offers()):
        raise BuildError(f"the record has no offers of {day} or before")
    with _replacing(home, file) as temporary:
        return build(temporary, home, day, now, progress, keeps=False)


@contextmanager
def _replacing(home: Home, file: Path) -> Iterator[Path]:
    """Hold the home's lock and yield a temporary path; on leaving, replace the file with the temporary one.
    Raises BuildError for problems with the disk."""
    temporary = place_to_build(file, f".building-{os.getpid()}-{secrets.token_hex(4)}.duckdb")
    try:
        with FileLock(home.lock):
            yield temporary
            _move(temporary, file)
    except Exception as error:
        if (cause := disk_error(error)) is None:
            raise
        raise BuildError(
            str(UnwritableError(Path(cause.filename2 or cause.filename or file), cause))
        ) from error
    finally:
        _sweep(temporary.parent, f"{temporary.stem}.*")


def _move(temporary: Path, file: Path) -> None:
    """Replace ``file`` in one step, also from a temporary file on another disk."""
    if temporary.parent != file.parent:
        temporary = Path(shutil.copyfile(temporary, file.with_name(temporary.name)))
    flush(temporary)
    temporary.replace(file)
    flush(file.parent)


def _require_earlier(home: Home, now: datetime) -> None:
    """Raise BuildError if what is published is later than ``now``, as after a refresh that began later but
    ended sooner, or under a clock that was ahead."""
    try:
        with reader(home.published) as connection:
            ((published,),) = ask(connection, "SELECT as_of_time FROM main.publication").rows
    except (NotPublishedError, DamagedError, QueryError):
        return  # there is nothing that people could read
    if published <= now:
        return
    if published <= datetime.now(UTC):
        why = "a refresh that began later has published; the next one publishes what this one read"
    else:
        why = (
            "set the clock of this machine or, if the clock is right, move that file away, and then run "
            "`gpufare refresh`"
        )
    times = (
        f"{published.astimezone(UTC):{_TIME}} UTC, later than this build of {now.astimezone(UTC):{_TIME}} UTC"
    )
    raise BuildError(f"{home.published} is of {times}: {why}")


_TIME = "%Y-%m-%d %H:%M:%S"


def _move_folder_aside(home: Home) -> None:
    moved = set_aside(home, home.published)
    report_incident(
        home,
        Incident(
            kind=IncidentKind.DAMAGED_FILE,
            path=str(home.published.relative_to(home.root)),
            reason="a folder is where a file belongs",
            remedy=f"moved to {moved.relative_to(home.root)}; published again",
        ),
    )


def _sweep(folder: Path, names: str) -> None:
    """Remove leftovers of builds: databases, their logs, and spill folders."""
    for leftover in folder.glob(names):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            with suppress(OSError):
                leftover.unlink()
