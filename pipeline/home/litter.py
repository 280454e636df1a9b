"""Files that a killed process left half written. They have names of their own and are never read."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from pipeline.home.paths import Home

OLD_SECONDS = 3600.0
"""No file takes this long to be written: an older one has been left behind, whoever has its
process id now."""

DAYS_LOOKED_AT = 31
"""Folders of single days that a sweep looks into, the newest per source; older ones were swept when they were
new."""

_HALF_WRITTEN = re.compile(r"\..+\.(?P<pid>\d{1,10})\.(?:tmp|writing)|.+\.writing")


def half_written(home: Home, *, days: int | None = DAYS_LOOKED_AT) -> list[Path]:
    """Files that nobody will finish: their process has ended, or they are older than OLD_SECONDS.

    ``days`` None looks into every day.
    """
    now = time.time()
    return [path for path in _candidates(home, days) if _is_left_behind(path, now)]


def sweep(home: Home, *, days: int | None = DAYS_LOOKED_AT) -> list[Path]:
    """Delete those files and return them. Safe while other processes write; never raises."""
    swept = []
    for path in half_written(home, days=days):
        try:
            path.unlink()
        except OSError:
            continue  # somebody else swept it, or it cannot be deleted: the next sweep tries again
        swept.append(path)
    return swept


def _candidates(home: Home, days: int | None) -> Iterator[Path]:
    for folder, subfolders, names in os.walk(home.root):
        if days is not None and Path(folder).parent == home.archive:
            subfolders[:] = sorted(subfolders)[-days:]
        for name in names:
            if _HALF_WRITTEN.fullmatch(name):
                yield Path(folder, name)


def _is_left_behind(path: Path, now: float) -> bool:
    try:
        age_seconds = now - path.lstat().st_mtime
    except OSError:
        return False
    found = _HALF_WRITTEN.fullmatch(path.name)
    pid = found["pid"] if found else None
    ended = pid is not None and not _is_running(int(pid))
    return age_seconds > OLD_SECONDS or ended


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # somebody else's process, or a number that is none: only its age counts
    return True
