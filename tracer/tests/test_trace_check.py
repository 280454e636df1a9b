"""`make trace-check` where torch cannot be had, and where what it finds is broken."""

import os
import re
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def trace_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trace") / "venv"


def trace_check(trace_venv: Path, wheels: Path) -> subprocess.CompletedProcess[str]:
    """Run the target with no other packages than those in a folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "MAKE"))}
    environment |= {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    command = ["make", "--old-file=.venv/.ready", "trace-check", f"TRACE_VENV={trace_venv}"]
    return subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_missing_torch_skips_the_check_with_a_message(trace_venv: Path, tmp_path: Path) -> None:
    answer = trace_check(trace_venv, tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "trace-check: skipped, torch==" in answer.stdout.splitlines()[-1]
    assert not (trace_venv / ".ready").exists(), "the next run would check nothing"


def test_a_torch_that_cannot_be_installed_is_a_failure(trace_venv: Path, tmp_path: Path) -> None:
    (version,) = re.findall(r"^TORCH := torch==(.+)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    (tmp_path / f"torch-{version}-py3-none-any.whl").write_bytes(b"half a download")
    answer = trace_check(trace_venv, tmp_path)
    assert answer.returncode != 0
    assert "skipped" not in answer.stdout
    assert "torch" in answer.stderr
