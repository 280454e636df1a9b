"""Replaces the published file with a complete new one, in one step.

Readers keep the file that they opened. A crash leaves the old file and at most a temporary one, which the
next publication deletes.
"""

import os
from datetime import date, datetime
from pathlib import Path

from filelock import FileLock

from pipeline.contracts.paths import Home
from pipeline.contracts.progress import Progress, no_progress
from pipeline.warehouse.build import Report, build


def publish(home: Home, day: date, now: datetime, progress: Progress = no_progress) -> Report:
    """Build the database of ``day`` and publish it. Raises what ``build`` raises, leaving the old file."""
    home.published.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(home.lock):
        for leftover in home.published.parent.glob(".building-*"):
            leftover.unlink()
        file = home.published.parent / f".building-{os.getpid()}.duckdb"
        try:
            report = build(file, home, day, now, progress)
            _flush(file)
            file.replace(home.published)
            _flush(home.published.parent)
        finally:
            file.unlink(missing_ok=True)
    return report


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
