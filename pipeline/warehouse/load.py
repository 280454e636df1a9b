"""Loads the catalogue and the record into their tables."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from pipeline.catalog.machine_sizes import machine_size_rows
from pipeline.catalog.own import OwnCatalogue, read_own_catalogue
from pipeline.catalog.source_config import CatalogError, SourceConfig, configs
from pipeline.catalog.workloads import workloads
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.contracts.tiers import NAMED_BY_TIER
from pipeline.home import paths
from pipeline.home.disk import is_exhaustion
from pipeline.home.paths import Home
from pipeline.record.months import merged_parts
from pipeline.record.record_files import Damage, RecordFile, record_file, record_files
from pipeline.warehouse.blame import is_of_file
from pipeline.warehouse.connection import transaction

Rows = Sequence[Mapping[str, Any]]


def load_catalog(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the catalogue's tables, as far as they exist: catalog/X.csv into main.X, and those in ``_ROWS``.

    Raises CatalogError naming the file when a column or a value does not fit its table.
    """
    tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    for path in sorted(paths.CATALOG_DIR.glob("*.csv")):
        if path.stem in tables - _ROWS.keys():
            _load_csv(connection, path)
    for table in _ROWS.keys() & tables:
        _insert(connection, table, _ROWS[table]())


def load_planned(connection: duckdb.DuckDBPyConnection, own: OwnCatalogue) -> None:
    """Add to the catalogue's tables, as far as they exist, the user's own rows that plans depend on."""
    tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    for table, rows in own.planned().items():
        if table in tables:
            _insert(connection, table, rows)


def load_other_models(connection: duckdb.DuckDBPyConnection, own: OwnCatalogue) -> None:
    """Add the user's own models that are not there yet: plans of published workloads need none of them."""
    loaded = {name for (name,) in connection.execute("SELECT model FROM main.models").fetchall()}
    if rows := [model.row() for model in own.models if model.model not in loaded]:
        _insert(connection, "models", rows)


def load_own_catalogue(connection: duckdb.DuckDBPyConnection, home: Home) -> list[str]:
    """Add the user's own models and GPUs to the catalogue's. Returns what could not be loaded, in lines."""
    own = read_own_catalogue(home)
    load_planned(connection, own)
    load_other_models(connection, own)
    return [problem for _, problem in own.problems]


def _load_csv(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    with path.open(newline="", encoding="utf-8") as file:
        columns = ", ".join(f'"{name}"' for name in next(csv.reader(file)))
    try:
        connection.execute(
            f"COPY main.{path.stem} ({columns}) FROM '{path}' (HEADER, NULLSTR '', AUTO_DETECT false)"
        )
    except duckdb.Error as error:
        raise CatalogError(f"catalog/{path.name} does not fit its table: {error}") from error


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Rows) -> None:
    """Insert rows with the same keys, by their names. One statement for all: for small tables."""
    names = ", ".join(f'"{name}"' for name in rows[0])
    marks = ", ".join("?" for _ in rows[0])
    connection.execute(
        f"INSERT INTO main.{table} ({names}) VALUES {', '.join(f'({marks})' for _ in rows)}",  # noqa: S608
        [value for row in rows for value in row.values()],
    )


def _source_row(config: SourceConfig) -> dict[str, Any]:
    """One row of the table ``sources``."""
    attributes, billing = config.attributes, config.billing
    return {
        "source": config.name,
        "title": config.title,
        "provider": config.provider,
        "homepage": config.homepage,
        "kind": config.kind,
        "evidence_level": config.evidence.level,
        "evidence_date": config.evidence.date,
        "evidence_note": config.evidence.note,
        "terms_automated": config.terms.automated,
        "terms_url": config.terms.url,
        "terms_read_on": config.terms.read_on,
        "terms_note": config.terms.note or None,
        "coverage_share": config.coverage.share,
        "coverage_regions": config.coverage.regions,
        "coverage_with_key": config.coverage.with_key,
        "currency": config.currency,
        "key_variables": ", ".join(config.key_variables) or None,
        "needs_key": config.needs_key,
        "disabled": config.disabled,
        "stale_after_days": config.stale_after_days,
        "billing_increment_seconds": billing.increment_seconds,
        "minimum_seconds": billing.minimum_seconds,
        "min_gpu_count": billing.min_gpu_count,
        "charged_while_stopped": billing.charged_while_stopped,
        "storage_usd_per_gb_month": attributes.storage_usd_per_gb_month,
        "egress_usd_per_gb": attributes.egress_usd_per_gb,
        "interconnect": attributes.interconnect,
        "node_network_gbps": attributes.node_network_gbps,
        "max_nodes": attributes.max_nodes,
        "tier_class": attributes.tier_class,
        "country": attributes.country,
        "persistent_disk": attributes.persistent_disk,
        "local_nvme": attributes.local_nvme,
        "serverless_training": attributes.serverless_training,
        "notes": config.notes or None,
    }


