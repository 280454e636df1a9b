"""Brings the tables of the record, and those that have rows of every past day, up to a day.

A build goes on from the tables of the one before: files of the record that are new, changed or gone since are
loaded or forgotten, and what follows from offers is computed again from the first day that they concern on.
Starting from empty tables, that is the whole record. Both ways give the same rows.

``offers`` and ``rejects`` hold the newest days. What later days need of those before is kept in the schema
``history`` (sql/history); where one of these days has to be computed again, its offers are loaded again.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb

from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.record.months import Stamp, damage_of_month, days_of_month, stamp_of
from pipeline.record.record_files import (
    SOURCE_FOLDERS,
    Damage,
    MonthFile,
    RecordFile,
    own_and_months,
    parts_besides,
)
from pipeline.warehouse.load import LOADERS, MARK_THE_ATTEMPTS_THAT_STAND, Insert, load_files
from pipeline.warehouse.marts import fill, query_of
from pipeline.warehouse.rankings import insert_rankings
from pipeline.warehouse.sql_files import run

KEPT_DAYS = 30
"""``offers`` and ``rejects`` hold so many days, and ``offers`` the newest day of each source, however old."""

CHUNK_DAYS = 31
CHUNK_BYTES = 32_000_000
"""So many days or bytes of files are loaded at a time; then what is too old for ``offers`` leaves it."""

_PRICES = ("offers", "rejects")
_OTHERS = {
    "outcomes": ("capture_outcomes", LOADERS["outcomes"][1]),
    "exchange_rates": ("exchange_rates", LOADERS["exchange_rates"][1]),
    "rankings": ("ranking_history", insert_rankings),
}

_DERIVED = ("price_history", "price_changes", "market_index")
"""The tables that follow from offers day by day, each after those it reads."""

Pair = tuple[str, date]
"""A source and a day. Its offers and its rejects are loaded and forgotten together."""

Month = tuple[str, str, str]
"""A month's file: folder, source, name of the month."""

Key = tuple[str, str | None, date, str, int, int]
"""A day of the record as it is: folder, source, day, attempt; bytes and time of change of its file."""


def is_history(table: str) -> bool:
    """Whether a table is filled here, and not anew by every build."""
    return query_of(table).startswith("-- history")


