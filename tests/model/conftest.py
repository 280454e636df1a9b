from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from pipeline.model.estimate import Estimator
from pipeline.warehouse.database import in_memory

Row = dict[str, Any]
CHANGED_CONSTANTS = {"fit_transient": 0.3, "foreach_copy": 1.25, "fp8_gain": 1.6}
"""Constants of 0 or 1, which would hide whether the formulas use them, and one that reaches a limit."""


@pytest.fixture(scope="session")
def model() -> Iterator[duckdb.DuckDBPyConnection]:
    """The real catalogue and macros, in memory, and a calibration 'worked' without constants of 0 or 1."""
    connection = in_memory("memory_of", "speed_of", "plans_for", "grid_plans", "grid_jobs", "job_plans")
    connection.execute(
        "INSERT INTO main.model_constants SELECT 'worked', name, value FROM main.model_constants"
        " WHERE calibration = 'all'"
    )
    connection.executemany(
        "UPDATE main.model_constants SET value = ? WHERE calibration = 'worked' AND name = ?",
        [(value, name) for name, value in CHANGED_CONSTANTS.items()],
    )
    connection.execute(
        "INSERT INTO main.model_bands BY NAME SELECT * REPLACE ('worked' AS calibration)"
        " FROM main.model_bands WHERE calibration = 'all'"
    )
    yield connection
    connection.close()


@pytest.fixture(scope="session")
def newest_software(model: duckdb.DuckDBPyConnection) -> str:
    """The month of the newest software that was measured, as assumptions give it."""
    ((month,),) = model.execute("SELECT max(software_date) FROM main.measured_runs").fetchall()
    return f"{month:%Y-%m}"


@pytest.fixture
def scratch(model: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The model's database; what a test changes is undone."""
    cursor = model.cursor()
    cursor.execute("BEGIN")
    yield cursor
    cursor.execute("ROLLBACK")
    cursor.close()


def cases(file: str) -> dict[str, list[Any]]:
    """Return the lists of cases of a file beside the tests."""
    return dict(yaml.safe_load(Path(__file__).with_name(file).read_text(encoding="utf-8")))


def ask(connection: duckdb.DuckDBPyConnection, query: str, runs: Sequence[Row] = ()) -> list[Row]:
    """Return the rows of a query on a table ``runs`` of these settings, numbered in the column ``job``.

    Planning a query on the model takes half a second, however few runs it has: ask about all at once.
    """
    if runs:
        names = dict.fromkeys(name for run in runs for name in run)
        rows = [{"job": number} | {name: run.get(name) for name in names} for number, run in enumerate(runs)]
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE runs AS SELECT unnest($rows, recursive := TRUE)", {"rows": rows}
        )
    cursor = connection.execute(query)
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def answers(connection: duckdb.DuckDBPyConnection, macro: str, runs: Sequence[Row]) -> list[Row]:
    """Return the answer of a macro, such as memory_of, for each run, in order."""
    found = ask(connection, f"FROM {macro}('runs') ORDER BY job::INTEGER", runs)
    assert [int(row["job"]) for row in found] == list(range(len(runs)))
    return found


@pytest.fixture(scope="session")
def estimator() -> Iterator[Estimator]:
    """One estimator for all tests: its answers do not depend on what it was asked before."""
    made = Estimator()
    yield made
    made.close()
