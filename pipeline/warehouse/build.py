"""Builds the database of a day: tables, catalogue and macros, then the record, the marts and the checks.

The file is built from nothing, under a temporary name, so any published file can be deleted at any time.
"""

from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

import duckdb

from pipeline.contracts.paths import Home
from pipeline.contracts.progress import Progress, no_progress
from pipeline.warehouse.checks import CheckResult, run_checks
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import prepare
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.load import load_incidents, load_record
from pipeline.warehouse.marts import fill
from pipeline.warehouse.rankings import load_earlier_rankings, save_ranking


@dataclass(slots=True)
class Report:
    """The result of a build: number of rows by table, and what each check found."""

    rows: dict[str, int] = field(default_factory=dict)
    checks: list[CheckResult] = field(default_factory=list)

    @property
    def warnings(self) -> list[str]:
        """What the checks found that does not stop the publishing."""
        return [result.message for result in self.checks if not result.passed]


def build(file: Path, home: Home, day: date, now: datetime, progress: Progress = no_progress) -> Report:
    """Build the database of ``day`` into ``file`` (which must not exist), as of the moment ``now`` (UTC).

    Raises BuildError when a statement fails and CheckFailedError when a check does.
    """
    with connect(file) as connection:
        prepare(connection)
        load_record(connection, home, day)
        load_earlier_rankings(connection, home, day)
        load_incidents(connection, home)
        connection.execute("SET VARIABLE as_of_day = ?::DATE", [day])
        connection.execute("SET VARIABLE as_of_time = ?::TIMESTAMPTZ", [now])
        for table in Lineage(connection).marts():
            progress(f"building {table}")
            fill(connection, table, home.cache)
        save_ranking(connection, home, day)
        load_incidents(connection, home)
        report = Report(_row_counts(connection), run_checks(connection))
        connection.execute("USE memory")
        connection.execute("DETACH gpufare")
    return report


def _row_counts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    names = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = 'gpufare' ORDER BY 1"
    ).fetchall()
    counts = {}
    for (name,) in names:
        row = connection.execute(f'SELECT count(*) FROM main."{name}"').fetchone()  # noqa: S608
        counts[name] = row[0] if row else 0
    return counts
