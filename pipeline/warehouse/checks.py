"""Runs sql/checks: queries that find rows that must not, or should not, be published."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import duckdb

from pipeline.parsing.printable import printable
from pipeline.warehouse.sql_files import BuildError, scripts

SHOWN_ROWS = 3

Level = Literal["fail", "error", "warn"]
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True, slots=True)
class Check:
    """A file in sql/checks: its name, level (rows of a fail check stop the publication, those of an error
    check do not, and those of a warn check are only a warning), what its rows mean, and its query."""

    name: str
    level: Level
    sentence: str
    query: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The first rows that a check found, with their columns; no rows if it passed."""

    check: Check
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]

    @property
    def passed(self) -> bool:
        """True if the check found no rows."""
        return not self.rows

    @property
    def message(self) -> str:
        """The check's finding in one line."""
        first = printable(str(self.rows[0])) if self.rows else "nothing"
        return f"{self.check.sentence} (sql/checks/{self.check.name}.sql; first: {first})"


class CheckFailedError(BuildError):
    """Checks marked "fail" found rows. ``results`` contains all results, including those of passed checks."""

    def __init__(self, results: Sequence[CheckResult]) -> None:
        failed = [result.message for result in results if not result.passed and result.check.level == "fail"]
        super().__init__("; ".join(failed))
        self.results = tuple(results)


def checks() -> list[Check]:
    """Return the checks, sorted by name. Raises BuildError for a file without a level in its first line."""
    return [_check(path) for path in scripts("checks")]


def _check(path: Path) -> Check:
    query = path.read_text(encoding="utf-8")
    header = re.match(rf"-- ({'|'.join(LEVELS)}): (.+)", query)
    if header is None:
        levels = " or ".join(f"'-- {level}: ...'" for level in LEVELS)
        raise BuildError(f"sql/checks/{path.name}: the first line must be {levels}")
    return Check(path.stem, LEVELS[LEVELS.index(header[1])], header[2], query)


def run_checks(connection: duckdb.DuckDBPyConnection) -> list[CheckResult]:
    """Run every check. Afterwards, raises CheckFailedError if a check marked "fail" found rows."""
    results = [_run(connection, check) for check in checks()]
    if any(not result.passed and result.check.level == "fail" for result in results):
        raise CheckFailedError(results)
    return results


def _run(connection: duckdb.DuckDBPyConnection, check: Check) -> CheckResult:
    try:
        answer = connection.execute(check.query)
        columns = tuple(column[0] for column in answer.description or ())
        return CheckResult(check, columns, answer.fetchmany(SHOWN_ROWS))
    except duckdb.Error as error:
        raise BuildError(f"sql/checks/{check.name}.sql: {error}") from error
