"""Disk errors as sentences with the path, the reason and the remedy; files written whole or not at all."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import HOME_VARIABLE, Home

_FULL = (errno.ENOSPC, errno.EDQUOT)
_EXHAUSTED = (*_FULL, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
_IN_THE_WAY = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


class Stamp(NamedTuple):
    """The size and modification time of a file; while both are unchanged, the file need not be opened
    again."""

    bytes: int
    mtime_ns: int


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of a file; None if the file is gone. Raises OSError."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Stamp(status.st_size, status.st_mtime_ns)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the path to any OSError that is raised within the block without a path."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def flush(path: Path) -> None:
    """Flush a file, or a folder's list of entries, to disk. Raises an OSError that names the path."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def disk_error_text(error: OSError, home: Home) -> str:
    """Return an OSError as one line: the path, the reason and the remedy. ``home`` is the home that gpufare
    writes to."""
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    reason = error.strerror or str(error)
    remedy = _remedy(error.errno, path or home.root, home)
    place = path or f"standard output, or a file of {home.root}"
    return f"{place}: {reason}{f'; {remedy}' if remedy else ''}"


class UnwritableError(GpufareError):
    """A file of the home could not be written; the message gives the path, the reason and the remedy."""

    def __init__(self, path: Path, error: OSError) -> None:
        named = OSError(error.errno, error.strerror or str(error), str(path))
        super().__init__(disk_error_text(named, Home(path.parent)))
        self.path = path


def disk_error(error: BaseException) -> OSError | None:
    """Return the disk error behind an error; None if the error has another cause.

    If the disk is full, Polars and DuckDB raise their own errors, which quote the operating system's message.
    """
    if isinstance(error, OSError):
        return error
    full = next((code for code in _FULL if os.strerror(code) in str(error)), None)
    return None if full is None else OSError(full, os.strerror(full))


def is_exhaustion(error: BaseException) -> bool:
    """True if memory, disk space or file handles ran out: the file itself may then be sound."""
    named = type(error).__name__ in ("MemoryError", "OutOfMemoryException")
    return named or any(os.strerror(code) in str(error) for code in _EXHAUSTED)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file, and rename the file to ``path`` once its content is on the disk.

    Raises UnwritableError for disk errors.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()
        yield temporary
        flush(temporary)
        temporary.replace(path)
    except Exception as error:
        if (cause := disk_error(error)) is None:
            raise
        raise UnwritableError(path, cause) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def existing(path: Path) -> Path:
    """Return the path if it exists, or else the nearest existing folder above it."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _remedy(code: int | None, path: Path, home: Home) -> str | None:
    elsewhere = (
        f"set {HOME_VARIABLE} to a folder"
        if path.is_relative_to(home.root) or home.root.is_relative_to(path)
        else "choose a folder"
    )
    if code in _FULL:
        return f"free some space or {elsewhere} on another disk, then run the command again"
    if code in _NOT_ALLOWED:
        return f"make it writable for this user or {elsewhere} that is"
    if code in _IN_THE_WAY:
        return f"a file is where a folder belongs, or a folder where a file does: move {existing(path)} away"
    return None


def set_aside(home: Home, path: Path, *, copies: bool = False) -> Path:
    """Move or copy a damaged file of the home into ``damaged``, without replacing an earlier file there;
    return the new path.

    Raises OSError if the file cannot be moved or copied, and FileNotFoundError if the file is gone.
    """
    place = home.damaged / path.relative_to(home.root)
    number = 1
    while place.exists() or place.is_symlink():
        number += 1
        place = place.with_name(f"{path.name}.{number}")
    place.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(path, place)) if copies else path.rename(place)


CHOICES_LOCK_SECONDS = 30


@contextmanager
def choices_lock(home: Home) -> Iterator[None]:
    """Hold the lock under which the user's choices and reviews are changed, and make the home's folder."""
    from filelock import FileLock  # a question, which imports this module, takes no lock

    home.root.mkdir(parents=True, exist_ok=True)
    with FileLock(home.permissions_lock, timeout=CHOICES_LOCK_SECONDS):
        yield
