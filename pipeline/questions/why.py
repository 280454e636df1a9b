"""Explanations of an answer, of a GPU that is not the answer, and of a job's cost on earlier days."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from pipeline.questions.job import Job, JobError, NoAnswerError
from pipeline.questions.numbers import number_text
from pipeline.questions.reasons import why_not_text, worse_text
from pipeline.questions.session import JOBS, RANKED, Session
from pipeline.questions.words import OLD_PRICE_DAYS, machine_lines, nothing_fits, total_parts
from pipeline.warehouse.query import Result

_PARTS = f"SELECT part, usd FROM why_total('{RANKED}') WHERE rank = ? ORDER BY place"  # noqa: S608

# A family is judged by its best card: the card ranked first, or else the card that came closest.
_WHY_NOT = """
SELECT n.* EXCLUDE (job)
FROM why_not_for('{jobs}', '{plans}', '{ranked}') AS n
JOIN gpu_readings(?) AS g ON list_contains(g.cards, n.gpu_id)
ORDER BY n.rank NULLS LAST, list_position([
    'too_late', 'thin_evidence', 'too_expensive', 'mostly_unused', 'interrupted_too_often',
    'stops_before_the_end', 'host_memory_too_small', 'network_too_slow', 'not_rented_in_that_number',
    'not_offered_so', 'not_asked_for', 'no_price', 'fits_in_another_number', 'might_not_fit', 'does_not_fit',
    'not_planned'
], n.reason), n.gpu_id
"""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One answer for a job and its cost: the answer's ``row`` of ``cheapest_for``, the ``parts`` of its total
    (part, usd, how), the number ``of`` answers, and, in words, where the job's quotes and own ``machines``
    rank. ``why_not`` contains the rows of ``why_not_for`` for the GPU that was asked about, with the reason
    in words (detail). ``checked`` says how far off the model was on published runs, if there are any."""

    row: dict[str, Any]
    parts: Result
    why_not: list[dict[str, Any]]
    of: int
    machines: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()


def explain(session: Session, job: Job, rank: int = 1, not_gpu: str | None = None) -> Explanation:
    """Explain the answer with this rank. Raises JobError if nothing can run the job, and for an unknown rank
    or GPU."""
    ranked = session.rank(job)
    if not ranked.rows:
        raise NoAnswerError(nothing_fits(job, session))
    if len(ranked.rows) < rank:
        raise JobError(f"the ranking has {len(ranked.rows)} rows: there is no rank {rank}")
    row = next(Result(ranked.columns, ranked.types, [ranked.rows[rank - 1]]).dicts())
    parts, how = session.ask(_PARTS, [rank]), total_parts(row)
    return Explanation(
        row,
        Result(
            (*parts.columns, "how"), (*parts.types, "VARCHAR"), [(*part, how[part[0]]) for part in parts.rows]
        ),
        [] if not_gpu is None else _why_not(session, job, not_gpu, list(ranked.dicts()), row),
        len(ranked.rows),
        tuple(machine_lines(job, session, 0)),
        tuple(_checked(session, row["evidence"])),
    )


_ACCURACY = """
SELECT
    CASE
        WHEN quantity = 'memory' THEN 'memory'
        WHEN grouped_by = 'all' THEN 'speeds were off'
        ELSE $1 || ' speeds were off'
    END,
    stranger_median_error, runs, stranger_share_in_band
FROM main.model_accuracy_summary
WHERE stranger_share_in_band IS NOT NULL
    AND (grouped_by = 'all' OR (quantity = 'speed' AND grouped_by = 'evidence' AND "group" = $1))
QUALIFY row_number() OVER (PARTITION BY quantity ORDER BY grouped_by = 'all') = 1
ORDER BY quantity DESC
"""


def _checked(session: Session, evidence: str) -> list[str]:
    """Return how far off the model was on published runs in a sentence, for speeds with this kind of evidence
    if there are such runs; no sentence if there are no runs."""
    found = [
        f"{what} by {error:.0%} in {runs:,} ({in_band:.0%} within the band)"
        for what, error, runs, in_band in session.ask(_ACCURACY, [evidence]).rows
    ]
    return [f"Checked on published runs of unseen sources: {', '.join(found)}."] if found else []


