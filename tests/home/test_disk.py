"""A disk that is full or refuses: the message gives the path, the reason and the remedy."""

import os
from errno import EACCES, EDQUOT, EEXIST, EIO, EISDIR, EMFILE, ENFILE, ENOSPC, ENOTDIR, EPERM, EROFS
from pathlib import Path

import pytest

from pipeline.home import disk
from pipeline.home.paths import Home


def test_each_refusal_of_a_disk_says_what_to_do(tmp_path: Path) -> None:
    home, elsewhere = Home(tmp_path / "home"), "set GPUFARE_HOME to a folder"
    free = f"free some space or {elsewhere} on another disk, then run the command again"
    allow = f"make it writable for this user or {elsewhere} that is"
    way = f"a file is where a folder belongs, or a folder where a file does: move {tmp_path} away"
    remedies = dict.fromkeys((ENOSPC, EDQUOT), free) | dict.fromkeys((EACCES, EPERM, EROFS), allow)
    remedies |= dict.fromkeys((EEXIST, ENOTDIR, EISDIR), way)
    for path in (home.record / "x.parquet", home.root, tmp_path):
        for code, remedy in remedies.items():
            text = disk.disk_error_text(OSError(code, os.strerror(code), str(path)), home)
            assert text == f"{path}: {os.strerror(code)}; {remedy}"
    somewhere = f"standard output, or a file of {home.root}"
    others = {
        OSError(ENOSPC, "full"): f"{somewhere}: full; {free}",
        OSError(ENOSPC, "full", b"/a"): f"/a: full; {free.replace(elsewhere, 'choose a folder')}",
    }
    assert {error: disk.disk_error_text(error, home) for error in others} == others


def test_errors_of_other_programs_are_recognized() -> None:
    full = disk.disk_error(RuntimeError("IO Error: could not write: No space left on device"))
    assert full is not None
    assert (full.errno, full.strerror) == (ENOSPC, "No space left on device")
    of_duckdb = type("OutOfMemoryException", (Exception,), {})
    exhausted = [MemoryError(), of_duckdb(), *(RuntimeError(os.strerror(code)) for code in (ENFILE, EMFILE))]
    others = [ValueError("damaged"), OSError(EIO, os.strerror(EIO))]
    assert [disk.is_exhaustion(error) for error in (*exhausted, *others)] == [True] * 4 + [False] * 2


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a.txt"
    with disk.replacing(path) as temporary:
        assert (temporary.name, temporary.exists()) == (f".a.txt.{os.getpid()}.tmp", True)
        temporary.write_text("first")
    causes = {ValueError("broken"): ValueError, RuntimeError("No space left on device"): disk.UnwritableError}
    for cause, raised in causes.items():
        said = rf"^broken$|^{path}: No space left on device; free some space or set GPUFARE_HOME"
        with pytest.raises(raised, match=said), disk.replacing(path) as temporary:  # noqa: PT012
            temporary.write_text("half")
            raise cause
    assert [(each.name, each.read_text()) for each in path.parent.iterdir()] == [("a.txt", "first")]


def test_a_damaged_file_is_set_aside_beside_earlier_ones(tmp_path: Path) -> None:
    home, places = Home(tmp_path), []
    for content, copies in (("one", False), ("two", True), ("three", False)):
        (home.root / "a").write_text(content)
        places.append(disk.set_aside(home, home.root / "a", copies=copies))
        assert (home.root / "a").exists() == copies
    assert places == [home.damaged / name for name in ("a", "a.2", "a.3")]
    assert [place.read_text() for place in places] == ["one", "two", "three"]
