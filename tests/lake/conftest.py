"""One PostgreSQL server per process of tests, and a database of its own for each test."""

from collections.abc import Iterator

import pytest

from tests.lake.postgres import new_database, server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Skips where PostgreSQL is not installed."""
    with server() as address:
        yield address


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """The address of an empty database."""
    return new_database(postgres_server)
