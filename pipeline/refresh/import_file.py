"""A CSV file of dated prices, archived day by day and read into the record as the source ``imported``.

A day's capture contains the answers from every file with prices for that day, so that no file replaces
another; a file that was imported before adds no answer, and its days are read again.
"""

import shutil
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock

from pipeline.capture.archive import Archive
from pipeline.capture.index import sha256_of
from pipeline.catalog.source_config import source_config
from pipeline.contracts.capture import Capture
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.outcome import Outcome, OutcomeCode
from pipeline.contracts.progress import Progress, Step, no_progress
from pipeline.contracts.request import Entry
from pipeline.home.csv_rows import CsvRow, CsvTable, read_csv
from pipeline.home.paths import Home
from pipeline.parsing.prices import RowError
from pipeline.record.records import Records
from pipeline.refresh.ingest import record_day
from pipeline.sources.imported import LINE, columns_of, day_of

SOURCE = "imported"

MAX_ROWS = 500_000


@dataclass(slots=True)
class ImportReport:
    """The outcome of each day in a file, and how many of these days have a new answer. ``skipped`` lists the
    skipped lines, each with the reason; ``rejects`` gives the details of the days' rejects, for all files."""

    outcomes: list[Outcome] = field(default_factory=list)
    skipped: list[tuple[int, str]] = field(default_factory=list)
    rejects: list[str] = field(default_factory=list)
    new_days: int = 0

    @property
    def refused(self) -> list[Outcome]:
        """The outcomes of days whose prices were not accepted."""
        return [outcome for outcome in self.outcomes if not outcome.accepted]


def import_file(path: Path, home: Home, today: date, progress: Progress = no_progress) -> ImportReport:
    """Import the prices in a file; rows for ``today`` (UTC) and later days are skipped.

    Raises GpufareError if the file does not contain dated prices, or if an archived answer of the same day is
    damaged, and OSError if the archive cannot be written.
    """
    table = read_csv(path, lower_case=True)
    try:
        columns = columns_of(table.columns)
    except ValueError as error:
        raise GpufareError(f"{path}: {error}") from error
    if len(table.rows) > MAX_ROWS:
        raise GpufareError(f"{path} has more than {MAX_ROWS} rows: divide it")
    report = ImportReport()
    days = _by_day(table, columns["day"], today, report)
    config, archive, records = source_config(SOURCE), Archive(home.archive), Records(home)
    with FileLock(home.lock):
        for day, rows in sorted(days.items()):
            progress(Step(f"reading {day}"))
            capture, is_new = _archived(archive, day, path.name, _body(table, rows))
            report.new_days += is_new
            report.outcomes.append(record_day(config, day, [capture], home))
            report.rejects += [str(row["detail"]) for row in records.rejects(SOURCE, day)]
    return report


def remove_imports(home: Home) -> None:
    """Remove every imported price, from the record and the archive. Raises UnwritableError and OSError."""
    with FileLock(home.lock):
        # The archive is removed first: otherwise a day could be read again from it.
        with suppress(FileNotFoundError):
            shutil.rmtree(home.archive / SOURCE)
        Records(home).remove(SOURCE)


def _by_day(table: CsvTable, column: str, today: date, report: ImportReport) -> dict[date, list[CsvRow]]:
    days: dict[date, list[CsvRow]] = defaultdict(list)
    for row in table.rows:
        if not (row.problem or any(row.values.values())):
            continue
        try:
            day = day_of(row.values[column])
        except RowError as error:
            report.skipped.append((row.line, row.problem or str(error)))
            continue
        if row.problem or day >= today:
            report.skipped.append((row.line, row.problem or f"its day is not over (UTC): {day}"))
        else:
            days[day].append(row)
    return days


def _body(table: CsvTable, rows: list[CsvRow]) -> bytes:
    """Return the heading and some rows as they are in the file, each prefixed with its line number."""
    heading = table.heading.lstrip("\r\n")
    lines = [f"{LINE}{table.separator}{heading}"]
    lines += [f"{row.line}{table.separator}{row.text}" for row in rows]
    return "".join(line if line.endswith(("\n", "\r")) else f"{line}\n" for line in lines).encode()


def _archived(archive: Archive, day: date, name: str, body: bytes) -> tuple[Capture, bool]:
    """Return the day's capture with this answer and the answers of earlier files, and whether it is new.

    Raises GpufareError if an earlier capture is damaged, because its answers would be lost.
    """
    complete = [capture for capture in archive.captures(SOURCE, day) if capture.status is not None]
    if damaged := next((capture for capture in complete if capture.damaged), None):
        folder = archive.folder(damaged)
        raise GpufareError(f"{folder} is damaged ({damaged.error}): restore it, or move it away")
    last = complete[-1] if complete else None
    if last and any(entry.sha256 == sha256_of(body) for entry in last.entries):
        return last, False
    entries = [entry for entry in last.entries if entry.usable] if last else []
    answers = archive.answers(last) if last else []
    url = f"file:///{quote(name)}"
    writer = archive.start(SOURCE, day, replayed_from=url)
    for entry, answer in zip(entries, answers, strict=True):
        writer.add(entry.model_copy(update={"file": None}), answer.body)
    moment = datetime.combine(day, time.min, tzinfo=UTC)
    headers = {"content-type": "text/csv"}
    writer.add(Entry(url=url, headers=headers, observed_at=moment, outcome=OutcomeCode.OK), body)
    return writer.finish(), True
