"""Questions asked of one open database: a job is checked, planned once, and ranked for every question."""

from collections import OrderedDict
from functools import cached_property
from itertools import count
from typing import Any

import duckdb

from pipeline.questions.job import Job, JobError, NoAnswerError
from pipeline.warehouse.query import QueryError, Result, ask

KEPT_PLANS = 32
"""Number of jobs whose plans are kept: about 700 narrow rows per job."""

JOBS, RANKED = "gpufare_jobs", "gpufare_ranked"
"""Temporary tables of the current question: the job with its defaults, and all of the job's answers."""

_PLAN_TABLES = (f"gpufare_plans_{number}" for number in count(1))
"""Names of tables that no other session on the same connection uses."""

_COMPLETED = """
CREATE OR REPLACE TEMP TABLE {jobs} AS
WITH gpufare_asked AS (SELECT {columns})
SELECT * REPLACE ({most_rows}::INTEGER AS most_rows) FROM checked_jobs('gpufare_asked')
"""

# All published plans fit.
_PUBLISHED = """
CREATE TEMP TABLE {table} AS SELECT *, NULL::VARCHAR AS infeasible_reason FROM plans_at_hand('{jobs}')
"""
# DuckDB plans jobs from a table 30 ms faster than jobs from a query.
_TO_PLAN = """
CREATE OR REPLACE TEMP TABLE gpufare_to_plan AS SELECT * REPLACE ({most_gpus} AS max_gpus) FROM {jobs}
"""
_RELAXED = """
CREATE OR REPLACE TEMP TABLE gpufare_to_plan AS
SELECT * REPLACE ({most_gpus} AS max_gpus) FROM relaxed_jobs('{jobs}', '{plans}') WHERE relaxed IS NOT NULL
"""
_WITH_RELAXED = """
CREATE OR REPLACE TEMP TABLE gpufare_relaxed AS
FROM {plans}
UNION ALL BY NAME
FROM job_plans('gpufare_to_plan')
"""
_RANKED = "FROM ranked_jobs('{jobs}', '{plans}')"

ROWS_WITH_PICKS = 4
"""A ranking of at least this many rows has the first answer and all picks."""


