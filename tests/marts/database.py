"""A small database from CSV files: tables, macros and marts of sql/, with rows from a folder."""

import atexit
import csv
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import duckdb
import yaml

from pipeline.catalog.schema import table_names
from pipeline.catalog.tables import catalog_rows
from pipeline.offers.build import tier_class
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import create
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.marts import fill

CASES = Path(__file__).parent / "cases"

BASE = CASES / "_base"

AS_OF_DAY = "2026-08-22"

# Values that a case need not repeat in each row; its own values override them.
DEFAULTS: Mapping[str, Mapping[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("defaults.yaml").read_text(encoding="utf-8")
)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a CSV file; an empty cell is None."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: text or None for name, text in row.items()} for row in csv.DictReader(file)]


def _rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """Return a case's rows of a table, or the base's; of cost parameters, also the base's of other names."""
    own, base = (place / f"{table}.csv" for place in (folder, BASE))
    rows = rows_of(own) if own.exists() else []
    if table == "cost_parameters":
        named = {row["name"] for row in rows}
        return rows + [row for row in rows_of(base) if row["name"] not in named]
    return rows if own.exists() or not base.exists() else rows_of(base)


def _completed(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    full = {**DEFAULTS.get(table, {}), **{k: v for k, v in row.items() if v is not None}}
    if table == "offers":
        full.setdefault("provider", full["source"].title())
        full.setdefault("raw_label", full.get("gpu_id", "?"))
        full.setdefault("observed_at", f"{full['day']} 06:00:00+00")
        full.setdefault("native_price", full.get("usd_per_hour"))
        full.setdefault("tier_class", tier_class(full.get("tier"), full["price_kind"], "dedicated"))
        by_the_gpu = full["native_unit"].startswith("gpu_") and full["gpu_count"] == "1"
        named = "instance_type" in full or "gpu_counts" in full or full["tier_class"] == "marketplace"
        full.setdefault("size_evidence", "assumed" if by_the_gpu and not named else "offered")
        if full.get("usd_per_hour"):
            full.setdefault("usd_per_gpu_hour", Decimal(full["usd_per_hour"]) / Decimal(full["gpu_count"]))
    if table == "plans" and "tokens_per_second" in full:
        full.setdefault("tokens_per_second_low", full["tokens_per_second"])
        full.setdefault("tokens_per_second_high", full["tokens_per_second"])
    if table == "sources":
        full.setdefault("title", full["source"].title())
        full.setdefault("provider", full["source"].title())
    return full


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows, all that have the same columns in one statement."""
    place = table if table.startswith("history.") else f"main.{table}"
    completed = [_completed(table, row) for row in rows]
    for names, alike in groupby(sorted(completed, key=lambda row: [*row]), key=lambda row: [*row]):
        values = [[*row.values()] for row in alike]
        marks = ", ".join(f"({', '.join('?' * len(names))})" for _ in values)
        columns = ", ".join(f'"{name}"' for name in names)
        connection.execute(f"INSERT INTO {place} ({columns}) VALUES {marks}", [*chain.from_iterable(values)])


@cache
def _empty() -> Path:
    """A file with every table and macro of sql/ and no rows but the settings of a job, made once."""
    folder = tempfile.mkdtemp(prefix="gpufare-empty-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = Path(folder) / "empty.duckdb"
    with connect(file) as connection:
        create(connection)
        settings = catalog_rows("job_settings.csv")
        _insert(connection, "job_settings", [{k: v or None for k, v in row.items()} for row in settings])
    return file


@cache
def _shared() -> duckdb.DuckDBPyConnection:
    """The database in which this worker tries the cases, each in a transaction that is rolled back."""
    connection = connect(Path(shutil.copy(_empty(), _empty().with_name("shared.duckdb"))))
    connection.execute("SET threads = 1")
    return connection


@contextmanager
def macros() -> Iterator[duckdb.DuckDBPyConnection]:
    """Lend a database with every table and macro of sql/ and no rows; what is written is rolled back."""
    connection = _shared()
    connection.begin()
    try:
        yield connection
    finally:
        connection.rollback()


@contextmanager
def stored(folder: Path, place: Path, queries: Iterable[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a file of its own with a case, for what errors or changes; otherwise as ``case``."""
    with connect(Path(shutil.copy(_empty(), place / "case.duckdb"))) as connection:
        load(connection, folder, queries)
        yield connection


def set_day(connection: duckdb.DuckDBPyConnection) -> None:
    """Make AS_OF_DAY the day of the publication and the present one, for this connection."""
    connection.execute(f"SET VARIABLE as_of_day = DATE '{AS_OF_DAY}'")
    connection.execute(f"SET VARIABLE today = DATE '{AS_OF_DAY}'")
    connection.execute(f"SET VARIABLE as_of_time = TIMESTAMPTZ '{AS_OF_DAY} 07:00:00+00'")


@contextmanager
def case(folder: Path, queries: Iterable[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Lend the database of a case as of AS_OF_DAY, with the marts filled that the queries read, except those
    that the case lists and the plans.

    ``before_<mart>.csv`` has a mart's rows of earlier days; those of no table are temporary ones of text.
    """
    with macros() as connection:
        load(connection, folder, queries)
        try:
            yield connection
        finally:
            for name in _variables(folder):
                connection.execute(f"RESET VARIABLE {name}")


def load(connection: duckdb.DuckDBPyConnection, folder: Path, queries: Iterable[str]) -> None:
    """Insert the rows of a case, and fill the marts that the queries read."""
    offers = _rows(folder, "offers")
    sources = _rows(folder, "sources")
    others = {row["source"] for row in offers} - {row["source"] for row in sources}
    _insert(connection, "sources", [*sources, *({"source": source} for source in sorted(others))])
    _insert(connection, "offers", offers)
    own = {path.stem for path in folder.glob("*.csv") if not path.stem.startswith("expected_")}
    for table in (*table_names(), *(name for name in own if name.startswith("history."))):
        if table not in ("offers", "sources", "job_settings"):
            _insert(connection, table, _rows(folder, table))
    for name in own - {*table_names(), "variables"}:
        if name.startswith("before_"):
            _insert(connection, name.removeprefix("before_"), rows_of(folder / f"{name}.csv"))
        elif not name.startswith("history."):
            _text_table(connection, name, rows_of(folder / f"{name}.csv"))
    set_day(connection)
    for name, value in _variables(folder).items():
        connection.execute(f"SET VARIABLE {name} = {value}")
    lineage = Lineage(connection)
    named: set[str] = set().union(*map(lineage.names_in, queries))
    for mart in lineage.marts(named):
        if mart not in own | {"plans", "plan_grid"}:
            fill(connection, mart)


def _variables(folder: Path) -> dict[str, str]:
    path = folder / "variables.csv"
    return {row["name"]: row["value"] for row in rows_of(path)} if path.exists() else {}


def _text_table(connection: duckdb.DuckDBPyConnection, name: str, rows: list[dict[str, Any]]) -> None:
    columns = ", ".join(f'"{column}" VARCHAR' for column in rows[0])
    connection.execute(f"CREATE TEMP TABLE {name} ({columns})")
    marks = ", ".join(f"({', '.join('?' * len(row))})" for row in rows)
    values = [value for row in rows for value in row.values()]
    connection.execute(f"INSERT INTO {name} VALUES {marks}", values)
