"""Pushes a home's record into a lake, and pulls what the lake has and the home lacks.

A note in the home says what was last exchanged: by it a day that was read again here is told from one
that was read again elsewhere. Without the note the days are compared, which only takes longer.
"""

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.contracts.errors import sentence_of
from pipeline.contracts.progress import Progress, Step, no_progress
from pipeline.home.disk import replacing
from pipeline.home.paths import Home
from pipeline.lake.catalogue import make_schema, make_sure_of, only_writer_of
from pipeline.lake.request import ask
from pipeline.lake.settings import Lake, LakeError
from pipeline.lake.units import (
    RANKINGS,
    Frames,
    Unit,
    digest_of,
    frames_from_lake,
    newest_attempt,
    read_unit,
    records_of,
    rows_for_lake,
    units_of,
    write_unit,
)
from pipeline.parsing.printable import printable
from pipeline.record.record_files import DAY_FOLDERS, SOURCE_FOLDERS, RecordFile
from pipeline.record.records import Records

UNITS_AT_ONCE = 200
"""So many are one transaction, and held in memory."""

_SOURCE = re.compile(r"[a-z0-9][a-z0-9_-]*|")
_ATTEMPT = re.compile(r"\d{8}T\d{6}\.\d{6}Z|")


@dataclass(slots=True)
class Exchange:
    """The units that were pushed or pulled, those that both sides have, those that each side made its own of,
    and those left alone, with why."""

    moved: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InLake:
    """A unit of the lake."""

    unit: Unit
    attempt: str
    digest: str
    parts: Sequence[str]
    offers: int


def create(lake: Lake, data: str) -> None:
    """Make a lake whose data are at ``data``, an absolute folder or s3://BUCKET/PREFIX. Raises LakeError."""
    if not data.startswith(("/", "s3://")):
        raise LakeError(
            f"--data {printable(data)}: all machines look there, so give a whole path or s3://BUCKET/PREFIX"
        )
    make_schema(lake.catalogue)
    ask(lake, {"action": "create", "data": data})


def days_in(lake: Lake, since: date) -> list[InLake]:
    """What the lake has since a day, by source and day. Raises LakeError, PostgresError."""
    make_sure_of(lake.catalogue)  # its errors are plainer than those of DuckDB
    rows = ask(lake, {"action": "list", "since": f"{since}"})["days"]
    return sorted((in_lake(row) for row in rows), key=lambda each: each.unit)


def in_lake(row: Sequence[Any]) -> InLake:
    """Raises LakeError for what would be a path out of the home: other machines wrote it."""
    _, source, day, attempt, digest, parts, offers = row
    folders = parts.split(",")
    if not _SOURCE.fullmatch(source) or not _ATTEMPT.fullmatch(attempt) or not {*folders} <= _FOLDERS:
        raise LakeError(
            f"the lake has a day of {printable(source)!r} that no gpufare writes: find out who did"
        )
    unit = Unit(source, date.fromisoformat(day), folders == [RANKINGS])
    return InLake(unit, attempt, digest, folders, offers)


_FOLDERS = {*SOURCE_FOLDERS, *DAY_FOLDERS}


def push(
    home: Home, lake: Lake, since: date, progress: Progress = no_progress, *, rankings: bool = False
) -> Exchange:
    """Put what the lake lacks, and what changed here since the last exchange, into the lake. What is damaged
    here, and what the lake has a newer attempt of, is left alone.

    With ``rankings``, also those; a home that captures some of the sources would replace those of the one
    that publishes all.
    Raises LakeError, PostgresError.
    """
    exchange, note = Exchange(), _Note(home)
    units = {unit: files for unit, files in units_of(home, since).items() if rankings or not unit.is_ranking}
    there = {each.unit for each in days_in(lake, since)}
    changed = [unit for unit, files in units.items() if unit not in there or not note.is_known(unit, files)]
    exchange.same += [unit.name for unit in units if unit not in set(changed)]
    for batch in _batches(changed):
        progress(Step(f"pushing {batch[0].name} to {batch[-1].name}"))
        _push(home, lake, {unit: units[unit] for unit in batch}, note, exchange)
    return exchange


def _push(
    home: Home, lake: Lake, units: Mapping[Unit, list[RecordFile]], note: "_Note", exchange: Exchange
) -> None:
    contents, records = {}, records_of(home)
    for unit, files in units.items():
        try:
            contents[unit] = read_unit(files, records), _stamps(files)
        except Exception as error:  # whatever a damaged file makes its reader raise
            exchange.left[unit.name] = f"damaged here: {sentence_of(error).splitlines()[0][:200]}"
    if not contents:
        return
    with tempfile.TemporaryDirectory(dir=_made(home.cache), prefix=".lake-") as folder:
        digests = _write_for_lake({unit: frames for unit, (frames, _) in contents.items()}, Path(folder))
        # One writer of a source at a time: two could both find that the lake lacks a day.
        with only_writer_of(lake.catalogue, [unit.source for unit in contents]):
            verdicts = dict(ask(lake, {"action": "push", "folder": folder})["verdicts"])
    for unit, (_, stamps) in contents.items():
        verdict = verdicts[unit.name]
        if verdict == "newer there":
            exchange.left[unit.name] = "the lake has a newer attempt: pull"
            continue
        (exchange.moved if verdict == "pushed" else exchange.same).append(unit.name)
        note.keep(unit, digests[unit], stamps)
    note.save()