class Session:
    """Answers questions on one open database. Plans are kept in temporary tables: a job that differs only in
    tokens, deadline or filters is not planned again."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._plans: OrderedDict[tuple[Any, ...], tuple[int, str]] = OrderedDict()
        self._job: dict[str, Any] = {}

    def ask(self, query: str, parameters: list[Any] | None = None) -> Result:
        """Return the result of a query on the database. Raises JobError if a macro refuses the job."""
        try:
            return ask(self.connection, query, parameters or [])
        except QueryError as error:
            raise _job_error(error) from error

    def complete(self, job: Job, most_rows: int | None = None) -> dict[str, Any]:
        """Check a job, fill in its defaults and keep it as the one row of ``JOBS``. The job's ranking is
        limited to the first ``most_rows`` answers, if given. Raises JobError."""
        completed = _COMPLETED.format(
            jobs=JOBS,
            columns=", ".join(f"? AS {name}" for name in job.settings),
            most_rows="NULL" if most_rows is None else most_rows,
        )
        self.ask(completed, [*job.settings.values()])
        row = next(self.ask(f"FROM {JOBS}").dicts())
        if row["refusal"] is not None:
            raise JobError(row["refusal"])
        self._job = row
        return row

    def plans(self, most_gpus: int = 0, *, every_gpu: bool = False, complete: bool = False) -> str:
        """Return the name of the temporary table with the plans of the job that was completed last, up to the
        number of GPUs that the job asks for, or up to ``most_gpus`` if that is more. The plans are kept from
        an earlier question, taken from the published file, or made now.

        Plans are made for the GPUs that an answer can have, or for all GPUs with ``every_gpu``. With
        ``complete``, published plans are not used, since they leave out plans that do not fit."""
        wanted = min(max(self._job["max_gpus"], most_gpus), self.most_gpus)
        key = (every_gpu, complete, *self._planner_reads())
        kept = self._plans.pop(key, None)
        if kept is not None and kept[0] < wanted:
            self.ask(f"DROP TABLE {kept[1]}")
            kept = None
        if kept is None:
            kept = (not complete and self._published()) or self._planned(wanted, every_gpu or complete)
        self._plans[key] = kept
        if len(self._plans) > KEPT_PLANS:
            _, (_, oldest) = self._plans.popitem(last=False)
            self.ask(f"DROP TABLE {oldest}")
        return kept[1]

    @cached_property
    def _settings(self) -> list[str]:
        """The settings that the planner reads besides the number of GPUs."""
        ((names,),) = self.ask("SELECT plan_columns()").rows
        return [name for name in names if name != "max_gpus"]

    @cached_property
    def most_gpus(self) -> int:
        """The largest number of GPUs for which plans are made."""
        return int(self.ask("SELECT max_gpus FROM plan_defaults()").rows[0][0])

    @cached_property
    def _rented(self) -> set[str]:
        """The GPUs that can be rented."""
        return {gpu for (gpu,) in self.ask("SELECT DISTINCT gpu_id FROM main.rentals").rows}

    def _planner_reads(self) -> tuple[Any, ...]:
        """Return the values, besides the number of GPUs, on which the job's plans depend."""
        named = {machine["gpu_id"] for machine in self._job["machines"]} - self._rented
        return (*(self._job.get(name) for name in self._settings), *sorted(named))

    def _published(self) -> tuple[int, str] | None:
        """Return the plans in the published file; None if the file contains no plans for this job."""
        table = next(_PLAN_TABLES)
        ((plans,),) = self.ask(_PUBLISHED.format(table=table, jobs=JOBS)).rows
        if plans:
            return self.most_gpus, table
        self.ask(f"DROP TABLE {table}")
        return None

    def _planned(self, most_gpus: int, every_gpu: bool) -> tuple[int, str]:
        table = next(_PLAN_TABLES)
        to_plan = JOBS if every_gpu else f"with_rented_gpus('{JOBS}')"
        self.ask(_TO_PLAN.format(jobs=to_plan, most_gpus=most_gpus))
        self.ask(f"CREATE TEMP TABLE {table} AS FROM job_plans('gpufare_to_plan')")
        return most_gpus, table

    def nearest(self) -> Result:
        """Return why the job that was completed last has no answer: the rows of ``nearest_answers``."""
        plans = self.plans(self.most_gpus, every_gpu=True)
        self.ask(_RELAXED.format(jobs=JOBS, plans=plans, most_gpus=self.most_gpus))
        self.ask(_WITH_RELAXED.format(plans=plans))
        return self.ask(f"FROM nearest_answers('{JOBS}', 'gpufare_relaxed')")

    def machine_ranks(self, job: Job) -> list[dict[str, Any]]:
        """Return the ranks of a job's machines: the rows of ``machine_ranks``. Raises JobError."""
        self.rank(job)
        query = f"FROM machine_ranks('{JOBS}', '{{}}', '{RANKED}')"
        rows = list(self.ask(query.format(self.plans())).dicts())
        if any(row["reason"] == "not_planned" for row in rows):  # plans that do not fit are not published
            rows = list(self.ask(query.format(self.plans(complete=True))).dicts())
        return rows

    def cheapest(self, job: Job, limit: int | None = None) -> Result:
        """Return the first ``limit`` ranked ways to run the job, or all ways, with the columns of
        ``cheapest_for``. Raises JobError."""
        self.complete(job, limit)
        return self.ask(f"{_RANKED.format(jobs=JOBS, plans=self.plans())} ORDER BY rank")

    def with_picks(self, job: Job, limit: int = 0) -> Result:
        """Return the first ``limit`` ranked ways to run the job, and in any case the first and all picks.
        Raises JobError."""
        return self.cheapest(job, max(limit, ROWS_WITH_PICKS))

    def rank(self, job: Job) -> Result:
        """Return the whole ranking of the job and keep it in ``RANKED``. Raises JobError."""
        self.complete(job)
        ranked = _RANKED.format(jobs=JOBS, plans=self.plans())
        self.ask(f"CREATE OR REPLACE TEMP TABLE {RANKED} AS {ranked}")
        return self.ask(f"FROM {RANKED} ORDER BY rank")


def _job_error(error: QueryError) -> JobError:
    """Return why a macro refuses a job, or what the published file lacks, in one line."""
    reason = str(error).splitlines()[0]
    if isinstance(error.__cause__, duckdb.CatalogException | duckdb.BinderException):
        return NoAnswerError(
            f"the published file was made by an earlier version of gpufare: run `gpufare refresh` ({reason})"
        )
    return JobError(reason)
