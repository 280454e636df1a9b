"""Builds the database from the record: schema, catalogue, offers, model, tables, checks - in that order.

The file is built whole, under another name, and only then put where readers look. Nothing in it is kept
from an earlier build, so it can be thrown away at any time.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import duckdb

from pipeline.contracts import paths
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.paths import Home
from pipeline.warehouse import load as facts

STORAGE_VERSION = "v1.5.0"
"""The oldest DuckDB whose shell opens the published file."""

RANKING = "cheapest_gpu_per_workload"

Progress = Callable[[str], None]


class BuildError(GpufareError):
    """The database could not be built: says which file or table, and what DuckDB said."""


class CheckFailedError(BuildError):
    """A check of sql/checks found rows that must not be published."""


@dataclass(slots=True)
class Report:
    """What a build held: rows by table, and the warnings of the checks."""

    rows: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def connect(file: Path) -> duckdb.DuckDBPyConnection:
    """Open a new database file for writing, as the default of a connection that never goes to a network."""
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    )
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"ATTACH '{_quoted(file)}' AS gpufare (STORAGE_VERSION '{STORAGE_VERSION}')")
    connection.execute("USE gpufare")
    return connection


def build(file: Path, home: Home, day: date, now: datetime, progress: Progress = lambda text: None) -> Report:
    """Build the database of ``day`` into ``file`` (which must not exist), as of the moment ``now`` (UTC).

    Raises BuildError when a statement fails and CheckFailedError when a check says no.
    """
    report = Report()
    with connect(file) as connection:
        prepare(connection)
        try:
            _load_records(connection, home, day)
        except duckdb.Error as error:
            raise BuildError(f"the record under {home.root} cannot be loaded: {error}") from error
        connection.execute("SET VARIABLE as_of_day = ?::DATE", [day])
        connection.execute("SET VARIABLE as_of_time = ?::TIMESTAMPTZ", [now])
        for table in _in_order(connection):
            progress(f"building {table.stem}")
            _fill(connection, table, home)
        _keep_ranking(connection, home, day)
        report.warnings = run_checks(connection)
        report.rows = _row_counts(connection)
        connection.execute("USE memory")
        connection.execute("DETACH gpufare")
    return report


def prepare(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables, load the catalogue and define the macros: all that a what-if needs."""
    for script in _scripts("schema"):
        _run(connection, script)
    facts.load_catalog(connection)
    for script in _scripts("model"):
        _run(connection, script)


def _scripts(room: str) -> list[Path]:
    return sorted((paths.SQL_DIR / room).glob("*.sql"))


def _run(connection: duckdb.DuckDBPyConnection, script: Path) -> None:
    try:
        connection.execute(script.read_text(encoding="utf-8"))
    except duckdb.Error as error:
        raise BuildError(f"sql/{script.parent.name}/{script.name}: {error}") from error


