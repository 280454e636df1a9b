"""Checks of the archive, the record, and the files built from them."""

import random
from datetime import date, timedelta

from pipeline.capture.archive import Archive
from pipeline.capture.index import PagesError, read_body
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.progress import Step
from pipeline.health.doctor.finding import Examination, Finding
from pipeline.record.mending import damages
from pipeline.warehouse.query import ask, reader

NEWEST_DAYS, OTHER_DAYS = 2, 3
"""How many of a source's days a sample contains: the newest days, and others drawn afresh each day."""

PUBLISHED_WARNING = timedelta(days=2)

_FROM_A_BACKUP = "copy it back from a backup"


def bodies(x: Examination) -> list[Finding]:
    """Check archived bodies against the hashes in their index."""
    archive = Archive(x.home.archive)
    found: list[Finding] = []
    read = captures = all_days = 0
    for source in archive.sources():
        x.progress(Step(f"reading the archive of {source}"))
        days = archive.days(source)
        all_days += len(days)
        for capture in (each for day in _days_to_check(x, days) for each in archive.captures(source, day)):
            if capture.status is None:  # nothing relies on an interrupted capture
                continue
            captures += 1
            folder = archive.folder(capture)
            if capture.damaged:
                remedy = f"{_FROM_A_BACKUP}; without it the capture cannot be read again"
                found.append(Finding("fail", capture.error or "", x.short(folder), remedy))
            for entry in capture.entries:
                if entry.file is None:
                    continue
                read += 1
                try:
                    read_body(folder, entry)
                except PagesError as error:
                    found.append(Finding("fail", str(error), x.short(folder / entry.file), _FROM_A_BACKUP))
    extent = "every body" if x.every else f"a sample ({all_days} days in all; --all reads every body)"
    what = f"{read} bodies of {captures} captures have the hashes of their index: {extent}"
    return found or [Finding("ok", what)]


def _days_to_check(x: Examination, days: list[date]) -> list[date]:
    if x.every:
        return days
    older = days[:-NEWEST_DAYS]
    drawn = random.Random(x.today.toordinal()).sample(older, min(OTHER_DAYS, len(older)))  # noqa: S311
    return [*sorted(drawn), *days[-NEWEST_DAYS:]]


def files(x: Examination) -> list[Finding]:
    """Check that every file of the record can be read."""
    remedy = "the next `gpufare refresh` sets it aside and reads its days again from the archive"
    found = [Finding("fail", each.reason, x.short(each.path), remedy) for each in damages(x.home)]
    return found or [Finding("ok", "every file can be read")]


def published(x: Examination) -> list[Finding]:
    """Check that the published file opens and is recent enough."""
    if not x.home.published.exists():
        return [Finding("fail", "nothing is published yet", str(x.home.published), "run `gpufare refresh`")]
    try:
        with reader(x.home.published) as connection:
            day, moment, sources = ask(
                connection, "SELECT as_of_day, as_of_time, sources_ranked FROM main.publication"
            ).rows[0]
            ask(connection, "SELECT count(*) FROM main.cheapest_gpu_per_workload")
    except (GpufareError, IndexError) as error:
        return [Finding("fail", str(error), remedy="`gpufare refresh` publishes a new file")]
    what = f"opens; as of {day}, published {moment:%Y-%m-%d %H:%M} UTC, {sources} sources ranked"
    if x.today - day < PUBLISHED_WARNING:
        return [Finding("ok", what)]
    remedy = "run `gpufare refresh`, and find out why it has not run"
    return [Finding("warn", f"{what}: {(x.today - day).days} days old", remedy=remedy)]
