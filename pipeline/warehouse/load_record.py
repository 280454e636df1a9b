"""Loads days of the record into their tables.

The record's room says whether a file can be read; so an error of DuckDB while it loads one is the file's only
where it is about bytes and values. Any other is a mistake in our SQL, and costs no file.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

import duckdb

from pipeline.catalog.source_config import configs
from pipeline.home.disk import is_exhaustion
from pipeline.home.paths import Home
from pipeline.record.damage import Damage, RecordError, damage_by
from pipeline.record.journal import Entry, Journal
from pipeline.record.months import BY_SOURCE, Month, damage_of, days_of, file_of, lock, months
from pipeline.warehouse.connection import transaction

_GLOB = re.compile(r"[*?\[]")
"""What DuckDB would take for a pattern in the name of a file."""

SourceDay = tuple[str, date]
"""A source ('' for rankings) and a day."""

_OF_VALUES = (
    duckdb.DataError,
    duckdb.IntegrityError,
    duckdb.IOException,
    duckdb.InvalidInputException,
    duckdb.InvalidTypeException,
    duckdb.SerializationException,
)
"""What bytes and values can be wrong with."""


def load_days(
    connection: duckdb.DuckDBPyConnection, home: Home, table: str, wanted: Collection[SourceDay]
) -> list[Damage]:
    """Insert the offers, rejects or rankings of some sources' days. Return the files that are damaged, of
    which nothing is inserted.

    Raises duckdb.Error when memory or disk space ran out or the SQL is wrong.
    """
    with lock(home):  # no file is replaced between its check and its loading
        return _load_days(connection, home, table, wanted)


def _load_days(
    connection: duckdb.DuckDBPyConnection, home: Home, table: str, wanted: Collection[SourceDay]
) -> list[Damage]:
    days: dict[Month, list[SourceDay]] = {}
    for source, day in wanted:
        days.setdefault(Month.of(table, source, day), []).append((source, day))
    damages = {month: damage for month in days if (damage := damage_of(home, month)) is not None}
    whole = {month: each for month, each in days.items() if month not in damages}
    return [*damages.values(), *_load_months(connection, home, table, whole)]


def _load_months(
    connection: duckdb.DuckDBPyConnection, home: Home, table: str, days: Mapping[Month, Sequence[SourceDay]]
) -> list[Damage]:
    """Insert all at once, which is fast, or file by file where a value of one cannot be inserted."""
    if not days:
        return []
    try:
        with transaction(connection):
            _insert_months(connection, home, table, days)
    except _OF_VALUES as error:
        if is_exhaustion(error):
            raise
        if len(days) > 1:
            return [
                damage
                for month, each in days.items()
                for damage in _load_months(connection, home, table, {month: each})
            ]
        (month,) = days
        return [damage_by(error, file_of(home, month), table, month.source)]
    return []


def _insert_months(
    connection: duckdb.DuckDBPyConnection, home: Home, table: str, days: Mapping[Month, Sequence[SourceDay]]
) -> None:
    wanted = [each for some in days.values() for each in some]
    values = {
        "files": [_GLOB.sub(r"[\g<0>]", str(file_of(home, month))) for month in days],
        "first": min(day for _, day in wanted),
        "last": max(day for _, day in wanted),
        "days": [day for _, day in wanted],
    }
    if table == "rankings":
        connection.execute(_INSERT_RANKINGS, values)
        return
    replaced = _own_labels_columns(connection) if table == "offers" else ""
    connection.execute(
        _INSERT_DAYS.format(table=table, replaced=replaced),
        values | {"sources": [source for source, _ in wanted]},
    )


_INSERT_DAYS = """
INSERT INTO main.{table} BY NAME
SELECT * EXCLUDE (filename, file_row_number){replaced}
FROM read_parquet(
    $files, filename = true, file_row_number = true, union_by_name = true, hive_partitioning = false
)
SEMI JOIN (SELECT unnest($sources::VARCHAR []) AS source, unnest($days::DATE []) AS day) USING (source, day)
WHERE day BETWEEN $first AND $last
ORDER BY day, source, file_row_number"""

_INSERT_RANKINGS = """
INSERT INTO main.ranking_history BY NAME
SELECT r.*
FROM read_parquet($files, union_by_name = true, hive_partitioning = false) AS r
JOIN (SELECT workload, scenario FROM main.workloads) AS w USING (workload)
WHERE r.day BETWEEN $first AND $last AND list_contains($days::DATE [], r.day)
    AND is_kept_ranking(w.scenario, r.price_kind, r.objective, r.rank)
