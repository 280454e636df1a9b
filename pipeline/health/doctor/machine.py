"""The home, its disk, the lock and the clock."""

import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from filelock import FileLock, Timeout

from pipeline.capture.archive import Archive
from pipeline.health.doctor.finding import Examination, Row, began_at, captures_of, places
from pipeline.home.disk import disk_error_text, existing, size_text
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.home.postgres import PostgresError
from pipeline.home.publishing_lock import LOCK_VARIABLE, lock_holder, several_machines

REBUILT = frozenset({"published", "cache", "report"})
"""Folders that do not grow day by day."""

DISK_DAYS_WARNING, DISK_DAYS_FAILURE = 60, 7
"""Days for which the free space lasts when the home grows as it did on average."""

ROOM_FOR_A_BUILD_BYTES = 200_000_000
"""Beside the published file a new one is built, with what does not fit into memory."""

CLOCK_TOLERANCE = timedelta(minutes=5)
MINUTE = "%Y-%m-%d %H:%M"


def home(x: Examination) -> Iterator[Row]:
    """Whether everything is where it belongs, and can be written."""
    root = x.home.root
    if not root.exists():
        remedy = f"`gpufare refresh` makes it; or set {HOME_VARIABLE} to the folder that you mean"
        yield "fail", "there is no such folder", str(root), remedy
        return
    expected = {root: True} | {place: place.suffix == "" for place in places(x.home)}
    in_the_way = [
        path for path, is_folder in expected.items() if path.exists() and path.is_dir() != is_folder
    ]
    for path in in_the_way:
        kinds = "a folder is where a file belongs" if path.is_dir() else "a file is where a folder belongs"
        yield "fail", kinds, str(path), "move it away"
    problems = [problem for path in expected if path.is_dir() if (problem := _unwritable(path, x.home))]
    for problem in problems:
        yield "fail", problem, "", ""
    if not in_the_way and not problems:
        demo = (
            "the demo's: sample prices, into which no refresh asks the providers; "
            if x.home.demo.exists()
            else ""
        )
        yield "ok", f"{demo}can be written, on the disk of {_mount_of(root)}", str(root), ""


def _unwritable(folder: Path, home: Home) -> str | None:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x" * 4096)
    except OSError as error:
        error.filename = str(folder)
        return disk_error_text(error, home)
    return None


def _mount_of(path: Path) -> Path:
    path = existing(path).resolve()
    while not path.is_mount() and path != path.parent:
        path = path.parent
    return path


def disk(x: Examination) -> Iterator[Row]:
    """Sizes, what a day adds on average, and for how long the free space lasts."""
    usage = shutil.disk_usage(x.home.root)
    sizes = {place.name: used_bytes(place) for place in x.home.root.iterdir()}
    archive = Archive(x.home.archive)
    days = len({day for source in archive.sources() for day in archive.days(source)})
    per_day = sum(size for name, size in sizes.items() if name not in REBUILT) / max(days, 1)
    lasts = usage.free / per_day if days else float("inf")
    published = x.home.published.stat().st_size if x.home.published.is_file() else 0
    parts = ", ".join(
        f"{name} {size_text(size)}" for name, size in sorted(sizes.items(), key=lambda s: -s[1]) if size
    )
    over = f"{days} days" if days > 1 else "one day"
    growth = f"{size_text(per_day)} a day, the average of {over}" if days else "no day is archived yet"
    used = f"the home uses {size_text(sum(sizes.values()))} ({parts})"
    what = f"{size_text(usage.free)} are free; {used}; {growth}"
    room = f"free some space or move the home ({HOME_VARIABLE})"
    remedy = f"{room}; docs/explanation/retention.md says what may go"
    if usage.free < published + ROOM_FOR_A_BUILD_BYTES or lasts < DISK_DAYS_FAILURE:
        yield "fail", what, str(_mount_of(x.home.root)), remedy
    elif lasts < DISK_DAYS_WARNING:
        yield "warn", f"{what}: the free space lasts {lasts:.0f} days", str(_mount_of(x.home.root)), remedy
    else:
        yield "ok", what, str(_mount_of(x.home.root)), ""


def used_bytes(*paths: Path) -> int:
    """Space on the disk of files and folders, a file with several names once."""
    used: dict[tuple[int, int], int] = {}
    waiting = [path for path in paths if path.exists()]
    while waiting:
        path = waiting.pop()
        status = path.lstat()
        used[status.st_dev, status.st_ino] = status.st_blocks * 512
        if path.is_dir() and not path.is_symlink():
            waiting += path.iterdir()
    return sum(used.values())


def lock(x: Examination) -> Iterator[Row]:
    """Whether somebody is publishing; in PostgreSQL also who."""
    if several_machines(x.environment):
        yield _lock_in_database(x)
        return
    if not x.home.lock.exists():
        yield "ok", "nobody has published here yet", "", ""
        return
    held = FileLock(x.home.lock)
    try:
        held.acquire(timeout=0)
    except Timeout:
        remedy = f"a build takes minutes; if this lasts, `fuser -v {x.home.lock}` names the process to end"
        yield "ok", "somebody is publishing", str(x.home.lock), remedy
        return
    held.release()
    yield "ok", "nobody is publishing", "", ""


def _lock_in_database(x: Examination) -> Row:
    try:
        holder = lock_holder(x.environment)
    except PostgresError as error:
        return (
            "fail",
            str(error),
            "",
            f"nothing can be published until then; {LOCK_VARIABLE} names the database",
        )
    if holder is None:
        return "ok", "nobody is publishing; the lock is in PostgreSQL", "", ""
    return "ok", f"held in PostgreSQL by {holder}: somebody is publishing", "", ""


def clock(x: Examination) -> Iterator[Row]:
    """Whether the clock is right, as far as the archive can tell: no capture began in the future."""
    archive = Archive(x.home.archive)
    for source in archive.sources():
        began = [began_at(path) for day in archive.days(source)[-1:] for path in captures_of(x, source, day)]
        newest = max((moment for moment in began if moment), default=x.now)
        if newest > x.now + CLOCK_TOLERANCE:
            what = (
                f"the clock says {x.now:{MINUTE}} UTC, but a capture of {source} began at {newest:{MINUTE}}"
            )
            yield "fail", what, "", "set the clock of this machine, or find out when it was wrong"
            return
    yield "ok", f"{x.now:{MINUTE}} UTC, and no capture is later", "", ""
