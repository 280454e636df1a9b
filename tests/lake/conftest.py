"""One PostgreSQL server per process of tests, and a database of its own for each test."""

from collections.abc import Iterator
from itertools import count

import psycopg2
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
    return new_database(postgres_server)


def new_database(server: str, *, of: str | None = None) -> str:
    """The address of a new database, a copy of another if one is given."""
    name = f"test_{next(_numbers)}"
    copied = f" TEMPLATE {of.rpartition('/')[2]}" if of else ""
    connection = psycopg2.connect(f"{server}/postgres")
    connection.autocommit = True
    connection.cursor().execute(f"CREATE DATABASE {name}{copied}")
    connection.close()
    return f"{server}/{name}"
