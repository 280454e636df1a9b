"""The user's own measured runs: measured_runs.csv in the home, which upgrades do not change. The file's
columns are those of catalog/measured_runs.csv, followed by ``MORE_COLUMNS``.
"""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from filelock import FileLock

from pipeline.home import paths
from pipeline.home.csv_rows import CsvError, CsvRow, CsvTable, append_row, parse_csv, read_csv
from pipeline.home.disk import UnwritableError, replacing, set_aside
from pipeline.home.paths import Home
from pipeline.parsing.printable import printable

MORE_COLUMNS = ("measured_at", "versions", "reserved_gib", "process_gib", "steps", "not_ready", "note")
"""The time (UTC), the versions of the libraries, the other two memory readings, the number of timed steps,
the reason why the run does not qualify for the catalogue (empty if it does), and a note."""
KEYS = {"run_id", "model", "gpu", "method"}
"""Columns that a file of runs must have."""
LOCK_SECONDS = 60


@dataclass(slots=True)
class OwnRuns:
    """The runs that could be read, and a sentence for each line (or the file) that could not be read."""

    runs: list[CsvRow] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@cache
def catalogue_columns() -> tuple[str, ...]:
    """Return the columns of catalog/measured_runs.csv, in order."""
    with (paths.CATALOG_DIR / "measured_runs.csv").open(newline="", encoding="utf-8") as file:
        return tuple(next(csv.reader(file)))


def read_own_runs(home: Home) -> OwnRuns:
    """Return the user's own runs; a file or line that cannot be read becomes a problem, never an error."""
    if not home.own_runs.exists():
        return OwnRuns()
    try:
        rows = _table(home.own_runs).rows
    except CsvError as error:
        return OwnRuns(problems=[f"{error}; its runs are skipped"])
    problems = [f"{home.own_runs}, line {row.line}: skipped: {row.problem}" for row in rows if row.problem]
    return OwnRuns([row for row in rows if not row.problem], problems)


def add_own_run(home: Home, row: Mapping[str, str]) -> str:
    """Add a run to the user's file. Return a note if a damaged file was set aside, else ''.

    Raises UnwritableError, and CsvError for a file that is too large.
    """
    path, note = home.own_runs, ""
    # The replacement character that printable inserts would make the line look as if it were not UTF-8.
    values = {name: printable(value).replace("\N{REPLACEMENT CHARACTER}", "?") for name, value in row.items()}
    try:
        home.root.mkdir(parents=True, exist_ok=True)
        with FileLock(home.own_runs_lock, timeout=LOCK_SECONDS):
            try:
                if path.exists():
                    _with_keys(parse_csv(path.read_bytes(), str(path)), path)
            except CsvError as error:
                note = f"{error}; it was moved to {set_aside(home, path)}"
            append_row(path, values, [*catalogue_columns(), *MORE_COLUMNS])
    except OSError as error:
        raise UnwritableError(path, error) from error
    return note


def next_run_id(home: Home) -> str:
    """Return the name of the next run that is added by hand: own-1, own-2, and so on."""
    known = (re.fullmatch(r"own-(\d+)", run.values["run_id"]) for run in read_own_runs(home).runs)
    return f"own-{max((int(each[1]) for each in known if each), default=0) + 1}"


def remove_own_run(home: Home, run_id: str) -> int:
    """Remove the runs with this id from the user's file, without changing other lines. Return their number.

    Raises UnwritableError, and CsvError for a file that cannot be read.
    """
    path = home.own_runs
    if not path.exists():
        return 0
    try:
        with FileLock(home.own_runs_lock, timeout=LOCK_SECONDS):
            table = _table(path)
            kept = [row.text for row in table.rows if row.problem or row.values["run_id"] != run_id]
            if len(kept) < len(table.rows):
                with replacing(path) as temporary:
                    temporary.write_text(table.heading + "".join(kept), encoding="utf-8", newline="")
    except OSError as error:
        raise UnwritableError(path, error) from error
    return len(table.rows) - len(kept)


def _table(path: Path) -> CsvTable:
    """Return the file's table. Raises CsvError if the file cannot be read or lacks one of KEYS."""
    return _with_keys(read_csv(path), path)


def _with_keys(table: CsvTable, path: Path) -> CsvTable:
    if missing := sorted(KEYS - {*table.columns}):
        raise CsvError(f"{path} has no column {missing[0]}")
    return table