ORDER BY r.day, r.workload, r.price_kind, r.objective, r.rank"""

_OWN_LABELS = """
coalesce(gpu_id, {own}) AS gpu_id,
if({found}, 'matched', match_status) AS match_status,
if({found}, 'label in your own gpus.csv', match_rule) AS match_rule,
if({found}, 'certain', match_confidence) AS match_confidence,
if({found}, NULL, candidates) AS candidates"""
"""Of labels that the catalogue left open. The record keeps them open: it is loaded anew when they change."""


def set_own_labels(connection: duckdb.DuckDBPyConnection, labels: Mapping[str, str]) -> None:
    """Take offers with these labels, where the catalogue knows no card, for the user's own GPUs."""
    if labels:
        connection.execute(
            "SET VARIABLE own_labels = map(?::VARCHAR[], ?::VARCHAR[])", [[*labels], [*labels.values()]]
        )


def _own_labels_columns(connection: duckdb.DuckDBPyConnection) -> str:
    if connection.execute("SELECT getvariable('own_labels') IS NULL").fetchone() == (True,):
        return ""
    own = (
        "(getvariable('own_labels')::MAP(VARCHAR, VARCHAR))"
        "[lower(trim(regexp_replace(raw_label, '\\s+', ' ', 'g')))]"
    )
    return " REPLACE (" + _OWN_LABELS.format(own=own, found=f"gpu_id IS NULL AND {own} IS NOT NULL") + ")"


def load_journal(
    connection: duckdb.DuckDBPyConnection, home: Home, day: date, after: int, known: Collection[str]
) -> list[Damage]:
    """Insert the outcomes of known sources and the exchange rates of days up to ``day`` whose entries have
    numbers above ``after``, in place of earlier ones. Return the journal where it is damaged."""
    journal = Journal(home)
    try:
        outcomes = [
            entry
            for entry in journal.entries("outcome", after=after)
            if entry.day <= day and entry.source in known
        ]
        rates = [entry for entry in journal.entries("exchange_rates", after=after) if entry.day <= day]
        with transaction(connection):
            _insert_entries(connection, "capture_outcomes", outcomes, "* REPLACE (false AS stands)")
            _insert_entries(connection, "exchange_rates", rates, "*")
            connection.execute(MARK_THE_ATTEMPTS_THAT_STAND)
    except RecordError as error:
        return [error.damage]
    except _OF_VALUES as error:
        if is_exhaustion(error):
            raise
        return [damage_by(error, journal.path, "journal", "")]
    return []


def load_incidents(connection: duckdb.DuckDBPyConnection, home: Home) -> None:
    """Load the incidents, again if need be. Raises RecordError."""
    connection.execute("DELETE FROM main.incidents")
    _insert_entries(connection, "incidents", Journal(home).entries("incident"), "*")


_KEYS = {
    "capture_outcomes": "source, day, attempt",
    "exchange_rates": "day",
    "incidents": "noticed_at, kind, reason",
}
"""What entries that are written again have in common with their earlier rows."""


def _insert_entries(
    connection: duckdb.DuckDBPyConnection, table: str, entries: Sequence[Entry], columns: str
) -> None:
    """Insert the rows of entries in place of those with the same keys: the table's columns, other fields are
    ignored. A value that is not of its column's type is an error."""
    if not entries:
        return
    types = dict(
        connection.execute(
            "SELECT column_name, data_type FROM duckdb_columns()"
            " WHERE table_name = ? AND database_name = current_database()",
            [table],
        ).fetchall()
    )
    lost = " OR ".join(
        f"(parsed.{name} IS NULL AND item->>'{name}' IS NOT NULL)"
        for name, kind in types.items()
        if kind != "VARCHAR"
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE _entries AS {_ROWS_OF_TEXTS.format(lost=lost)}",
        {"texts": [entry.content for entry in entries], "structure": json.dumps(types)},
    )
    keys = _KEYS[table]
    connection.execute(
        f"DELETE FROM main.{table} AS t WHERE EXISTS"  # noqa: S608 - our own tables
        f" (FROM _entries AS e WHERE {' AND '.join(f't.{key} = e.{key}' for key in keys.split(', '))})"
    )
    connection.execute(f"INSERT INTO main.{table} BY NAME SELECT {columns} FROM _entries")  # noqa: S608
    connection.execute("DROP TABLE _entries")


