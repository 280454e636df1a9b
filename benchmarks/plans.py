"""How many plan candidates per second the model evaluates, and how long one question takes.

    python benchmarks/plans.py [--models 40] [--threads 2]

A candidate is one (model, method, sequence length, GPU, count, micro-batch, checkpointing, sharding): its
memory, fit and speed are evaluated, and none is pruned.
"""

import argparse
import time

import duckdb

from pipeline.warehouse.database import planner

JOBS = """
CREATE TABLE jobs AS
SELECT model, method, seq_len
FROM (SELECT model FROM main.models ORDER BY model LIMIT $1),
    (VALUES ('full'), ('lora'), ('qlora')) AS m (method),
    (VALUES (1024), (2048), (4096), (8192)) AS s (seq_len)
"""
CANDIDATES = "SELECT count(*), sum(tokens_per_second_per_gpu), max(needed_gib) FROM candidates_for('jobs')"
ONE_JOB = """
WITH my_job AS (SELECT 'llama-3.1-8b' AS model, 'qlora' AS method, 4096 AS seq_len)
SELECT gpu_id, gpu_count, tokens_per_second
FROM plans_for('my_job')
WHERE verdict = 'fits'
ORDER BY tokens_per_second DESC
LIMIT 10
"""


def _timed(
    connection: duckdb.DuckDBPyConnection, query: str, repeats: int
) -> tuple[float, float, list[tuple[object, ...]]]:
    """The least wall-clock and processor seconds of the repeats, and the result."""
    walls, processors = [], []
    rows: list[tuple[object, ...]] = []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        rows = connection.execute(query).fetchall()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return min(walls), min(processors), rows


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--models", type=int, default=40)
    arguments.add_argument("--threads", type=int, default=2)
    options = arguments.parse_args()
    connection = planner("plans_for")
    connection.execute(f"SET threads = {options.threads}")
    connection.execute(JOBS, [options.models])
    gpus = connection.execute("SELECT count(*) FROM main.gpus WHERE has_full_specs").fetchall()[0][0]
    wall, processor, rows = _timed(connection, CANDIDATES, 2)
    candidates = int(str(rows[0][0]))
    print(f"{options.models} models x 3 methods x 4 sequence lengths x {gpus} GPUs x GPU counts")
    print(f"candidates evaluated: {candidates:,}")
    print(f"  {wall:.2f} s wall clock on {options.threads} threads, {processor:.2f} s of processor time")
    print(f"  {candidates / wall / 1e6:.2f} million per second of wall clock")
    print(f"  {candidates / processor / 1e6:.2f} million per second of processor time")
    wall, processor, _ = _timed(connection, ONE_JOB, 7)
    print(f"one job on all GPUs: {wall * 1e3:.0f} ms wall clock, {processor * 1e3:.0f} ms of processor time")


if __name__ == "__main__":
    main()
