"""The record, and what is built from it."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import polars as pl

from pipeline.contracts.errors import GpufareError
from pipeline.contracts.progress import Step
from pipeline.health.doctor.finding import Examination, Row
from pipeline.health.doctor.oddments import incident_files
from pipeline.record.compaction import mergeable
from pipeline.record.record_files import SOURCE_FOLDERS, record_files
from pipeline.record.records import Records
from pipeline.refresh.housekeeping import merge_months
from pipeline.warehouse.plan_cache import PREFIX, damage_of
from pipeline.warehouse.query import ask, reader

PUBLISHED_WARNING = timedelta(days=2)


def files(x: Examination) -> Iterator[Row]:
    """Whether every file of the record can be read."""
    records = Records(x.home)
    count = 0
    problems = False
    for folder in (*SOURCE_FOLDERS, "exchange_rates"):
        x.progress(Step(f"reading {folder}"))
        count += len({file.path for file in record_files(x.home, folder)})
        for damage in records.damages(folder):
            problems = True
            remedy = "the next `gpufare refresh` moves it aside and reads that day again from the archive"
            if damage.file.day > x.today:
                remedy = "it is of a day after today and is not read: move it away"
            yield "fail", damage.reason, x.short(damage.file.path), remedy
    rankings = [file.path for file in record_files(x.home, "rankings")]
    for path in [*rankings, *incident_files(x.home)]:
        count += 1
        if problem := _unreadable(path):
            problems = True
            yield "fail", problem, x.short(path), "the next `gpufare refresh` moves it aside"
    if not problems:
        yield "ok", f"{count} files can be read", "", ""


def months(x: Examination) -> Iterator[Row]:
    """Files of single days in months that are over: merged by every refresh, and here."""
    waiting = mergeable(x.home, x.today)
    if not waiting:
        yield "ok", "the months that are over are one file each", "", ""
    elif x.fix:
        yield (
            "fixed",
            merge_months(x.home, x.now).line() or "nothing could be merged: see the incidents",
            "",
            "",
        )
    else:
        what = f"{sum(map(len, waiting.values()))} files of single days are of months that are over"
        yield "ok", f"{what}: the next `gpufare refresh` or `gpufare doctor --fix` merges them", "", ""


def cache(x: Examination) -> Iterator[Row]:
    """Results that are computed again when they are missing: useless files are deleted."""
    kept = sorted(path for path in x.home.cache.glob("*.*") if path.is_file())
    prepared = [path for path in kept if path.match(f"{PREFIX}-*.duckdb")]
    newest = max(prepared, key=lambda path: path.stat().st_mtime, default=None)
    useless = {path: "outdated" for path in kept if path != newest}
    if newest is not None and (problem := damage_of(newest)):
        useless[newest] = problem
    for path, problem in useless.items():
        if x.fix:
            path.unlink(missing_ok=True)
            yield "fixed", f"deleted ({problem}); it is computed again when it is needed", x.short(path), ""
        else:
            yield "warn", problem, x.short(path), "`gpufare doctor --fix` deletes it; it is computed again"
    if not useless:
        yield "ok", f"{len(kept)} files can be read", "", ""


def _unreadable(path: Path) -> str | None:
    """Why a file cannot be read as what its name says; None when it can."""
    try:
        if path.suffix == ".parquet":
            pl.read_parquet(path, glob=False)
        else:
            json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None  # replaced meanwhile
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        return (str(error).splitlines() or [type(error).__name__])[0][:200]
    return None


def published(x: Examination) -> Iterator[Row]:
    """Whether the published file opens, and of when it is."""
    if not x.home.published.exists():
        yield "fail", "nothing is published yet", str(x.home.published), "run `gpufare refresh`"
        return
    try:
        with reader(x.home.published) as connection:
            day, moment, sources = ask(
                connection, "SELECT as_of_day, as_of_time, sources_ranked FROM main.publication"
            ).rows[0]
            ask(connection, "SELECT count(*) FROM main.cheapest_gpu_per_workload")
    except (GpufareError, IndexError) as error:
        yield "fail", str(error), "", "`gpufare refresh` publishes a new file"
        return
    what = f"opens; as of {day}, published {moment:%Y-%m-%d %H:%M} UTC, {sources} sources ranked"
    if x.today - day >= PUBLISHED_WARNING:
        yield (
            "warn",
            f"{what}: {(x.today - day).days} days old",
            "",
            "run `gpufare refresh`, and find out why it has not run",
        )
    else:
        yield "ok", what, "", ""
