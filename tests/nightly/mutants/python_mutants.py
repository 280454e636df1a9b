"""Mutants of pipeline/ by mutmut, of which a sample is tested."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MUTMUT = Path(sys.executable).with_name("mutmut")
OUTCOMES = {1: "killed", 3: "killed", 0: "survived", 5: "survived", 33: "survived", 37: "rejected"}
"""mutmut's exit codes: 5 and 33 mean that no test reaches the mutant, 37 that mypy rejects it."""
NOTHING = "nothing"


def _mutmut(project: Path, jobs: int, *names: str) -> int:
    path = os.pathsep.join([str(MUTMUT.parent), os.environ["PATH"]])
    command = [MUTMUT, "run", "--max-children", str(jobs), *names]
    return subprocess.run(command, cwd=project, env=os.environ | {"PATH": path}, check=False).returncode


def _outcomes(project: Path) -> Iterator[tuple[str, int | None]]:
    for path in sorted((project / "mutants").rglob("*.meta")):
        yield from json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"].items()


def part(name: str) -> str:
    """Return a mutant's room, such as ``gates`` for ``pipeline.gates.screen.x_why__mutmut_3``."""
    return name.split(".")[1]


def results(project: Path, only: str, seed: int, sample: int, jobs: int) -> dict[str, str]:
    """Return rejected, killed or survived for each mutant of a random sample, by name."""
    _mutmut(project, jobs, NOTHING)  # It makes all mutants, and finds none of that name.
    names = [name for name, _ in _outcomes(project) if name.startswith(only or "pipeline")]
    random.Random(seed).shuffle(names)
    chosen = set(names[:sample])
    untested = [name for name, code in _outcomes(project) if name in chosen and code is None]
    if untested and _mutmut(project, jobs, *untested):
        raise SystemExit("mutmut stopped; its message is above")
    codes = dict(_outcomes(project))
    return {name: OUTCOMES.get(codes[name] or 0, "killed by its time") for name in sorted(chosen)}
