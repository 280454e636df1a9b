"""The catalogue's database: the schema of a lake, and locks of its writers."""

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pipeline.home.postgres import asked, connected
from pipeline.lake.settings import LAKE_VARIABLE

_CLASS = int.from_bytes(b"lake")
"""The first half of the numbers of our advisory locks."""

_WHAT = "the lake cannot be used"


def make_schema(address: str) -> None:
    """Make the schema of the catalogue's tables. Raises PostgresError."""
    connection = connected(address, LAKE_VARIABLE, _WHAT)
    try:
        asked(connection, "CREATE SCHEMA IF NOT EXISTS gpufare_lake", what=_WHAT)
    finally:
        connection.close()


def make_sure_of(address: str) -> None:
    """Raises PostgresError when the database cannot be used."""
    connected(address, LAKE_VARIABLE, _WHAT).close()


@contextmanager
def only_writer_of(address: str, sources: Sequence[str]) -> Iterator[None]:
    """Wait until nobody else writes these sources, and keep it so. Raises PostgresError."""
    connection = connected(address, LAKE_VARIABLE, _WHAT)
    try:
        for number in sorted({zlib.crc32(source.encode()) - 2**31 for source in sources}):
            asked(connection, "SELECT pg_advisory_lock(%s, %s)", _CLASS, number, what=_WHAT)
        yield
    finally:
        connection.close()