def _why_not(
    session: Session, job: Job, gpu: str, ranked: list[dict[str, Any]], best: dict[str, Any]
) -> list[dict[str, Any]]:
    query = _WHY_NOT.format(jobs=JOBS, plans=session.plans(complete=True), ranked=RANKED)
    rows = list(session.ask(query, [gpu]).dicts())
    for row in rows:
        is_worse = row["rank"] is not None and row["rank"] > best["rank"]
        row["detail"] = worse_text(ranked[row["rank"] - 1], best) if is_worse else why_not_text(row)
    is_left_out = bool(rows) and rows[0]["reason"] == "not_asked_for"
    if is_left_out and (each := session.cheapest_on(job, rows[0]["gpu_id"])):
        rows[0]["detail"] += (
            f"; otherwise {each['gpu_count']} of it at {each['provider']} would cost "
            f"${each['total_usd']:,.2f} and take {number_text(each['hours'])} hours"
        )
    if not rows:
        session.ask("SELECT one_gpu(?)", [gpu])  # raises JobError with the nearest names
        raise JobError(f"no reason is known why {gpu} is not the answer")
    return rows


HISTORY_LEAVES_OUT = (
    "each day's prices with today's plans and terms, for what can be rented today: sources, cards and tiers "
    "that have disappeared since are skipped"
)


def history(session: Session, job: Job) -> Result:
    """Return the job's lowest cost on each day on record: the rows of ``cost_history``. Raises JobError."""
    for name in ("quote", "own"):
        if job[name] is not None:
            raise JobError(f"{name}: own machines and quotes have no price history; leave out {name}")
    session.rank(job)
    query = f"SELECT * EXCLUDE (job) FROM cost_history('{JOBS}', '{RANKED}') ORDER BY day"  # noqa: S608
    return session.ask(query)


def age_of_newest(days: Result, today: date) -> str:
    """Return the age of the newest price in a history, in words."""
    newest = max(row["price_day"] for row in days.dicts())
    age_days = (today - newest).days
    ago = "today" if age_days == 0 else f"{age_days} day{'' if age_days == 1 else 's'} ago"
    return f"the newest price here is from {newest}, {ago}"


NAMED = 5
"""The most other cards of a family that are named."""


def why_not_sentences(explanation: Explanation) -> list[str]:
    """Explain in words why the GPU that was asked about is not the answer: what rules it out or makes it
    dearer, and then its rank and cost."""
    lines = []
    for other in explanation.why_not[:1]:
        best = explanation.row
        if other["rank"] is None:
            lines.append(f"{other['gpu_id']} is not ranked: {other['detail']}.")
            continue
        place = f"rank {other['rank']} of {explanation.of}"
        if other["rank"] == best["rank"]:
            which = "the" if best["rank"] == 1 else "this"
            lines.append(f"{other['gpu_id']} is {which} answer ({place}).")
            continue
        reason = other["detail"] if other["rank"] > best["rank"] else f"ranked before rank {best['rank']}"
        more = other["total_usd"] - best["total_usd"]
        lines.append(
            f"{other['gpu_id']}: {reason}. {place.capitalize()}: {other['gpu_count']} of it at "
            f"{other['provider']}, ${other['total_usd']:,.2f} (${abs(more):,.2f} "
            f"{'more' if more >= 0 else 'less'}), {number_text(other['hours'])} hours."
        )
    return [*lines, *_others(explanation.why_not[1:])]


def _others(why_not: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence on the other cards of a family: which are ranked, and how many are not."""
    ranked = [f"{each['gpu_id']} (rank {each['rank']})" for each in why_not if each["rank"] is not None]
    parts = []
    if ranked:
        more = f" and {len(ranked) - NAMED} more" if len(ranked) > NAMED else ""
        parts.append(f"ranked are {', '.join(ranked[:NAMED])}{more}")
    if missing := len(why_not) - len(ranked):
        parts.append(f"{missing} {'is' if missing == 1 else 'are'} not ranked")
    return [f"Of the other cards of that name, {'; '.join(parts)}."] if parts else []


WATCHED = (
    "total_usd", "total_usd_low", "total_usd_high", "hours", "gpu_id", "gpu", "gpu_count", "provider",
    "source", "price_kind", "usd_per_hour", "price_day", "price_age_days", "source_url",
)  # fmt: skip
"""Columns of the cheapest answer that a watch reports."""


def watched(session: Session, job: Job, limit_usd: float) -> dict[str, Any]:
    """Compare the cheapest answer with ``limit_usd`` US dollars; if there is no answer, ``reason`` says why.
    Raises JobError."""
    if not 0 < limit_usd < math.inf:
        raise JobError(f"the limit must be above 0 US dollars and finite, not {limit_usd}")
    rows = list(session.cheapest(job, 1).dicts())
    best = {name: rows[0][name] if rows else None for name in WATCHED}
    age_days = best["price_age_days"]
    best["stale"] = None if age_days is None else age_days > OLD_PRICE_DAYS
    below = bool(rows) and float(rows[0]["total_usd"]) < limit_usd
    reason = None if rows else nothing_fits(job, session)
    return {"below": below, "limit_usd": limit_usd, **best, "reason": reason}
