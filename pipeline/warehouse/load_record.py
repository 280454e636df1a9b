"""Loads days of the record into their tables.

pipeline/record decides whether a file can be read. A DuckDB error that occurs while a file is loaded counts
against the file only if it concerns values; any other error is a mistake in our SQL.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import duckdb
import polars as pl

from pipeline.catalog.schema import read_table
from pipeline.catalog.source_config import configs
from pipeline.home.disk import is_exhaustion
from pipeline.home.paths import Home
from pipeline.record.damage import Damage, RecordError, damage_by
from pipeline.record.journal import Entry, Journal
from pipeline.record.months import Month, SourceDay, days_of, file_of, months, rows_of

LOADED_INTO = {
    "offers": "offers",
    "rejects": "rejects",
    "rankings": "ranking_history",
    "outcome": "capture_outcomes",
    "exchange_rates": "exchange_rates",
    "incident": "incidents",
}
"""The published table into which each record table and each kind of journal entry is loaded."""

JOURNAL_KINDS = ("outcome", "exchange_rates")
"""Kinds of journal entries that are loaded day by day."""

_VALUE_ERRORS = (
    duckdb.DataError,
    duckdb.IntegrityError,
    duckdb.InvalidInputException,
    duckdb.InvalidTypeException,
)
"""DuckDB errors that concern values."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """A frame that DuckDB reads directly; to read a polars DataFrame itself, it would need pyarrow."""

    rows: pl.DataFrame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)


@contextmanager
def given(connection: duckdb.DuckDBPyConnection, rows: pl.DataFrame) -> Iterator[None]:
    """Make rows available to the statements within the block, as the relation ``given``."""
    connection.register("given", _Frame(rows))
    try:
        yield
    finally:
        connection.unregister("given")


def places(days: Collection[SourceDay]) -> pl.DataFrame:
    """Return (source, day) pairs as rows with the columns source and day."""
    return pl.DataFrame(sorted(days), {"source": pl.String, "day": pl.Date}, orient="row")


def delete_days(connection: duckdb.DuckDBPyConnection, table: str, days: Collection[SourceDay]) -> None:
    """Delete a table's rows for the given (source, day) pairs."""
    same_source = "" if table in ("rankings", "exchange_rates") else " AND t.source = g.source"
    with given(connection, places(days)):
        connection.execute(
            f"DELETE FROM main.{LOADED_INTO[table]} AS t USING given AS g WHERE t.day = g.day{same_source}"  # noqa: S608
        )


def load_days(
    connection: duckdb.DuckDBPyConnection, home: Home, table: str, days: Collection[SourceDay]
) -> list[Damage]:
    """Insert the recorded rows for the (source, day) pairs. Return the damaged files, whose rows are skipped.

    Raises duckdb.Error if memory or disk space runs out or the SQL is wrong.
    """
    if table in JOURNAL_KINDS and days:
        return _load_entries(connection, home, table, lambda entry: (entry.source, entry.day) in days)
    damages: dict[Month, Damage] = {}
    frames: dict[Month, dict[SourceDay, pl.DataFrame]] = defaultdict(dict)
    for place in sorted(days):
        month = Month.of(table, *place)
        try:
            rows = rows_of(home, month)
        except RecordError as error:
            damages[month] = error.damage
        else:
            if place.day in rows:
                frames[month][place] = rows[place.day].with_columns(day=pl.lit(place.day))
    return [*damages.values(), *_insert_months(connection, home, table, frames)]


def _insert_months(
    connection: duckdb.DuckDBPyConnection,
    home: Home,
    table: str,
    frames: Mapping[Month, Mapping[SourceDay, pl.DataFrame]],
) -> list[Damage]:
    """Insert all files at once, which is fast, or one by one if a value cannot be inserted."""
    every = {place: frame for each in frames.values() for place, frame in each.items()}
    if not every:
        return []
    in_order = [every[place] for place in sorted(every, key=lambda place: (place.day, place.source))]
    try:
        with given(connection, pl.concat(in_order, how="diagonal_relaxed")):
            connection.execute(f"INSERT INTO main.{LOADED_INTO[table]} BY NAME {_ROWS[table]}")
    except _VALUE_ERRORS as error:
        if is_exhaustion(error):
            raise
        if len(frames) > 1:
            apart = ({month: each} for month, each in frames.items())
            return [damage for each in apart for damage in _insert_months(connection, home, table, each)]
        (month,) = frames
        return [damage_by(error, file_of(home, month), table, month.source)]
    return []


_ROWS = {
    "rejects": "FROM given",
    # An offer whose GPU is not in the catalogue gets the user's own GPU with the same label.
    "offers": r"""
SELECT * EXCLUDE (own_gpu) REPLACE (
    coalesce(gpu_id, own_gpu) AS gpu_id,
    if(own_gpu IS NULL, match_status, 'matched') AS match_status,
    if(own_gpu IS NULL, match_rule, 'label in your own gpus.csv') AS match_rule,
    if(own_gpu IS NULL, match_confidence, 'certain') AS match_confidence,
    if(own_gpu IS NULL, candidates, NULL) AS candidates
)
FROM (
    SELECT *, CASE WHEN gpu_id IS NULL THEN (getvariable('own_labels')::MAP(VARCHAR, VARCHAR))[
        lower(trim(regexp_replace(raw_label, '\s+', ' ', 'g')))
    ] END AS own_gpu
    FROM given
)""",
    "rankings": """
SELECT r.*
FROM given AS r
JOIN (SELECT workload, scenario FROM main.workloads) AS w USING (workload)
WHERE is_kept_ranking(w.scenario, r.price_kind, r.objective, r.rank)
ORDER BY r.day, r.workload, r.price_kind, r.objective, r.rank""",
}


