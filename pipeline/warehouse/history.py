"""Brings the tables of the record, and those that have rows of every past day, up to a day.

A build continues from the tables of the one before: days of the record that are new, changed or gone since
are loaded or forgotten, and what follows from offers is computed again from the first of these days on.
Starting from empty tables, that is the whole record. Both ways give the same rows.

``offers`` and ``rejects`` hold the newest days. What later days need of those before is kept in the schema
``history`` (sql/history); where one of these days has to be computed again, its offers are loaded again.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import duckdb

from pipeline.home import paths
from pipeline.home.disk import Stamp, stamp_of
from pipeline.home.paths import Home
from pipeline.record.damage import Damage, RecordError
from pipeline.record.journal import Journal
from pipeline.record.months import BY_SOURCE, TABLES, Month, days_of, file_of, months
from pipeline.warehouse.load_record import SourceDay, load_days, load_journal
from pipeline.warehouse.marts import fill, query_of
from pipeline.warehouse.sql_files import run

KEPT_DAYS = 30
"""The days that ``offers`` and ``rejects`` hold; ``offers`` also holds the newest day of each source, however
old."""

CHUNK_DAYS = 31
CHUNK_ROWS = 500_000
"""The days and rows that are loaded at a time; then what is too old for ``offers`` leaves it."""

_DERIVED = ("price_history", "price_changes", "market_index")
"""The tables that follow from offers day by day, each after those it reads."""

Key = tuple[str, str, date]
"""A day of a table of the record: table, source ('' for rankings), day."""


def is_history(table: str) -> bool:
    """Return True if a table is filled here, and not anew by every build."""
    return query_of(table).startswith("-- history")


def bring_up_to_date(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Load the record up to ``day`` and no further, and compute what has rows of every day.

    A past day is built without knowledge of its future. Returns what could not be loaded; rows of
    ``unknown_sources`` are skipped. Raises BuildError, and duckdb.Error when memory or disk space ran out or
    the SQL is wrong.
    """
    connection.execute("SET VARIABLE as_of_day = ?::DATE", [day])
    known = _known_sources(connection)
    damages = _update_from_journal(connection, home, day, known)
    changes = _changes(connection, home, day, known)
    damages += changes.damages + _update_rankings(connection, home, changes)
    first = min((at for _, at in changes.pairs), default=None)
    _forget(connection, changes.pairs)
    begin = _first_day_to_compute(connection, day, first)
    recalled = _recall(connection, day, first)
    _forget(connection, recalled)
    for chunk in _chunks(home, changes.pairs | recalled, day):
        damages += _load(connection, home, changes, chunk)
        if begin is not None and begin <= chunk.end:
            _compute(connection, begin, chunk.end)
            begin = chunk.end + timedelta(days=1)
        connection.execute("SET VARIABLE retired_to = ?::DATE", [chunk.end - timedelta(days=KEPT_DAYS)])
        if connection.execute(_ANY_TO_RETIRE).fetchall() != [(0,)]:
            run(connection, paths.SQL_DIR / "history" / "retire.sql")
            connection.execute("CHECKPOINT")  # what comes next takes the place of what was retired
    connection.execute(_MARK_WHAT_IS_CURRENT)
    _note_files(connection, home, changes, damages)
    return damages


_ANY_TO_RETIRE = """
SELECT count(*)
FROM (SELECT day FROM main.offers UNION ALL SELECT day FROM main.rejects)
WHERE day <= getvariable('retired_to')::DATE
"""

