"""A job that is run again and again: the cost of a year, and whether to keep a machine all year."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.questions.job import Job
from pipeline.questions.numbers import number_text
from pipeline.questions.reasons import percent_text
from pipeline.questions.session import JOBS, Session
from pipeline.questions.words import way_text
from pipeline.warehouse.query import Result


def with_year(ranking: Result, runs_per_year: int) -> Result:
    """Return a ranking with the column year_usd: what ``runs_per_year`` runs cost in US dollars."""
    place = ranking.columns.index("total_usd")
    rows = [(*row, row[place] * runs_per_year) for row in ranking.rows]
    return Result((*ranking.columns, "year_usd"), (*ranking.types, ranking.types[place]), rows)


def kept_machines(session: Session, job: Job, runs_per_year: int) -> list[dict[str, Any]]:
    """Return the machines that cost least if they are kept all year for the runs of a job, one reserved and
    one quoted: the rows of the macro ``kept_machines``. Raises JobError."""
    session.complete(job)
    query = f"FROM kept_machines('{JOBS}', '{session.plans()}', ?)"
    return list(session.ask(query, [runs_per_year]).dicts())


def recurring_lines(
    rows: Sequence[Mapping[str, Any]], kept: Sequence[Mapping[str, Any]], runs_per_year: int
) -> list[str]:
    """Return the cost of a year in sentences: of machines rented for each run, and of ``kept`` machines.
    ``rows``: the first rows of the job's ranking."""
    rented = next((row for row in rows if row["price_kind"] not in ("quote", "own")), rows[0])
    year_usd = rented["total_usd"] * runs_per_year
    lines = [
        f"{runs_per_year} runs a year: ${year_usd:,.2f} if rank {rented['rank']} is rented for each, "
        f"{number_text(rented['hours'] * runs_per_year)} hours in all."
    ]
    if not any(each["price_kind"] == "reserved" for each in kept):
        lines.append("No machine that is in time can be reserved for a year of these runs.")
    return [*lines, *(_kept(each, rented, runs_per_year) for each in kept)]


def _kept(kept: Mapping[str, Any], rented: Mapping[str, Any], runs_per_year: int) -> str:
    count = "1 term" if kept["terms"] == 1 else f"{kept['terms']} terms"
    terms = f"{count} of {kept['term_days']} days" if kept["terms"] else "every hour of the year"
    return (
        f"Kept all year: {way_text(kept)}, {terms}, ${kept['year_usd']:,.2f}. The runs use "
        f"{percent_text(kept['share_used'])} of it; used without a break, it costs "
        f"${kept['least_run_usd']:,.2f} a run, against ${rented['total_usd']:,.2f}."
        f"{_break_even(rented, kept, runs_per_year)}"
    )


def _break_even(rented: Mapping[str, Any], kept: Mapping[str, Any], runs_per_year: int) -> str:
    """Return from how many runs a year on the kept machine costs less; empty if not even without a break."""
    if kept["least_run_usd"] >= rented["total_usd"]:
        return ""
    runs = float(kept["year_usd"] / rented["total_usd"])
    share = kept["share_used"] * runs / runs_per_year
    return f" It pays from {runs:,.0f} runs a year, when they use {percent_text(share)} of it."
