"""A disk that is full at some moment of a refresh: the old file stays, the message helps, space mends it."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from tests.nightly.stress.homes import Lab, litter, price_problems, published_problems
from tests.nightly.stress.market import FIRST_DAY
from tests.nightly.stress.runner import Figures, Part

DISK_MIB = 96
KIB_LEFT = (0, 8, 40, 200, 1_000, 4_000, 9_000, 16_000, 48_000)
"""Free space at which the disk fills: in the archive, the record, the build, its ranking."""
REMEDIES = ("space", "free", "GPUFARE_HOME")


def units(seed: str) -> list[str]:
    """Return a unit per amount of free space."""
    return [f"{kib} KiB left" for kib in KIB_LEFT]


def run(lab: Lab, unit: str, seed: str) -> Figures:
    """Refresh with the unit's free space, then with enough."""
    kib = int(unit.split()[0])
    with small_disk(lab.folder / "disk") as mounted:
        home = lab.home("disk/home")
        problems: list[str] = []
        day = FIRST_DAY + timedelta(days=1)
        with lab.serving(day) as server:
            if mounted:
                filler = _fill(lab.folder / "disk", kib * 1024)
                answer = lab.start(home, server, day).wait()
            else:
                answer = lab.start(home, server, day, file_bytes=kib * 1024 or 1).wait()
        if answer.get("crash"):
            problems.append(f"a traceback: {answer['crash'][-300:]}")
        said = " ".join([answer.get("refused") or "", *answer.get("lines", [])])
        is_told = str(home.root) in said and any(remedy in said for remedy in REMEDIES)
        if not answer["published"] and not is_told and not answer.get("crash"):
            problems.append(f"the message does not name the path and what to do: {said[:300]!r}")
        problems += published_problems(home, [FIRST_DAY, day] if answer["published"] else [FIRST_DAY])
        if mounted:
            filler.unlink()
        after = lab.refresh(home, day)
        if after["published"] != str(day):
            problems.append(f"with space again: {str(after)[:400]}")
        else:
            problems += published_problems(home, [day]) + price_problems(home, lab.market, day)
        if left := litter(home):
            problems.append(f"litter is left: {', '.join(left[:5])}")
    return {
        "problems": problems,
        "mounted": mounted,
        "published": bool(answer["published"]),
        "said": said[:300],
    }


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A small file system at ``folder``, where this process may mount one; else False, and the largest file
    is limited instead (RLIMIT_FSIZE)."""
    folder.mkdir(parents=True, exist_ok=True)
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    mounted = False
    if mount and unmount and os.geteuid() == 0:
        command = [mount, "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(folder)]
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted and unmount:
            subprocess.run([unmount, str(folder)], check=True)


def _fill(folder: Path, bytes_left: int) -> Path:
    filler = folder / "filler"
    free = os.statvfs(folder)
    size = free.f_bavail * free.f_frsize - bytes_left
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, size))
    return filler


def figures(results: Sequence[Figures]) -> str:
    """The sentence of the table."""
    kept = sum(not result.get("published", True) for result in results)
    how = "a full file system" if all(result.get("mounted") for result in results) else "RLIMIT_FSIZE"
    return f"{len(results)} moments ({how}); in {kept} the old file stayed published, else the space sufficed"


PART = Part("disk", "no space left on the disk", units, run, figures, 80)
