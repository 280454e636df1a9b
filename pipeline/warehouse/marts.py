"""Fills a published table with the query of the same name in sql/marts.

A query whose result grows with the market names a key in a line "in parts by ...". Such a query runs for a
few keys at a time (the variable ``part``), which limits its memory. The query orders its rows by that key, so
that the parts together are in the order of the whole.
"""

import re
from collections.abc import Iterable, Iterator

import duckdb

from pipeline.home import paths
from pipeline.warehouse.sql_files import BuildError

ROWS_IN_A_PART = 500_000
"""The maximum number of rows (of about 600 bytes) for a part's query, unless a single key has more."""

# Queries that return each key with its number of rows, in order.
_PARTS = {
    # The number of priced ways to rent.
    "workload": """
SELECT w.workload, coalesce(sum(r.ways), 0)::BIGINT
FROM main.workloads AS w
LEFT JOIN main.plans AS p
    ON p.model = w.model AND p.method = w.method AND p.seq_len = w.seq_len
    AND p.lora_rank IS NOT DISTINCT FROM w.lora_rank AND p.verdict <> 'does_not_fit'
LEFT JOIN (
    SELECT gpu_id, gpu_count, node_count, count(*) AS ways
    FROM main.rentals
    WHERE NOT is_undercut
    GROUP BY ALL
) AS r USING (gpu_id, gpu_count, node_count)
GROUP BY w.workload
ORDER BY w.workload""",
    # The number of candidate plans: about 20,000 per job.
    "model": """
SELECT model, 20000 * count(DISTINCT (method, seq_len, lora_rank))
FROM main.workloads
GROUP BY model
ORDER BY model""",
}


def fill(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Insert the rows of a table. Raises BuildError."""
    query = query_of(table)
    by = re.search(r"^-- in parts by (\w+)$", query, re.MULTILINE)
    try:
        if by is None:
            connection.execute(f"INSERT INTO main.{table} BY NAME {query}")
            return
        for part in in_parts(rows_by_key(connection, by[1])):
            connection.execute("SET VARIABLE part = ?", [part])
            connection.execute(f"INSERT INTO main.{table} BY NAME {query}")
        connection.execute("RESET VARIABLE part")
    except duckdb.Error as error:
        raise BuildError(f"sql/marts/{table}.sql: {error}") from error


def rows_by_key(connection: duckdb.DuckDBPyConnection, by: str) -> list[tuple[str, int]]:
    """Return the keys by which a query is divided, in order, each with the maximum number of rows that its
    part works on."""
    return connection.execute(_PARTS[by]).fetchall()


def in_parts(weights: Iterable[tuple[str, int]]) -> Iterator[list[str]]:
    """Group consecutive keys into parts of at most ROWS_IN_A_PART rows each."""
    part: list[str] = []
    rows = 0
    for key, weight in weights:
        if part and rows + weight > ROWS_IN_A_PART:
            yield part
            part, rows = [], 0
        part.append(key)
        rows += weight
    if part:
        yield part


def is_timeless(table: str) -> bool:
    """True if the table's query depends only on the catalogue and the model."""
    return query_of(table).startswith("-- timeless")


def query_of(table: str) -> str:
    """Return the query that computes a table."""
    return (paths.SQL_DIR / "marts" / f"{table}.sql").read_text(encoding="utf-8").rstrip().rstrip(";")
