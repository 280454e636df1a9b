"""Runs tests on a mutant, in a process of its own."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PYTEST = (sys.executable, "-m", "pytest", "-x", "-p", "no:xdist", "-p", "no:cacheprovider")
FAILED = (1, 2, 3, 4)
"""pytest's exit codes when a test fails, a module cannot be imported, or pytest or a conftest fails: all are
a mutant's doing, since the tests passed without one."""
FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
TIMES_AS_LONG = 5
SPARE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Tests:
    """Tests to run in a folder, and how long they take without a mutant."""

    folder: Path
    names: tuple[str, ...]
    seconds: float = float("inf")


@dataclass(frozen=True, slots=True)
class Run:
    """pytest's exit code, None if it was stopped, and what it wrote."""

    code: int | None
    output: str


def run(tests: Tests, environment: Mapping[str, str], options: Sequence[str] = ()) -> Run:
    """Run tests until one fails or they take several times as long as without a mutant."""
    # Compiled modules are kept: compiling all of them again takes longer than most tests.
    variables = os.environ | {"PYTHONDONTWRITEBYTECODE": ""} | dict(environment)
    limit = None if tests.seconds == float("inf") else SPARE_SECONDS + TIMES_AS_LONG * tests.seconds
    process = subprocess.Popen(
        [*PYTEST, *options, *tests.names],
        cwd=tests.folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return Run(None, process.communicate()[0])
    return Run(process.returncode, output)


def timed(tests: Tests, environment: Mapping[str, str], options: Sequence[str] = ()) -> Tests:
    """Return the tests with the time that they take without a mutant. Exits if they fail."""
    began = time.monotonic()
    ended = run(tests, environment, options)
    if ended.code:
        names = " ".join(tests.names)
        sys.exit(f"tests fail without any mutant, repair them first: {names}\n{ended.output[-3000:]}")
    return Tests(tests.folder, tests.names, time.monotonic() - began)


def outcome(ended: Run, mutant: str) -> str:
    """Return survived, or killed and by which test."""
    if ended.code == 0:
        return "survived"
    if ended.code is None:
        return "killed by its time"
    if ended.code not in FAILED:
        raise RuntimeError(f"pytest ended with {ended.code} on {mutant}:\n{ended.output[-3000:]}")
    failed = FIRST_FAILURE.search(ended.output)
    return f"killed by {failed[1] if failed else 'an error outside of a test'}"
