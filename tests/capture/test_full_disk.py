"""A disk that is full, or says no otherwise: the message names the path and says what to do."""

import errno
import os
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.contracts.request import Entry
from pipeline.home.disk import disk_error_text, naming
from pipeline.home.paths import HOME_VARIABLE, Home
from tests.conftest import gpufare_process

from .conftest import DAY, capture_many, source
from .site import Reply, Site

ACME = "prices.acme.example"
NOISE = os.urandom(200_000)  # cannot be compressed


def write_to_a_full_device(name: Path) -> None:
    with naming(name), Path("/dev/full").open("wb", buffering=0) as device:
        device.write(b"x")


def test_an_error_without_a_path_gets_one(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space") as full:
        write_to_a_full_device(tmp_path / "a")
    assert full.value.filename == str(tmp_path / "a")
    with pytest.raises(FileNotFoundError) as missing, naming(tmp_path / "a"):
        (tmp_path / "b").read_bytes()
    assert missing.value.filename == str(tmp_path / "b")


def text_of(code: int, path: Path | None, home: Home) -> str:
    error = OSError(code, os.strerror(code))
    error.filename = None if path is None else str(path)
    return disk_error_text(error, home)


def test_a_full_disk_says_what_to_do(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    text = text_of(errno.ENOSPC, home.record / "x.parquet", home)
    assert text.startswith(f"{home.record / 'x.parquet'}: No space left on device; ")
    assert f"free some space or set {HOME_VARIABLE}" in text
    assert "choose a folder on another disk" in text_of(errno.ENOSPC, Path("/elsewhere/x.csv"), home)
    unknown = text_of(errno.ENOSPC, None, home)
    assert unknown.startswith(f"standard output, or a file of {home.root}: No space left on device; ")


def test_other_refusals_say_what_to_do(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    for code in (errno.EACCES, errno.EROFS):
        assert "make it writable for this user or set GPUFARE_HOME" in text_of(code, home.record, home)
    assert text_of(errno.EIO, home.record, home) == f"{home.record}: Input/output error"


def test_the_archive_names_the_file_and_leaves_no_litter(small_disk: Path) -> None:
    archive = Archive(small_disk / "archive")
    writer = archive.start("acme", DAY)
    with pytest.raises(OSError, match="No space left") as full:
        writer.add(Entry(url=f"https://{ACME}/gpus"), NOISE)
    assert full.value.filename == str(writer.folder / "0001.bin.gz")
    assert list(writer.folder.iterdir()) == []


def test_a_source_says_that_its_archive_cannot_be_written(small_disk: Path, site: Site) -> None:
    site.say(ACME, "/gpus", Reply(200, NOISE))
    captures = capture_many(site, Archive(small_disk / "archive"), [source()])
    assert captures["acme"].status == "failed"
    error = captures["acme"].error or ""
    assert "the archive cannot be written: " in error
    assert "0001.bin.gz: No space left on device; " in error
    assert "free some space or set" in error
    assert "set GPUFARE_HOME to a folder on another disk" in error


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A folder of pages with one large answer."""
    (tmp_path / "pages" / "azure").mkdir(parents=True)
    (tmp_path / "pages" / "azure" / "answer.json").write_bytes(NOISE)
    return tmp_path / "pages"


def test_the_command_line_names_the_path_and_the_remedy(small_disk: Path, pages: Path) -> None:
    home = small_disk / "home"
    run = gpufare_process("refresh", "--pages", str(pages), home=home)
    assert run.returncode == 1
    (line,) = [line for line in run.stdout.splitlines() if "No space left" in line]
    assert run.stderr == "Error: nothing was published: no answer could be kept (1 asked)\n"
    assert f"{home}/archive/azure/" in line
    assert "free some space or set" in line
    assert "set GPUFARE_HOME to a folder on another disk" in line
    assert "Traceback" not in run.stderr