def _source_rows() -> Rows:
    return [_source_row(config) for config in configs().values()]


def _reject_reasons() -> Rows:
    return [
        {"reason": reason.value, "sentence": reason.sentence, "held": reason.held} for reason in RejectReason
    ]


_ROWS = {
    "sources": _source_rows,
    "workloads": workloads,
    "reject_reasons": _reject_reasons,
    "machine_sizes": machine_size_rows,
}


def load_newest(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Load what the state of each source on ``day`` depends on: its last accepted offers or exchange rates,
    and the outcomes since. Returns what could not be loaded; the file before it is then taken."""
    damages: list[Damage] = []

    def newest(folder: str, source: str | None) -> date:
        for file in reversed(record_files(home, folder, source)):
            if file.day <= day and all(file.path != damage.file.path for damage in damages):
                if not (damage := load_files(connection, [file], LOADERS[folder][1])):
                    return file.day
                damages.extend(damage)
        return date.min

    rates_since = newest("exchange_rates", None)
    for config in configs().values():
        since = rates_since if config.kind == "exchange_rates" else newest("offers", config.name)
        outcomes = record_files(home, "outcomes", config.name)
        recent = [file for file in outcomes if since <= file.day <= day]
        damages += load_files(connection, recent, _insert_outcomes)
    connection.execute(MARK_THE_ATTEMPTS_THAT_STAND)
    return damages


Insert = Callable[[duckdb.DuckDBPyConnection, Sequence[RecordFile]], None]
"""Inserts the rows of some files. Raises duckdb.Error and ValueError when one of them cannot be loaded."""


def load_files(
    connection: duckdb.DuckDBPyConnection, files: Sequence[RecordFile], insert: Insert
) -> list[Damage]:
    """Insert all files at once, which is fast, or halve them until what cannot be loaded is alone.

    Returns what was left out, a month's file once. Raises duckdb.Error when memory or disk space ran out, and
    where the error is not the file's (see ``blame``): a mistake in our SQL costs no file.
    """
    if not files:
        return []
    try:
        with transaction(connection):
            insert(connection, files)
    except (duckdb.Error, ValueError) as error:
        if is_exhaustion(error):
            raise
        paths = sorted({file.path for file in files})
        if len(paths) == 1:
            if not is_of_file(connection, error, files[0]):
                raise
            return [Damage(files[0], str(error).splitlines()[0])]
        first = set(paths[: len(paths) // 2])
        return [
            *load_files(connection, [file for file in files if file.path in first], insert),
            *load_files(connection, [file for file in files if file.path not in first], insert),
        ]
    return []


def tier_class_column() -> str:
    """The rule of ``contracts.tiers`` in SQL, for records of versions that kept no class."""
    of_sources = {name: config.attributes.tier_class for name, config in configs().items()}
    return f"""
coalesce(
    tier_class,
    if(price_kind = 'serverless', 'serverless', NULL),
    nullif(regexp_extract(tier, '{NAMED_BY_TIER}'), ''),
    (MAP {of_sources})[source],
    'dedicated'
) AS tier_class"""


def insert_days(
    connection: duckdb.DuckDBPyConnection, table: str, files: Sequence[RecordFile], replaced: str = ""
) -> None:
    """Insert the days of some files, of their own and of whole months, with columns ``replaced``. Columns
    that files of earlier versions do not have are null."""
    paths = {file.path for file in files if file.month}
    _check_rows(connection, paths)
    wanted = {(file.path, file.day) for file in files}
    unwanted = [
        (str(path), day) for path in paths for day, _ in merged_parts(path) or () if (path, day) not in wanted
    ]
    connection.execute(
        f"INSERT INTO main.{table} BY NAME"  # noqa: S608 - our own table
        f" SELECT * EXCLUDE (filename, position) REPLACE ({_OF_ITS_PLACE}{replaced})"
        f" FROM ((SELECT *, NULL::INTEGER AS position FROM main.{table} LIMIT 0) UNION ALL BY NAME"
        " FROM read_parquet($files, filename = true, union_by_name = true))"
        + (_UNWANTED if unwanted else "")
        + " ORDER BY day, source, position",
        {"files": [str(path) for path in {file.path: None for file in files}]}
        | (
            {"paths": [path for path, _ in unwanted], "days": [day for _, day in unwanted]}
            if unwanted
            else {}
        ),
    )


def _check_rows(connection: duckdb.DuckDBPyConnection, months: Set[Path]) -> None:
    """Raises ValueError when the file of a month has not the rows that its metadata says."""
    if not months:
        return
    names = [str(path) for path in months]
    found = connection.execute("SELECT file_name, num_rows FROM parquet_file_metadata(?)", [names]).fetchall()
    for name, rows in found:
        parts = merged_parts(Path(name))
        if parts is None or rows != sum(part.rows for part in parts.values()):
            raise ValueError("it has not the rows that its metadata says")


_UNWANTED = """
ANTI JOIN (SELECT unnest($paths::VARCHAR []) AS filename, unnest($days::DATE []) AS day)
    USING (filename, day)"""
"""Days of months that have a file of their own, or are not asked for."""

_OF_ITS_PLACE = """
if(source = parse_path(filename)[-2], source, error('it is of ' || source || ', which is not its place'))
    AS source,
CASE
    WHEN length(parse_filename(filename, true)) > 7 THEN parse_filename(filename, true)::DATE
    WHEN strftime(day, '%Y-%m') = parse_filename(filename, true) THEN day
    ELSE error('it has rows of ' || coalesce(day::VARCHAR, 'no day') || ', which is not its place')
END AS day"""

_SIZE_EVIDENCE = """
coalesce(size_evidence, CASE
    WHEN instance_type IS NOT NULL OR gpu_count <> 1 OR native_unit NOT LIKE 'gpu_%'
        OR tier LIKE 'marketplace%' THEN 'offered'
    ELSE 'assumed'
END) AS size_evidence"""
"""Earlier versions kept no evidence of sizes. The same rule as in pipeline/offers/build.py."""


_SERVERLESS_SPOT = """
if(price_kind = 'serverless' AND tier = 'spot', 'spot', price_kind) AS price_kind,
if(price_kind = 'serverless' AND tier = 'spot', 'serverless', tier) AS tier"""
"""In earlier versions serverless spot was serverless. The same rule as in pipeline/record/records.py."""


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


def _own_labels_column(connection: duckdb.DuckDBPyConnection) -> str:
    if connection.execute("SELECT getvariable('own_labels') IS NULL").fetchone() == (True,):
        return ""
    own = (
        "(getvariable('own_labels')::MAP(VARCHAR, VARCHAR))"
        "[lower(trim(regexp_replace(raw_label, '\\s+', ' ', 'g')))]"
    )
    return "," + _OWN_LABELS.format(own=own, found=f"gpu_id IS NULL AND {own} IS NOT NULL")


def _insert_offers(connection: duckdb.DuckDBPyConnection, files: Sequence[RecordFile]) -> None:
    own = _own_labels_column(connection)
    insert_days(
        connection, "offers", files, f",{_SIZE_EVIDENCE},{_SERVERLESS_SPOT},{tier_class_column()}{own}"
    )


def _insert_rejects(connection: duckdb.DuckDBPyConnection, files: Sequence[RecordFile]) -> None:
    insert_days(connection, "rejects", files)


def _insert_outcomes(connection: duckdb.DuckDBPyConnection, files: Sequence[RecordFile]) -> None:
    """Earlier versions kept no attempt."""
    select = "* REPLACE (coalesce(attempt, '') AS attempt, false AS stands)"
    keys = _insert_json(connection, "capture_outcomes", files, select, "source, day, attempt")
    _check_places(keys, [(file.source, file.day, file.attempt) for file in files])


def _insert_rates(connection: duckdb.DuckDBPyConnection, files: Sequence[RecordFile]) -> None:
    keys = _insert_json(connection, "exchange_rates", files, "*", "day, currency")
    if len(keys) != len(set(keys)):
        raise ValueError("it gives a currency two rates")
    _check_places(sorted({(day,) for day, _ in keys}), [(file.day,) for file in files])


def _check_places(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    if sorted(found) != sorted(expected):
        raise ValueError("it has not the rows that belong in its place")


def _insert_json(
    connection: duckdb.DuckDBPyConnection, table: str, files: Sequence[RecordFile], select: str, keys: str
) -> list[tuple[Any, ...]]:
    """Read the table's own columns from the files, other fields are left out; returns the rows' ``keys``."""
    columns = connection.execute(
        "SELECT column_name, data_type FROM duckdb_columns()"
        " WHERE table_name = ? AND database_name = current_database()",
        [table],
    ).fetchall()
    insert = f"INSERT INTO main.{table} BY NAME SELECT {select} FROM ({{}}) RETURNING {keys}"  # noqa: S608
    found = []
    if own := [str(file.path) for file in files if not file.month]:
        query = insert.format("FROM read_json(?, columns = ?)")
        found += connection.execute(query, [own, dict(columns)]).fetchall()
    if merged := [(str(file.path), file.day, file.attempt) for file in files if file.month]:
        lost = " OR ".join(
            f"(parsed.{name} IS NULL AND item->>'{name}' IS NOT NULL)"
            for name, kind in columns
            if kind != "VARCHAR"
        )
        paths, days, attempts = zip(*merged, strict=True)
        found += connection.execute(
            insert.format(_TEXTS_OF_MONTHS.format(lost=lost)),
            {
                "files": list(dict.fromkeys(paths)),
                "structure": json.dumps(dict(columns)),
                "paths": list(paths),
                "days": list(days),
                "attempts": list(attempts),
            },
        ).fetchall()
    return found


_TEXTS_OF_MONTHS = """
SELECT unnest(if({lost}, error('it has values that are not of the types of the record'), parsed))
FROM (
    SELECT item, json_transform(item, $structure) AS parsed
    FROM (
        SELECT unnest(if(json_type(content) = 'ARRAY', content->'$[*]', [content::JSON])) AS item
        FROM read_parquet($files, filename = true)
        SEMI JOIN (
            SELECT
                unnest($paths::VARCHAR []) AS filename, unnest($days::DATE []) AS day,
                unnest($attempts::VARCHAR []) AS attempt
        ) USING (filename, day, attempt)
    )
)"""
"""The wanted texts of months' files, as rows. json_transform makes null of what it cannot cast."""


LOADERS: dict[str, tuple[str, Insert]] = {
    "offers": ("offers", _insert_offers),
    "rejects": ("rejects", _insert_rejects),
    "outcomes": ("capture_outcomes", _insert_outcomes),
    "exchange_rates": ("exchange_rates", _insert_rates),
}
"""The folders of what was captured, each with its table and what inserts its files."""

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


NEEDED_REJECTS_DAYS = 30
"""Rejects are missed for so long: held prices are released by them (docs/explanation/retention.md)."""


def missing_files(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Offers, rejects and exchange rates that are not loaded, though the attempt that stands of their day has
    some; of rejects those of the last month before ``day``, as older ones may be deleted by hand."""
    rows = connection.execute(
        _MISSING, {"rejects_after": day - timedelta(days=NEEDED_REJECTS_DAYS)}
    ).fetchall()
    files = [
        RecordFile(home.exchange_rates / f"{day}.json", folder, day)
        if folder == "exchange_rates"
        else RecordFile(home.root / folder / source / f"{day}.parquet", folder, day, source)
        for folder, source, day in rows
    ]
    reason = "it is missing, though its outcome was accepted"
    return [Damage(file, reason, missing=True) for file in files if not _is_there(home, file)]


def _is_there(home: Home, file: RecordFile) -> bool:
    """Whether a day has a file of its own, or its month's has it, or is damaged so that nobody can tell."""
    try:
        record_file(home, file.folder, file.source, file.day)
    except FileNotFoundError:
        return False
    return True


_MISSING = """
WITH _expected AS (
    SELECT if(s.kind = 'exchange_rates', s.kind, 'offers') AS folder, o.source, o.day
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
    SELECT 'offers' AS folder, source, day FROM main.recorded_days WHERE offers > 0
    UNION ALL
    SELECT 'rejects', source, day FROM main.recorded_days WHERE rejects > 0
)

SELECT e.folder, e.source, e.day
FROM _expected AS e
ANTI JOIN _loaded AS l USING (folder, source, day)
ANTI JOIN (SELECT DISTINCT 'exchange_rates' AS folder, day FROM main.exchange_rates) AS r USING (folder, day)
ORDER BY ALL
"""


def load_incidents(connection: duckdb.DuckDBPyConnection, home: Home) -> list[Damage]:
    """Load the incidents, again if need be. What cannot be loaded is left out and returned."""
    connection.execute("DELETE FROM main.incidents")
    today = datetime.now(UTC).date()
    files = [RecordFile(path, "incidents", today) for path in sorted(home.incidents.glob("[!.]*.json"))]
    return load_files(connection, files, _insert_incidents)


def _insert_incidents(connection: duckdb.DuckDBPyConnection, files: Sequence[RecordFile]) -> None:
    if len(_insert_json(connection, "incidents", files, "*", "kind")) != len(files):
        raise ValueError("it is not one incident")
