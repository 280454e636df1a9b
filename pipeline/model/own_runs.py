"""The user's own measured runs: measured_runs.csv in the home, which upgrades leave alone.

The columns of catalog/measured_runs.csv, and after them ``MORE_COLUMNS``. One line is one run, so a damaged
line damages no other; what cannot be read is named and left out.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from filelock import FileLock

from pipeline.home import paths
from pipeline.home.disk import UnwritableError, flush, set_aside
from pipeline.home.paths import Home
from pipeline.parsing.printable import printable

MORE_COLUMNS = ("measured_at", "versions", "reserved_gib", "process_gib", "steps", "not_ready", "note")
"""When (UTC), with which libraries, the other two readings of memory, how many steps were timed, why the run
is not for the catalogue (empty: it is), and what else there is to say."""
KEYS = {"run_id", "model", "gpu", "method"}
"""Columns without which a file holds no runs."""
LOCK_SECONDS = 60


@dataclass(frozen=True, slots=True)
class OwnRun:
    """One line of the file."""

    line: int
    row: dict[str, str]


@dataclass(slots=True)
class OwnRuns:
    """The runs that could be read, and what could not, in words."""

    runs: list[OwnRun] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@cache
def catalogue_columns() -> tuple[str, ...]:
    """The columns of catalog/measured_runs.csv, in order."""
    with (paths.CATALOG_DIR / "measured_runs.csv").open(newline="", encoding="utf-8") as file:
        return tuple(next(csv.reader(file)))


def csv_line(row: Mapping[str, str], columns: Sequence[str]) -> str:
    """One line without quotes: a comma in a text is a semicolon there, and a quote an apostrophe."""
    cells = (printable(row.get(name, "")).replace(",", ";").replace('"', "'") for name in columns)
    return ",".join(cells)


def read_own_runs(home: Home) -> OwnRuns:
    """The user's own runs, and what of their file is damaged; never raises for a damaged file."""
    try:
        lines = _lines(home.own_runs)
    except FileNotFoundError:
        return OwnRuns()
    except (OSError, _DamagedError) as error:
        return OwnRuns(problems=[f"{home.own_runs} cannot be read and is left out: {_reason(error)}"])
    columns = _cells(lines[0])
    found = OwnRuns()
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        cells = _cells(line)
        if len(cells) != len(columns):
            found.problems.append(
                f"{home.own_runs}, line {number} is left out: {len(cells)} values for {len(columns)} columns"
            )
            continue
        found.runs.append(OwnRun(number, dict(zip(columns, cells, strict=True))))
    return found


def add_own_run(home: Home, row: Mapping[str, str]) -> str:
    """Add a run to the file. Returns what was done about a damaged one; empty where nothing was.

    Raises UnwritableError.
    """
    path = home.own_runs
    try:
        home.root.mkdir(parents=True, exist_ok=True)
        with FileLock(home.own_runs_lock, timeout=LOCK_SECONDS):
            lines, done = _lines_to_continue(home)
            columns = _cells(lines[0])
            temporary = path.with_suffix(".csv.writing")
            temporary.write_text("\n".join([*lines, csv_line(row, columns), ""]), encoding="utf-8")
            flush(temporary)
            temporary.replace(path)
    except OSError as error:
        raise UnwritableError(path, error) from error
    return done


def _lines_to_continue(home: Home) -> tuple[list[str], str]:
    """Return the lines of the file, and what was done about a damaged one."""
    columns = [*catalogue_columns(), *MORE_COLUMNS]
    try:
        lines = _lines(home.own_runs)
    except FileNotFoundError:
        return [",".join(columns)], ""
    except _DamagedError as error:
        place = set_aside(home, home.own_runs)
        return [",".join(columns)], f"{home.own_runs} could not be read ({error}) and was moved to {place}"
    return lines, ""


class _DamagedError(Exception):
    """A file that is not one of runs."""


def _lines(path: Path) -> list[str]:
    """The lines of the file, its heading first. Raises _DamagedError, and FileNotFoundError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _DamagedError("it is not text in UTF-8") from error
    lines = text.splitlines()
    if not lines or not set(_cells(lines[0])) >= KEYS:
        raise _DamagedError(f"its first line does not name the columns {', '.join(sorted(KEYS))}")
    return lines


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line], strict=True), [])
    except csv.Error:
        return []


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
