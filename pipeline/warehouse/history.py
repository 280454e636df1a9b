"""Brings the tables that hold past days up to date with the record.

A build continues from the tables of the previous one. Days of the record whose hash changed are deleted and
inserted again, and tables derived from offers are computed again from the first changed day. Starting from
empty tables loads the whole record. Both ways give the same rows.

``offers`` and ``rejects`` hold the newest days. What later days need from older ones is kept in the schema
``history`` (sql/history); computing an older day again loads its offers again.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import groupby
from typing import NamedTuple

import duckdb
import polars as pl

from pipeline.home import paths
from pipeline.home.disk import stamp_of
from pipeline.home.paths import Home
from pipeline.record.damage import Damage, RecordError
from pipeline.record.journal import Journal
from pipeline.record.months import BY_SOURCE, TABLES, Month, SourceDay, days_of, file_of, months
from pipeline.warehouse.load_record import JOURNAL_KINDS, delete_days, given, load_days, place_of, places
from pipeline.warehouse.marts import fill, query_of
from pipeline.warehouse.sql_files import run

KEPT_DAYS = 30
"""Days that ``offers`` and ``rejects`` hold. ``offers`` also holds each source's newest day, of any age."""

CHUNK_DAYS = 31
CHUNK_ROWS = 500_000
"""Most days and rows loaded at a time; then days too old for ``offers`` are removed."""

_DERIVED = ("price_history", "price_changes", "market_index")
"""Tables derived from offers day by day, each after those it reads."""


class _Key(NamedTuple):
    """A day of a record table or of a kind of journal entry. ``source`` is '' for rankings and exchange
    rates. The table ``as_of_day`` has the day being built."""

    table: str
    source: str
    day: date


class _Note(NamedTuple):
    """A note on a loaded day: the hash of its rows, and the stamp of its file if all the file's days are
    loaded."""

    digest: str
    bytes: int | None = None
    mtime_ns: int | None = None


@dataclass(slots=True)
class _Changes:
    """Days as they are ``recorded`` and as they are ``loaded``: all days of the journal, and the days of
    months whose files were opened."""

    recorded: dict[_Key, _Note] = field(default_factory=dict)
    loaded: dict[_Key, _Note] = field(default_factory=dict)
    rows: Counter[SourceDay] = field(default_factory=Counter)
    damages: list[Damage] = field(default_factory=list)
    lost: set[_Key] = field(default_factory=set)
    """Days that are not loaded because their files are damaged."""

    def days(self, *tables: str) -> set[SourceDay]:
        """Return the days that changed."""
        recorded, loaded = (
            {(key, note.digest) for key, note in notes.items() if key.table in tables}
            for notes in (self.recorded, self.loaded)
        )
        return {SourceDay(key.source, key.day) for key, _ in recorded ^ loaded}


def is_history(table: str) -> bool:
    """Return True if a table is filled here rather than by every build."""
    return query_of(table).startswith("-- history")


