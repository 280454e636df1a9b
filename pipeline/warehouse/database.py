"""The one builder of what every database of gpufare starts from: tables, catalogue and macros."""

import duckdb

from pipeline.home import paths
from pipeline.warehouse.connection import connect, transaction
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.load import load_catalog
from pipeline.warehouse.sql_files import macro_scripts, run, scripts

_PARAMETERS = paths.CATALOG_DIR / "model_parameters.csv"
_CONSTANT_NAMES = "SELECT name FROM read_csv(?)"
"""The constants of the model: the fields of the struct that the macro ``constants`` returns."""


def create(connection: duckdb.DuckDBPyConnection, *wanted: str) -> None:
    """Create the tables and define the macros: all, or those that the named tables and macros need.

    Raises BuildError.
    """
    every = [*scripts("schema"), *macro_scripts()]
    chosen = Lineage(connection).scripts(wanted) if wanted else every
    # One transaction: some 900 statements that each commit alone would take three times as long.
    with transaction(connection):
        connection.execute(f"CREATE TYPE main.constant_name AS ENUM ({_CONSTANT_NAMES})", [str(_PARAMETERS)])
        for script in [paths.SQL_DIR / "history" / "tables.sql", *chosen]:
            run(connection, script)


def prepare(connection: duckdb.DuckDBPyConnection, *wanted: str) -> None:
    """Like ``create``, with the catalogue's tables filled: all that a question without prices needs.

    Raises BuildError, and CatalogError when the catalogue does not fit its tables.
    """
    create(connection, *wanted)
    load_catalog(connection)


def in_memory(*wanted: str) -> duckdb.DuckDBPyConnection:
    """A prepared database in memory for the named tables and macros, or for all."""
    connection = connect()
    prepare(connection, *wanted)
    return connection


def planner(*wanted: str) -> duckdb.DuckDBPyConnection:
    """``in_memory`` for plans of many jobs: a join hashes the side that is written last.

    DuckDB expects some ten rows of the planner's settings, which are thousands, and would hash these wide
    rows in place of the catalogue's: half as much again of processor time, much of it in one thread.
    """
    connection = in_memory(*wanted)
    connection.execute("SET disabled_optimizers = 'build_side_probe_side'")
    return connection
