"""The archive: bodies against the hashes of their index."""

import random
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from pipeline.capture.archive import Archive
from pipeline.capture.index import INDEX_NAME, PagesError, parse_index, read_body
from pipeline.contracts.progress import Step
from pipeline.health.doctor.finding import Examination, Row, began_at, captures_of

NEWEST_DAYS, OTHER_DAYS = 2, 3
"""Days of a source in a sample: the newest, and others that are drawn anew each day."""

_FROM_A_BACKUP = "copy it back from a backup"


def bodies(x: Examination) -> Iterator[Row]:
    """Whether archived bodies have the hashes of their index."""
    archive = Archive(x.home.archive)
    read = captures = all_days = 0
    damaged = False
    for source in archive.sources():
        x.progress(Step(f"reading the archive of {source}"))
        days = archive.days(source)
        all_days += len(days)
        for folder in _finished_captures(x, source, days):
            captures += 1
            try:
                entries = [entry for entry in parse_index(folder / INDEX_NAME)[1] if entry.file]
            except PagesError as error:
                damaged = True
                remedy = f"{_FROM_A_BACKUP}; without it the capture cannot be read again"
                yield "fail", str(error), x.short(folder), remedy
                continue
            for entry in entries:
                read += 1
                try:
                    read_body(folder, entry)
                except PagesError as error:
                    damaged = True
                    yield "fail", str(error), x.short(folder / (entry.file or "")), _FROM_A_BACKUP
    if not damaged:
        extent = "every body" if x.every else f"a sample ({all_days} days in all; --all reads every body)"
        yield "ok", f"{read} bodies of {captures} captures have the hashes of their index: {extent}", "", ""


def _finished_captures(x: Examination, source: str, days: list[date]) -> list[Path]:
    """The folders of captures to check; nothing relies on an interrupted one, which has no index."""
    folders = (folder for day in _days_to_check(x, days) for folder in captures_of(x, source, day))
    return [folder for folder in folders if began_at(folder) and (folder / INDEX_NAME).exists()]


def _days_to_check(x: Examination, days: list[date]) -> list[date]:
    if x.every:
        return days
    older = days[:-NEWEST_DAYS]
    drawn = random.Random(x.today.toordinal()).sample(older, min(OTHER_DAYS, len(older)))  # noqa: S311
    return [*sorted(drawn), *days[-NEWEST_DAYS:]]
