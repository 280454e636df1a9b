"""The home, its disk, the lock and the clock."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from filelock import FileLock, Timeout

from pipeline.capture.archive import Archive
from pipeline.health.doctor.finding import Examination, Row, began_at, captures_of, places
from pipeline.home.disk import disk_error_text, existing, size_text
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.record.record_files import DAY_FOLDERS, SOURCE_FOLDERS, record_files

LOCK_WARNING = timedelta(hours=1)
"""No build takes so long."""

DISK_DAYS_WARNING, DISK_DAYS_FAILURE = 60, 7
"""Days for which the free space lasts at the present growth."""

ROOM_FOR_A_BUILD_BYTES = 200_000_000
"""Beside the published file a new one is built, with what does not fit into memory."""

CLOCK_TOLERANCE = timedelta(minutes=5)
GROWTH_DAYS = 7
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
    """Sizes, growth a day, and for how long the free space lasts."""
    usage = shutil.disk_usage(x.home.root)
    sizes = {place.name: used_bytes(place) for place in x.home.root.iterdir()}
    per_day, days = _growth_per_day(x)
    lasts = usage.free / per_day if per_day else float("inf")
    published = x.home.published.stat().st_size if x.home.published.is_file() else 0
    parts = ", ".join(
        f"{name} {size_text(size)}" for name, size in sorted(sizes.items(), key=lambda s: -s[1]) if size
    )
    over = f"the last {days} days" if days > 1 else "one day"
    growth = f"{size_text(per_day)} a day over {over}" if days else "no day is recorded yet"
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


def _growth_per_day(x: Examination) -> tuple[float, int]:
    """Bytes a day over the newest recorded days up to today, without what they share with the day before; and
    how many days those are."""
    days = sorted(day for day in _recorded_days(x) if day <= x.today)[-GROWTH_DAYS - 1 :]
    if not days:
        return 0.0, 0
    places = {day: list(_places_of(x, day)) for day in days}
    first, *later = days
    if not later:
        return float(used_bytes(*places[first])), 1
    all_bytes = used_bytes(*(path for paths in places.values() for path in paths))
    return max(0.0, (all_bytes - used_bytes(*places[first])) / len(later)), len(later)


def _recorded_days(x: Examination) -> dict[date, Path]:
    """Every day that the home has something of, and one of its files or folders."""
    found: dict[date, Path] = {}
    archive = Archive(x.home.archive)
    for source in archive.sources():
        found |= {day: x.home.archive / source / f"{day}" for day in archive.days(source)}
    for folder in (*SOURCE_FOLDERS, *DAY_FOLDERS):
        found |= {file.day: file.path for file in record_files(x.home, folder)}
    return found


def _places_of(x: Examination, day: date) -> Iterator[Path]:
    for folder in ("archive", *SOURCE_FOLDERS):
        yield from (x.home.root / folder).glob(f"*/{day}*")
    for folder in DAY_FOLDERS:
        yield from (x.home.root / folder).glob(f"{day}.*")


def lock(x: Examination) -> Iterator[Row]:
    """Who is publishing, and for how long already."""
    path = x.home.lock
    if not path.exists():
        yield "ok", "nobody has published here yet", "", ""
        return
    held = FileLock(path)
    try:
        held.acquire(timeout=0)
    except Timeout:
        holder, since = _holder(path)
        began = "" if since is None else f", which began {_age_text(x.now - since)} ago"
        what = f"held by {holder}{began}: somebody is publishing"
        if since is not None and x.now - since > LOCK_WARNING:
            yield "warn", what, str(path), f"a build takes minutes; if {holder} hangs, end it"
        else:
            yield "ok", what, str(path), ""
        return
    held.release()
    yield "ok", "nobody is publishing", "", ""


def _holder(path: Path) -> tuple[str, datetime | None]:
    """Who has the lock, and since when that process runs (UTC), as far as the system says so (Linux does)."""
    try:
        inode = str(path.stat().st_ino)
        rows = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
        pid = next(row[4] for row in rows if row[1] == "FLOCK" and row[5].split(":")[-1] == inode)
        command = Path("/proc", pid, "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        ticks = int(Path("/proc", pid, "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
        up_seconds = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    except (OSError, StopIteration, IndexError, ValueError):
        return "another process", None
    since = datetime.now(UTC) - timedelta(seconds=up_seconds - ticks / os.sysconf("SC_CLK_TCK"))
    return f"process {pid} ({command.strip()[:80]})", since


def clock(x: Examination) -> Iterator[Row]:
    """Whether the clock is right, as far as what is kept can say: no capture and no day is in the future."""
    behind = False
    archive = Archive(x.home.archive)
    for source in archive.sources():
        began = [began_at(path) for day in archive.days(source)[-1:] for path in captures_of(x, source, day)]
        newest = max((moment for moment in began if moment), default=None)
        if newest is not None and newest > x.now + CLOCK_TOLERANCE:
            behind = True
            what = (
                f"the clock says {x.now:{MINUTE}} UTC, but a capture of {source} began at {newest:{MINUTE}}"
            )
            yield "fail", what, "", "set the clock of this machine, or find out when it was wrong"
            break
    ahead = {day: path for day, path in sorted(_recorded_days(x).items()) if day > x.today}
    for day, path in ahead.items():
        remedy = "nothing of it is published before that day comes; move it away if the clock was wrong then"
        yield "fail", f"{day} is after today, {x.today} UTC", x.short(path), remedy
    if not behind and not ahead:
        yield "ok", f"{x.now:{MINUTE}} UTC, and nothing in the home is later", "", ""


def _age_text(age: timedelta) -> str:
    hours, minutes = divmod(max(0, int(age.total_seconds())) // 60, 60)
    return f"{age.days} days" if age.days > 0 else f"{hours} h {minutes} min" if hours else f"{minutes} min"
