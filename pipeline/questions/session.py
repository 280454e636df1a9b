"""Questions to one open database: a job is checked, planned once, and ranked as often as it is asked."""

from collections import OrderedDict
from typing import Any

import duckdb

from pipeline.questions.job import Job, job_error
from pipeline.warehouse.query import QueryError, Result, ask

KEPT_PLANS = 32
"""Plans of so many jobs are kept: some 700 narrow rows each."""

MOST_GPUS = 64
"""Plans are for up to so many GPUs."""

ASKED, JOBS, RANKED = "gpufare_asked", "gpufare_jobs", "gpufare_ranked"
"""Temporary tables of the question that is being answered: what was given, with its defaults, and ranked."""

_PLANNER_READS = """
SELECT COLUMNS(lambda name: list_contains(plan_columns(), name) AND name <> 'max_gpus')::VARCHAR, max_gpus
FROM {jobs}
"""

# All of them fit.
_PUBLISHED = """
CREATE TEMP TABLE {table} AS SELECT *, NULL::VARCHAR AS infeasible_reason FROM published_plans('{jobs}')
"""
_TO_PLAN = """
CREATE OR REPLACE TEMP TABLE gpufare_to_plan AS SELECT * REPLACE ({most_gpus} AS max_gpus) FROM {jobs}
"""
_RANKED = """
SELECT r.*, p.as_of_day AS day
FROM ranked_jobs('{jobs}', '{plans}') AS r
CROSS JOIN main.publication AS p
"""


class Session:
    """Answers questions on one open database. What the planner said of a job is kept in temporary tables, so
    that other tokens, deadlines and filters ask it no second time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._plans: OrderedDict[tuple[Any, ...], tuple[int, str]] = OrderedDict()
        self._made = 0

    def ask(self, query: str, parameters: list[Any] | None = None) -> Result:
        """The answer of a query on the database; JobError where a macro refuses the job."""
        try:
            return ask(self.connection, query, parameters or [])
        except QueryError as error:
            raise job_error(error) from error

    def complete(self, job: Job) -> dict[str, Any]:
        """Check a job and fill in its defaults, as the one row of ``JOBS``. Raises JobError."""
        columns = ", ".join(f"? AS {name}" for name in job.settings)
        self.ask(f"CREATE OR REPLACE TEMP TABLE {ASKED} AS SELECT {columns}", [*job.settings.values()])
        self.ask(f"CREATE OR REPLACE TEMP TABLE {JOBS} AS FROM completed_jobs('{ASKED}')")
        return next(self.ask(f"FROM {JOBS}").dicts())

    def plans(self, most_gpus: int = 0, *, complete: bool = False) -> str:
        """The temporary table with the plans of the job that was completed last, for as many GPUs as it asks
        for, and for ``most_gpus`` at least: kept from before, published, or planned now.

        Published plans lack those that do not fit; with ``complete`` they are not used."""
        *settings, asked_gpus = self.ask(_PLANNER_READS.format(jobs=JOBS)).rows[0]
        wanted, key = min(max(asked_gpus, most_gpus), MOST_GPUS), (complete, *settings)
        kept = self._plans.pop(key, None)
        if kept is not None and kept[0] < wanted:
            self.ask(f"DROP TABLE {kept[1]}")
            kept = None
        if kept is None:
            kept = (not complete and self._published()) or self._planned(wanted)
        self._plans[key] = kept
        if len(self._plans) > KEPT_PLANS:
            _, (_, oldest) = self._plans.popitem(last=False)
            self.ask(f"DROP TABLE {oldest}")
        return kept[1]

    def _published(self) -> tuple[int, str] | None:
        """The plans that the file has ready; None where it has none for such a job."""
        table = self._new_table()
        try:
            ask(self.connection, _PUBLISHED.format(table=table, jobs=JOBS))
        except QueryError as error:
            if "no plans are published" in str(error):
                return None
            raise job_error(error) from error
        return MOST_GPUS, table

    def _planned(self, most_gpus: int) -> tuple[int, str]:
        table = self._new_table()
        self.ask(_TO_PLAN.format(jobs=JOBS, most_gpus=most_gpus))
        self.ask(f"CREATE TEMP TABLE {table} AS FROM job_plans('gpufare_to_plan')")
        return most_gpus, table

    def _new_table(self) -> str:
        self._made += 1
        return f"gpufare_plans_{self._made}"

    def nearest(self) -> Result:
        """Why the job that was completed last has no answer: the rows of ``nearest_answers``."""
        plans = self.plans(MOST_GPUS)
        return self.ask(f"FROM nearest_answers('{JOBS}', '{plans}')")

    def cheapest(self, job: Job, limit: int | None = None) -> Result:
        """The ranked ways to run the job, all columns of ``cheapest_for``: the first ``limit``, or all.
        Raises JobError."""
        self.complete(job)
        plans = self.plans()
        self.ask(f"CREATE OR REPLACE TEMP TABLE {RANKED} AS {_RANKED.format(jobs=JOBS, plans=plans)}")
        most = "" if limit is None else f"LIMIT {limit:d}"
        return self.ask(f"FROM {RANKED} ORDER BY rank {most}")