_MARK_WHAT_IS_CURRENT = """
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
"""A change is current until the next one, which is another row."""


def unknown_sources(connection: duckdb.DuckDBPyConnection, home: Home) -> list[str]:
    """Return the sources that the record has and the catalogue does not."""
    recorded = {month.source for table in BY_SOURCE for month in months(home, table)}
    return sorted((recorded | Journal(home).sources()) - _known_sources(connection))


def _known_sources(connection: duckdb.DuckDBPyConnection) -> set[str]:
    return {source for (source,) in connection.execute("SELECT source FROM main.sources").fetchall()}


# ------------------------------------------------------------------------- outcomes and exchange rates


def _update_from_journal(
    connection: duckdb.DuckDBPyConnection, home: Home, day: date, known: Collection[str]
) -> list[Damage]:
    """Load the entries that are new since the last build; all of another journal, or for an earlier day."""
    journal = Journal(home)
    try:
        identity, last = journal.identity() or "", journal.last_through(day)
        note = (identity, last, journal.fingerprint(last), day)
        row = connection.execute("FROM history.loaded_journal").fetchone()
        continues = row is not None and row[0] == identity and row[3] <= day
        # A journal that was put back from a copy has the same identity, and other entries.
        continues = continues and row is not None and journal.fingerprint(row[1]) == row[2]
    except RecordError as error:
        return [error.damage]
    if not continues:
        connection.execute("DELETE FROM main.capture_outcomes")
        connection.execute("DELETE FROM main.exchange_rates")
    damages = load_journal(connection, home, day, row[1] if row and continues else 0, known)
    if damages or row != note:
        connection.execute("DELETE FROM history.loaded_journal")
    if not damages and row != note:
        connection.execute("INSERT INTO history.loaded_journal VALUES (?, ?, ?, ?)", note)
    return damages


# ------------------------------------------------------- months that changed since the last build


@dataclass(slots=True)
class _Changes:
    """The months of the record up to a day against what is loaded of them."""

    new: dict[Key, str] = field(default_factory=dict)
    """Days that are not loaded as they are, with the hash of their rows."""

    gone: set[Key] = field(default_factory=set)
    """Days that are loaded and not there any more as they were."""

    files: dict[Month, Stamp] = field(default_factory=dict)
    """The files that were opened and have no later day, as they were then."""

    damages: list[Damage] = field(default_factory=list)
    """Files whose days cannot be told; those that are loaded are in ``gone``."""

    @property
    def pairs(self) -> set[SourceDay]:
        """The sources' days whose offers or rejects changed: both are loaded and forgotten together."""
        return {(source, day) for table, source, day in self.new.keys() | self.gone if table in BY_SOURCE}


def _changes(
    connection: duckdb.DuckDBPyConnection, home: Home, day: date, known: Collection[str]
) -> _Changes:
    """Compare the record with what is loaded.

    A file that is as it was when all of it was loaded is not opened: what a refresh looks at does not grow
    with the history. Rankings end on the day before, as this build makes the day's own.
    """
    changes = _Changes()
    noted = _noted_files(connection)
    listed = _listed(home, day, known)
    unchanged = {
        month for month, stamp in listed.items() if noted.get(month) == stamp and month.name < f"{day:%Y-%m}"
    }
    found: dict[Key, str] = {}
    for month, stamp in listed.items():
        if month in unchanged:
            continue
        end = day - timedelta(days=1) if month.table == "rankings" else day
        try:
            days = days_of(home, month)
        except RecordError as error:
            changes.damages.append(error.damage)
            continue
        found |= {(month.table, month.source, at): each.digest for at, each in days.items() if at <= end}
        if all(at <= end for at in days):
            changes.files[month] = stamp
    loaded = _loaded_days(connection, unchanged)
    changes.new = {key: digest for key, digest in found.items() if loaded.get(key) != digest}
    changes.gone = {key for key, digest in loaded.items() if found.get(key) != digest}
    _count_as_not_loaded(connection, changes.gone)
    return changes


def _listed(home: Home, day: date, known: Collection[str]) -> dict[Month, Stamp]:
    """Return the months up to a day that are rankings or a known source's, with the stamps of their files."""
    every = (month for table in TABLES for month in months(home, table))
    wanted = (
        month
        for month in every
        if month.name <= f"{day:%Y-%m}" and (month.table not in BY_SOURCE or month.source in known)
    )
    stamps = {month: stamp_of(file_of(home, month)) for month in wanted}
    return {month: stamp for month, stamp in stamps.items() if stamp is not None}


