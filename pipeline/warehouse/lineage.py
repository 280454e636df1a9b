"""Finds the tables and macros that each table and macro of sql/ reads, using DuckDB's parser.

Parsing does not bind names, so no table needs to exist.
"""

import re
from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import duckdb

from pipeline.catalog.schema import Column, read_table, table_names
from pipeline.warehouse.ddl import create_sql
from pipeline.warehouse.sql_files import BuildError, macro_scripts, scripts

# DuckDB serializes only SELECT statements, so the query of a macro is cut out of its CREATE statement.
_MACRO = re.compile(
    r"^CREATE OR REPLACE MACRO (?P<name>\w+)\s*\([^)]*\)\s*AS\b\s*(?P<table>TABLE\b)?(?P<query>.*?);$",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)

_NAMES = """
SELECT
    query,
    tree ->> 'error_message',
    regexp_extract_all(tree::VARCHAR, '"(?:table|function)_name":"([^"]*)"', 1)
FROM (SELECT query, json_serialize_sql(query) AS tree FROM (SELECT unnest(?::VARCHAR[]) AS query))
"""

_PARSED: dict[str, frozenset[str]] = {}
"""The names in each query that this process has parsed; they are the same for every connection."""


class Lineage:
    """The tables and macros of sql/, and those that each of them reads."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._tables = set(table_names())
        self._queries = {path.stem: path.read_text(encoding="utf-8") for path in scripts("marts")}
        self._marts = list(self._queries)
        self._macros: dict[str, Path] = {}
        for path in macro_scripts():
            for macro in _MACRO.finditer(path.read_text(encoding="utf-8")):
                self._macros[macro["name"]] = path
                self._queries[macro["name"]] = ("" if macro["table"] else "SELECT ") + macro["query"]

    def names_in(self, query: str) -> set[str]:
        """Return the tables and macros that a query names. Raises BuildError if parsing the query fails."""
        self._parse([query])
        return set(_PARSED[query]) & (self._tables | self._macros.keys())

    def parse(self, queries: Iterable[str] = ()) -> None:
        """Parse all marts, macros and the given queries in one statement.

        That takes half the time of one statement for each.
        Raises BuildError if parsing a query fails.
        """
        self._parse([*self._queries.values(), *queries])

    def _parse(self, queries: Iterable[str]) -> None:
        """Parse the queries that this process has not parsed yet."""
        new = [query for query in queries if query not in _PARSED]
        parsed = self._connection.execute(_NAMES, [new]).fetchall() if new else []
        for query, error, names in parsed:
            if error:
                raise BuildError(f"{error}, in the query {query}")
            _PARSED[query] = frozenset(names)

    def reads(self, name: str) -> set[str]:
        """Return the tables and macros named directly in a mart or macro; none for a table without a mart."""
        return self.names_in(self._queries[name]) - {name} if name in self._queries else set()

    def tables_read(self, name: str) -> set[str]:
        """Return the other tables that a table or macro reads, directly or through macros."""
        return (self._read_by(name) & self._tables) - {name}

    def _read_by(self, name: str) -> set[str]:
        """Return the tables and macros that a table or macro reads, directly or through macros."""
        found: set[str] = set()
        waiting = {name}
        while waiting:
            new = self.reads(waiting.pop()) - found
            found |= new
            waiting |= new & self._macros.keys()
        return found

    def definition(self, table: str) -> list[str]:
        """Return the SQL that determines a table's rows: its own SQL, and that of the macros it uses."""
        files = {self._macros[name] for name in self._read_by(table) & self._macros.keys()}
        macros = [path.read_text(encoding="utf-8") for path in sorted(files)]
        return [create_sql(read_table(table)), self._queries.get(table, ""), *macros]

    def marts(self, wanted: Iterable[str] | None = None) -> list[str]:
        """Return the tables of sql/marts (or those that ``wanted`` needs), each after the tables it reads."""
        if wanted is None:
            self.parse()
        needed = self._marts if wanted is None else self._needed(wanted)
        reads = {name: self.tables_read(name) for name in self._marts if name in needed}
        return in_order(reads)

    def needed(self, wanted: Iterable[str]) -> tuple[list[str], list[Path]]:
        """Return the tables, and in order the macros' scripts, that the wanted tables and macros need."""
        needed = self._needed(wanted)
        macros = {path for name, path in self._macros.items() if name in needed}
        return sorted(needed & self._tables), [path for path in macro_scripts() if path in macros]

    def _needed(self, wanted: Iterable[str]) -> set[str]:
        found: set[str] = set()
        waiting = set(wanted)
        while waiting:
            name = waiting.pop()
            found.add(name)
            waiting |= (self.reads(name) | self._defined_with(name)) - found
        return found

    def _defined_with(self, name: str) -> set[str]:
        """Return the macros in the same script, which can only be run as a whole."""
        if name in self._tables:
            return set()
        if name not in self._macros:
            raise BuildError(f"sql/ defines no table or macro {name}")
        return {macro for macro, path in self._macros.items() if path == self._macros[name]}


def in_order(reads: Mapping[str, set[str]]) -> list[str]:
    """Return the tables, each after those it reads. Raises CycleError if the reads form a cycle."""
    graph = {name: sorted(read & reads.keys()) for name, read in sorted(reads.items())}
    return list(TopologicalSorter(graph).static_order())


class PublishedTable(NamedTuple):
    """A published table: its comment and columns, the tables that it reads, and the SQL that determines its
    rows."""

    name: str
    comment: str
    columns: list[Column]
    reads: set[str]
    definition: list[str]


def table_lineage(lineage: Lineage) -> list[PublishedTable]:
    """Return the published tables, each after the tables it reads. Raises BuildError and CatalogError."""
    reads = {name: lineage.tables_read(name) for name in table_names()}
    tables = [read_table(name) for name in in_order(reads)]
    return [
        PublishedTable(
            table.name,
            table.comment,
            table.described(),
            reads[table.name],
            lineage.definition(table.name),
        )
        for table in tables
    ]
