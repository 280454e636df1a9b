"""Writes an export's folder, which is completed beside the target and then swapped into place."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pipeline.contracts.errors import GpufareError
from pipeline.home.disk import naming
from pipeline.parsing.printable import printable

PACKAGE = "gpufare"
DESCRIPTOR = "datapackage.json"


class ExportError(GpufareError):
    """The export cannot be written; the message says why and what to do."""


@contextmanager
def replaced(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside the target; the folder replaces the target when the block ends.

    If the block fails, the earlier export stays. Raises ExportError if the target contains files that no
    export wrote, or if another export is writing to it.
    """
    target = target.resolve()
    if Path.cwd().is_relative_to(target):
        raise ExportError(
            f"{printable(str(target))} is replaced as a whole, and this shell is in it: give another folder, "
            "or go elsewhere first"
        )
    with naming(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = _locked(target)
    try:
        unfinished, former = (_beside(target, name) for name in ("unfinished", "former"))
        with naming(target):
            _finish_earlier(target, unfinished, former)
            check_ours(target)
            unfinished.mkdir()
        try:
            yield unfinished
            _swap(unfinished, target, former)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)  # while it is held: the next process uses a new file
        lock.release()


def _beside(target: Path, name: str) -> Path:
    return target.with_name(f".{target.name}.{name}")


def _locked(target: Path) -> FileLock:
    """Acquire the target's lock, which is freed if the process dies. Raises ExportError if it is held."""
    lock = FileLock(_beside(target, "lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise ExportError(
            f"another export is writing to {printable(str(target))}: wait until it is done, or give another "
            "folder"
        ) from None
    return lock


def _swap(new: Path, target: Path, former: Path) -> None:
    """Rename the target to ``former``, and the new export to the target. After an OSError, the former export
    is restored."""
    if not target.exists():
        new.rename(target)
        return
    check_ours(target)  # minutes may have passed since the first check
    try:
        target.rename(former)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExportError(
            f"{printable(str(target))} cannot be replaced as a whole ({reason}): give a folder inside it"
        ) from error
    try:
        new.rename(target)
    except OSError:
        former.rename(target)
        raise
    shutil.rmtree(former, ignore_errors=True)


def _finish_earlier(target: Path, unfinished: Path, former: Path) -> None:
    """Remove leftovers of an interrupted export while holding the lock. If that export was interrupted
    between the two renames, the former export is renamed back."""
    if target.exists():
        shutil.rmtree(former, ignore_errors=True)
    elif former.exists():
        former.rename(target)
    shutil.rmtree(unfinished, ignore_errors=True)


def check_ours(target: Path) -> None:
    """Raise ExportError unless the target is missing, is empty, or contains only an export's files."""
    if not target.exists():
        return
    found = {str(path.relative_to(target)) for path in target.rglob("*") if _is_leaf(path)}
    if others := sorted(found - _exported(target / DESCRIPTOR)):
        named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        raise ExportError(
            f"{printable(f'{target} has {named} in it')}, which no export wrote: give a new folder, or an "
            "empty one"
        )


def _is_leaf(path: Path) -> bool:
    """True if a path is a file, a link or an empty folder."""
    return path.is_symlink() or not path.is_dir() or not any(path.iterdir())


def _exported(descriptor: Path) -> set[str]:
    """Return the paths that an export wrote, according to its descriptor."""
    try:
        package = json.loads(descriptor.read_text(encoding="utf-8"))
        if package["name"] != PACKAGE:
            return set()
        schemas = {each["schema"] for each in package["resources"] if isinstance(each.get("schema"), str)}
        files = (str(resource["path"]) for resource in package["resources"])
        return {DESCRIPTOR, *schemas, *files}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()