def _noted_files(connection: duckdb.DuckDBPyConnection) -> dict[Month, Stamp]:
    rows = connection.execute("SELECT table_name, source, month, bytes, mtime_ns FROM history.loaded_files")
    return {Month(*month): Stamp(size, mtime) for *month, size, mtime in rows.fetchall()}


def _note_files(
    connection: duckdb.DuckDBPyConnection, home: Home, changes: _Changes, damages: Iterable[Damage]
) -> None:
    """Note the opened files all of whose days are loaded."""
    damaged = {damage.path for damage in damages}
    whole = {month: stamp for month, stamp in changes.files.items() if file_of(home, month) not in damaged}
    noted = _noted_files(connection)
    changed = {month for month in changes.files if noted.get(month) != whole.get(month)}
    _forget_files(connection, changed)
    if new := [(*month, stamp.bytes, stamp.mtime_ns) for month, stamp in whole.items() if month in changed]:
        connection.execute(
            "INSERT INTO history.loaded_files SELECT unnest(?::VARCHAR[]), unnest(?::VARCHAR[]),"
            " unnest(?::VARCHAR[]), unnest(?::BIGINT[]), unnest(?::BIGINT[])",
            _columns(new),
        )


_MONTHS = """(
    SELECT unnest(?::VARCHAR[]) AS table_name, unnest(?::VARCHAR[]) AS source, unnest(?::VARCHAR[]) AS month
)"""

_LOADED_OF_OTHERS = f"""
SELECT table_name, source, day, digest
FROM history.loaded_days AS d
ANTI JOIN {_MONTHS} AS m
    ON m.table_name = d.table_name AND m.source = d.source AND m.month = strftime(d.day, '%Y-%m')
"""  # noqa: S608 - our columns
"""What is loaded of other months than these."""


def _loaded_days(connection: duckdb.DuckDBPyConnection, unchanged: Collection[Month]) -> dict[Key, str]:
    rows = connection.execute(_LOADED_OF_OTHERS, _columns(unchanged) or [[], [], []]).fetchall()
    return {(table, source, day): digest for table, source, day, digest in rows}


def _count_as_not_loaded(connection: duckdb.DuckDBPyConnection, keys: Collection[Key]) -> None:
    """Forget that days are loaded, and so that all of their months are."""
    if keys:
        connection.execute(
            f"DELETE FROM history.loaded_days AS d USING {_KEYS} AS k"  # noqa: S608 - our columns
            " WHERE d.table_name = k.table_name AND d.source = k.source AND d.day = k.day",
            _columns(keys),
        )
        _forget_files(connection, {Month.of(*key) for key in keys})


def _forget_files(connection: duckdb.DuckDBPyConnection, forgotten: Collection[Month]) -> None:
    if forgotten:
        connection.execute(
            f"DELETE FROM history.loaded_files AS f USING {_MONTHS} AS m"  # noqa: S608 - our columns
            " WHERE f.table_name = m.table_name AND f.source = m.source AND f.month = m.month",
            _columns(forgotten),
        )


def _count_as_loaded(connection: duckdb.DuckDBPyConnection, digests: Mapping[Key, str]) -> None:
    if digests:
        connection.execute(
            "INSERT INTO history.loaded_days SELECT unnest(?::VARCHAR[]), unnest(?::VARCHAR[]),"
            " unnest(?::DATE[]), unnest(?::VARCHAR[])",
            _columns([(*key, digest) for key, digest in digests.items()]),
        )


_KEYS = """(
    SELECT unnest(?::VARCHAR[]) AS table_name, unnest(?::VARCHAR[]) AS source, unnest(?::DATE[]) AS day
)"""


