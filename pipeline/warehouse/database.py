"""Creates the parts that every database starts from: tables, catalogue and macros."""

import duckdb

from pipeline.catalog.schema import read_table, table_names
from pipeline.home import paths
from pipeline.warehouse.connection import connect, path_for_duckdb, transaction
from pipeline.warehouse.ddl import create_sql
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.load import load_catalog
from pipeline.warehouse.sql_files import macro_scripts, run

_PARAMETERS = paths.CATALOG_DIR / "model_parameters.csv"
_CONSTANT_NAMES = "SELECT name FROM read_csv(?)"
"""The names of the model's constants: the fields of the struct that the macro ``constants`` returns."""


def create(connection: duckdb.DuckDBPyConnection, *wanted: str) -> None:
    """Create the tables and define the macros: all of them, or those that the named tables and macros need.

    Raises BuildError, and CatalogError if a declaration in sql/schema is wrong.
    """
    tables, macros = Lineage(connection).needed(wanted) if wanted else (table_names(), macro_scripts())
    # In one transaction: about 900 statements, each committed alone, would take three times as long.
    with transaction(connection):
        connection.execute(
            f"CREATE TYPE main.constant_name AS ENUM ({_CONSTANT_NAMES})", [path_for_duckdb(_PARAMETERS)]
        )
        run(connection, paths.SQL_DIR / "history" / "tables.sql")
        for name in tables:
            connection.execute(create_sql(read_table(name)))
        for script in macros:
            run(connection, script)


def prepare(connection: duckdb.DuckDBPyConnection, *wanted: str) -> None:
    """Create the tables and macros and load the catalogue, which is all that a question without prices needs.

    Raises BuildError, and CatalogError if the catalogue does not fit its tables.
    """
    create(connection, *wanted)
    load_catalog(connection)


def in_memory(*wanted: str) -> duckdb.DuckDBPyConnection:
    """Return a prepared database in memory for the named tables and macros, or for all of them."""
    connection = connect()
    prepare(connection, *wanted)
    return connection


def planner(*wanted: str) -> duckdb.DuckDBPyConnection:
    """Return an ``in_memory`` database for planning many jobs; its joins hash the side written last.

    DuckDB estimates about ten rows for the planner's settings, of which there are thousands. It would hash
    these wide rows instead of the catalogue's, which takes 50% more processor time, much of it in one thread.
    """
    connection = in_memory(*wanted)
    connection.execute("SET disabled_optimizers = 'build_side_probe_side'")
    return connection
