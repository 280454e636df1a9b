"""A file of the record that cannot be read; ``mending`` decides what happens next."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from polars.exceptions import PanicException

from pipeline.contracts.errors import GpufareError
from pipeline.home.disk import Stamp, is_exhaustion, stamp_of

MAX_REASON_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Damage:
    """A file of the record that cannot be read, and why.

    ``table`` is offers, rejects, rankings or journal; ``source`` is empty if the file is not for one source;
    ``stamp`` is the file's stamp when reading it failed. If ``day`` is set, only that day is
    missing, and the file itself is whole or gone.
    """

    path: Path
    table: str
    source: str
    reason: str
    stamp: Stamp | None = None
    day: date | None = None


class RecordError(GpufareError):
    """A file of the record cannot be read; the message gives the path, the reason and the remedy."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(
            f"{damage.path} is damaged ({damage.reason}); `gpufare refresh` sets it aside and reads its days "
            "again from the archive"
        )
        self.damage = damage


def reason_of(error: BaseException) -> str:
    """Return the first line of an error's message, or the error's type if it has no message."""
    lines = str(error).splitlines()
    return lines[0][:MAX_REASON_CHARACTERS] if lines else type(error).__name__


def damage_by(error: BaseException, path: Path, table: str, source: str) -> Damage:
    """Return the damage to a file whose reader raised an error."""
    return Damage(path, table, source, reason_of(error), stamp_of(path))


@contextmanager
def readable(path: Path, table: str, source: str) -> Iterator[None]:
    """Raise RecordError for any error that a damaged file makes its reader raise.

    Disk errors pass through, and so do errors caused by a lack of memory, disk space or file handles.
    """
    try:
        yield
    except RecordError:
        raise
    except (Exception, PanicException) as error:
        is_disk_error = isinstance(error, OSError) and not isinstance(error, IsADirectoryError)
        if is_disk_error or is_exhaustion(error):
            raise
        raise RecordError(damage_by(error, path, table, source)) from error