_ROWS_OF_TEXTS = """
SELECT unnest(if({lost}, error('it has values that are not of the types of the record'), parsed))
FROM (
    SELECT item, json_transform(item, $structure) AS parsed
    FROM (
        SELECT unnest(if(json_type(content) = 'ARRAY', content->'$[*]', [content::JSON])) AS item
        FROM (SELECT unnest($texts::VARCHAR []) AS content)
    )
)"""
"""JSON texts as rows. json_transform makes null of what it cannot cast."""


MARK_THE_ATTEMPTS_THAT_STAND = """
UPDATE main.capture_outcomes AS o
SET stands = NOT o.stands
FROM (
    SELECT rowid AS id, accepted AND row_number() OVER (
        PARTITION BY source, day
        ORDER BY
            accepted DESC, status = 'captured' DESC, if(status = 'captured', -failed_requests, rows) DESC,
            attempt DESC
    ) = 1 AS stands
    FROM main.capture_outcomes
) AS n
WHERE n.id = o.rowid AND n.stands <> o.stands
"""
"""The attempts that gave their day's offers. Outcome.merit orders them alike."""


def load_newest(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Load what the state of each source on ``day`` depends on: its last accepted offers, and all outcomes
    and exchange rates. Return the damaged files; the month before is then taken."""
    damages = load_journal(connection, home, day, 0, configs().keys())
    for config in configs().values():
        for month in reversed(months(home, "offers", config.name)):
            try:
                days = [each for each in days_of(home, month) if each <= day]
            except RecordError as error:
                damages.append(error.damage)
                continue
            if not days:
                continue
            # Without the lock: a home that cannot be written answers, too.
            damaged = _load_days(connection, home, "offers", [(config.name, max(days))])
            damages += damaged
            if not damaged:
                break
    return damages


NEEDED_REJECTS_DAYS = 30
"""Rejects are missed for so long: held prices are released by them (docs/explanation/retention.md)."""


def missing_days(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Return the offers, rejects and exchange rates that are not loaded, though the attempt that stands of
    their day has some; rejects only of the last month, as older ones may be deleted by hand."""
    rows = connection.execute(
        _MISSING, {"rejects_after": day - timedelta(days=NEEDED_REJECTS_DAYS)}
    ).fetchall()
    reason = "it is missing, though its outcome was accepted"
    return [
        Damage(_place(home, table, source, missing), table, source, reason, day=missing, missing=True)
        for table, source, missing in rows
        if table not in BY_SOURCE or not _is_recorded(home, Month.of(table, source, missing), missing)
    ]


def _place(home: Home, table: str, source: str, day: date) -> Path:
    return file_of(home, Month.of(table, source, day)) if table in BY_SOURCE else Journal(home).path


def _is_recorded(home: Home, month: Month, day: date) -> bool:
    """True if the file has the day, or is damaged so that it cannot be told."""
    try:
        return day in days_of(home, month)
    except RecordError:
        return True


_MISSING = """
WITH _expected AS (
    SELECT if(s.kind = 'exchange_rates', s.kind, 'offers') AS table_name, o.source, o.day
    FROM main.capture_outcomes AS o
    INNER JOIN main.sources AS s USING (source)
    WHERE o.stands AND o.rows > 0
    UNION ALL
    SELECT 'rejects', o.source, o.day
    FROM main.capture_outcomes AS o
    INNER JOIN main.sources AS s USING (source)
    WHERE o.stands AND o.rejects > 0 AND s.kind <> 'exchange_rates' AND o.day > $rejects_after
),

_loaded AS (
    SELECT 'offers' AS table_name, source, day FROM main.recorded_days WHERE offers > 0
    UNION ALL
    SELECT 'rejects', source, day FROM main.recorded_days WHERE rejects > 0
)

SELECT e.table_name, e.source, e.day
FROM _expected AS e
ANTI JOIN _loaded AS l USING (table_name, source, day)
ANTI JOIN (SELECT DISTINCT 'exchange_rates' AS table_name, day FROM main.exchange_rates) AS r
    USING (table_name, day)
ORDER BY ALL
"""
