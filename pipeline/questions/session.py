"""Questions asked of one open database: a job is checked, planned once, and ranked for every question."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Any

from pipeline.questions.job import Job, JobError, NoAnswerError
from pipeline.warehouse.engine import duckdb
from pipeline.warehouse.query import QueryError, Result, ask

KEPT_PLANS = 32
"""Number of jobs whose plans are kept: about 700 narrow rows per job."""

JOBS, RANKED = "gpufare_jobs", "gpufare_ranked"
"""Temporary tables of the current question: the job with its defaults, and all of the job's answers."""

_ASKED, _PLANNED = "gpufare_asked", "gpufare_planned"
"""The jobs that are ranked together, with their defaults, and their plans."""

_PLAN_TABLES = (f"gpufare_plans_{number}" for number in count(1))
"""Names of tables that no other session on the same connection uses."""

_COMPLETED = """
CREATE OR REPLACE TEMP TABLE {table} AS
WITH gpufare_given AS ({given})
SELECT * REPLACE ({most_rows}::INTEGER AS most_rows) FROM checked_jobs('gpufare_given')
"""
_FIRST = "CREATE OR REPLACE TEMP TABLE {jobs} AS FROM {asked} ORDER BY job LIMIT 1"

# All published plans fit.
_PUBLISHED = """
CREATE OR REPLACE TEMP TABLE {table} AS
SELECT *, NULL::VARCHAR AS infeasible_reason FROM plans_at_hand('{jobs}')
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
_JOBS_PLANNED = "SELECT count(DISTINCT job) FROM {plans}"
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
        self._ahead: dict[frozenset[tuple[str, Any]], Result] = {}

    def ask(self, query: str, parameters: list[Any] | None = None) -> Result:
        """Return the result of a query on the database. Raises JobError if a macro refuses the job."""
        try:
            return ask(self.connection, query, parameters or [])
        except QueryError as error:
            raise _job_error(error) from error

    def complete(self, job: Job, most_rows: int | None = None) -> dict[str, Any]:
        """Check a job, fill in its defaults and keep it as the one row of ``JOBS``. The job's ranking is
        limited to the first ``most_rows`` answers, if given. Raises JobError."""
        (self._job,) = self._completed(JOBS, [job], most_rows)
        return self._job

    def _completed(self, table: str, jobs: Sequence[Job], most_rows: int | None) -> list[dict[str, Any]]:
        """Check jobs, fill in their defaults, keep them in a table, and return its rows, in order. Raises
        JobError if the first job is wrong; the others are refused in their rows."""
        given = " UNION ALL BY NAME ".join(
            f"SELECT 'job {place}' AS job, " + ", ".join(f"? AS {name}" for name in job.settings)
            for place, job in enumerate(jobs, 1)
        )
        limit = "NULL" if most_rows is None else most_rows
        completed = _COMPLETED.format(table=table, given=given, most_rows=limit)
        self.ask(completed, [value for job in jobs for value in job.settings.values()])
        rows = list(self.ask(f"FROM {table} ORDER BY job").dicts())
        if rows[0]["refusal"] is not None:
            raise JobError(rows[0]["refusal"])
        return rows

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
        return self._ranked(JOBS, self.plans())

    def cheapest_on(self, job: Job, gpu_id: str) -> dict[str, Any] | None:
        """Return the cheapest way to run the job on this very card, whatever GPUs the job asks for; None if
        there is none. Raises JobError."""
        # A constraint on a card without a form factor means other cards, too.
        ranked = self.cheapest(job.but(gpu=gpu_id, exclude_gpu=None)).dicts()
        return next((row for row in ranked if row["gpu_id"] == gpu_id), None)

    def with_picks(self, job: Job, limit: int = 0, others: Sequence[Job] = ()) -> Result:
        """Return the first ``limit`` ranked ways to run the job, and in any case the first and all picks.

        ``others``: jobs whose picks are probably asked for next. If the file has plans for all of the jobs,
        they are ranked in one query, since DuckDB takes longer to plan a ranking than to run it. Raises
        JobError."""
        if not limit and (ready := self._ahead.get(_key(job))):
            return ready
        most_rows = max(limit, ROWS_WITH_PICKS)
        if not others:
            return self.cheapest(job, most_rows)
        jobs = [job, *others]
        rows = self._completed(_ASKED, jobs, most_rows)
        self.ask(_FIRST.format(jobs=JOBS, asked=_ASKED))
        self._job = rows[0]
        if any(row["refusal"] for row in rows) or not self._all_published(len(jobs)):
            return self._ranked(JOBS, self.plans())
        found = self._ranked(_ASKED, _PLANNED)
        of_job = found.columns.index("job")
        first, *rest = (
            replace(found, rows=[row for row in found.rows if row[of_job] == asked["job"]]) for asked in rows
        )
        self._ahead = dict(zip(map(_key, others), rest, strict=True))
        return first

    def _all_published(self, jobs: int) -> bool:
        """Read the plans for the jobs in ``_ASKED`` into ``_PLANNED``; True if each of them has plans."""
        self.ask(_PUBLISHED.format(table=_PLANNED, jobs=_ASKED))
        return self.ask(_JOBS_PLANNED.format(plans=_PLANNED)).rows == [(jobs,)]

    def _ranked(self, jobs: str, plans: str) -> Result:
        return self.ask(f"{_RANKED.format(jobs=jobs, plans=plans)} ORDER BY rank")

    def rank(self, job: Job) -> Result:
        """Return the whole ranking of the job and keep it in ``RANKED``. Raises JobError."""
        self.complete(job)
        ranked = _RANKED.format(jobs=JOBS, plans=self.plans())
        self.ask(f"CREATE OR REPLACE TEMP TABLE {RANKED} AS {ranked}")
        return self.ask(f"FROM {RANKED} ORDER BY rank")


def _key(job: Job) -> frozenset[tuple[str, Any]]:
    """Return what distinguishes a job from others."""
    return frozenset(job.settings.items())


def _job_error(error: QueryError) -> JobError:
    """Return why a macro refuses a job, or what the published file lacks, in one line."""
    reason = str(error).splitlines()[0]
    if isinstance(error.__cause__, duckdb.CatalogException | duckdb.BinderException):
        return NoAnswerError(
            f"the published file was made by an earlier version of gpufare: run `gpufare refresh` ({reason})"
        )
    return JobError(reason)
