"""Sweeping removes what killed processes leave behind, and nothing that is still being written."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.home.litter import DAYS_LOOKED_AT, OLD_SECONDS, half_written, sweep
from pipeline.home.paths import Home
from pipeline.refresh.refresh import refresh


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture(scope="module")
def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def put(path: Path, age_seconds: float = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half")
    moment = time.time() - age_seconds
    os.utime(path, (moment, moment))
    return path


def test_only_half_written_files_that_nobody_will_finish_are_swept(home: Home, dead_pid: int) -> None:
    offers = home.record / "offers" / "runpod"
    capture = home.archive / "runpod" / "2026-08-22" / "20260822T060000.000000Z"
    living = os.getpid()
    swept = [
        put(offers / f".2026-08-22.parquet.{dead_pid}.tmp"),
        put(capture / f".0001.gz.{dead_pid}.writing"),
        put(offers / f".2026-08-21.parquet.{living}.tmp", OLD_SECONDS + 60),
        put(offers / f".a.{2**33}.tmp", OLD_SECONDS + 60),
        # Earlier versions wrote names without a process id.
        put(capture / ".0001.json.gz.writing", OLD_SECONDS + 60),
        put(capture / "0003.writing", OLD_SECONDS + 60),
    ]
    for path in (
        offers / f".2026-08-22.parquet.{living}.tmp",
        offers / f".a.1.{2**33}.tmp",
        capture / ".0002.json.gz.writing",
        home.root / "robots" / "b.example.writing",
    ):
        put(path, OLD_SECONDS - 60)
    assert sorted(half_written(home)) == sorted(swept)
    assert sorted(sweep(home)) == sorted(swept)
    assert not any(path.exists() for path in swept)
    assert sweep(home) == sweep(Home(home.root / "gone")) == []


def test_nothing_else_is_touched(home: Home, dead_pid: int) -> None:
    kept = [
        put(home.record / "offers" / "runpod" / "2026-08-22.parquet", 1e7),
        put(home.record / "offers" / "runpod" / ".hidden", 1e7),
        put(home.record / "offers" / "runpod" / f"notes.{dead_pid}.tmp", 1e7),
        put(home.root / "note.tmp", 1e7),
        put(home.archive / "runpod" / "2026-08-22" / "20260822T060000.000000Z" / "journal.jsonl", 1e7),
        put(home.root.parent / f".x.{dead_pid}.tmp"),
    ]
    (home.root / "link").symlink_to(home.root.parent)
    assert sweep(home) == []
    assert all(path.exists() for path in kept)


def test_only_the_newest_days_are_looked_into(home: Home, dead_pid: int) -> None:
    """A year of captures is not searched each day."""
    days = [f"2026-{month:02d}-{day:02d}" for month in (1, 2) for day in range(1, 29)]
    litter = [put(home.archive / "runpod" / day / "x" / f".a.{dead_pid}.writing") for day in days]
    assert sorted(half_written(home)) == litter[-DAYS_LOOKED_AT:]
    assert DAYS_LOOKED_AT == 31


WRITER = """
import sys, time
from pathlib import Path
from pipeline.home.disk import replacing
with replacing(Path(sys.argv[1])) as temporary:
    temporary.write_bytes(b"half")
    print("writing", flush=True)
    time.sleep(60)
"""


def test_a_killed_writer_and_one_that_still_writes(home: Home) -> None:
    """Two refreshes at once: one is killed in the middle of a file, the other one goes on."""
    targets = [home.record / "offers" / name / "2026-08-22.parquet" for name in ("killed", "writing")]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(target)], stdout=subprocess.PIPE)
        for target in targets
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"writing\n"
        writers[0].send_signal(signal.SIGKILL)
        writers[0].wait()
        assert [path.parent.name for path in sweep(home)] == ["killed"]
        assert len(list((home.record / "offers").rglob(".*.tmp"))) == 1
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()


def test_a_refresh_sweeps_first_and_says_so(home: Home, tmp_path: Path, dead_pid: int) -> None:
    (tmp_path / "pages" / "azure").mkdir(parents=True)
    (tmp_path / "pages" / "azure" / "answer.json").write_text("no prices")
    litter = put(home.record / "offers" / f".2026-08-22.parquet.{dead_pid}.tmp")
    report = refresh(home, pages=str(tmp_path / "pages"), environment={})
    assert not litter.exists()
    assert "deleted 1 half-written files of killed runs" in report.lines()
