"""Mutants of sql/, of which a sample is tested."""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb

from tests.nightly.mutants.sql_changes import Mutant, mutants

FOLDERS = ("model", "jobs", "marts")
TESTS = ("model", "marts", "questions", "health")
CASES = "tests/marts/test_cases.py"
FORMULAS = "tests/model/test_formulas.py"
REJECTED = re.compile(r"^E .*(Binder|Parser|Catalog)Exception", re.MULTILINE)
SECONDS = 900
SQL_VARIABLE = "GPUFARE_MUTATED_SQL"


def part(name: str) -> str:
    """Return a mutant's folder, such as ``jobs``."""
    return name.split("/")[0]


def tests_for(file: str, project: Path) -> list[str]:
    """Return the files of tests, those first that notice most changes of an SQL file."""
    first = [FORMULAS, CASES] if file.startswith("model/") else [CASES, FORMULAS]
    found = [path for room in TESTS for path in sorted((project / "tests" / room).glob("test_*.py"))]
    names = [path.relative_to(project).as_posix() for path in found]
    return first + [name for name in names if name not in first]


def outcome(mutant: Mutant, project: Path) -> str:
    """Return rejected, survived, or killed and by which test."""
    text = mutant.applied((project / "sql" / mutant.file).read_text(encoding="utf-8"))
    try:
        duckdb.extract_statements(text)
    except duckdb.Error:
        return "rejected"
    with tempfile.TemporaryDirectory(prefix="gpufare-mutant-") as folder:
        sql = shutil.copytree(project / "sql", Path(folder) / "sql")
        (sql / mutant.file).write_text(text, encoding="utf-8")
        path = os.pathsep.join([str(project), str(Path(__file__).parent)])
        options = ["-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "mutated_sql"]
        command = [sys.executable, "-m", "pytest", *options, f"--basetemp={folder}/tmp"]
        command += tests_for(mutant.file, project)
        try:
            ended = subprocess.run(
                command,
                cwd=project,
                env=os.environ | {SQL_VARIABLE: str(sql), "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": ""},
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "killed by its time"
    if ended.returncode == 0:
        return "survived"
    if ended.returncode != 1:
        raise RuntimeError(f"pytest could not run:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    if REJECTED.search(ended.stdout):
        return "rejected"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", ended.stdout, re.MULTILINE)
    return f"killed by {failed[1] if failed else 'an error outside of a test'}"


def results(project: Path, only: str, seed: int, sample: int, jobs: int) -> dict[str, str]:
    """Return the outcomes of a random sample by name."""
    sql = project / "sql"
    files = [path.relative_to(sql).as_posix() for d in FOLDERS for path in sorted((sql / d).glob("*.sql"))]
    found = [mutant for file in files if file.startswith(only) for mutant in mutants(sql, file)]
    random.Random(seed).shuffle(found)
    outcomes = {}

    def run(mutant: Mutant) -> None:
        outcomes[mutant.name] = outcome(mutant, project)
        print(f"{outcomes[mutant.name]}: {mutant.name}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, found[:sample]))
    return outcomes
