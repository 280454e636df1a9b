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
from pathlib import Path
from typing import Any

import duckdb

from pipeline.contracts.errors import GpufareError
from pipeline.home.processes import limit_memory
from pipeline.parsing.printable import printable
from pipeline.warehouse.query import QueryError, readable, reader

MOST_SECONDS = 10
MOST_MEMORY_BYTES = 2**31
MOST_ROWS = 1_000
MOST_CELL_CHARACTERS = 300

_CATALOGUE = ("columns", "duckdb_columns", "duckdb_functions", "duckdb_tables", "duckdb_views", "tables")
"""What a query may ask DuckDB about: the tables, columns and macros of the published file."""

_TABLE_FUNCTIONS = ("generate_series", "range", "unnest", *_CATALOGUE)
"""The table functions that a query may use besides the published macros; all others read files or tell of
this machine."""

_LITERALS = ("list_value", "struct_pack")
"""The functions that the parser makes of a written list or struct."""

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
        found = {"refusal": str(error) or "the query needs too much memory: ask for less"}
    print(json.dumps(found))


def answer(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    """Return the ``columns`` and the first ``rows`` of a query, and whether it ``is_cut``. Raises QueryError
    for a query that is refused or fails."""
    refuse(connection, query)
    try:
        done = connection.execute(query)
        rows = done.fetchmany(MOST_ROWS + 1)
    except duckdb.Error as error:
        raise QueryError(readable(error)) from error
    columns = [printable(name)[:MOST_CELL_CHARACTERS] for name, *_ in done.description or ()]
    return {
        "columns": columns,
        "rows": [[_cell(value) for value in row] for row in rows[:MOST_ROWS]],
        "is_cut": len(rows) > MOST_ROWS,
    }


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
    try:
        kinds = [statement.type for statement in connection.extract_statements(query)]
    except duckdb.Error as error:
        raise QueryError(readable(error)) from error
    if kinds != [duckdb.StatementType.SELECT]:
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


def _uses(node: Any, macros: Collection[str], in_macro: bool = False) -> Iterator[tuple[str, str]]:
    """Return what a parsed statement uses, each with its kind: tables, table functions, functions, texts,
    which could name a table for a macro, and functions that compute an argument of a table macro."""
    if isinstance(node, list):
        for each in node:
            yield from _uses(each, macros, in_macro)
    if not isinstance(node, dict):
        return
    match node.get("type"):
        case "TABLE_FUNCTION":
            name = node["function"]["function_name"].lower()
            yield "table_function", name
            yield from _uses(node["function"]["arguments"], macros, name in macros)
            return
        case "BASE_TABLE":
            yield "table", node["table_name"].lower()
        case "FUNCTION":
            name = node["function_name"].lower()
            yield "computed" if in_macro and name not in _LITERALS else "function", name
        case "VALUE_CONSTANT":
            yield "text", str(node["literal"]["text"]).lower().replace('"', "").rpartition(".")[2].strip()
    for each in node.values():
        yield from _uses(each, macros, in_macro)


if __name__ == "__main__":
    main()