def bring_up_to_date(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Load the record up to ``day`` and no further, and compute what has rows of every day.

    A past day is built without knowledge of its future. What cannot be loaded is left out and returned; what
    is of sources that the catalogue does not have (``unknown_sources``) is left out until it has them.
    Raises BuildError, and duckdb.Error when memory or disk space ran out or the SQL is wrong.
    """
    connection.execute("SET VARIABLE as_of_day = ?::DATE", [day])
    changes = _changes(connection, home, day)
    damages = changes.damages + _update_others(connection, changes)
    first = min((at for _, at in changes.pairs), default=None)
    _forget(connection, changes.pairs)
    begin = _first_day_to_compute(connection, day, first)
    recalled = _recall(connection, day, first)
    changes.open(changes.pairs | recalled)
    _forget(connection, recalled)
    for chunk in _chunks(changes, changes.pairs | recalled, day):
        damages += _load(connection, changes, chunk)
        if begin is not None and begin <= chunk.end:
            _compute(connection, begin, chunk.end)
            begin = chunk.end + timedelta(days=1)
        connection.execute("SET VARIABLE retired_to = ?::DATE", [chunk.end - timedelta(days=KEPT_DAYS)])
        if connection.execute(_ANY_TO_RETIRE).fetchall() != [(0,)]:
            run(connection, paths.SQL_DIR / "history" / "retire.sql")
            connection.execute("CHECKPOINT")  # what comes next takes the place of what was retired
    connection.execute(_MARK_WHAT_IS_CURRENT)
    _count_as_whole(connection, changes, damages)
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
"""A change is current until the next one: new rows say so of themselves, not of those before."""


# ---------------------------------------------------------------------- what changed since the last build


@dataclass(frozen=True, slots=True)
class _Changes:
    """The record up to a day against what is loaded of it."""

    keys: dict[RecordFile, Key]
    """Of the files of days and attempts, and of what the months' files have that were opened."""

    new: list[RecordFile]
    gone: list[Key]
    """What is loaded and not there any more as it was."""

    months: Mapping[Month, Stamp]
    """The files of months that have no other file beside them and end by the day, as they are."""

    unopened: Mapping[Month, MonthFile]
    """Those of them that are as they were when all that they have was loaded."""

    damages: list[Damage]
    """Files of months that were damaged since their days were loaded. These days are in ``gone``."""

    @property
    def pairs(self) -> set[Pair]:
        """The sources' days whose offers or rejects changed."""
        changed = [*(self.keys[file] for file in self.new), *self.gone]
        return {(source, day) for folder, source, day, *_ in changed if source and folder in _PRICES}

    def open(self, pairs: Collection[Pair]) -> None:
        """Find the offers and rejects of some days in the months that were not opened."""
        wanted = {(folder, source, f"{day:%Y-%m}") for source, day in pairs for folder in _PRICES}
        for month in wanted & self.unopened.keys():
            self.keys.update((file, _key(file)) for file in self.unopened[month].parts())


def _changes(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> _Changes:
    """Compare the record with what is loaded. What is gone or changed counts as loaded no more.

    A month's file that is as it was when all of it was loaded is not opened: what a refresh looks at does
    not grow with the history.
    """
    own, files = _listed(home, day, _known_sources(connection))
    stamps = {month: stamp for month, file in files.items() if (stamp := _stamp(file.path)) is not None}
    beside = {_month_of(file.folder, file.source, file.day) for file in own}
    months = {
        month: stamp
        for month, stamp in stamps.items()
        if month not in beside and days_of_month(month[2])[-1] <= day
    }
    loaded = _whole_months(connection)
    unopened = {month: files[month] for month, stamp in months.items() if loaded.get(month) == stamp}
    opened = [files[month] for month in stamps.keys() - unopened.keys()]
    found = [*own, *(file for file in parts_besides(own, opened) if file.day <= day)]
    keys = {file: _key(file) for file in found}
    known: set[Key] = set(
        connection.execute(_LOADED_OF_OTHERS, _columns(unopened) or [[], [], []]).fetchall()
    )
    damages = _damages_since_loaded(keys, known)
    damaged = {damage.file.path for damage in damages}
    keys = {file: key for file, key in keys.items() if file.path not in damaged}
    gone = list(known - set(keys.values()))
    _count_as_not_loaded(connection, gone)
    new = [file for file, key in keys.items() if key not in known]
    return _Changes(keys, new, gone, months, unopened, damages)


def unknown_sources(connection: duckdb.DuckDBPyConnection, home: Home) -> dict[str, list[str]]:
    """Sources that the record has and the catalogue does not, each with the folders of the record that have
    files of it."""
    known = _known_sources(connection)
    found: dict[str, list[str]] = {}
    for folder in SOURCE_FOLDERS:
        for path in sorted((home.root / folder).glob("*")):
            if path.name not in known and path.is_dir() and any(own_and_months(home, folder, path.name)):
                found.setdefault(path.name, []).append(folder)
    return found


def _known_sources(connection: duckdb.DuckDBPyConnection) -> set[str]:
    return {source for (source,) in connection.execute("SELECT source FROM main.sources").fetchall()}


def _listed(home: Home, day: date, known: Collection[str]) -> tuple[list[RecordFile], dict[Month, MonthFile]]:
    """The record of known sources up to a day; of the rankings those of the days before, as this build makes
    the day's own."""
    found: list[RecordFile] = []
    months: dict[Month, MonthFile] = {}
    for folder in (*_PRICES, *_OTHERS):
        own, merged = own_and_months(home, folder)
        end = day - timedelta(days=1) if folder == "rankings" else day
        found += [file for file in own if file.day <= end and (file.source is None or file.source in known)]
        months |= {
            (folder, file.source or "", file.name): file
            for file in merged
            if file.name <= f"{day:%Y-%m}" and (file.source is None or file.source in known)
        }
    return sorted(found, key=lambda file: (file.folder, file.source or "", file.part)), months


def _stamp(path: Path) -> Stamp | None:
    try:
        return stamp_of(path)
    except FileNotFoundError:  # gone meanwhile: the next build says so
        return None


def _month_of(folder: str, source: str | None, day: date) -> Month:
    return folder, source or "", f"{day:%Y-%m}"


def _damages_since_loaded(keys: Mapping[RecordFile, Key], known: Collection[Key]) -> list[Damage]:
    """The opened files of months that are damaged though days of theirs are loaded.

    The keys of a month's parts are from its file's metadata and say nothing of its rows. A file that is not
    as it was when it was loaded is therefore read whole: it was merged again, copied, or damaged. Of a file
    with neither another size nor another time of change nobody learns here.
    """
    loaded = {file.path: file for file, key in keys.items() if file.merged is not None and key in known}
    damages = []
    for path, file in loaded.items():
        with suppress(FileNotFoundError):  # gone meanwhile: loading it, or the next build, says so
            if (reason := damage_of_month(path, file.source or "")) is not None:
                damages.append(Damage(file, reason))
    return damages


def _whole_months(connection: duckdb.DuckDBPyConnection) -> dict[Month, Stamp]:
    rows = connection.execute("SELECT folder, source, month, bytes, mtime_ns FROM history.whole_months")
    return {(folder, source, month): Stamp(*stamp) for folder, source, month, *stamp in rows.fetchall()}


def _count_as_whole(
    connection: duckdb.DuckDBPyConnection, changes: _Changes, damages: Collection[Damage]
) -> None:
    """Note the months of which all is loaded, once it is."""
    damaged = {
        _month_of(damage.file.folder, damage.file.source, damage.file.day)
        for damage in damages
        if damage.file.month
    }
    whole = {month: stamp for month, stamp in changes.months.items() if month not in damaged}
    noted = _whole_months(connection)
    if outdated := [month for month, stamp in noted.items() if whole.get(month) != stamp]:
        connection.execute(
            f"DELETE FROM history.whole_months AS w USING {_OF_MONTHS} AS m"  # noqa: S608 - our columns
            " WHERE w.folder = m.folder AND w.source = m.source AND w.month = m.month",
            _columns(outdated),
        )
    if new := [
        (*month, stamp.bytes, stamp.mtime_ns) for month, stamp in whole.items() if noted.get(month) != stamp
    ]:
        connection.execute(
            "INSERT INTO history.whole_months SELECT unnest(?::VARCHAR[]), unnest(?::VARCHAR[]),"
            " unnest(?::VARCHAR[]), unnest(?::BIGINT[]), unnest(?::BIGINT[])",
            _columns(new),
        )


_OF_MONTHS = """(
    SELECT
        unnest(?::VARCHAR[]) AS folder, unnest(?::VARCHAR[]) AS source, unnest(?::VARCHAR[]) AS month
)"""


_KEY = "folder, source, day, attempt, bytes, mtime_ns"

_LOADED_OF_OTHERS = f"""
SELECT {_KEY}
FROM history.loaded_files AS f
WHERE NOT EXISTS (
    FROM {_OF_MONTHS} AS m
    WHERE m.folder = f.folder AND m.source = coalesce(f.source, '') AND m.month = strftime(f.day, '%Y-%m')
)
"""  # noqa: S608 - our columns
"""What is loaded of other months than these."""


def _key(file: RecordFile) -> Key:
    try:
        stamp = file.stamp()
    except OSError:  # loading it says what is wrong with it
        stamp = Stamp(-1, -1)
    return file.folder, file.source, file.day, file.attempt, stamp.bytes, stamp.mtime_ns


def _count_as_not_loaded(connection: duckdb.DuckDBPyConnection, keys: Collection[Key]) -> None:
    if keys:
        connection.execute(
            f"DELETE FROM history.loaded_files AS f USING {_OF_KEYS} AS k"  # noqa: S608 - our columns
            " WHERE f.folder = k.folder AND f.source IS NOT DISTINCT FROM k.source AND f.day = k.day"
            " AND f.attempt = k.attempt",
            _columns(keys),
        )


def _count_as_loaded(connection: duckdb.DuckDBPyConnection, keys: Collection[Key]) -> None:
    if keys:
        _count_as_not_loaded(connection, keys)
        connection.execute(
            f"INSERT INTO history.loaded_files BY NAME FROM {_OF_KEYS}",
            _columns(keys),
        )


_OF_KEYS = """(
    SELECT
        unnest(?::VARCHAR[]) AS folder, unnest(?::VARCHAR[]) AS source, unnest(?::DATE[]) AS day,
        unnest(?::VARCHAR[]) AS attempt, unnest(?::BIGINT[]) AS bytes, unnest(?::BIGINT[]) AS mtime_ns
)"""


def _columns(rows: Collection[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _update_others(connection: duckdb.DuckDBPyConnection, changes: _Changes) -> list[Damage]:
    """Bring the tables up to date that nothing else is derived from day by day."""
    damages: list[Damage] = []
    for folder, (table, insert) in _OTHERS.items():
        if gone := [key for key in changes.gone if key[0] == folder]:
            connection.execute(
                f"DELETE FROM main.{table} AS t USING {_OF_KEYS} AS k WHERE t.day = k.day"  # noqa: S608
                + (" AND t.source = k.source AND t.attempt = k.attempt" if folder == "outcomes" else ""),
                _columns(gone),
            )
        damages += _load_files(connection, changes, [f for f in changes.new if f.folder == folder], insert)
    connection.execute(MARK_THE_ATTEMPTS_THAT_STAND)
    return damages


def _load_files(
    connection: duckdb.DuckDBPyConnection, changes: _Changes, files: Sequence[RecordFile], insert: Insert
) -> list[Damage]:
    """Load files. Damaged ones count as not loaded: the next build tries them again."""
    damages = load_files(connection, files, insert)
    damaged = {damage.file.path for damage in damages}
    _count_as_not_loaded(connection, [changes.keys[file] for file in files if file.path in damaged])
    _count_as_loaded(connection, [changes.keys[file] for file in files if file.path not in damaged])
    return damages


# ------------------------------------------------------------------------------------ offers and rejects

_OF_PAIRS = "(SELECT unnest(?::VARCHAR[]) AS source, unnest(?::DATE[]) AS day)"


def _forget(connection: duckdb.DuckDBPyConnection, pairs: Collection[Pair]) -> None:
    for table in ("offers", "rejects", "recorded_days") if pairs else ():
        connection.execute(
            f"DELETE FROM main.{table} AS t USING {_OF_PAIRS} AS p"  # noqa: S608 - our own tables
            " WHERE t.source = p.source AND t.day = p.day",
            _columns(pairs),
        )


def _recall(connection: duckdb.DuckDBPyConnection, day: date, first: date | None) -> set[Pair]:
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

    end: date
    pairs: list[Pair]
    files: dict[str, list[RecordFile]]
    begin: date
    bytes: int = 0


def _chunks(changes: _Changes, pairs: Collection[Pair], day: date) -> list[_Chunk]:
    """Whole days in their order; the last chunk, which may be empty, ends on ``day``."""
    files: dict[Pair, list[RecordFile]] = {}
    for file in changes.keys:
        if file.folder in _PRICES and file.source is not None and (file.source, file.day) in pairs:
            files.setdefault((file.source, file.day), []).append(file)
    chunks: list[_Chunk] = []
    for pair in sorted((pair for pair in pairs if pair[1] <= day), key=lambda pair: (pair[1], pair[0])):
        at, size = pair[1], sum(changes.keys[file][4] for file in files.get(pair, ()))
        chunk = chunks[-1] if chunks else None
        is_full = chunk is not None and (
            chunk.bytes + size > CHUNK_BYTES or (at - chunk.begin).days >= CHUNK_DAYS
        )
        if chunk is None or (is_full and chunk.end != at):
            chunk = _Chunk(at, [], {folder: [] for folder in _PRICES}, at)
            chunks.append(chunk)
        chunk.end, chunk.bytes = at, chunk.bytes + size
        chunk.pairs.append(pair)
        for file in files.get(pair, ()):
            chunk.files[file.folder].append(file)
    if chunks:
        chunks[-1].end = day
    return chunks or [_Chunk(day, [], {folder: [] for folder in _PRICES}, day)]


def _load(connection: duckdb.DuckDBPyConnection, changes: _Changes, chunk: _Chunk) -> list[Damage]:
    damages: list[Damage] = []
    for folder, files in chunk.files.items():
        damages += _load_files(connection, changes, files, LOADERS[folder][1])
    if chunk.pairs:
        connection.execute(
            f"INSERT INTO main.recorded_days BY NAME SELECT * FROM ({query_of('recorded_days')}) AS r"  # noqa: S608
            f" SEMI JOIN {_OF_PAIRS} AS p USING (source, day)",
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
