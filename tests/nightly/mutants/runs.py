"""Runs tests on a mutant, in a process of its own."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

PYTEST = (sys.executable, "-m", "pytest", "-x", "-p", "no:xdist", "-p", "no:cacheprovider")
FAILED = (1, 2, 3, 4)
"""pytest's exit codes when a test fails, a module cannot be imported, or pytest or a conftest fails: all are
a mutant's doing, since the tests passed without one."""
FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Tests:
    """Tests to run in a folder, and the seconds after which they are stopped."""

    folder: Path
    names: tuple[str, ...]
    limit_seconds: float | None = None


def run(tests: Tests, environment: Mapping[str, str], options: Sequence[str] = ()) -> tuple[int | None, str]:
    """Return pytest's exit code, None if the tests were stopped, and its output up to the first failure."""
    # Compiled modules are kept: compiling all of them again takes longer than most tests.
    variables = os.environ | {"PYTHONDONTWRITEBYTECODE": ""} | dict(environment)
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
        output, _ = process.communicate(timeout=tests.limit_seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]
    return process.returncode, output


def limited(tests: Tests, environment: Mapping[str, str]) -> Tests:
    """Return the tests, limited to several times as long as without a mutant. Exits if they fail then."""
    began = time.monotonic()
    code, output = run(tests, environment)
    if code:
        names = " ".join(tests.names)
        sys.exit(f"tests fail without any mutant, repair them first: {names}\n{output[-3000:]}")
    return replace(tests, limit_seconds=60 + 5 * (time.monotonic() - began))


def outcome(code: int | None, output: str, mutant: str) -> str:
    """Return survived, or killed and by which test."""
    if code == 0:
        return "survived"
    if code is None:
        return "killed by its time"
    if code not in FAILED:
        raise RuntimeError(f"pytest ended with {code} on {mutant}:\n{output[-3000:]}")
    failed = FIRST_FAILURE.search(output)
    return f"killed by {failed[1] if failed else 'an error outside of a test'}"


def outcomes(names: Iterable[str], outcome_of: Callable[[str], str], jobs: int) -> dict[str, str]:
    """Return each mutant's outcome by name; print it as soon as it is known."""

    def tested(name: str) -> tuple[str, str]:
        became = outcome_of(name)
        print(f"{became}: {name}", flush=True)
        return name, became

    with ThreadPoolExecutor(jobs) as pool:
        return dict(pool.map(tested, names))