def _load_records(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> None:
    """Load everything up to ``day``: a rebuilt past day must not know its future."""
    _load_parquet(connection, "offers", home.offers, day)
    _load_parquet(connection, "rejects", home.rejects, day)
    facts.load_json_records(connection, "capture_outcomes", home.outcomes, "*/*.json", day)
    facts.load_json_records(connection, "exchange_rates", home.exchange_rates, "*.json", day)
    earlier = [path for path in home.rankings.glob("*.parquet") if date.fromisoformat(path.stem) < day]
    for path in sorted(earlier):
        connection.execute(f"INSERT INTO main.{RANKING} BY NAME FROM read_parquet(?)", [str(path)])


def _load_parquet(connection: duckdb.DuckDBPyConnection, table: str, folder: Path, day: date) -> None:
    files = [path for path in folder.glob("*/*.parquet") if date.fromisoformat(path.stem) <= day]
    if not files:
        return
    connection.execute(
        f"""INSERT INTO main.{table} BY NAME
            SELECT * EXCLUDE (filename), parse_filename(filename, true)::DATE AS day
              FROM read_parquet(?, filename = true, union_by_name = true)
             ORDER BY day, source""",  # noqa: S608 - our own table
        [sorted(map(str, files))],
    )


def _in_order(connection: duckdb.DuckDBPyConnection) -> list[Path]:
    """The files of sql/marts so that each comes after the tables it reads."""
    macros = _macros(connection)
    files = {path.stem: path for path in _scripts("marts")}
    return [files[name] for name in _sorted({name: _reads(path, macros) for name, path in files.items()})]


def _sorted(reads: Mapping[str, set[str]]) -> list[str]:
    """Tables in an order in which each comes after those it reads; names that are no key are left out."""
    within = {name: sorted(read & reads.keys() - {name}) for name, read in sorted(reads.items())}
    try:
        return list(TopologicalSorter(within).static_order())
    except CycleError as error:
        raise BuildError(f"sql/marts: tables read each other in a circle: {error.args[1]}") from error


def _macros(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The definitions of our macros by name."""
    return dict(
        connection.execute(
            "SELECT function_name, any_value(macro_definition) FROM duckdb_functions()"
            " WHERE database_name = current_database() AND NOT internal GROUP BY ALL"
        ).fetchall()
    )


def _reads(path: Path, macros: Mapping[str, str]) -> set[str]:
    """The tables that a file reads, also through macros.

    Read from the text, where every table stands in full (``main.offers``): ``get_table_names`` of
    DuckDB 2.0 refuses queries that join several tables with USING.
    """
    text = re.sub(r"--.*", "", path.read_text(encoding="utf-8"))
    found: set[str] = set()
    seen: set[str] = set()
    open_texts = [text]
    while open_texts:
        text = open_texts.pop()
        found |= set(re.findall(r'\bmain\."?(\w+)', text))
        called = {name for name in re.findall(r'(\w+)"?\(', text) if name in macros} - seen
        seen |= called
        open_texts += [macros[name] for name in called]
    return found


def table_lineage() -> list[tuple[str, set[str], str]]:
    """Each published table after those it reads: its name, the tables that it reads, its comment."""
    with duckdb.connect() as connection:
        for script in (*_scripts("schema"), *_scripts("model")):
            _run(connection, script)
        macros = _macros(connection)
        found = connection.execute("SELECT table_name, comment FROM duckdb_tables()").fetchall()
    comments: dict[str, str] = dict(found)
    reads = {path.stem: _reads(path, macros) for path in _scripts("marts")}
    known = {name: reads.get(name, set()) & comments.keys() - {name} for name in comments}
    return [(name, known[name], comments[name]) for name in _sorted(known)]


def _fill(connection: duckdb.DuckDBPyConnection, path: Path, home: Home) -> None:
    query = path.read_text(encoding="utf-8").rstrip().rstrip(";")
    try:
        if "-- timeless" in query.partition("\n")[0]:
            query = _cached(connection, path, query, home)
        connection.execute(f"INSERT INTO main.{path.stem} BY NAME {query}")
    except duckdb.Error as error:
        raise BuildError(f"sql/marts/{path.name}: {error}") from error


def _cached(connection: duckdb.DuckDBPyConnection, path: Path, query: str, home: Home) -> str:
    """Compute a table that depends on the catalogue and the model only once per state of these two."""
    file = home.cache / f"{path.stem}-{_state_of_model()}.parquet"
    if not file.exists():
        home.cache.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(".tmp")
        connection.execute(f"COPY ({query}) TO '{_quoted(temporary)}' (FORMAT parquet)")
        for stale in home.cache.glob(f"{path.stem}-*.parquet"):
            stale.unlink()
        temporary.rename(file)
    return f"FROM read_parquet('{_quoted(file)}')"


def _state_of_model() -> str:
    """A hash over everything that plans rest on."""
    digest = hashlib.sha256()
    for folder in (paths.CATALOG_DIR, paths.SQL_DIR / "model", paths.SQL_DIR / "marts"):
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _keep_ranking(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> None:
    """Write the day's ranking beside the record, so that later days can show it as it was published."""
    home.rankings.mkdir(parents=True, exist_ok=True)
    file = home.rankings / f"{day}.parquet"
    temporary = file.with_suffix(".tmp")
    connection.execute(
        f"COPY (FROM main.{RANKING} WHERE day = getvariable('as_of_day')) TO '{_quoted(temporary)}'"
        " (FORMAT parquet)"
    )
    temporary.rename(file)


def run_checks(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Run sql/checks. Returns the warnings. Raises CheckFailedError on the first check that says no."""
    warnings = []
    for path in _scripts("checks"):
        query = path.read_text(encoding="utf-8")
        header = re.match(r"-- (fail|warn): (.+)", query)
        if header is None:
            raise BuildError(
                f"sql/checks/{path.name}: the first line must be '-- fail: ...' or '-- warn: ...'"
            )
        try:
            rows = connection.execute(query).fetchmany(3)
        except duckdb.Error as error:
            raise BuildError(f"sql/checks/{path.name}: {error}") from error
        if rows:
            message = f"{header.group(2)} (sql/checks/{path.name}; first: {rows[0]})"
            if header.group(1) == "fail":
                raise CheckFailedError(message)
            warnings.append(message)
    return warnings


def _row_counts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    names = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = 'gpufare' ORDER BY 1"
    ).fetchall()
    counts = {}
    for (name,) in names:
        row = connection.execute(f'SELECT count(*) FROM main."{name}"').fetchone()  # noqa: S608
        counts[name] = row[0] if row else 0
    return counts


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
