"""The lock that whoever builds and publishes holds: one writer at a time."""

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock

from pipeline.home.paths import Home


@contextmanager
def publishing_lock(home: Home) -> Iterator[None]:
    """Wait for the home's lock and hold it. It lasts as long as its process."""
    with FileLock(home.lock):
        yield
