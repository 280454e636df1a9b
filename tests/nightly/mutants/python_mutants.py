"""Mutants of pipeline/ by mutmut, of which a sample is tested."""

import ast
import json
import os
import random
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MUTMUT = Path(sys.executable).with_name("mutmut")
MYPY = (sys.executable, "-m", "mypy", "pipeline", "--output", "json")
NOT_OF_MUTANTS = ("unused-ignore", "no-redef")
"""Errors in how mutmut arranges the mutants of a method."""
PYTEST = (sys.executable, "-m", "pytest", "-x", "-p", "no:xdist", "-p", "no:cacheprovider")
WHOLE_LINE = "refresh"
"""The room whose tests run nearly all others."""
FAILED = (1, 2)
"""pytest's exit codes for a test that fails and for a module that cannot be imported."""
SECONDS = 900


def _made(project: Path) -> list[str]:
    """Make all mutants, in the folder mutants, and return their names."""
    path = os.pathsep.join([str(MUTMUT.parent), os.environ["PATH"]])
    nothing = [MUTMUT, "run", "no mutant has this name"]
    subprocess.run(
        nothing, cwd=project, env=os.environ | {"PATH": path}, stderr=subprocess.DEVNULL, check=False
    )
    files = sorted((project / "mutants").rglob("*.meta"))
    return [
        name for path in files for name in json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
    ]


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
    random.Random(seed).shuffle(chosen)
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


def _tested(room: str, name: str, project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PYTEST, f"tests/{room}"],
        cwd=project / "mutants",
        env=os.environ | {"MUTANT_UNDER_TEST": name, "PYTHONDONTWRITEBYTECODE": ""},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def outcome(name: str, project: Path) -> str:
    """Return survived, or killed and by which test: of the mutant's room, or of the whole line."""
    for room in dict.fromkeys((part(name), WHOLE_LINE)):
        try:
            ended = _tested(room, name, project)
        except subprocess.TimeoutExpired:
            return "killed by its time"
        if ended.returncode in FAILED:
            failed = re.search(r"^(?:FAILED|ERROR) (\S+)", ended.stdout, re.MULTILINE)
            return f"killed by {failed[1] if failed else 'an error outside of a test'}"
        if ended.returncode:
            raise RuntimeError(f"pytest could not run:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    return "survived"


def results(project: Path, only: str, seed: int, sample: int, jobs: int) -> dict[str, str]:
    """Return survived or killed for each mutant of a random sample of those that mypy accepts, by name."""
    made = [name for name in _made(project) if name.startswith(only or "pipeline")]
    wrong = rejected(project)
    chosen = _sample((name for name in made if name not in wrong), seed, sample)
    with ThreadPoolExecutor(jobs) as pool:
        rooms = sorted({WHOLE_LINE, *map(part, chosen)})
        for ended in pool.map(lambda room: _tested(room, "", project), rooms):
            if ended.returncode:
                raise SystemExit(f"tests fail without any mutant:\n{ended.stdout[-2000:]}")
        return dict(pool.map(lambda name: (name, _reported(name, outcome(name, project))), chosen))


def _reported(name: str, became: str) -> str:
    print(f"{became}: {name}", flush=True)
    return became