def _columns(rows: Collection[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _update_rankings(connection: duckdb.DuckDBPyConnection, home: Home, changes: _Changes) -> list[Damage]:
    gone = [day for table, _, day in changes.gone if table == "rankings"]
    if gone:
        connection.execute("DELETE FROM main.ranking_history WHERE list_contains(?::DATE[], day)", [gone])
    new = [key for key in changes.new if key[0] == "rankings"]
    return _load_days(connection, home, "rankings", new, changes)


def _load_days(
    connection: duckdb.DuckDBPyConnection, home: Home, table: str, keys: Collection[Key], changes: _Changes
) -> list[Damage]:
    """Load days of a table. Those of damaged files count as not loaded: the next build tries them again."""
    damages = load_days(connection, home, table, [(source, day) for _, source, day in keys])
    damaged = {damage.path for damage in damages}
    lost = {key for key in keys if file_of(home, Month.of(*key)) in damaged}
    _count_as_not_loaded(connection, lost)
    _count_as_loaded(connection, {key: changes.new[key] for key in keys if key in changes.new.keys() - lost})
    return damages


# ------------------------------------------------------------------------------------ offers and rejects

_PAIRS = "(SELECT unnest(?::VARCHAR[]) AS source, unnest(?::DATE[]) AS day)"


def _forget(connection: duckdb.DuckDBPyConnection, pairs: Collection[SourceDay]) -> None:
    for table in ("offers", "rejects", "recorded_days") if pairs else ():
        connection.execute(
            f"DELETE FROM main.{table} AS t USING {_PAIRS} AS p"  # noqa: S608 - our own tables
            " WHERE t.source = p.source AND t.day = p.day",
            _columns(pairs),
        )


def _recall(connection: duckdb.DuckDBPyConnection, day: date, first: date | None) -> set[SourceDay]:
    """The days whose offers must be loaded again: those that are to be in ``offers`` and are not, and those
    that count on ``first``, the first day that changed. What is kept of offers since then is forgotten."""
    kept_after = day - timedelta(days=KEPT_DAYS)
    ((wanted,),) = connection.execute(_FIRST_ABSENT, {"kept_after": kept_after}).fetchall()
    if first is not None:
        (stale_days,) = connection.execute("SELECT max(stale_after_days) FROM main.sources").fetchall()[0]
        first -= timedelta(days=stale_days or 0)
    begin = min((each for each in (wanted, first) if each is not None), default=None)
    if begin is None:
        return set()
    for table, column in _KEPT_OF_OFFERS.items():
        connection.execute(f"DELETE FROM history.{table} WHERE {column} >= ?", [begin])  # noqa: S608
    return set(connection.execute(_ABSENT_SINCE, {"begin": begin}).fetchall())


_KEPT_OF_OFFERS = {"prices": "day", "first_seen": "first_day", "claim_prices": "day", "spot_prices": "day"}

_ABSENT = """
WITH _absent AS (
    SELECT
        r.source, r.day,
        r.offers > 0 AND o.day IS NULL AS offers,
        r.rejects > 0 AND j.day IS NULL AS rejects,
        r.offers > 0 AND r.day = max(r.day) FILTER (r.offers > 0) OVER (PARTITION BY r.source) AS is_newest
    FROM main.recorded_days AS r
    LEFT JOIN (SELECT DISTINCT source, day FROM main.offers) AS o USING (source, day)
    LEFT JOIN (SELECT DISTINCT source, day FROM main.rejects) AS j USING (source, day)
)
"""

_FIRST_ABSENT = f"""{_ABSENT}
SELECT min(day) FROM _absent WHERE (day > $kept_after AND (offers OR rejects)) OR (is_newest AND offers)
"""  # noqa: S608 - our own query

_ABSENT_SINCE = f"""{_ABSENT}
SELECT source, day FROM _absent WHERE day >= $begin AND (offers OR rejects)
"""  # noqa: S608 - our own query


@dataclass(slots=True)
class _Chunk:
    """Days that are loaded at a time, the last of which is ``end``."""

    begin: date
    end: date
    pairs: list[SourceDay] = field(default_factory=list)
    rows: int = 0


def _chunks(home: Home, pairs: Collection[SourceDay], day: date) -> list[_Chunk]:
    """Return whole days in their order; the last chunk, which may be empty, ends on ``day``."""
    chunks: list[_Chunk] = []
    for source, at in sorted((pair for pair in pairs if pair[1] <= day), key=lambda pair: (pair[1], pair[0])):
        rows = sum(_recorded_rows(home, (table, source, at)) or 0 for table in BY_SOURCE)
        chunk = chunks[-1] if chunks else None
        is_full = chunk is not None and (
            chunk.rows + rows > CHUNK_ROWS or (at - chunk.begin).days >= CHUNK_DAYS
        )
        if chunk is None or (is_full and chunk.end != at):
            chunk = _Chunk(at, at)
            chunks.append(chunk)
        chunk.end, chunk.rows = at, chunk.rows + rows
        chunk.pairs.append((source, at))
    if chunks:
        chunks[-1].end = day
    return chunks or [_Chunk(day, day)]


def _recorded_rows(home: Home, key: Key) -> int | None:
    """Return the number of a day's rows, 0 where its file cannot be read; None where it lacks the day."""
    try:
        found = days_of(home, Month.of(*key)).get(key[2])
    except RecordError:
        return 0
    return found.rows if found else None


def _load(
    connection: duckdb.DuckDBPyConnection, home: Home, changes: _Changes, chunk: _Chunk
) -> list[Damage]:
    damages: list[Damage] = []
    for table in BY_SOURCE:
        keys = [(table, *pair) for pair in chunk.pairs]
        recorded = [key for key in keys if _recorded_rows(home, key) is not None]
        damages += _load_days(connection, home, table, recorded, changes)
    if chunk.pairs:
        connection.execute(
            f"INSERT INTO main.recorded_days BY NAME SELECT * FROM ({query_of('recorded_days')}) AS r"  # noqa: S608
            f" SEMI JOIN {_PAIRS} AS p USING (source, day)",
            _columns(chunk.pairs),
        )
    return damages


# ---------------------------------------------------------------------------- what follows from offers


def _first_day_to_compute(
    connection: duckdb.DuckDBPyConnection, day: date, first: date | None
) -> date | None:
    """The day from which on everything is computed, whose rows are deleted; None where nothing changed.

    The index of a day of publishing without offers is of that publication only.
    """
    without_offers = connection.execute(_WITHOUT_OFFERS, [day]).fetchall() == [(0,)]
    begin = min((at for at in (first, day if without_offers else None) if at is not None), default=None)
    connection.execute(_FORGET_DAYS_WITHOUT_OFFERS)
    for table in _DERIVED if begin is not None else ():
        connection.execute(f"DELETE FROM main.{table} WHERE day >= ?", [begin])  # noqa: S608 - our own tables
    return begin


_WITHOUT_OFFERS = "SELECT count(*) FROM main.recorded_days WHERE offers > 0 AND day = ?"

_FORGET_DAYS_WITHOUT_OFFERS = """
DELETE FROM main.market_index AS i
WHERE i.day NOT IN (SELECT r.day FROM main.recorded_days AS r WHERE r.offers > 0)
"""


def _compute(connection: duckdb.DuckDBPyConnection, begin: date, end: date) -> None:
    connection.execute("SET VARIABLE history_from = ?::DATE", [begin])
    connection.execute("SET VARIABLE history_to = ?::DATE", [end])
    for table in _DERIVED:
        fill(connection, table)
    connection.execute("RESET VARIABLE history_from")
    connection.execute("RESET VARIABLE history_to")
