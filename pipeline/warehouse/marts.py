"""Fills one published table with the query of the same name in sql/marts.

A query whose result grows with the market says in a line "in parts by ..." what it can be taken apart by. It
then runs for some keys at a time, those in the variable ``part``, so that its memory is bounded; its rows are
in the order of these keys, so that the parts are in the order of the whole.
"""

import re
from collections.abc import Iterable, Iterator

import duckdb

from pipeline.home import paths
from pipeline.warehouse.sql_files import BuildError

ROWS_IN_A_PART = 500_000
"""Rows that the query of a part works on at most, but for a single key with more: some 600 bytes each."""

# Each key with the rows that it means, in order.
_PARTS = {
    # Ways to rent that are priced.
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
    # Candidates of plans: some 20,000 for each job.
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
    """Each key that a query can be taken apart by, in order, with the rows that it works on at most."""
    return connection.execute(_PARTS[by]).fetchall()


def in_parts(weights: Iterable[tuple[str, int]]) -> Iterator[list[str]]:
    """Successive keys, together as long as their rows are at most ROWS_IN_A_PART."""
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
    """Whether the query is marked as depending on the catalogue and the model only."""
    return query_of(table).startswith("-- timeless")


def query_of(table: str) -> str:
    """The query that computes a table."""
    return (paths.SQL_DIR / "marts" / f"{table}.sql").read_text(encoding="utf-8").rstrip().rstrip(";")