def set_own_labels(connection: duckdb.DuckDBPyConnection, labels: Mapping[str, str]) -> None:
    """Match offers with these labels to the user's own GPUs, unless the catalogue already matches them."""
    connection.execute(
        "SET VARIABLE own_labels = map(?::VARCHAR[], ?::VARCHAR[])", [[*labels], [*labels.values()]]
    )


def load_incidents(connection: duckdb.DuckDBPyConnection, home: Home) -> list[Damage]:
    """Replace the loaded incidents with those in the journal. Return the journal if it is damaged."""
    connection.execute("DELETE FROM main.incidents")
    return _load_entries(connection, home, "incident", lambda _: True)


def _load_entries(
    connection: duckdb.DuckDBPyConnection, home: Home, kind: str, wanted: Callable[[Entry], bool]
) -> list[Damage]:
    journal = Journal(home)
    try:
        entries = [entry for entry in journal.entries(kind) if wanted(entry)]
        _insert_entries(connection, LOADED_INTO[kind], entries)
    except RecordError as error:
        return [error.damage]
    except _VALUE_ERRORS as error:
        if is_exhaustion(error):
            raise
        return [damage_by(error, journal.path, "journal", "")]
    return []


def _insert_entries(connection: duckdb.DuckDBPyConnection, table: str, entries: Sequence[Entry]) -> None:
    """Insert entries into a table; fields that are not columns of the table are ignored. A value that does
    not fit its column's type is an error."""
    types = {column.name: column.type for column in read_table(table).described()}
    lost = " OR ".join(
        f"(parsed.{name} IS NULL AND item->>'{name}' IS NOT NULL)"
        for name, kind in types.items()
        if kind != "VARCHAR"
    )
    columns = f"* REPLACE ({_STANDS} AS stands)" if "stands" in types else "*"
    connection.execute(
        f"INSERT INTO main.{table} BY NAME SELECT {columns} FROM ({_ROWS_OF_TEXTS.format(lost=lost)})",  # noqa: S608
        {"texts": [entry.content for entry in entries], "structure": json.dumps(types)},
    )


_ROWS_OF_TEXTS = """
SELECT unnest(if({lost}, error('it has values that do not fit the types of the record'), parsed))
FROM (
    SELECT item, json_transform(item, $structure) AS parsed
    FROM (
        SELECT unnest(if(json_type(content) = 'ARRAY', content->'$[*]', [content::JSON])) AS item
        FROM (SELECT unnest($texts::VARCHAR []) AS content)
    )
)"""
"""Turns JSON strings into rows. For a value that it cannot cast, json_transform returns null."""

_STANDS = """accepted AND row_number() OVER (
    PARTITION BY source, day
    ORDER BY
        accepted DESC, status = 'captured' DESC, if(status = 'captured', -failed_requests, rows) DESC,
        attempt DESC
) = 1"""
"""True for the attempt that gave its day's offers. Outcome.preference defines the same order."""


def load_newest(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Load the data that each source's state on ``day`` depends on: its last accepted offers, and all
    outcomes and exchange rates. Return the damaged files; for each, the month before is loaded instead."""
    damages, known = [], {"", *configs()}
    for kind in JOURNAL_KINDS:
        damages += _load_entries(
            connection, home, kind, lambda entry: entry.day <= day and entry.source in known
        )
    for source in configs():
        for month in reversed(months(home, "offers", source)):
            try:
                accepted = [each for each in days_of(home, month) if each <= day]
            except RecordError as error:
                damages.append(error.damage)
                continue
            if not accepted:
                continue
            damaged = load_days(connection, home, "offers", [SourceDay(source, max(accepted))])
            damages += damaged
            if not damaged:
                break
    return damages


NEEDED_REJECTS_DAYS = 30
"""The loss of newer rejects is reported, as they release held prices (docs/explanation/retention.md)."""


def missing_days(
    connection: duckdb.DuckDBPyConnection, home: Home, day: date, damages: Collection[Damage] = ()
) -> list[Damage]:
    """Return the days whose offers, rejects or exchange rates are missing from the record although the
    accepted attempt had some. Files in ``damages`` are not reported again, nor are rejects older than
    NEEDED_REJECTS_DAYS, which a person may delete."""
    rows = connection.execute(_MISSING, [day - timedelta(days=NEEDED_REJECTS_DAYS)]).fetchall()
    damaged = {damage.path for damage in damages}
    reason = "it is missing, though its outcome was accepted"
    return [
        Damage(path, table, source, reason, day=missing)
        for table, source, missing in rows
        if (path := place_of(home, table, SourceDay(source, missing))) not in damaged
    ]


def place_of(home: Home, table: str, place: SourceDay) -> Path:
    """Return the path of the file that contains a source's day in a table."""
    return Journal(home).path if table in JOURNAL_KINDS else file_of(home, Month.of(table, *place))


_MISSING = """
WITH _expected AS (
    SELECT o.source, o.day, if(s.kind = 'exchange_rates', 0, o.rejects) AS rejects,
        o.rows, if(s.kind = 'exchange_rates', s.kind, 'offers') AS table_name
    FROM main.capture_outcomes AS o
    INNER JOIN main.sources AS s USING (source)
    WHERE o.stands
)

SELECT e.table_name, e.source, e.day
FROM (
    SELECT table_name, source, day FROM _expected WHERE rows > 0
    UNION ALL
    SELECT 'rejects', source, day FROM _expected WHERE rejects > 0 AND day > ?
) AS e
ANTI JOIN history.loaded_days AS l
    ON l.table_name = e.table_name AND l.day = e.day AND l.source IN (e.source, '')
ORDER BY ALL
"""
