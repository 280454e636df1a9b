"""Pushes days of a home's record into a lake, and pulls days that the home lacks or holds in an older form.

A source's day is replaced as a whole, in one transaction. The lake keeps the hashes of a day's earlier
contents, which distinguish a day read again here from a day read again elsewhere.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

import duckdb
import stamina

from pipeline.contracts.errors import GpufareError, sentence_of
from pipeline.lake.catalogue import Lake, LakeError, attached
from pipeline.lake.source_days import TABLES, Rows, days_here, read_day, write_day
from pipeline.parsing.printable import printable
from pipeline.record.damage import RecordError
from pipeline.record.months import SourceDay
from pipeline.record.records import Records
from pipeline.warehouse.connection import transaction

# This keeps stamina from printing each retry to stdout if structlog is installed.
stamina.instrumentation.set_on_retry_hooks([])

ATTEMPTS = 12
"""The largest number of attempts at a transaction that conflicts with other writers."""

MOVED, SAME, OTHER_SIDE = "moved", "same", "other side"
"""The result for a day: written, already there, or newer on the other side."""

_CONTENT = {"tables": "VARCHAR[]", "attempt": "VARCHAR", "digest": "VARCHAR", "earlier": "VARCHAR[]"}
_COLUMNS = {**TABLES, "days": _CONTENT}
_PLACE = {"source": "VARCHAR", "day": "DATE", "position": "INTEGER"}
"""The columns common to all tables: the source, the day, and the row's position within that day."""


class Content(NamedTuple):
    """A row of the lake's ``days`` table: a day's tables, its newest attempt ('' if it has none), the hash of
    its values, and the hashes of its earlier contents."""

    tables: Sequence[str]
    attempt: str
    digest: str
    earlier: Sequence[str] = ()


def content_of(rows: Rows) -> Content:
    """Return the content of a day's rows, for comparison with other content of the same day."""
    attempt = max((row["attempt"] for row in rows.get("outcomes", ())), default="")
    digest = hashlib.sha256(json.dumps(rows, default=str, sort_keys=True).encode()).hexdigest()
    return Content(sorted(rows), attempt, digest)


def stands(content: Content, other: Content | None) -> bool:
    """True if a home's content for a day replaces the lake's, ``other`` (None if the lake lacks the day).

    Content with prices is preferred to content without them, a newer attempt to an older one, and a later
    reading of the same attempt to an earlier one.
    """
    if other is None:
        return True
    ranks = [(bool({"offers", "exchange_rates"} & {*each.tables}), each.attempt) for each in (content, other)]
    return ranks[0] > ranks[1] or (
        ranks[0] == ranks[1] and content.digest not in (other.digest, *other.earlier)
    )


def create(data: str) -> None:
    """Create a lake with its files in ``data``, an absolute path or s3://BUCKET/PREFIX. Raises LakeError."""
    if not data.startswith(("/", "s3://")):
        raise LakeError(f"--data {printable(data)}: give an absolute path, or s3://BUCKET/PREFIX")
    with attached(data) as lake, transaction(lake):
        lake.execute("CREATE TABLE IF NOT EXISTS lake.pushes AS SELECT 0 AS number")
        for table, columns in _COLUMNS.items():
            written = ", ".join(f"{name} {kind}" for name, kind in {**_PLACE, **columns}.items())
            lake.execute(f"CREATE TABLE IF NOT EXISTS lake.{table} ({written})")


def push(records: Records, since: date) -> Iterator[tuple[SourceDay, str]]:
    """Write to the lake the days that it lacks or holds in an older form. Yields each day with its result, or
    with the reason why it was skipped. Raises LakeError."""
    with attached() as lake:
        for place, tables in days_here(records, since).items():
            try:
                rows = read_day(records, place, tables)
            except (GpufareError, FileNotFoundError) as error:
                yield place, sentence_of(error)
            else:
                yield place, _push_day(lake, place, rows)


def _push_day(lake: Lake, place: SourceDay, rows: Rows) -> str:
    content = content_of(rows)
    for attempt in stamina.retry_context(duckdb.TransactionException, ATTEMPTS, timeout=None, wait_max=2):
        with attempt, transaction(lake):
            there = next(_contents_in_lake(lake, place), None)
            if not stands(content, there):
                return SAME if there and there.digest == content.digest else OTHER_SIDE
            # This makes one of two simultaneous pushes fail and retry: both could find the day missing.
            lake.execute("UPDATE lake.pushes SET number = number + 1")
            earlier = [*there.earlier, there.digest] if there else []
            new = {**rows, "days": [content._replace(earlier=earlier)._asdict()]}
            for table in _COLUMNS:
                lake.execute(f"DELETE FROM lake.{table} WHERE source = ? AND day = ?", place)  # noqa: S608
                _insert(lake, table, place, new.get(table, ()))
    return MOVED


def _insert(lake: Lake, table: str, place: SourceDay, rows: Sequence[Mapping[str, Any]]) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        for position, row in enumerate(rows):
            file.write(json.dumps({**row, **place._asdict(), "position": position}, default=str) + "\n")
        file.flush()
        lake.execute(
            f"INSERT INTO lake.{table} BY NAME"
            f" FROM read_json(?, format = 'newline_delimited', columns = { {**_PLACE, **_COLUMNS[table]} })",
            [file.name],
        )


def pull(records: Records, since: date) -> Iterator[tuple[SourceDay, str]]:
    """Write to the record the days that it lacks or holds in an older form. Yields the same as ``push``.
    Raises LakeError and UnwritableError."""
    here = days_here(records, since)
    with attached() as lake:
        query = "SELECT source, day FROM lake.days WHERE day >= ? ORDER BY ALL"
        for place in (SourceDay(*day) for day in lake.execute(query, [since]).fetchall()):
            yield place, _pull_day(lake, records, place, here.get(place, []))


def _pull_day(lake: Lake, records: Records, place: SourceDay, tables: Sequence[str]) -> str:
    try:
        here = content_of(read_day(records, place, tables)) if tables else None
    except (GpufareError, FileNotFoundError):  # the day is damaged only here, not in the lake
        here = None
    with transaction(lake):
        (there,) = _contents_in_lake(lake, place)
        if here and (here.digest == there.digest or stands(here, there)):
            return SAME if here.digest == there.digest else OTHER_SIDE
        rows = {table: _rows_in_lake(lake, table, place) for table in there.tables if table in TABLES}
    if content_of(rows).digest != there.digest:
        return "its rows in the lake differ from those pushed: delete it from lake.days and push it again"
    try:
        write_day(records, place, rows)
    except (ValueError, RecordError) as error:
        return sentence_of(error)
    return MOVED


def _contents_in_lake(lake: Lake, place: SourceDay) -> Iterator[Content]:
    return (Content(**row) for row in _rows_in_lake(lake, "days", place))


def _rows_in_lake(lake: Lake, table: str, place: SourceDay) -> list[dict[str, Any]]:
    columns = _COLUMNS[table]
    query = f"SELECT {', '.join(columns)} FROM lake.{table} WHERE source = ? AND day = ? ORDER BY position"  # noqa: S608
    return [dict(zip(columns, row, strict=True)) for row in lake.execute(query, place).fetchall()]
