"""A disk that is full or refuses: the message gives the path, the reason and the remedy."""

import errno
import os
from pathlib import Path

import pytest

from pipeline.home.disk import (
    UnwritableError,
    disk_error,
    disk_error_text,
    existing,
    is_exhaustion,
    naming,
    replacing,
    set_aside,
    stamp_of,
)
from pipeline.home.paths import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_an_error_without_a_path_gets_one(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match="No space left") as full,
        naming(tmp_path / "a"),
        Path("/dev/full").open("wb", buffering=0) as device,
    ):
        device.write(b"x")
    assert full.value.filename == str(tmp_path / "a")
    with pytest.raises(FileNotFoundError) as missing, naming(tmp_path / "a"):
        (tmp_path / "b").read_bytes()
    assert missing.value.filename == str(tmp_path / "b")


def test_each_refusal_of_a_disk_says_what_to_do(home: Home) -> None:
    home.root.mkdir()
    file, elsewhere = home.record / "x.parquet", Path("/elsewhere/x.csv")
    writable = "make it writable for this user or set GPUFARE_HOME to a folder that is"
    space = "on another disk, then run the command again"
    moved = f"a file is where a folder belongs, or a folder where a file does: move {home.root} away"
    own = {
        errno.ENOSPC: f"No space left on device; free some space or set GPUFARE_HOME to a folder {space}",
        errno.EDQUOT: f"Disk quota exceeded; free some space or set GPUFARE_HOME to a folder {space}",
        errno.EACCES: f"Permission denied; {writable}",
        errno.EROFS: f"Read-only file system; {writable}",
        errno.EPERM: f"Operation not permitted; {writable}",
        errno.EEXIST: f"File exists; {moved}",
        errno.ENOTDIR: f"Not a directory; {moved}",
        errno.EISDIR: f"Is a directory; {moved}",
        errno.EIO: "Input/output error",
    }
    for path in (file, home.root, home.root.parent):
        found = {code: disk_error_text(OSError(code, os.strerror(code), str(path)), home) for code in own}
        moves = {
            code: text.replace(f"move {home.root}", f"move {existing(path)}") for code, text in own.items()
        }
        assert found == {code: f"{path}: {text}" for code, text in moves.items()}
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert disk_error_text(full, home) == f"standard output, or a file of {home.root}: {own[errno.ENOSPC]}"
    full.filename = os.fsencode(elsewhere)
    assert disk_error_text(full, home) == (
        f"{elsewhere}: No space left on device; free some space or choose a folder {space}"
    )
    assert disk_error_text(OSError("odd"), home) == f"standard output, or a file of {home.root}: odd"


def test_errors_of_other_programs_are_recognized() -> None:
    full = disk_error(RuntimeError("IO Error: could not write: No space left on device"))
    assert full is not None
    assert (full.errno, full.strerror) == (errno.ENOSPC, "No space left on device")
    own = PermissionError(errno.EACCES, "no")
    assert disk_error(own) is own
    assert disk_error(ValueError("another")) is None

    class OutOfMemoryException(Exception):
        """What DuckDB raises."""

    exhausted = [MemoryError(), OutOfMemoryException(), OSError(errno.EMFILE, os.strerror(errno.EMFILE))]
    exhausted += [RuntimeError(f"failed: {os.strerror(code)}") for code in (errno.ENFILE, errno.EDQUOT)]
    others = [ValueError("damaged"), OSError(errno.EIO, os.strerror(errno.EIO))]
    assert [is_exhaustion(error) for error in (*exhausted, *others)] == [True] * 5 + [False] * 2


def test_a_file_is_replaced_whole_or_not_at_all(home: Home) -> None:
    path = home.record / "a.txt"
    with replacing(path) as temporary:
        assert (temporary.name, temporary.exists()) == (f".a.txt.{os.getpid()}.tmp", True)
        temporary.write_text("first")
    with pytest.raises(ValueError, match="broken"), replacing(path) as temporary:
        temporary.write_text("half")
        raise ValueError("broken")
    with pytest.raises(UnwritableError) as full, replacing(path):
        raise RuntimeError("No space left on device")
    assert str(full.value).startswith(f"{path}: No space left on device; free some space or set GPUFARE_HOME")
    assert full.value.path == path
    assert [(each.name, each.read_text()) for each in path.parent.iterdir()] == [("a.txt", "first")]


def test_a_damaged_file_is_set_aside_beside_earlier_ones(home: Home) -> None:
    path = home.record / "offers" / "a.parquet"
    path.parent.mkdir(parents=True)
    places = []
    for content, copies in (("one", False), ("two", True), ("three", False)):
        path.write_text(content)
        places.append(set_aside(home, path, copies=copies))
        assert path.exists() == copies
    folder = home.damaged / "record" / "offers"
    assert places == [folder / "a.parquet", folder / "a.parquet.2", folder / "a.parquet.3"]
    assert [place.read_text() for place in places] == ["one", "two", "three"]
    with pytest.raises(FileNotFoundError):
        set_aside(home, path)


def test_what_there_is_of_a_path(home: Home, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("four")
    os.utime(tmp_path / "file", ns=(1, 5_000_000_000))
    assert stamp_of(tmp_path / "file") == (4, 5_000_000_000)
    assert stamp_of(tmp_path / "gone") is stamp_of(tmp_path / "file" / "below") is None
    assert existing(home.record / "x") == tmp_path
    assert existing(tmp_path / "file") == tmp_path / "file"
