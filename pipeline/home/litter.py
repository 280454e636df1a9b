"""Half-written files of killed processes. Their names differ from real ones, so they are never read."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pipeline.home.paths import Home

OLD_SECONDS = 3600.0
"""No file takes this long to write: an older one is litter, even if its process id is in use again."""

DAYS_LOOKED_AT = 31
"""Newest days of each source in the archive that are searched; older ones were swept when they were new."""

_HALF_WRITTEN = re.compile(r"\..+\.(?P<pid>\d{1,10})\.(?:tmp|writing)|.+\.writing")


def half_written(home: Home) -> list[Path]:
    """Return files that no process will finish: the writer has ended, or they are older than OLD_SECONDS."""
    old = time.time() - OLD_SECONDS
    left = []
    for path, pid in _candidates(home):
        with suppress(OSError):  # another process swept it
            if path.lstat().st_mtime < old or (pid is not None and not _is_running(pid)):
                left.append(path)
    return left


def sweep(home: Home) -> list[Path]:
    """Delete half-written files and return them. Safe while other processes write; never raises."""
    swept = []
    for path in half_written(home):
        try:
            path.unlink()
        except OSError:
            continue  # another process swept it, or it cannot be deleted: the next sweep tries again
        swept.append(path)
    return swept


def _candidates(home: Home) -> Iterator[tuple[Path, int | None]]:
    """Yield half-written files, each with the id of the process that wrote it, if its name has one."""
    for folder, subfolders, names in os.walk(home.root):
        if Path(folder).parent == home.archive:
            subfolders[:] = sorted(subfolders)[-DAYS_LOOKED_AT:]
        for found in filter(None, map(_HALF_WRITTEN.fullmatch, names)):
            yield Path(folder, found[0]), int(found["pid"]) if found["pid"] else None


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # another user's process, or no valid number: only the age counts
    return True
