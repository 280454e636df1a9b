"""Whether an error of loading files is a file's fault, and not that of the SQL which loads it."""

import re
from collections.abc import Mapping

import duckdb

from pipeline.record.record_files import RecordFile
from pipeline.warehouse.connection import connect

Columns = Mapping[str, str]
"""Names of columns with their types, as DuckDB calls them."""

_OF_FILES = (
    ValueError,
    duckdb.IOException,
    duckdb.InvalidInputException,
    duckdb.InvalidTypeException,
    duckdb.SerializationException,
    duckdb.DataError,
    duckdb.IntegrityError,
    duckdb.NotSupportedError,
)
"""What bytes and values can be wrong with."""

_TABLES = {
    "outcomes": "capture_outcomes",
    "rankings": "ranking_history",
}
"""The tables of folders that are not named like them."""

_OF_MERGED_TEXTS = {"day": "DATE", "attempt": "VARCHAR", "content": "VARCHAR"}
"""The columns of a month's file of what is JSON by day."""


def is_of_file(connection: duckdb.DuckDBPyConnection, error: Exception, file: RecordFile) -> bool:
    """Whether ``error``, raised when ``file`` was loaded alone, is proof that the file is damaged.

    An error of binding is, where the file's own columns are not what it complains of the lack or type of; one
    of parsing, of the catalogue or of DuckDB itself never is.
    """
    if isinstance(error, _OF_FILES):
        return True
    if not isinstance(error, duckdb.BinderException) or file.path.suffix != ".parquet":
        return False
    try:
        found = _columns_of(file)
    except duckdb.Error:
        return True
    text, _, _ = str(error).partition("\nLINE ")
    expected = _expected(connection, file)
    names = {f'"{name}"' for name in found.keys() ^ expected.keys()}
    types = {re.sub(r"\(.*", "", kind) for name, kind in found.items() if expected.get(name, kind) != kind}
    # Further lines name columns that are near in spelling.
    return any(name in text.splitlines()[0] for name in names) or any(kind in text for kind in types)


def _columns_of(file: RecordFile) -> Columns:
    with connect() as alone:
        rows = alone.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(file.path)]).fetchall()
    return {name: kind for name, kind, *_ in rows}


def _expected(connection: duckdb.DuckDBPyConnection, file: RecordFile) -> Columns:
    if file.folder in ("outcomes", "exchange_rates"):
        return _OF_MERGED_TEXTS
    query = """SELECT column_name, data_type FROM duckdb_columns()
                WHERE table_name = ? AND database_name = current_database()"""
    rows = connection.execute(query, [_TABLES.get(file.folder, file.folder)]).fetchall()
    return dict(rows)