def _write_for_lake(contents: Mapping[Unit, Frames], folder: Path) -> dict[Unit, str]:
    """Write a file per table, and the list of the units; returns their digests."""
    tables: dict[str, list[pl.DataFrame]] = defaultdict(list)
    rows, digests = [], {}
    for unit, frames in contents.items():
        digests[unit] = digest_of(frames)
        offers = frames["offers"].height if "offers" in frames else 0
        parts = ",".join(sorted(frames))
        rows.append((unit.name, unit.source, unit.day, newest_attempt(frames), digests[unit], parts, offers))
        for table, frame in rows_for_lake(unit, frames).items():
            tables[table].append(frame)
    names = ["unit", "source", "day", "attempt", "digest", "parts", "offers"]
    pl.DataFrame(rows, schema=names, orient="row").write_parquet(folder / "days.parquet")
    for table, frames_of in tables.items():
        pl.concat(frames_of, how="diagonal_relaxed").write_parquet(folder / f"{table}.parquet")
    return digests


def pull(home: Home, lake: Lake, since: date, progress: Progress = no_progress) -> Exchange:
    """Write what the lake has and the home lacks, or has older, into the record. A day that was changed here
    stays, unless the lake has a newer attempt; so do rates and rankings that were made here.

    Raises LakeError, for a unit that is not what was pushed as well, and PostgresError.
    """
    exchange, note = Exchange(), _Note(home)
    units = units_of(home, since)
    wanted = []
    records = records_of(home)
    for there in days_in(lake, since):
        verdict = _compared(there, units.get(there.unit, []), note, records)
        if verdict == "wanted":
            wanted.append(there.unit)
        elif verdict == "same":
            exchange.same.append(there.unit.name)
        elif not there.unit.source:
            exchange.own.append(there.unit.name)
        else:
            exchange.left[there.unit.name] = verdict
    for batch in _batches(wanted):
        progress(Step(f"pulling {batch[0].name} to {batch[-1].name}"))
        _pull(home, lake, batch, note, exchange)
    note.save()
    return exchange


def _compared(there: InLake, files: list[RecordFile], note: "_Note", records: Mapping[str, Records]) -> str:
    """'same', 'wanted', or why the unit is left alone."""
    if not files:
        return "wanted"
    if note.is_known(there.unit, files):
        return "same" if note.digest(there.unit) == there.digest else "wanted"
    try:
        frames, stamps = read_unit(files, records), _stamps(files)
    except Exception:  # damaged here: the lake's is whole
        return "wanted"
    if digest_of(frames) == there.digest:
        note.keep(there.unit, there.digest, stamps)
        return "same"
    if there.attempt > newest_attempt(frames):
        return "wanted"
    return "it was changed here: push"


def _pull(home: Home, lake: Lake, units: Sequence[Unit], note: "_Note", exchange: Exchange) -> None:
    with tempfile.TemporaryDirectory(dir=_made(home.cache), prefix=".lake-") as folder:
        names = [unit.name for unit in units]
        answer = ask(lake, {"action": "pull", "folder": folder, "units": names})
        rows = {path.stem: pl.read_parquet(path, glob=False) for path in Path(folder).glob("*.parquet")}
    found = [in_lake(row) for row in answer["days"]]
    contents = {there.unit: frames_from_lake(rows, there.unit, there.parts) for there in found}
    for there in found:
        frames = contents[there.unit]
        attempts = frames["outcomes"]["attempt"] if "outcomes" in frames else ()
        if digest_of(frames) != there.digest or not all(map(_ATTEMPT.fullmatch, attempts)):
            raise LakeError(
                f"{there.unit.name} in the lake is not what was pushed, and was not written: push it again "
                "from a home that has it"
            )
    for there in found:
        write_unit(home, there.unit, contents[there.unit])
        exchange.moved.append(there.unit.name)
    written = units_of(home, min(unit.day for unit in units))
    for there in found:
        note.keep(there.unit, there.digest, _stamps(written[there.unit]))
    note.save()


def _batches(units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
    for begin in range(0, len(units), UNITS_AT_ONCE):
        yield units[begin : begin + UNITS_AT_ONCE]


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


Stamps = list[list[Any]]


def _stamps(files: Sequence[RecordFile]) -> Stamps:
    """Change when a unit's content may have, not when its files are merged. Raises FileNotFoundError."""
    stamps = [(file, file.stamp()) for file in files]
    return sorted([file.folder, file.attempt, stamp.bytes, stamp.mtime_ns] for file, stamp in stamps)


class _Note:
    """What each unit was when it was last exchanged, beside what the home knows of its store."""

    def __init__(self, home: Home) -> None:
        self._path = home.store / "lake.json"
        try:
            self._units = dict(json.loads(self._path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            self._units = {}

    def is_known(self, unit: Unit, files: Sequence[RecordFile]) -> bool:
        """Whether the unit's files are those that were exchanged."""
        known = self._units.get(unit.name)
        return known is not None and known[1] == _stamps(files)

    def digest(self, unit: Unit) -> str:
        return str(self._units[unit.name][0])

    def keep(self, unit: Unit, digest: str, stamps: Stamps) -> None:
        self._units[unit.name] = [digest, stamps]

    def save(self) -> None:
        with replacing(self._path) as temporary:
            temporary.write_text(json.dumps(self._units), encoding="utf-8")
