"""The process in which a query of the tool sql runs: it prints the answer to the query on stdin as JSON.

It has no keys, a limit on its memory, and a timer that ends it even within C code. Its query may read the
tables and macros of the published file, and nothing that tells of this machine.
"""

import json
import math
import signal
import sys
from collections.abc import Collection, Iterator
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb

from pipeline.contracts.errors import GpufareError
from pipeline.home.processes import limit_memory
from pipeline.parsing.printable import printable
from pipeline.warehouse.query import QueryError, is_one_reading, readable, reader

MOST_SECONDS = 10
MOST_MEMORY_BYTES = 2**31
MOST_ROWS = 1_000
MOST_COLUMNS = 60
MOST_CELL_CHARACTERS = 300
MOST_CHARACTERS = 16_000
"""The most characters of rows, as JSON, besides the last row: a few times what an answer has room for."""

_CATALOGUE = ("columns", "duckdb_columns", "duckdb_functions", "duckdb_tables", "duckdb_views", "tables")
"""What a query may ask DuckDB about: the tables, columns and macros of the published file."""

_TABLE_FUNCTIONS = ("generate_series", "range", "unnest", *_CATALOGUE)
"""The table functions that a query may use besides the published macros; all others read files or tell of
this machine."""

_LITERALS = ("list_value", "struct_pack", "ORDER_MODIFIER")
"""The functions to which the parser turns a written list or struct."""

_CONSTANTS = ("STRING", "INTEGER", "NUMERIC", "BOOLEAN", "NULL_LITERAL")
"""The constants that an argument may be; those of bytes and bits could become the name of a table."""

_REFUSED_FUNCTIONS = frozenset({"current_setting", "getenv", "write_log"})

_KINDS = "one SELECT, FROM, WITH, DESCRIBE, SHOW or SUMMARIZE statement"


def main() -> None:
    """Run the query on stdin on the file that the first argument names, and print the answer as JSON."""
    limit_memory(MOST_MEMORY_BYTES)
    # Ends this process even if the one that started it is gone.
    signal.setitimer(signal.ITIMER_REAL, 2 * MOST_SECONDS)
    try:
        with reader(Path(sys.argv[1]), spills=False) as connection:
            found = answer(connection, sys.stdin.buffer.read().decode())
    except (GpufareError, MemoryError) as error:
        reason = str(error)[:MOST_CHARACTERS]
        found = {"refusal": reason or "the query needs too much memory: ask for less"}
    print(json.dumps(found))


def answer(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    """Return the ``columns`` and the first ``rows`` of a query, as many as an answer could have room for; the
    ``row_count``, at most MOST_ROWS; and whether there are more (``is_cut``). Raises QueryError for a query
    that is refused or fails."""
    refuse(connection, query)
    try:
        done = connection.execute(query)
        columns = [printable(name[:MOST_CELL_CHARACTERS]) for name, *_ in done.description or ()]
        if len(columns) > MOST_COLUMNS:
            raise QueryError(
                f"the query has {len(columns):,} columns, more than {MOST_COLUMNS}: select fewer columns"
            )
        rows, row_count = _first_rows(done)
        is_cut = done.fetchone() is not None
    except duckdb.Error as error:
        raise QueryError(readable(error)) from error
    return {"columns": columns, "rows": rows, "row_count": row_count, "is_cut": is_cut}


def _first_rows(done: duckdb.DuckDBPyConnection) -> tuple[list[list[Any]], int]:
    """Return the first rows of a query, up to MOST_CHARACTERS, and how many it has, up to MOST_ROWS."""
    rows: list[list[Any]] = []
    row_count = characters = 0
    for row in islice(iter(done.fetchone, None), MOST_ROWS):
        row_count += 1
        if characters <= MOST_CHARACTERS:
            rows.append([_cell(value) for value in row])
            characters += len(json.dumps(rows[-1], ensure_ascii=False))
    return rows, row_count


def _cell(value: Any) -> Any:
    """Return a value for JSON; long text is cut."""
    if isinstance(value, Decimal):
        value = float(value)
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    text = value.isoformat() if isinstance(value, date | datetime) else str(value)
    return printable(text if len(text) <= MOST_CELL_CHARACTERS else f"{text[:MOST_CELL_CHARACTERS]}…")


def refuse(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Raise QueryError for a query that is not one reading statement, and for one that asks for more than the
    published file: DuckDB's parser says what it uses."""
    if not is_one_reading(connection, query):
        raise QueryError(f"sql runs {_KINDS}")
    ((text,),) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    parsed = json.loads(text)
    if parsed["error"]:
        raise QueryError(f"sql runs {_KINDS}: {parsed['error_message']}")
    macros = _names(
        connection, "SELECT function_name FROM duckdb_functions() WHERE database_name = 'gpufare'"
    )
    refused = _names(connection, "SELECT view_name FROM duckdb_views() WHERE internal").difference(_CATALOGUE)
    for kind, name in _uses(parsed, macros):
        if (
            (kind == "table_function" and name not in macros.union(_TABLE_FUNCTIONS))
            or (kind in ("table", "text") and name in refused)
            or (kind == "function" and name in _REFUSED_FUNCTIONS)
        ):
            raise QueryError(f"sql reads only the published file: {name} is not part of it")
        if kind == "computed":
            raise QueryError(f"the arguments of a macro must be written out: {name} is not allowed there")


def _names(connection: duckdb.DuckDBPyConnection, query: str) -> set[str]:
    return {name for (name,) in connection.execute(query).fetchall()}


def _uses(node: Any, macros: Collection[str]) -> Iterator[tuple[str, str]]:
    """Return what a parsed statement uses, each with its kind: tables, table functions, functions, texts,
    which could name a table for a macro, and what would compute an argument of a table macro."""
    if isinstance(node, list):
        for each in node:
            yield from _uses(each, macros)
    if not isinstance(node, dict):
        return
    match node.get("type"):
        case "TABLE_FUNCTION":
            name = node["function"]["function_name"].lower()
            arguments = node["function"]["arguments"]
            yield "table_function", name
            yield from _in_arguments(arguments) if name in macros else _uses(arguments, macros)
            return
        case "BASE_TABLE":
            yield "table", node["table_name"].lower()
        case "FUNCTION":
            yield "function", node["function_name"].lower()
        case "VALUE_CONSTANT":
            yield "text", _table_named(node["literal"]["text"])
    for each in node.values():
        yield from _uses(each, macros)


def _in_arguments(node: Any) -> Iterator[tuple[str, str]]:
    """Return what the arguments of a table macro use. They may be constants, names and literals of these:
    with anything else, a query could compute the name of a table."""
    if isinstance(node, list):
        for each in node:
            yield from _in_arguments(each)
    if not isinstance(node, dict):
        return
    kind = node.get("type")
    name = node["function_name"].lower() if kind == "FUNCTION" else kind
    if kind == "VALUE_CONSTANT" and node["literal"]["kind"] in _CONSTANTS:
        yield "text", _table_named(node["literal"]["text"])
    elif kind == "COLUMN_REF":  # DuckDB takes a name for that of a table
        yield "text", _table_named(node["column_names"][-1])
    elif name is None or name in _LITERALS:
        for each in node.values():
            yield from _in_arguments(each)
    else:
        yield "computed", name


def _table_named(text: str) -> str:
    """Return the table that a text names for a macro, without its schema."""
    return text.lower().replace('"', "").rpartition(".")[2].strip()


if __name__ == "__main__":
    main()
