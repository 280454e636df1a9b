"""Mutants of sql/, of which a sample is tested."""

import os
import random
import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import duckdb

from tests.nightly.mutants import runs
from tests.nightly.mutants.sql_changes import Mutant, mutants

FOLDERS = ("model", "jobs", "marts")
TESTS = ("model", "marts", "questions", "health")
CASES = "tests/marts/test_cases.py"
FORMULAS = "tests/model/test_formulas.py"
REJECTED = re.compile(r"^E +\S*(Binder|Parser|Catalog)Exception:", re.MULTILINE)
PLUGIN = Path(__file__).parent / "changed_sql"


def part(name: str) -> str:
    """Return a mutant's folder, such as ``jobs``."""
    return name.split("/")[0]


def tests_of(folder: str, project: Path) -> runs.Tests:
    """Return the test files, first those that notice most changes of a folder of sql/."""
    first = [FORMULAS, CASES] if folder == "model" else [CASES, FORMULAS]
    found = [path for room in TESTS for path in sorted((project / "tests" / room).glob("test_*.py"))]
    names = [path.relative_to(project).as_posix() for path in found]
    return runs.Tests(project, (*first, *(name for name in names if name not in first)))


def _environment(project: Path, sql: Path) -> dict[str, str]:
    return {"GPUFARE_CHANGED_SQL": str(sql), "PYTHONPATH": os.pathsep.join([str(project), str(PLUGIN)])}


def outcome(mutant: Mutant, tests: runs.Tests) -> str:
    """Return rejected, survived, or killed and by which test."""
    project = tests.folder
    text = mutant.applied((project / "sql" / mutant.file).read_text(encoding="utf-8"))
    try:
        duckdb.extract_statements(text)
    except duckdb.Error:
        return "rejected"
    with tempfile.TemporaryDirectory(prefix="gpufare-mutant-") as folder:
        sql = shutil.copytree(project / "sql", Path(folder) / "sql")
        (sql / mutant.file).write_text(text, encoding="utf-8")
        code, output = runs.run(tests, _environment(project, sql), [f"--basetemp={folder}/tmp"])
    return "rejected" if REJECTED.search(output) else runs.outcome(code, output, mutant.name)


def results(project: Path, only: str, seed: int, sample: int, jobs: int) -> dict[str, str]:
    """Return the outcomes of a random sample by name."""
    sql = project / "sql"
    files = (path.relative_to(sql).as_posix() for d in FOLDERS for path in sorted((sql / d).glob("*.sql")))
    found = [mutant for file in files if file.startswith(only) for mutant in mutants(sql, file)]
    random.Random(seed).shuffle(found)
    chosen = {mutant.name: mutant for mutant in found[:sample]}
    if not chosen:
        return {}
    limit = runs.limited(tests_of("jobs", project), _environment(project, sql)).limit_seconds
    tests = {folder: replace(tests_of(folder, project), limit_seconds=limit) for folder in FOLDERS}
    return runs.outcomes(chosen, lambda name: outcome(chosen[name], tests[part(name)]), jobs)
