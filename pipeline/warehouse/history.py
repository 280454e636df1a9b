"""Brings the tables that hold past days up to date with the record.

A build continues from the tables of the previous build. Days of the record whose hash has changed are deleted
and inserted again, and tables derived from offers are computed again from the first changed day. Starting
from empty tables loads the whole record, and gives the same rows.

``offers`` and ``rejects`` contain the newest days. The data that later days need from older days are kept in
the schema ``history`` (sql/history); to compute an older day again, its offers are loaded again.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import groupby
from typing import NamedTuple

import duckdb
import polars as pl

from pipeline.gates.thresholds import THRESHOLDS
from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.record.damage import Damage, RecordError
from pipeline.record.journal import Journal
from pipeline.record.months import BY_SOURCE, TABLES, SourceDay, days_of, months
from pipeline.warehouse.load_record import JOURNAL_KINDS, delete_days, given, load_days, place_of, places
from pipeline.warehouse.marts import fill, query_of
from pipeline.warehouse.sql_files import run

KEPT_DAYS = 30
"""Days kept in ``offers`` and ``rejects``. ``offers`` also keeps each source's newest day, however old."""

CHUNK_DAYS = 31
CHUNK_ROWS = 500_000
"""The maximum numbers of days and rows per load; after each, days too old for ``offers`` are removed."""

LATE_AFTER = timedelta(minutes=THRESHOLDS.late_after_minutes)

_DERIVED = ("price_history", "price_changes", "market_index")
"""Tables derived from offers day by day, each after the tables that it reads."""


class _Key(NamedTuple):
    """A day of a record table or of a kind of journal entry. ``source`` is '' for rankings and exchange
    rates. The table name ``as_of_day`` marks the day being built."""

    table: str
    source: str
    day: date


@dataclass(slots=True)
class _Changes:
    """The hashes of each day's rows, both as ``recorded`` and as ``loaded``."""

    recorded: dict[_Key, str]
    loaded: dict[_Key, str] = field(default_factory=dict)
    rows: Counter[SourceDay] = field(default_factory=Counter)
    damages: list[Damage] = field(default_factory=list)
    lost: set[_Key] = field(default_factory=set)
    """Days that are not loaded because their files are damaged."""

    def days(self, *tables: str) -> set[SourceDay]:
        """Return the days that changed."""
        differing = self.recorded.items() ^ self.loaded.items()
        return {SourceDay(key.source, key.day) for key, _ in differing if key.table in tables}


def is_history(table: str) -> bool:
    """True if a table is filled by this module rather than refilled by every build."""
    return query_of(table).startswith("-- history")


