"""Programs that the nightly tests run."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def ran(command: Sequence[str | Path], **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, whatever that is."""
    kept = {"capture_output": True, "text": True, "timeout": 300, "check": False}
    return subprocess.run(command, **(kept | options))


def output_of(command: Sequence[str | Path], **options: Any) -> str:
    """Run a program that must succeed."""
    done = ran(command, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout
