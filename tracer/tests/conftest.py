"""Shared by all tests: a data home of their own, and the real catalogue and macros in memory."""

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from pipeline.home.paths import HOME_VARIABLE
from pipeline.warehouse.database import in_memory

# Parallel workers inherit the width of the terminal that started them, and some output depends on it.
os.environ.pop("COLUMNS", None)


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the data of whoever runs it."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))


@pytest.fixture(scope="session")
def model() -> Iterator[duckdb.DuckDBPyConnection]:
    """The real catalogue and the real macros, in memory."""
    connection = in_memory("memory_of", "speed_of")
    yield connection
    connection.close()
