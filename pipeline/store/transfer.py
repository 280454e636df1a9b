"""What a push and a pull have in common: one at a time in a home, requests at once, what they report."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from filelock import FileLock, Timeout

from pipeline.home.paths import Home
from pipeline.store.address import StoreError
from pipeline.store.left import Left
from pipeline.store.publication import Publication

WORKERS = 8
SAVED_EVERY = 10
"""One that is killed sends or fetches at most so many objects again, besides those on their way."""

LOCK_SECONDS = 5.0


@contextmanager
def only_transfer(home: Home) -> Iterator[None]:
    """Keep other pushes and pulls of the home out. Raises StoreError when one is under way."""
    home.store.mkdir(parents=True, exist_ok=True)
    try:
        held = FileLock(home.store / "push.lock").acquire(timeout=LOCK_SECONDS)
    except Timeout as error:
        raise StoreError(
            f"another push or pull of {home.root} is under way: try again when it is over"
        ) from error
    with held:
        yield


@dataclass(slots=True)
class TransferReport:
    """What went between a home and its store. ``conflicts`` and ``problems`` are what did not."""

    address: str
    number: int = 0
    captures: int = 0
    files: int = 0
    requests: int = 0
    conflicts: list[Left] = field(default_factory=list)
    problems: list[Left] = field(default_factory=list)
    publication: Publication | None = None
    publication_note: str = ""

    @property
    def complete(self) -> bool:
        """Whether all that was to go went."""
        return not self.conflicts and not self.problems

    @property
    def note(self) -> str:
        """What there is to say of the published file, as the end of a line; '' for nothing."""
        return f"; {self.publication_note}" if self.publication_note else ""
