"""Sweeping removes what killed processes leave behind, and nothing that is still being written."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.home.litter import OLD_SECONDS, half_written, sweep
from pipeline.home.paths import Home
from pipeline.refresh.refresh import refresh


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture(scope="module")
def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return process.pid


def put(path: Path, age_seconds: float = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half")
    os.utime(path, (time.time() - age_seconds,) * 2)
    return path


def test_only_half_written_files_that_nobody_will_finish_are_swept(home: Home, dead_pid: int) -> None:
    offers, capture = home.record / "offers" / "runpod", home.archive / "runpod" / "2026-08-22" / "x"
    living, unknown, old, young = os.getpid(), 2**33, OLD_SECONDS + 60, OLD_SECONDS - 60
    swept = [
        put(offers / f".2026-08-22.parquet.{dead_pid}.tmp"),
        put(capture / f".0001.gz.{dead_pid}.writing"),
        put(offers / f".2026-08-21.parquet.{living}.tmp", old),
        put(offers / f".a.{unknown}.tmp", old),
        put(capture / ".0001.json.gz.writing", old),  # earlier versions wrote names without a process id
        put(capture / "0003.writing", old),
    ]
    put(offers / f".2026-08-22.parquet.{living}.tmp", young)
    put(offers / f".b.{unknown}.tmp", young)
    put(capture / ".0002.json.gz.writing", young)
    assert sorted(half_written(home)) == sorted(sweep(home)) == sorted(swept)
    assert not any(path.exists() for path in swept)
    assert sweep(home) == sweep(Home(home.root / "gone")) == []


def test_nothing_else_is_touched(home: Home, dead_pid: int) -> None:
    names = ("2026-08-22.parquet", ".hidden", f"notes.{dead_pid}.tmp", "note.tmp", "journal.jsonl")
    kept = [put(home.record / "offers" / name, 1e7) for name in names]
    kept.append(put(home.root.parent / f".x.{dead_pid}.tmp"))
    (home.root / "link").symlink_to(home.root.parent)
    assert sweep(home) == []
    assert all(path.exists() for path in kept)


def test_a_refresh_sweeps_first_and_says_so(home: Home, tmp_path: Path, dead_pid: int) -> None:
    put(tmp_path / "pages" / "azure" / "answer.json")
    put(home.record / "offers" / f".2026-08-22.parquet.{dead_pid}.tmp")
    report = refresh(home, pages=str(tmp_path / "pages"), environment={})
    assert "deleted 1 half-written files of killed runs" in report.lines()
