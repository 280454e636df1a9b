"""Checks of the home, its disk and the clock."""

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

from rich.filesize import decimal as size_text

from pipeline.capture.archive import Archive, began_at
from pipeline.health.doctor.finding import Examination, Finding
from pipeline.home.disk import disk_error_text, existing
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.refresh.clock import REMEDY, clock_problem

REBUILT = frozenset({"published", "cache", "report"})
"""Folders that do not grow day by day."""

DISK_DAYS_WARNING, DISK_DAYS_FAILURE = 60, 7
"""Thresholds for the number of days until the disk is full if the home keeps growing at its average rate."""

ROOM_FOR_A_BUILD_BYTES = 200_000_000
"""Room for a new file beside the published file, and for temporary data that exceeds memory."""

CLOCK_TOLERANCE = timedelta(minutes=5)
MINUTE = "%Y-%m-%d %H:%M"


def home(x: Examination) -> list[Finding]:
    """Check that files and folders are of the right type, and that folders can be written to."""
    root = x.home.root
    if not root.exists():
        remedy = f"`gpufare refresh` makes it; or set {HOME_VARIABLE} to the right folder"
        return [Finding("fail", "no such folder", str(root), remedy)]
    found = []
    for path, is_folder in {root: True, **{each: each.suffix == "" for each in x.home.places()}}.items():
        if path.exists() and path.is_dir() != is_folder:
            what = "a file is where a folder belongs" if is_folder else "a folder is where a file belongs"
            found.append(Finding("fail", what, str(path), "move it away"))
        if path.is_dir() and (problem := _unwritable(path, x.home)):
            found.append(Finding("fail", problem))
    demo = "the demo's: sample prices, no refresh from the providers; "
    what = f"{demo if x.home.is_demo else ''}can be written, on the disk of {_mount_of(root)}"
    return found or [Finding("ok", what, str(root))]


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


def disk(x: Examination) -> list[Finding]:
    """Show the sizes of folders, the average growth per day, and how long the free space will last."""
    usage = shutil.disk_usage(x.home.root)
    sizes = {place.name: used_bytes(place) for place in x.home.root.iterdir()}
    archive = Archive(x.home.archive)
    days = len({day for source in archive.sources() for day in archive.days(source)})
    per_day = sum(size for name, size in sizes.items() if name not in REBUILT) // max(days, 1)
    lasts = usage.free / per_day if per_day else float("inf")
    published = x.home.published.stat().st_size if x.home.published.is_file() else 0
    parts = ", ".join(
        f"{name} {size_text(size)}" for name, size in sorted(sizes.items(), key=lambda s: -s[1]) if size
    )
    over = f"{days} days" if days > 1 else "one day"
    growth = f"{size_text(per_day)} a day, the average of {over}" if days else "no day is archived yet"
    used = f"the home uses {size_text(sum(sizes.values()))} ({parts})"
    what, where = f"{size_text(usage.free)} are free; {used}; {growth}", str(_mount_of(x.home.root))
    room = f"free some space or move the home ({HOME_VARIABLE})"
    remedy = f"{room}; docs/explanation/retention.md says what may go"
    if usage.free < published + ROOM_FOR_A_BUILD_BYTES or lasts < DISK_DAYS_FAILURE:
        return [Finding("fail", what, where, remedy)]
    if lasts < DISK_DAYS_WARNING:
        return [Finding("warn", f"{what}: the free space lasts {lasts:.0f} days", where, remedy)]
    return [Finding("ok", what, where)]


def used_bytes(folder: Path) -> int:
    """Return the disk space that a file or folder uses, counting a hard-linked file only once."""
    paths = [folder, *folder.rglob("*")]
    sizes = {(status.st_dev, status.st_ino): status.st_blocks * 512 for status in map(Path.lstat, paths)}
    return sum(sizes.values())


def clock(x: Examination) -> list[Finding]:
    """Check the clock against the archive: no capture may have begun in the future, and today's answers must
    be dated as this clock is."""
    archive, now = Archive(x.home.archive), f"{x.now:{MINUTE}} UTC"
    for source in archive.sources():
        folders = (path for day in archive.days(source)[-1:] for path in archive.capture_folders(source, day))
        newest = max((began_at(path.name) for path in folders), default=x.now)
        if newest > x.now + CLOCK_TOLERANCE:
            what = f"the clock says {now}, but a capture of {source} began at {newest:{MINUTE}}"
            remedy = "set the clock of this machine, or find out when it was wrong"
            return [Finding("fail", what, remedy=remedy)]
    if problem := clock_problem(x.home, x.now.date()):
        return [Finding("fail", problem, remedy=REMEDY)]
    return [Finding("ok", f"{now}, and no capture is later")]
