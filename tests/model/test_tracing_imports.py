"""torch is only for traces and measured steps: nothing else in gpufare imports it, installed or not."""

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import pipeline

TRACE_PACKAGES = (
    "torch",
    "transformers",
    "peft",
    "accelerate",
    "bitsandbytes",
    "trl",
    "liger_kernel",
    "datasets",
)
RUNS_STEPS = tuple(
    f"pipeline.model.tracing.{name}" for name in ("collectives", "recorder", "work", "frameworks.")
)
"""Modules that a trace imports once the fake device is there; all others must do without torch."""

IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(f"{name}: {error}")
    found = sorted({module.partition(".")[0] for module in sys.modules} & set(TRACE_PACKAGES))
    if found:
        sys.exit(f"{name} imports {', '.join(found)}")
"""


@pytest.fixture
def with_empty_torch(tmp_path: Path) -> dict[str, str]:
    """An environment in which importing torch succeeds, so that no try and except can hide it."""
    for package in TRACE_PACKAGES:
        (tmp_path / "site" / package).mkdir(parents=True)
        (tmp_path / "site" / package / "__init__.py").touch()
    return os.environ | {"PYTHONPATH": str(tmp_path / "site")}


def run(code: str, names: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", f"TRACE_PACKAGES = {TRACE_PACKAGES!r}\n{code}", *names]
    return subprocess.run(
        command, env=environment, cwd=Path(pipeline.__file__).parent.parent,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_no_room_imports_torch(with_empty_torch: dict[str, str]) -> None:
    """The command line, the refresh, the demo, and what is pure in the rooms that run steps."""
    names = [module.name for module in pkgutil.walk_packages(pipeline.__path__, "pipeline.")]
    names = [name for name in names if not name.startswith(RUNS_STEPS) and not name.endswith("__main__")]
    pure = {"cli.main", "refresh.refresh", "model.tracing.trace", "model.measuring.run_steps"}
    assert {f"pipeline.{name}" for name in pure} <= set(names)
    answer = run(IMPORT_ALL, names, with_empty_torch)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


def test_a_module_that_imports_torch_would_be_named(with_empty_torch: dict[str, str]) -> None:
    answer = run(IMPORT_ALL, ["pipeline.home.paths", "torch"], with_empty_torch)
    assert answer.returncode == 1
    assert answer.stderr == "torch imports torch\n"
