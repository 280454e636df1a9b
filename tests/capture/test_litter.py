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


def test_files_of_a_dead_process_are_swept(home: Home, dead_pid: int) -> None:
    litter = [
        put(home.record / "offers" / "runpod" / f".2026-08-22.parquet.{dead_pid}.tmp"),
        put(
            home.archive
            / "runpod"
            / "2026-08-22"
            / "20260822T060000.000000Z"
            / f".0001.gz.{dead_pid}.writing"
        ),
    ]
    assert sorted(sweep(home)) == sorted(litter)
    assert not any(path.exists() for path in litter)
    assert sweep(home) == []


def test_files_of_a_running_process_are_left_until_they_are_old(home: Home) -> None:
    now = put(home.record / "offers" / "runpod" / f".2026-08-22.parquet.{os.getpid()}.tmp", OLD_SECONDS - 60)
    assert sweep(home) == []
    os.utime(now, (0, 0))
    assert sweep(home) == [now]


def test_files_without_a_process_id_are_swept_when_they_are_old(home: Home) -> None:
    """Earlier versions wrote such names."""
    capture = home.archive / "runpod" / "2026-08-22" / "20260822T060000.000000Z"
    put(capture / ".0002.json.gz.writing")
    put(home.root / "robots" / "b.example.writing")
    old = put(capture / ".0001.json.gz.writing", OLD_SECONDS + 60)
    assert sweep(home) == [old]


def test_nothing_else_is_touched(home: Home, dead_pid: int) -> None:
    kept = [
        put(home.record / "offers" / "runpod" / "2026-08-22.parquet", 1e7),
        put(home.record / "offers" / "runpod" / ".hidden", 1e7),
        put(home.record / "offers" / "runpod" / f"notes.{dead_pid}.tmp", 1e7),
        put(home.root / "note.tmp", 1e7),
        put(home.archive / "runpod" / "2026-08-22" / "20260822T060000.000000Z" / "journal.jsonl", 1e7),
    ]
    outside = put(home.root.parent / f".x.{dead_pid}.tmp")
    (home.root / "link").symlink_to(home.root.parent)
    assert sweep(home) == []
    assert all(path.exists() for path in [*kept, outside])


def test_a_home_that_is_not_there_has_no_litter(home: Home) -> None:
    assert sweep(home) == []


def test_only_the_newest_days_are_looked_into(home: Home, dead_pid: int) -> None:
    """A year of captures is not searched each day."""
    days = [f"2026-{month:02d}-{day:02d}" for month in range(1, 5) for day in range(1, 29)]
    litter = [put(home.archive / "runpod" / day / "x" / f".a.{dead_pid}.writing") for day in days]
    assert sorted(half_written(home)) == litter[-DAYS_LOOKED_AT:]


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


def test_refresh_sweeps_first_and_reports_the_size(home: Home, tmp_path: Path, dead_pid: int) -> None:
    (tmp_path / "pages" / "azure").mkdir(parents=True)
    (tmp_path / "pages" / "azure" / "answer.json").write_text("no prices")
    litter = put(home.record / "offers" / "runpod" / f".2026-08-22.parquet.{dead_pid}.tmp")
    report = refresh(home, pages=str(tmp_path / "pages"), environment={})
    assert not litter.exists()
    assert "deleted 1 half-written files of killed runs" in report.lines()
    again = refresh(home, pages=str(tmp_path / "pages"), environment={})
    assert not [line for line in again.lines() if "swept" in line]
