from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest

from pipeline.warehouse.database import in_memory

Estimate = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def model() -> Iterator[duckdb.DuckDBPyConnection]:
    """The real catalogue and the real macros, in memory."""
    connection = in_memory("memory_of", "speed_of", "plans_for")
    yield connection
    connection.close()


def _one(connection: duckdb.DuckDBPyConnection, macro: str, settings: dict[str, Any]) -> dict[str, Any]:
    columns = ", ".join(f"${name} AS {name}" for name in settings)
    cursor = connection.execute(f"WITH my_run AS (SELECT {columns}) FROM {macro}('my_run')", settings)
    names = [column[0] for column in cursor.description or []]
    rows = cursor.fetchall()
    assert len(rows) == 1, f"{macro} answers {len(rows)} rows for {settings}"
    return dict(zip(names, rows[0], strict=True))


@pytest.fixture(scope="session")
def memory(model: duckdb.DuckDBPyConnection) -> Estimate:
    return lambda **settings: _one(model, "memory_of", settings)


@pytest.fixture(scope="session")
def speed(model: duckdb.DuckDBPyConnection) -> Estimate:
    return lambda **settings: _one(model, "speed_of", settings)