def bring_up_to_date(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Load the record up to ``day`` and compute the derived tables; later days are ignored.

    Returns the damaged files. Rows of ``unknown_sources`` are skipped. Raises BuildError, and duckdb.Error if
    memory or disk space runs out or the SQL is wrong.
    """
    connection.execute("SET VARIABLE as_of_day = ?::DATE", [day])
    connection.execute("SET VARIABLE late_after = ?::INTERVAL", [LATE_AFTER])
    changes = _changes(connection, home, day)
    for table in (*JOURNAL_KINDS, "rankings"):
        changed = changes.days(table)
        delete_days(connection, table, changed)
        there = {each for each in changed if _Key(table, *each) in changes.recorded}
        _load(connection, home, table, there, changes)
    if changes.days(*BY_SOURCE, "outcome", "as_of_day"):
        _update_offers(connection, home, day, changes)
        connection.execute(_MARK_CURRENT)
    _note(connection, changes)
    return changes.damages


_MARK_CURRENT = """
UPDATE main.price_changes AS c
SET current = NOT c.current
FROM (
    SELECT rowid AS id, day = max(day) OVER (
        PARTITION BY gpu_id, price_kind, term_days, source, provider, tier
    ) AS current
    FROM main.price_changes
) AS n
WHERE n.id = c.rowid AND n.current <> c.current
"""
"""Each price change stays current until the next one."""


def unknown_sources(connection: duckdb.DuckDBPyConnection, home: Home) -> list[str]:
    """Return the sources in the record that are not in the catalogue."""
    recorded = {month.source for table in BY_SOURCE for month in months(home, table)}
    return sorted((recorded | Journal(home).sources()) - _known_sources(connection))


def _known_sources(connection: duckdb.DuckDBPyConnection) -> set[str]:
    return {source for (source,) in connection.execute("SELECT source FROM main.sources").fetchall()}


# ----------------------------------------------------------------- what changed since the last build


def _changes(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> _Changes:
    """Compare the record with the loaded days. Rankings end on the previous day, since this build computes
    those of the day itself."""
    changes = _Changes({_Key("as_of_day", "", day): ""})
    known = {"", *_known_sources(connection)}
    for month in (month for table in TABLES for month in months(home, table) if month.source in known):
        end = day - timedelta(days=1) if month.table == "rankings" else day
        try:
            days = days_of(home, month)
        except RecordError as error:
            changes.damages.append(error.damage)
            continue
        for at, each in days.items():
            if at <= end:
                changes.recorded[_Key(month.table, month.source, at)] = each.digest
                changes.rows[SourceDay(month.source, at)] += each.rows
    rows = connection.execute("SELECT table_name, source, day, digest FROM history.loaded_days").fetchall()
    changes.loaded = {_Key(*key): digest for *key, digest in rows}
    try:
        digests = {kind: Journal(home).digests(kind, day) for kind in JOURNAL_KINDS}
    except RecordError as error:
        changes.damages.append(error.damage)
        # Entries loaded while the journal was readable are kept.
        changes.loaded = {key: each for key, each in changes.loaded.items() if key.table not in JOURNAL_KINDS}
    else:
        changes.recorded |= {
            _Key(kind, source, at): digest
            for kind, found in digests.items()
            for (source, at), digest in found.items()
            if source in known
        }
    return changes


def _load(
    connection: duckdb.DuckDBPyConnection,
    home: Home,
    table: str,
    days: Collection[SourceDay],
    changes: _Changes,
) -> None:
    damages = load_days(connection, home, table, days)
    damaged = {damage.path for damage in damages}
    changes.lost |= {_Key(table, *each) for each in days if place_of(home, table, each) in damaged}
    named = {damage.path for damage in changes.damages}
    changes.damages += (damage for damage in damages if damage.path not in named)


_KEY_COLUMNS = {"table_name": pl.String, "source": pl.String, "day": pl.Date}


def _note(connection: duckdb.DuckDBPyConnection, changes: _Changes) -> None:
    """Note the loaded days. Lost days are left for the next build to try again."""
    loaded = {key: digest for key, digest in changes.recorded.items() if key not in changes.lost}
    outdated = [key for key, digest in changes.loaded.items() if loaded.get(key) != digest]
    new = [(*key, digest) for key, digest in loaded.items() if changes.loaded.get(key) != digest]
    with given(connection, pl.DataFrame(outdated, _KEY_COLUMNS, orient="row")):
        connection.execute(
            "DELETE FROM history.loaded_days AS d USING given AS g"
            " WHERE d.table_name = g.table_name AND d.source = g.source AND d.day = g.day"
        )
    with given(connection, pl.DataFrame(new, {**_KEY_COLUMNS, "digest": pl.String}, orient="row")):
        connection.execute("INSERT INTO history.loaded_days FROM given")


# ------------------------------------------------------- offers, rejects and the tables derived from them


def _update_offers(connection: duckdb.DuckDBPyConnection, home: Home, day: date, changes: _Changes) -> None:
    """Load changed and recalled days, a chunk of days at a time, and compute the derived tables."""
    changed = changes.days(*BY_SOURCE)
    # Whether a reading was complete decides whether a price is no longer listed.
    begin = min([day, *(each.day for each in changed | changes.days("outcome"))])
    _forget(connection, changed)
    for table in _DERIVED:
        connection.execute(f"DELETE FROM main.{table} WHERE day >= ?", [begin])  # noqa: S608 - our own tables
    connection.execute(_FORGET_DAYS_WITHOUT_OFFERS)
    recalled = _recall(connection, day, begin)
    _forget(connection, recalled.keys())
    rows = {each: changes.rows[each] for each in changed} | recalled
    for chunk, end in _chunks(rows, day):
        for table in BY_SOURCE:
            _load(connection, home, table, chunk, changes)
        with given(connection, places(chunk)):
            connection.execute(
                f"INSERT INTO main.recorded_days BY NAME SELECT * FROM ({query_of('recorded_days')}) AS r"  # noqa: S608
                " SEMI JOIN given AS g USING (source, day)"
            )
        if begin <= end:
            _compute(connection, begin, end)
            begin = end + timedelta(days=1)
        connection.execute("SET VARIABLE retired_to = ?::DATE", [end - timedelta(days=KEPT_DAYS)])
        run(connection, paths.SQL_DIR / "history" / "retire.sql")
        connection.execute("CHECKPOINT")  # frees the space of the removed rows for reuse


_FORGET_DAYS_WITHOUT_OFFERS = """
DELETE FROM main.market_index AS i
WHERE i.day NOT IN (SELECT r.day FROM main.recorded_days AS r WHERE r.offers > 0)
"""
"""The market index of a day without offers belongs to that day's publication only."""


def _forget(connection: duckdb.DuckDBPyConnection, days: Collection[SourceDay]) -> None:
    for table in BY_SOURCE:
        delete_days(connection, table, days)
    with given(connection, places(days)):
        connection.execute(
            "DELETE FROM main.recorded_days AS r USING given AS g WHERE r.source = g.source AND r.day = g.day"
        )


def _recall(connection: duckdb.DuckDBPyConnection, day: date, first: date) -> dict[SourceDay, int]:
    """Return the days to load again, with their row counts: days missing from ``offers`` or ``rejects``, and
    days whose prices still apply on ``first``, the first day to compute. Delete these days' rows in
    ``history``."""
    kept_after = day - timedelta(days=KEPT_DAYS)
    ((begin,),) = connection.execute(_BEGIN, {"kept_after": kept_after, "first": first}).fetchall()
    for table, column in _KEPT_COLUMNS.items():
        connection.execute(f"DELETE FROM history.{table} WHERE {column} >= ?", [begin])  # noqa: S608
    rows = connection.execute(_ABSENT_SINCE, {"begin": begin}).fetchall()
    return {SourceDay(source, at): count for source, at, count in rows}


_KEPT_COLUMNS = {"prices": "day", "first_seen": "first_day", "claim_prices": "day", "spot_prices": "day"}

_ABSENT = """
WITH _absent AS (
    SELECT
        r.source, r.day, r.offers + r.rejects AS rows,
        r.offers > 0 AND o.day IS NULL AS offers,
        r.rejects > 0 AND j.day IS NULL AS rejects,
        r.offers > 0 AND r.day = max(r.day) FILTER (r.offers > 0) OVER (PARTITION BY r.source) AS is_newest
    FROM main.recorded_days AS r
    LEFT JOIN (SELECT DISTINCT source, day FROM main.offers) AS o USING (source, day)
    LEFT JOIN (SELECT DISTINCT source, day FROM main.rejects) AS j USING (source, day)
)
"""

_BEGIN = f"""{_ABSENT}
SELECT least(
    min(day) FILTER ((day > $kept_after AND (offers OR rejects)) OR (is_newest AND offers)),
    $first::DATE - (SELECT coalesce(max(stale_after_days), 0) FROM main.sources)
)
FROM _absent
"""  # noqa: S608 - our own query

_ABSENT_SINCE = f"""{_ABSENT}
SELECT source, day, rows FROM _absent WHERE day >= $begin AND (offers OR rejects)
"""  # noqa: S608 - our own query


def _chunks(rows: Mapping[SourceDay, int], day: date) -> list[tuple[list[SourceDay], date]]:
    """Return chunks of whole days, in order and up to ``day``, each with its last day. The last chunk, which
    may be empty, ends on ``day``."""
    chunks: list[list[SourceDay]] = [[]]
    count = 0
    in_order = sorted((each for each in rows if each.day <= day), key=lambda each: each.day)
    for at, group in groupby(in_order, key=lambda each: each.day):
        of_day = list(group)
        added = sum(rows[each] for each in of_day)
        first = chunks[-1][0].day if chunks[-1] else at
        if chunks[-1] and (count + added > CHUNK_ROWS or (at - first).days >= CHUNK_DAYS):
            chunks.append([])
            count = 0
        chunks[-1] += of_day
        count += added
    return [*((chunk, chunk[-1].day) for chunk in chunks[:-1]), (chunks[-1], day)]


def _compute(connection: duckdb.DuckDBPyConnection, begin: date, end: date) -> None:
    connection.execute("SET VARIABLE history_from = ?::DATE", [begin])
    connection.execute("SET VARIABLE history_to = ?::DATE", [end])
    for table in _DERIVED:
        fill(connection, table)
    connection.execute("RESET VARIABLE history_from")
    connection.execute("RESET VARIABLE history_to")
