"""One PostgreSQL server per process of tests, and a database of its own for each test."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.lake.postgres import server

_numbers = count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Skips where PostgreSQL is not installed."""
    with server() as address:
        yield address


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """The address of an empty database."""
    import psycopg2

    name = f"test_{next(_numbers)}"
    connection = psycopg2.connect(f"{postgres_server}/postgres")
    connection.autocommit = True
    connection.cursor().execute(f"CREATE DATABASE {name}")
    connection.close()
    return f"{postgres_server}/{name}"
