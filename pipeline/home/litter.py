"""Half-written files of killed processes; they are never read, since their names mark them as unfinished."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pipeline.home.paths import Home

OLD_SECONDS = 3600.0
"""No write takes this long: an older half-written file is litter, even if its process id is in use again."""

DAYS_LOOKED_AT = 31
"""How many of each source's newest days in the archive are searched; older days were swept while new."""

_HALF_WRITTEN = re.compile(r"\..+\.(?P<pid>\d{1,10})\.(?:tmp|writing)|.+\.writing")


def half_written(home: Home) -> list[Path]:
    """Return files that no process will finish: their writer is gone, or they are older than OLD_SECONDS."""
    old = time.time() - OLD_SECONDS
    left = []
    for path, pid in _candidates(home):
        with suppress(OSError):  # another process may have swept the file
            if path.lstat().st_mtime < old or (pid is not None and not _is_running(pid)):
                left.append(path)
    return left


def sweep(home: Home) -> list[Path]:
    """Delete and return half-written files. This is safe while other processes write, and never raises."""
    swept = []
    for path in half_written(home):
        try:
            path.unlink()
        except OSError:
            continue  # already swept by another process, or not deletable: the next sweep tries again
        swept.append(path)
    return swept


def _candidates(home: Home) -> Iterator[tuple[Path, int | None]]:
    """Yield half-written files, each with the id of the process that wrote it if its name contains an id."""
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
        return True  # another user's process, or not a valid id: only the file's age counts
    return True
