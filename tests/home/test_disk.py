"""A disk that is full or refuses: the message gives the path, the reason and the remedy."""

import os
from errno import EACCES, EDQUOT, EEXIST, EIO, EISDIR, EMFILE, ENFILE, ENOSPC, ENOTDIR, EPERM, EROFS
from pathlib import Path

import pytest

from pipeline.home import disk
from pipeline.home.paths import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_each_refusal_of_a_disk_says_what_to_do(home: Home, tmp_path: Path) -> None:
    file, folder = home.record / "x.parquet", "set GPUFARE_HOME to a folder"
    free = f"free some space or {folder} on another disk, then run the command again"
    allow = f"make it writable for this user or {folder} that is"
    way = f"a file is where a folder belongs, or a folder where a file does: move {tmp_path} away"
    remedies = dict.fromkeys((ENOSPC, EDQUOT), free) | dict.fromkeys((EACCES, EPERM, EROFS), allow)
    remedies |= dict.fromkeys((EEXIST, ENOTDIR, EISDIR), way)
    for path, code in [(path, code) for path in (file, home.root, tmp_path) for code in remedies]:
        text = disk.disk_error_text(OSError(code, os.strerror(code), str(path)), home)
        assert text == f"{path}: {os.strerror(code)}; {remedies[code]}"
    assert (
        disk.disk_error_text(OSError(EIO, "Input/output error", str(file)), home)
        == f"{file}: Input/output error"
    )
    full = OSError(ENOSPC, "full")
    assert disk.disk_error_text(full, home) == f"standard output, or a file of {home.root}: full; {free}"
    full.filename = b"/elsewhere/x.csv"
    assert (
        disk.disk_error_text(full, home)
        == f"/elsewhere/x.csv: full; {free.replace(folder, 'choose a folder')}"
    )
    assert disk.disk_error_text(OSError("odd"), home) == f"standard output, or a file of {home.root}: odd"


def test_errors_of_other_programs_are_recognized() -> None:
    full = disk.disk_error(RuntimeError("IO Error: could not write: No space left on device"))
    assert full is not None
    assert (full.errno, full.strerror) == (ENOSPC, "No space left on device")
    own = PermissionError(EACCES, "no")
    assert disk.disk_error(own) is own
    assert disk.disk_error(ValueError("another")) is None
    of_duckdb = type("OutOfMemoryException", (Exception,), {})
    exhausted = [MemoryError(), of_duckdb(), *(RuntimeError(os.strerror(code)) for code in (ENFILE, EMFILE))]
    others = [ValueError("damaged"), OSError(EIO, os.strerror(EIO))]
    assert [disk.is_exhaustion(error) for error in (*exhausted, *others)] == [True] * 4 + [False] * 2


def fails_within(path: Path, error: Exception) -> None:
    with disk.replacing(path) as temporary:
        temporary.write_text("half")
        raise error


def test_a_file_is_replaced_whole_or_not_at_all(home: Home) -> None:
    path = home.record / "a.txt"
    with disk.replacing(path) as temporary:
        assert (temporary.name, temporary.exists()) == (f".a.txt.{os.getpid()}.tmp", True)
        temporary.write_text("first")
    with pytest.raises(ValueError, match="broken"):
        fails_within(path, ValueError("broken"))
    with pytest.raises(disk.UnwritableError) as full:
        fails_within(path, RuntimeError("No space left on device"))
    assert str(full.value).startswith(f"{path}: No space left on device; free some space or set GPUFARE_HOME")
    assert full.value.path == path
    assert [(each.name, each.read_text()) for each in path.parent.iterdir()] == [("a.txt", "first")]


def test_an_error_gets_the_path_that_it_lacks(tmp_path: Path) -> None:
    for error, named in ((OSError(EIO, "no"), tmp_path / "a"), (OSError(EIO, "no", "b"), Path("b"))):
        with pytest.raises(OSError, match="no") as found, disk.naming(tmp_path / "a"):
            raise error
        assert found.value.filename == str(named)


def test_a_damaged_file_is_set_aside_beside_earlier_ones(home: Home, tmp_path: Path) -> None:
    path, places = home.record / "offers" / "a.parquet", []
    path.parent.mkdir(parents=True)
    for content, copies in (("one", False), ("two", True), ("three", False)):
        path.write_text(content)
        places.append(disk.set_aside(home, path, copies=copies))
        assert path.exists() == copies
    folder = home.damaged / "record" / "offers"
    assert places == [folder / "a.parquet", folder / "a.parquet.2", folder / "a.parquet.3"]
    assert [place.read_text() for place in places] == ["one", "two", "three"]
    os.utime(places[0], ns=(1, 5_000_000_000))
    assert disk.stamp_of(places[0]) == (3, 5_000_000_000)
    assert disk.stamp_of(path) is disk.stamp_of(places[0] / "below") is None
    assert (disk.existing(path / "x"), disk.existing(tmp_path)) == (path.parent, tmp_path)
