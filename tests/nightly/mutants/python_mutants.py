"""Mutants of pipeline/ by mutmut, of which a sample is tested."""

import ast
import json
import os
import random
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.nightly.mutants import runs

MUTMUT = Path(sys.executable).with_name("mutmut")
MADE = "nothing matches"
"""mutmut's last words when it has made the mutants and finds none of the name that it should test."""
MYPY = (sys.executable, "-m", "mypy", "pipeline", "--output", "json")
NOT_OF_MUTANTS = ("unused-ignore", "no-redef")
"""Errors in how mutmut arranges the mutants of a method."""
VARIABLE = "MUTANT_UNDER_TEST"
END_TO_END = "refresh"
"""The room whose tests run nearly all others."""


def _make(project: Path) -> list[str]:
    """Make all mutants, in a new folder ``mutants``, and return their names."""
    shutil.rmtree(project / "mutants", ignore_errors=True)
    path = os.pathsep.join([str(MUTMUT.parent), os.environ["PATH"]])
    command = [str(MUTMUT), "run", "no mutant has this name"]
    ended = subprocess.run(
        command, cwd=project, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    if MADE not in ended.stderr:
        sys.exit(f"mutmut could not make the mutants:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    files = sorted((project / "mutants").rglob("*.meta"))
    return [
        name for path in files for name in json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
    ]


def part(name: str) -> str:
    """Return a mutant's room, such as ``gates`` for ``pipeline.gates.screen.x_why__mutmut_3``."""
    return name.split(".")[1]


def _sample(names: Iterable[str], seed: int, size: int) -> list[str]:
    """Return a random sample with the same number of mutants of each room, or all where a room has fewer."""
    rooms = defaultdict(list)
    for name in names:
        rooms[part(name)].append(name)
    chosen = []
    for room in sorted(rooms):
        random.Random(f"{seed} {room}").shuffle(rooms[room])
        chosen += rooms[room][: -(-size // len(rooms))]
    random.Random(seed).shuffle(chosen)
    return chosen


def _mypy_errors(folder: Path) -> dict[str, set[int]]:
    """Return the lines with an error, by file."""
    options = [option for code in NOT_OF_MUTANTS for option in ("--disable-error-code", code)]
    ended = subprocess.run([*MYPY, *options], cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode != 1:
        sys.exit(f"mypy could not check {folder}:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    lines = defaultdict(set)
    for error in map(json.loads, filter(str.strip, ended.stdout.splitlines())):
        if error["severity"] == "error":
            lines[error["file"]].add(error["line"])
    return lines


def rejected(project: Path) -> set[str]:
    """Return the names of the mutants in which mypy finds an error. Exits if it finds one elsewhere.

    mutmut can ask mypy itself, but needs ten times as long to find the mutant of an error.
    """
    folder = project / "mutants"
    found = set()
    for file, wrong in _mypy_errors(folder).items():
        module = file.removesuffix(".py").replace("/", ".")
        elsewhere = set(wrong)
        for node in ast.walk(ast.parse((folder / file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.rpartition("__mutmut_")[2].isdigit():
                within = wrong & {*range(node.lineno, (node.end_lineno or 0) + 1)}
                found |= {f"{module}.{node.name}"} if within else set()
                elsewhere -= within
        if elsewhere:
            sys.exit(f"mypy finds errors outside of the mutants: {folder / file}, lines {sorted(elsewhere)}")
    return found


def outcome(name: str, tests: Mapping[str, runs.Tests]) -> str:
    """Return survived, or killed and by which test of its room or of the end-to-end tests."""
    for room in dict.fromkeys((part(name), END_TO_END)):
        became = runs.outcome(*runs.run(tests[room], {VARIABLE: name}), name)
        if became != "survived":
            return became
    return "survived"


def results(project: Path, only: str, seed: int, sample: int, jobs: int) -> dict[str, str]:
    """Return survived or killed for each mutant of a random sample of those that mypy accepts, by name."""
    made = [name for name in _make(project) if name.startswith(only or "pipeline")]
    accepted = sorted({*made} - rejected(project))
    print(f"{len(made)} mutants, of which mypy accepts {len(accepted)}", flush=True)
    chosen = _sample(accepted, seed, sample)
    if not chosen:
        return {}
    rooms = sorted({END_TO_END, *map(part, chosen)})
    plain = [runs.Tests(project / "mutants", (f"tests/{room}",)) for room in rooms]
    with ThreadPoolExecutor(jobs) as pool:
        limited = pool.map(lambda each: runs.limited(each, {VARIABLE: ""}), plain)
        tests = dict(zip(rooms, limited, strict=True))
    return runs.outcomes(chosen, lambda name: outcome(name, tests), jobs)
