"""Mutants of pipeline/ by mutmut, of which a sample is tested."""

import ast
import json
import os
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MUTMUT = Path(sys.executable).with_name("mutmut")
MYPY = (sys.executable, "-m", "mypy", "pipeline", "--output", "json")
NOT_OF_MUTANTS = ("unused-ignore", "no-redef")
"""Errors in how mutmut arranges the mutants of a method."""
OUTCOMES = {1: "killed", 3: "killed", 0: "survived", 5: "survived", 33: "survived"}
"""mutmut's exit codes: 5 and 33 mean that no test reaches the mutant."""
NOTHING = "nothing"
MUTANT_VARIABLE = "MUTANT_UNDER_TEST"
SECONDS = 900


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


def _sample(names: Iterable[str], seed: int, size: int) -> list[str]:
    """Return a random sample with as many mutants of each room."""
    rooms = defaultdict(list)
    for name in names:
        rooms[part(name)].append(name)
    chosen = []
    for room in sorted(rooms):
        random.Random(f"{seed} {room}").shuffle(rooms[room])
        chosen += rooms[room][: -(-size // len(rooms))]
    return chosen


def rejected(project: Path) -> set[str]:
    """Return the names of the mutants in which mypy finds an error.

    mutmut can ask mypy itself, but needs ten times as long to find the mutant of an error.
    """
    folder = project / "mutants"
    options = [option for code in NOT_OF_MUTANTS for option in ("--disable-error-code", code)]
    ended = subprocess.run([*MYPY, *options], cwd=folder, capture_output=True, text=True, check=False)
    lines = defaultdict(set)
    for line in filter(str.strip, ended.stdout.splitlines()):
        error = json.loads(line)
        lines[error["file"]].add(error["line"])
    if ended.returncode > 1 or not lines:
        raise SystemExit(f"mypy could not check {folder}:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    found = set()
    for file, wrong in lines.items():
        module = file.removesuffix(".py").replace("/", ".")
        for node in ast.walk(ast.parse((folder / file).read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or "__mutmut_" not in node.name:
                continue
            if any(node.lineno <= line <= (node.end_lineno or 0) for line in wrong):
                found.add(f"{module}.{node.name}")
    return found


def _survives_its_room(name: str, project: Path) -> bool:
    """Return True if all tests of the mutant's room pass.

    mutmut runs the tests that it saw reach the mutant, and a fixture that several tests share was seen only
    in the first of them.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:xdist", "-p", "no:cacheprovider"]
    try:
        ended = subprocess.run(
            [*command, f"tests/{part(name)}"],
            cwd=project / "mutants",
            env=os.environ | {MUTANT_VARIABLE: name},
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0


def results(project: Path, only: str, seed: int, sample: int, jobs: int) -> dict[str, str]:
    """Return survived or killed for each mutant of a random sample of those that mypy accepts, by name."""
    _mutmut(project, jobs, NOTHING)  # It makes all mutants, and finds none of that name.
    wrong = rejected(project)
    names = (name for name, _ in _outcomes(project) if name not in wrong)
    chosen = _sample((name for name in names if name.startswith(only or "pipeline")), seed, sample)
    if chosen and _mutmut(project, jobs, *chosen):
        raise SystemExit("mutmut stopped; its message is above")
    codes = dict(_outcomes(project))
    outcomes = {name: OUTCOMES.get(codes[name] or 0, "killed by its time") for name in chosen}
    survivors = [name for name in chosen if outcomes[name] == "survived"]
    with ThreadPoolExecutor(jobs) as pool:
        survives = pool.map(lambda name: _survives_its_room(name, project), survivors)
        killed = [name for name, still in zip(survivors, survives, strict=True) if not still]
    return outcomes | dict.fromkeys(killed, "killed")
