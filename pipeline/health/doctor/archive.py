"""The archive: bodies against the hashes of their index."""

import os
import random
import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from pipeline.capture.archive import Archive
from pipeline.capture.index import INDEX_NAME, PagesError, parse_index, read_body
from pipeline.contracts.progress import Step
from pipeline.contracts.request import Entry
from pipeline.health.doctor.finding import Examination, Row, began_at, captures_of

NEWEST_DAYS, OTHER_DAYS = 2, 3
"""Days of a source that a sample has: the newest, and others that are drawn anew each day."""


def bodies(x: Examination) -> Iterator[Row]:
    """Whether archived bodies have the hashes of their index; a damaged one is restored from a copy."""
    archive = Archive(x.home.archive)
    read = captures = all_days = 0
    problems = False
    for source in archive.sources():
        x.progress(Step(f"reading the archive of {source}"))
        days = archive.days(source)
        all_days += len(days)
        for folder in _captures(x, source, days):
            captures += 1
            try:
                entries = _entries(folder)
            except PagesError as error:
                problems = True
                remedy = "copy it back from a backup; without it the capture cannot be read again"
                yield "fail", str(error), x.short(folder), remedy
                continue
            for entry in entries:
                read += 1
                if problem := _damage(folder, entry):
                    problems = True
                    yield _about_damage(x, folder, entry, problem)
    if not problems:
        extent = "every body" if x.every else f"a sample ({all_days} days in all; --all reads every body)"
        yield "ok", f"{read} bodies of {captures} captures have the hashes of their index: {extent}", "", ""


def _captures(x: Examination, source: str, days: list[date]) -> list[Path]:
    folders = (folder for day in _days_to_check(x, days) for folder in captures_of(x, source, day))
    return [folder for folder in folders if began_at(folder)]


def _days_to_check(x: Examination, days: list[date]) -> list[date]:
    if x.every:
        return days
    older = days[:-NEWEST_DAYS]
    drawn = random.Random(x.today.toordinal()).sample(older, min(OTHER_DAYS, len(older)))  # noqa: S311
    return [*sorted(drawn), *days[-NEWEST_DAYS:]]


def _entries(folder: Path) -> list[Entry]:
    """The entries of a finished capture that have a body. Raises PagesError."""
    if not (folder / INDEX_NAME).exists():
        return []  # interrupted: nothing relies on it
    return [entry for entry in parse_index(folder / INDEX_NAME)[1] if entry.file]


def _damage(folder: Path, entry: Entry) -> str | None:
    try:
        read_body(folder, entry)
    except PagesError as error:
        return str(error)
    return None


def _about_damage(x: Examination, folder: Path, entry: Entry, problem: str) -> Row:
    place = x.short(folder / (entry.file or ""))
    intact = _intact_copy(folder, entry)
    if intact is None:
        return (
            "fail",
            problem,
            place,
            "copy it back from a backup; the archive has no intact copy of it",
        )
    if not x.fix:
        return "fail", problem, place, "`gpufare doctor --fix` restores it from an intact copy in the archive"
    _restore(folder / (entry.file or ""), intact)
    return "fixed", f"restored from {x.short(intact)}, which has the same hash", place, ""


def _intact_copy(folder: Path, damaged: Entry) -> Path | None:
    """Another file of the source's archive with the body that the index names."""
    for other in sorted(folder.parents[1].glob(f"*/*/{INDEX_NAME}"), reverse=True):
        try:
            entries = [entry for entry in _entries(other.parent) if entry.sha256 == damaged.sha256]
        except PagesError:
            continue
        for entry in entries:
            path = other.parent / (entry.file or "")
            if damaged.sha256 and path.suffix == ".gz" and _damage(other.parent, entry) is None:
                return path
    return None


def _restore(path: Path, intact: Path) -> None:
    """Give the damaged file's name to the intact bytes: a link where the disk has links, else a copy."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.writing")
    try:
        os.link(intact, temporary)
    except OSError:
        shutil.copy2(intact, temporary)
    temporary.replace(path)
