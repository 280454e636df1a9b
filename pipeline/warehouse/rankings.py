"""The best of the ranking of each published day, saved so that later builds show it as it was published."""

from collections.abc import Sequence
from datetime import date

import duckdb

from pipeline.home.disk import replacing
from pipeline.home.paths import Home
from pipeline.record.record_files import RecordFile
from pipeline.warehouse.connection import quoted

SAVED_RANKS = 5
"""So many of each workload, price kind and objective are saved: which of them are published may change."""

# Files of earlier versions have whole rankings, with some 80 columns.
_INSERT = """
INSERT INTO main.ranking_history BY NAME
SELECT
    if(
        r.day = parse_filename(r.filename, true)::DATE,
        r.day, error('it is of ' || r.day || ', which is not its place')
    ) AS day,
    workload, price_kind, objective, rank, gpu_id, gpu_count, node_count, source, provider, tier, term_days,
    total_usd, hours
FROM read_parquet(?, filename = true, union_by_name = true) AS r
JOIN (SELECT workload, scenario FROM main.workloads) AS w USING (workload)
WHERE is_kept_ranking(scenario, price_kind, objective, rank)
ORDER BY day, workload, price_kind, objective, rank
"""


def insert_rankings(connection: duckdb.DuckDBPyConnection, files: Sequence[RecordFile]) -> None:
    """Insert what is published of saved rankings of past days."""
    connection.execute(_INSERT, [[str(file.path) for file in files]])


def save_ranking(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> None:
    """Save the ranking of ``day``. Raises UnwritableError."""
    with replacing(home.rankings / f"{day}.parquet") as temporary:
        connection.execute(
            "COPY (SELECT day, workload, price_kind, objective, rank, gpu_id, gpu_count, node_count, source,"  # noqa: S608
            " provider, tier, term_days, total_usd, hours FROM main.cheapest_gpu_per_workload"
            f" WHERE rank <= {SAVED_RANKS} ORDER BY workload, price_kind, objective, rank)"
            f" TO '{quoted(temporary)}' (FORMAT parquet)"
        )