def bring_up_to_date(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Load the record up to ``day`` and compute the derived tables; later days are ignored.

    Returns the damaged files. Rows of ``unknown_sources`` are skipped. Raises BuildError, and duckdb.Error if
    memory or disk space ran out or the SQL is wrong.
    """
    connection.execute("SET VARIABLE as_of_day = ?::DATE", [day])
    changes = _changes(connection, home, day)
    for table in (*JOURNAL_KINDS, "rankings"):
        changed = changes.days(table)
        delete_days(connection, table, changed)
        there = {each for each in changed if _Key(table, *each) in changes.recorded}
        _load(connection, home, table, there, changes)
    if changes.days(*BY_SOURCE, "as_of_day"):
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
"""A change is current until the next one."""


def unknown_sources(connection: duckdb.DuckDBPyConnection, home: Home) -> list[str]:
    """Return the sources in the record that are not in the catalogue."""
    recorded = {month.source for table in BY_SOURCE for month in months(home, table)}
    return sorted((recorded | Journal(home).sources()) - _known_sources(connection))


def _known_sources(connection: duckdb.DuckDBPyConnection) -> set[str]:
    return {source for (source,) in connection.execute("SELECT source FROM main.sources").fetchall()}


# ----------------------------------------------------------------- what changed since the last build


def _changes(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> _Changes:
    """Compare the record with the loaded days.

    A file with the stamp it had when all of it was loaded is not opened, so the work of a refresh does not
    grow with the history. Rankings end on the previous day, as this build computes the day's own.
    """
    changes = _Changes(recorded={_Key("as_of_day", "", day): _Note("")})
    known = {"", *_known_sources(connection)}
    every = (month for table in TABLES for month in months(home, table))
    here = [month for month in every if month.name <= f"{day:%Y-%m}" and month.source in known]
    stamps = {month: stamp_of(file_of(home, month)) for month in here}
    noted = _noted_stamps(connection)
    unchanged = {month for month in here if month.name < f"{day:%Y-%m}" and noted.get(month) == stamps[month]}
    for month in stamps.keys() - unchanged:
        end = day - timedelta(days=1) if month.table == "rankings" else day
        try:
            days = days_of(home, month)
        except RecordError as error:
            changes.damages.append(error.damage)
            continue
        stamp = stamps[month] if all(at <= end for at in days) else None
        for at, each in days.items():
            if at <= end:
                changes.recorded[_Key(month.table, month.source, at)] = _Note(each.digest, *(stamp or ()))
                changes.rows[SourceDay(month.source, at)] += each.rows
    opened = noted.keys() - unchanged
    try:
        digests = {kind: Journal(home).digests(kind, day) for kind in JOURNAL_KINDS}
        for kind, found in digests.items():
            for (source, at), digest in found.items():
                if source in known:
                    changes.recorded[_Key(kind, source, at)] = _Note(digest)
    except RecordError as error:
        changes.damages.append(error.damage)
        opened = {month for month in opened if month.table not in JOURNAL_KINDS}
    changes.loaded = _loaded(connection, opened)
    return changes


def _noted_stamps(connection: duckdb.DuckDBPyConnection) -> dict[Month, tuple[int | None, ...]]:
    """Return the months with loaded days, each with its file's stamp if all of its days are loaded."""
    rows = connection.execute(
        "SELECT table_name, source, strftime(day, '%Y-%m'), min(bytes), min(mtime_ns)"
        " FROM history.loaded_days GROUP BY ALL"
    ).fetchall()
    return {Month(*row[:3]): row[3:] for row in rows}


_KEY_COLUMNS = {"table_name": pl.String, "source": pl.String, "day": pl.Date}
_NOTE_COLUMNS = {**_KEY_COLUMNS, "digest": pl.String, "bytes": pl.Int64, "mtime_ns": pl.Int64}
_MONTH_COLUMNS = {"table_name": pl.String, "source": pl.String, "month": pl.String}


def _loaded(connection: duckdb.DuckDBPyConnection, opened: Collection[Month]) -> dict[_Key, _Note]:
    """Return the notes on the days of some months."""
    with given(connection, pl.DataFrame(list(opened), _MONTH_COLUMNS, orient="row")):
        rows = connection.execute(
            "SELECT d.* FROM history.loaded_days AS d SEMI JOIN given AS g ON g.table_name = d.table_name"
            " AND g.source = d.source AND g.month = strftime(d.day, '%Y-%m')"
        ).fetchall()
    return {_Key(*row[:3]): _Note(*row[3:]) for row in rows}


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


def _note(connection: duckdb.DuckDBPyConnection, changes: _Changes) -> None:
    """Note the loaded days. The next build tries months with lost days again."""
    loaded, recorded = changes.loaded, changes.recorded
    outdated = {key for key, note in loaded.items() if recorded.get(key) != note} | changes.lost
    new = [
        (*key, *note) for key, note in recorded.items() if key not in changes.lost and loaded.get(key) != note
    ]
    with given(connection, pl.DataFrame(list(outdated), _KEY_COLUMNS, orient="row")):
        connection.execute(
            "DELETE FROM history.loaded_days AS d USING given AS g"
            " WHERE d.table_name = g.table_name AND d.source = g.source AND d.day = g.day"
        )
    with given(connection, pl.DataFrame(new, _NOTE_COLUMNS, orient="row")):
        connection.execute("INSERT INTO history.loaded_days FROM given")
    lost = {Month.of(*key) for key in changes.lost}
    with given(connection, pl.DataFrame(list(lost), _MONTH_COLUMNS, orient="row")):
        connection.execute(
            "UPDATE history.loaded_days AS d SET bytes = NULL, mtime_ns = NULL FROM given AS g"
            " WHERE d.table_name = g.table_name AND d.source = g.source"
            " AND strftime(d.day, '%Y-%m') = g.month"
        )


# ------------------------------------------------------- offers, rejects and the tables derived from them


def _update_offers(connection: duckdb.DuckDBPyConnection, home: Home, day: date, changes: _Changes) -> None:
    """Load changed and recalled days, a chunk of days at a time, and compute the derived tables."""
    changed = changes.days(*BY_SOURCE)
    begin = min([day, *(each.day for each in changed)])
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
        connection.execute("CHECKPOINT")  # reuses the space of the removed rows


_FORGET_DAYS_WITHOUT_OFFERS = """
DELETE FROM main.market_index AS i
WHERE i.day NOT IN (SELECT r.day FROM main.recorded_days AS r WHERE r.offers > 0)
"""
"""The index of a published day without offers belongs to that publication only."""


def _forget(connection: duckdb.DuckDBPyConnection, days: Collection[SourceDay]) -> None:
    for table in BY_SOURCE:
        delete_days(connection, table, days)
    with given(connection, places(days)):
        connection.execute(
            "DELETE FROM main.recorded_days AS r USING given AS g WHERE r.source = g.source AND r.day = g.day"
        )


def _recall(connection: duckdb.DuckDBPyConnection, day: date, first: date) -> dict[SourceDay, int]:
    """Return the days to load again, with their numbers of rows: days missing from ``offers`` or
    ``rejects``, and days that count on ``first``, the first day to compute. Delete their rows in
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
    """Return chunks of whole days in order, up to ``day``, each with its last day. The last chunk, which may
    be empty, ends on ``day``."""
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
