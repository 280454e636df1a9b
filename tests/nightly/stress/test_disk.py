"""A disk that is full at some moment of a refresh: the old file stays, the message helps, space mends it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from tests.nightly.stress.homes import ALL, Lab, problems_of, published_problems
from tests.nightly.stress.market import FIRST_DAY

DISK_MIB = 96
KIB_LEFT = (0, 8, 40, 200, 1_000, 4_000, 9_000, 16_000, 48_000)
"""Free space at which the disk fills: in the archive, the record, the build, its ranking."""
REMEDIES = ("space", "free", "GPUFARE_HOME")


@pytest.mark.parametrize("kib", KIB_LEFT if ALL else (8, 1_000, 9_000))
def test_a_full_disk_leaves_the_old_file_and_space_mends_it(kib: int, lab: Lab) -> None:
    with small_disk(lab.folder / "disk") as mounted:
        home = lab.home("disk/home")
        day = FIRST_DAY + timedelta(days=1)
        filler = _fill(lab.folder / "disk", kib * 1024) if mounted else None
        with lab.serving(day) as server:
            answer = lab.start(home, server, day, None if mounted else kib * 1024 or 1).wait()
        assert not answer.crashed, answer.said
        if not answer.published:
            assert str(home.root) in answer.said
            assert any(remedy in answer.said for remedy in REMEDIES), answer.said
        assert published_problems(home, [FIRST_DAY, day] if answer.published else [FIRST_DAY]) == []
        if filler:
            filler.unlink()
        after = lab.refresh(home, day)
        assert after.published == day, after.said
        assert problems_of(lab, home, day) == []


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A small file system at ``folder``, where this process may mount one; else False, and the largest file
    is limited instead (RLIMIT_FSIZE)."""
    folder.mkdir()
    command = f"mount -t tmpfs -o size={DISK_MIB}m tmpfs {folder}"
    mounted = subprocess.run(["sh", "-c", command], capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def _fill(folder: Path, bytes_left: int) -> Path:
    filler = folder / "filler"
    free = os.statvfs(folder)
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - bytes_left))
    return filler
